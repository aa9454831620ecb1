//! Enums that cannot be lists of events.
use eventring::schema::EventType;

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
enum WithoutRepr {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[repr(u16)]
enum WithoutContentType {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum WithoutCode {
    Started,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum CodeZero {
    Started = 0,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum CodeOfRecordError {
    Started = 1,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NameOfRecordError {
    RecordError = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum EqualNames {
    DayEnded = 2,
    Day_Ended = 3,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum WithFields {
    Started(u8) = 2,
}

#[derive(EventType)]
#[event(content_type = 300)]
#[repr(u16)]
enum NotCopy {
    Started = 2,
}

fn main() {}
