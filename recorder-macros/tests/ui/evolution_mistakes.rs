//! Earlier names and defaults that would be ambiguous or without effect.
use eventring::schema::{EventPayload, EventType, PayloadField};

#[derive(EventPayload)]
struct AliasOfAnotherField {
    price: u64,
    #[event(alias = "price")]
    cost: u64,
}

#[derive(EventPayload)]
struct AliasTwice {
    #[event(alias = "a")]
    b: u64,
    #[event(alias = "a")]
    c: u64,
}

#[derive(EventPayload)]
struct NoName {
    #[event(alias = "a b")]
    c: u64,
}

#[derive(EventPayload)]
struct RedactedDefault {
    #[event(redact, default)]
    key: u64,
}

#[derive(EventPayload)]
struct DefaultOfAnotherType {
    #[event(default = "7")]
    count: u64,
}

#[derive(EventPayload)]
struct NoValue {
    #[event(default = , alias = "number")]
    count: u64,
}

#[derive(PayloadField)]
#[repr(u8)]
enum WithoutDefault {
    A = 1,
}

#[derive(EventPayload)]
struct NoDefault {
    #[event(default)]
    kind: WithoutDefault,
}

#[derive(PayloadField)]
#[repr(u8)]
enum DefaultValue {
    #[event(default)]
    A,
    #[event(alias = "A")]
    B,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum DefaultEvent {
    #[event(default)]
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum AliasOfAnotherEvent {
    Started = 2,
    #[event(alias = "STARTED")]
    Begun = 3,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum ValueOfAnArray {
    #[event(trailing(#[event(default = 7)] numbers: u64))]
    Started = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum OtherAttributeOfAnArray {
    #[event(trailing(#[serde(default)] numbers: u64))]
    Started = 2,
}

fn main() {}
