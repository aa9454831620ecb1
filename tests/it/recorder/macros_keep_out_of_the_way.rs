//! The expansion of `record!` does not clash with names of its caller. Lists in its arguments may end with a comma.

use crate::fixtures::*;
use crate::read_back;
use eventring::global::GlobalRecorder;
use eventring::schema::{EventPayload, EventType, Utf8};

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Order {
    id: u64,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(content_type = 301, recorder = SHOP)]
#[repr(u16)]
enum Shop {
    #[event(payload = Order)]
    OrderPlaced = 40,
    #[event(payload = Order, trailing(note: Utf8))]
    OrderNoted = 41,
    DayEnded = 42,
}

impl Shop {
    fn end_day(recorder: &Recorder) -> u64 {
        record!(recorder => Self::DayEnded)
    }
}

fn recorder() -> Recorder {
    Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().build().unwrap()
}

/// Returns the type, the extension words and the payload of each recorded event.
fn recorded(recorder: &Recorder) -> Vec<(u16, [u64; 4], Vec<u8>)> {
    let events = read_back::events(&read_back::reader_of(recorder));
    events.into_iter().map(|(_, event_type, ext, payload)| (event_type, ext, payload)).collect()
}

#[test]
fn constants_of_the_caller_mean_in_the_macro_what_they_mean_outside() {
    let recorder = recorder();
    {
        const CODE: u64 = 7;
        record!(recorder => Shop::OrderPlaced, Order { id: CODE }; ext[1] = CODE);
        recordv!(recorder => Shop::OrderNoted, Order { id: CODE }, [&CODE.to_le_bytes()]; ext[2] = CODE);
    }
    {
        const CODE: u16 = 9;
        record!(recorder => Shop::OrderPlaced, Order { id: CODE.into() }; ext[3] = CODE.into());
    }
    let seven = 7u64.to_le_bytes();
    assert_eq!(
        recorded(&recorder),
        [
            (40, [0, 7, 0, 0], seven.to_vec()),
            (41, [0, 0, 7, 0], [seven, seven].concat()),
            (40, [0, 0, 0, 9], 9u64.to_le_bytes().to_vec())
        ]
    );
}

#[test]
fn an_event_may_be_named_through_self() {
    let recorder = recorder();
    assert_eq!(Shop::end_day(&recorder), 1);
    assert_eq!(recorded(&recorder), [(42, [0; 4], vec![])]);
}

#[test]
fn lists_may_end_with_a_comma() {
    let recorder = recorder();
    let _guard = SHOP.override_with(recorder.clone());
    let order = Order { id: 1 };
    record!(Shop::DayEnded,);
    record!(Shop::OrderPlaced, &order,);
    record!(Shop::OrderPlaced, &order,; ext[0] = 1,);
    recordv!(Shop::OrderNoted, &order, [b"a", b"b",],);
    record!(recorder => Shop::DayEnded,);
    record!(recorder => Shop::OrderPlaced, &order,);
    recordv!(recorder => Shop::OrderNoted, &order, [],);
    recordv!(recorder => raw(50), [b"raw"],);
    let types: Vec<_> = recorded(&recorder).iter().map(|(event_type, ..)| *event_type).collect();
    assert_eq!(types, [42, 40, 40, 41, 42, 40, 41, 50]);
}

#[test]
fn a_payload_has_as_many_parts_as_one_likes() {
    let recorder = recorder();
    recordv!(recorder => Shop::OrderNoted, &Order { id: 7 }, [
        b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h", b"i", b"j", b"k", b"l", b"m", b"n", b"o", b"p", b"q",
    ]);
    let events = recorded(&recorder);
    assert_eq!(events.len(), 1);
    assert_eq!(&events[0].2[8..], b"abcdefghijklmnopq");
}
