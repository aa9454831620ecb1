//! Trailing arrays whose end a reader could not find.
use eventring::schema::{EventPayload, EventType};

#[derive(EventPayload)]
struct Order {
    fill_count: u32,
    price: f64,
    #[event(redact)]
    secret_count: u32,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NoSuchField {
    #[event(payload = Order, trailing(fills: u64 * filled_count))]
    OrderFilled1 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NotANumberOfElements {
    #[event(payload = Order, trailing(fills: u64 * price))]
    OrderFilled2 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum RedactedCount {
    #[event(payload = Order, trailing(fills: u64 * secret_count))]
    OrderFilled3 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NameOfAField {
    #[event(payload = Order, trailing(price: u64 * fill_count))]
    OrderFilled4 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum EmptyElements {
    #[event(payload = Order, trailing(nothing: [u8; 0]))]
    OrderFilled5 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum NotAField {
    #[event(payload = Order, trailing(notes: String * fill_count))]
    OrderFilled6 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum RestIsNotLast {
    #[event(payload = Order, trailing(note: u8, fills: u64 * fill_count))]
    OrderFilled7 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum CountWithoutPayload {
    #[event(trailing(fills: u64 * fill_count))]
    OrderFilled8 = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum PayloadIsNoStruct {
    #[event(payload = u32)]
    OrderFilled9 = 2,
}

fn main() {}
