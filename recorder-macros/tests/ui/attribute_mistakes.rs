//! Attribute keys that do not exist, are in the wrong place, or appear twice.
use eventring::schema::{EventPayload, EventType};

#[derive(EventPayload)]
struct Order {
    #[event(redacted)]
    key: u64,
}

#[derive(EventPayload)]
#[event(redact)]
struct Secret {
    key: u64,
}

#[derive(EventPayload)]
#[event(name = "lower")]
struct Named {
    key: u64,
}

#[derive(EventPayload)]
#[event(name = "One", name = "Two")]
struct Twice {
    key: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, hash = "00")]
#[repr(u16)]
enum UnknownKey {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, schema_hash = "0123")]
#[repr(u16)]
enum ShortHash {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 0)]
#[repr(u16)]
enum NoContent {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, no_span, no_span)]
#[repr(u16)]
enum NoSpanTwice {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NoSpanOfOne {
    #[event(no_span)]
    Started = 2,
}

#[derive(EventPayload)]
struct RedactTrue {
    #[event(redact = true)]
    key: u64,
}

#[derive(EventPayload)]
struct RedactAll {
    #[event(redact(all))]
    key: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum RedactEvent {
    #[event(redact)]
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 1)]
#[repr(u16)]
enum NumberOfTest {
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 255)]
#[repr(u16)]
enum ReservedNumber {
    Started = 2,
}

fn main() {}
