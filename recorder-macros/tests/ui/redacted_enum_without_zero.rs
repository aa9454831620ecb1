//! A redacted field is recorded as zeros. So zeros must be a value of the field's type.
use eventring::schema::{EventPayload, PayloadField};

#[derive(PayloadField)]
#[repr(u8)]
enum Side {
    Buy = 1,
    Sell = 2,
}

#[derive(EventPayload)]
struct Order {
    #[event(redact)]
    side: Side,
}

fn main() {}
