//! Records events of the program's own types.
//!
//! ```console
//! $ cargo run --example typed_events
//! $ cargo run --example reader        # in another terminal: decodes them
//! ```

use eventring::global::GlobalRecorder;
use eventring::schema::{PayloadField, Utf8};
use eventring::{EventPayload, EventType, record, recordv};
use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

/// The way in which an order is paid. An enum without fields is recorded as its number; readers show its name.
#[derive(PayloadField, Clone, Copy)]
#[repr(u8)]
enum Payment {
    Card = 1,
    Invoice = 2,
}

/// A payload is a struct. Its fields can be numbers, arrays and further structs, and are stored one after the other.
#[derive(EventPayload)]
struct OrderPlaced {
    order_id: u64,
    price_cents: u64,
    payment: Payment,
}

#[derive(EventPayload)]
struct OrderShipped {
    order_id: u64,
    parcel_count: u16,
}

/// The events of one ring. Their numbers are part of the format, so they must not change when events are added.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP", recorder = SHOP)]
#[repr(u16)]
enum Shop {
    #[event(payload = OrderPlaced)]
    OrderPlaced = 2,
    // The payload is the struct, then `parcel_count` parcel numbers, and then a text up to the payload's end.
    #[event(payload = OrderShipped, trailing(parcels: u64 * parcel_count, note: Utf8))]
    OrderShipped = 3,
    // This event has no payload.
    DayEnded = 4,
}

/// The recorder that `record!` uses for the events of `Shop`. It is off until the program switches it on.
static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

fn main() -> Result<(), Box<dyn Error>> {
    // The ring is called `typed-events`. It has room for 2^16 events and for 2^27 bytes of payloads.
    SHOP.try_init::<Shop>("typed-events:16:27")?;

    for order_id in 1..=20 {
        let payment = if order_id % 5 == 0 { Payment::Invoice } else { Payment::Card };
        record!(Shop::OrderPlaced, &OrderPlaced { order_id, price_cents: 1250, payment });
        if order_id % 4 == 0 {
            let parcels = [4711 + order_id, 4811 + order_id].map(u64::to_le_bytes);
            let shipped = OrderShipped { order_id, parcel_count: 2 };
            // `recordv!` gathers the arrays from wherever they are.
            recordv!(Shop::OrderShipped, &shipped, [parcels.as_flattened(), b"leave it with the neighbours"]);
        }
        sleep(Duration::from_millis(5));
    }
    record!(Shop::DayEnded);
    println!("recorded 26 events");
    Ok(())
}
