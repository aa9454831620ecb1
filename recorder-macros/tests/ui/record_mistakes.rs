//! Calls that `record!` and `recordv!` refuse. The error messages are about the call.
use eventring::schema::{EventPayload, EventType, Utf8};
use eventring::{record, recordv};

#[derive(EventPayload)]
struct Order {
    id: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    OrderPlaced = 2,
    #[event(payload = Order, trailing(note: Utf8))]
    OrderNoted = 3,
    DayEnded = 4,
}

fn mistakes(recorder: &eventring::recorder::Recorder, order: &Order) {
    record!(recorder => Shop::OrderNoted, order);
    recordv!(recorder => Shop::OrderPlaced, order, [b"note"]);
    record!(recorder => Shop::OrderPlaced, order; 5);
    record!(recorder => Shop::OrderPlaced, &5u32);
    record!(Shop::DayEnded);
    let event = Shop::DayEnded;
    record!(recorder => event);
}

fn main() {}
