//! Invalid views of payloads, and invalid enums of payloads.
use eventring::schema::{EventPayload, EventType};

#[derive(EventPayload)]
struct Batch {
    count: u32,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum FieldOfTheView {
    #[event(payload = Batch, trailing(fixed: u64 * count))]
    BatchPlaced = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, payloads(OnePayload))]
#[repr(u16)]
enum WithoutRecordError {
    #[event(payload = Batch)]
    OnePlaced = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, payloads(OtherPayload), no_views)]
#[repr(u16)]
enum WithoutViews {
    RecordError = 1,
    #[event(payload = Batch, trailing(orders: u64 * count))]
    OthersPlaced = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum ViewOfNoArrays {
    #[event(payload = Batch, view = NoView)]
    BatchSent = 2,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300)]
#[repr(u16)]
enum Shop {
    #[event(payload = Batch, trailing(orders: u64 * count))]
    OrdersPlaced = 2,
}

fn mistakes(payload: Vec<u8>) -> OrdersPlacedView<'static> {
    let view = OrdersPlacedView::decode(&payload).unwrap();
    let _: u32 = view.orders.get(0).unwrap().unwrap();
    let _ = view.clone();
    view
}

fn main() {}
