//! Invalid names of extension words.
use eventring::schema::EventType;
use eventring::{ext_scope, recordv};

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(4 = order))]
#[repr(u16)]
enum NoSuchWord {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order: time))]
#[repr(u16)]
enum NoSuchKind {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order, 1 = order))]
#[repr(u16)]
enum NameTwice {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order: seqno, 1 = order_seqno))]
#[repr(u16)]
enum NameTwiceInOutputs {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order, 0 = line))]
#[repr(u16)]
enum WordTwice {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(3 = order))]
#[repr(u16)]
enum SpansWord {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = span), no_span)]
#[repr(u16)]
enum SpansName {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order))]
#[repr(u16)]
enum CarriesAnother {
    #[event(carries(line))]
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = order))]
#[repr(u16)]
enum WithoutRecorder {
    Started = 2,
}

fn mistakes(recorder: &eventring::recorder::Recorder) {
    recordv!(recorder => raw(2), [b"x"]; order = 5);
    let _order = ext_scope!(WithoutRecorder, order = 5);
}

fn main() {}
