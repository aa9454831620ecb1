//! A program records typed events through a global recorder that it declares. A reader decodes them although it knows
//! nothing of the program: the ring describes its events.

use crate::fixtures::*;
use crate::read_back::events;
use eventring::global::GlobalRecorder;
use eventring::schema::{EventPayload, EventType, PayloadField, Utf8};

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[derive(PayloadField, Clone, Copy)]
#[repr(u8)]
enum Side {
    Buy = 1,
    Sell = 2,
}

#[derive(EventPayload)]
struct Order {
    id: u64,
    side: Side,
    #[event(redact)]
    card_number: [u8; 16],
    fill_count: u16,
}

/// Events of the shop.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, recorder = SHOP)]
#[repr(u16)]
enum ShopEvent {
    #[event(payload = Order, trailing(fills: u64 * fill_count, note: Utf8))]
    OrderFilled = 2,
    DayEnded = 3,
}

#[test]
fn a_reader_without_the_types_decodes_by_the_text_in_the_ring() {
    let order = |side| Order { id: 7, side, card_number: *b"4111111111111111", fill_count: 2 };
    assert_eq!(record!(ShopEvent::DayEnded), 0, "nothing is recorded while the slot is empty");

    let description = ContentDescription::from_event_type::<ShopEvent>();
    let recorder = Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap();
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    SHOP.install(recorder).unwrap();
    let fills = [250u64.to_le_bytes(), 300u64.to_le_bytes()];
    assert_eq!(recordv!(ShopEvent::OrderFilled, order(Side::Sell), [fills.as_flattened(), "gift".as_bytes()]), 1);
    assert_eq!(recordv!(ShopEvent::OrderFilled, &order(Side::Buy), [fills.as_flattened()]), 2);
    assert_eq!(record!(ShopEvent::DayEnded), 3);

    let model = reader.schema().unwrap();
    let mut lines = String::new();
    for (_, event_type, _, payload) in events(&reader) {
        assert!(!payload.windows(4).any(|bytes| bytes == b"4111"), "a redacted field is in the ring");
        let name = model.event(event_type).unwrap().name();
        lines += &format!("{name} {}\n", model.decode(event_type, &payload));
    }
    assert_eq!(
        lines,
        "ORDER_FILLED id=7 side=SELL card_number=<redacted> fill_count=2 fills=[250, 300] note=\"gift\"\n\
         ORDER_FILLED id=7 side=BUY card_number=<redacted> fill_count=2 fills=[250, 300] note=\"\"\n\
         DAY_ENDED \n"
    );
}
