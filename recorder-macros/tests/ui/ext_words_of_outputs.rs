//! Names of extension words that outputs could not show, because each line has another key of this name.
use eventring::schema::EventType;

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = size, 1 = payload))]
#[repr(u16)]
enum KeysOfWatch {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(2 = content_ext))]
#[repr(u16)]
enum KeyOfExport {
    Started = 2,
}

// The key of this word is `size_index`, which no line has.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, ext(0 = size: index))]
#[repr(u16)]
enum KindInTheKey {
    Started = 2,
}

fn main() {}
