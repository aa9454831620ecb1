//! Typed events of a shop, for tests of typed events beside spans.

use crate::fixtures::*;

#[derive(EventPayload)]
pub struct Order {
    pub id: u64,
}

/// Events of the shop.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
#[allow(dead_code, reason = "each test file uses some of them")]
pub enum Shop {
    #[event(payload = Order)]
    OrderPlaced = 2,
    #[event(payload = Order)]
    OrderShipped = 3,
    #[event(payload = Order, trailing(note: Utf8))]
    OrderNoted = 4,
    DayEnded = 5,
}
