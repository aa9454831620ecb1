//! What is read from rings of other versions.

use super::*;
use crate::fixtures::*;
use crate::read_back::events;
use eventring::reader::EventBatch;
use eventring::schema::{DecodeErrorKind, Value};
use std::ops::ControlFlow;

#[test]
fn an_older_ring_is_read_with_renamed_and_moved_fields_and_with_defaults() {
    let payload = read(OLDEST, 2, &oldest_payload()).unwrap();
    let view = OrderPlacedView::decode(&payload).unwrap();
    let expected = Order {
        id: 7,
        price_cents: 250,
        payment: Payment::Invoice,
        part: Part { weight: 9, shelf: 7 },
        card: [0; 4],
        note_bytes: 0,
        grid: [1, 2],
    };
    assert_eq!(view.fixed, expected);
    assert_eq!((&*view.note.to_text(), view.parts.len()), ("", 2));
    assert_eq!(view.parts.to_vec().unwrap(), [Part { weight: 3, shelf: 7 }, Part { weight: 4, shelf: 7 }]);
    assert_eq!(read(OLDEST, 3, &[]), Some(vec![]));
}

/// A newer version than the reader's.
const NEWEST: &str = "schema-text 1
content 300 SHOP 1
enum Payment u8
value 1 CARD
value 2 INVOICE
value 3 CASH
struct Part 16
field weight u16 0 2
field shelf u8 2 1
field maker u64 8 8
struct Order 72
field customer u128 0 16
field id u64 16 8
field price_cents u32 24 4
field payment Payment 28 1
field part Part 32 16
field card bytes4 48 4
field note_bytes u16 52 2
field grid u16[2] 54 4
field tag_bytes u8 58 1
event 2 ORDER_PLACED Order
trailing tag utf8 tag_bytes
trailing note utf8 note_bytes
trailing parts Part *
event 3 DAY_ENDED Part
event 4 DAY_BEGAN
";

/// A payload of [`NEWEST`] with this number for `payment`.
fn newest_payload(payment: u8) -> Vec<u8> {
    let part = |weight: u8| [weight, 0, 5, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let fixed = [&[0xff; 16][..], &7u64.to_le_bytes(), &250u32.to_le_bytes(), &[payment, 0, 0, 0], &part(9)];
    let end = [&b"4111"[..], &2u16.to_le_bytes(), &[3, 0, 4, 0], &[3], &[0; 13]];
    [fixed.concat(), end.concat(), b"tagok".to_vec(), part(3).to_vec()].concat()
}

#[test]
fn a_newer_ring_is_read_without_what_the_reader_does_not_know() {
    let payload = read(NEWEST, 2, &newest_payload(1)).unwrap();
    let view = OrderPlacedView::decode(&payload).unwrap();
    let part = Part { weight: 9, shelf: 5 };
    let (id, card, grid) = (7, [0; 4], [3, 4]);
    let expected = Order { id, price_cents: 250, payment: Payment::Card, part, card, note_bytes: 2, grid };
    assert_eq!(view.fixed, expected, "the field `card` is redacted here, and is not in the payload");
    assert_eq!((&*view.note.to_text(), view.parts.to_vec().unwrap()), ("ok", vec![Part { weight: 3, shelf: 5 }]));
    // An event without payload here, and one that is unknown here.
    assert_eq!(read(NEWEST, 3, &[1; 16]), Some(vec![]));
    assert_eq!(read(NEWEST, 4, &[]), Some(vec![]));
    assert_eq!(Shop::from_code(4), None);
}

#[test]
fn a_value_that_the_reader_does_not_know_is_an_error_of_its_event_alone() {
    let payload = read(NEWEST, 2, &newest_payload(3)).unwrap();
    let error = OrderPlacedView::decode(&payload).unwrap_err();
    assert_eq!((error.kind(), error.field()), (DecodeErrorKind::InvalidEnum, "payment"));
}

#[test]
fn a_payload_that_does_not_fit_the_schema_of_its_ring_is_malformed() {
    let whole = newest_payload(1);
    let without_parts = whole.len() - 16;
    for bytes in (0..whole.len()).filter(|bytes| *bytes != without_parts) {
        assert_eq!(read(NEWEST, 2, &whole[..bytes]), None, "{bytes} bytes");
    }
    assert!(read(NEWEST, 2, &whole[..without_parts]).is_some());
    assert_eq!(read(NEWEST, 2, &[&whole[..], &[0]].concat()), None);
}

/// A value that is large here, and of one byte in an older ring.
#[derive(EventPayload)]
struct Blot {
    color: u8,
    #[event(default = [0; 1024])]
    ink: [u64; 1024],
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
enum Blots {
    #[event(trailing(blots: Blot))]
    Blots = 2,
}

#[test]
fn defaults_do_not_make_a_payload_larger_without_limit() {
    let lines = "struct Blot 1\nfield color u8 0 1\nevent 2 BLOTS\ntrailing blots Blot *\n";
    let ring = ring(&format!("schema-text 1\ncontent 300 SHOP 1\n{lines}"));
    let mut cursor = open(&ring, &Reader::options().compatible::<Blots>()).unwrap().cursor();
    let mut buffer = Vec::new();
    let mut bytes_of = |blots: usize| {
        ring.record(2, [0; 4], &vec![3; blots]);
        let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
        cursor.payload(&event, &mut buffer).valid().map(<[u8]>::len)
    };
    assert_eq!(bytes_of(2000), Some(2000 * Blot::WIRE_BYTES));
    assert_eq!(bytes_of(1 << 20), None);
    assert!(buffer.capacity() < 32 << 20, "{} bytes", buffer.capacity());
}

#[test]
fn an_error_event_may_have_no_payload_in_a_ring_of_any_version() {
    let error = "struct RecordError 2\nfield error_type u16 0 2\nevent 1 RECORD_ERROR RecordError\n";
    let text = changed(&[("event 2", &format!("{error}event 2"))]);
    let refusal = refusal(&text);
    assert!(refusal.contains("RECORD_ERROR.dropped_event_type is not in the ring"), "{refusal}");
    let error = "struct RecordError 24
field requested_payload_size u64 0 8
field error_type u16 8 2
field dropped_event_type u16 10 2
field truncated_payload_size u32 12 4
field thread u64 16 8
event 1 RECORD_ERROR RecordError
trailing truncated_payload u8 truncated_payload_size
";
    let text = changed(&[("event 2", &format!("{error}event 2"))]);
    assert_eq!(read(&text, 1, &[]), Some(vec![]));
    let found = read(&text, 1, &[[8u8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 1, 0, 0, 0], [9; 16]].concat()[..25]);
    assert_eq!(found, Some(vec![1, 0, 2, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 9]));
}

#[test]
fn an_equal_schema_takes_the_ordinary_path_and_added_events_change_no_payload() {
    let same = Recorder::builder(ContentDescription::from_event_type::<Shop>()).anonymous().build().unwrap();
    let reader = open(&same, &compatible()).unwrap();
    reader.check_events::<Shop>().unwrap();
    let text = format!("{}event 9 ADDED\n", Shop::schema().canonical_text());
    assert_eq!(read(&text, 2, b"of any length"), Some(b"of any length".to_vec()), "only a decoder looks at it");
}

#[test]
fn ring_sets_map_and_copies_of_the_ring_do_not() {
    let ring = ring(OLDEST);
    let reader = open(&ring, &compatible()).unwrap();
    ring.record(2, [0; 4], &oldest_payload());

    let mut set = RingSet::options().from_readers([reader.clone()]);
    assert!(set.next().is_some());
    assert!(OrderPlacedView::decode(set.payload().valid().unwrap()).is_ok());

    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let mut batch = EventBatch::new(1 << 20, 1 << 20);
    cursor.copy_batch(&mut batch);
    assert_eq!(batch.payload(0).valid(), Some(&oldest_payload()[..]));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.zst");
    reader.write_snapshot(std::fs::File::create(&path).unwrap(), &SnapshotOptions::new()).unwrap();
    let saved = Reader::open(&path).unwrap();
    let mut cursor = saved.cursor();
    cursor.seek(Seek::Oldest);
    let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
    let mut buffer = Vec::new();
    let payload = cursor.payload(&event, &mut buffer).valid().unwrap();
    let schema = saved.schema().unwrap();
    assert_eq!(schema.decode(2, payload).get("cost"), Some(&Value::Uint(250)));
    // A snapshot is mapped as a ring is.
    let mut mapped = compatible().open(&path).unwrap().cursor();
    mapped.seek(Seek::Oldest);
    assert!(OrderPlacedView::decode(mapped.payload(&event, &mut buffer).valid().unwrap()).is_ok());
}

/// Fields in another order than in the ring, so that payloads have the same size in both.
#[derive(EventPayload, Debug, PartialEq)]
struct Swapped {
    second: u64,
    first: u64,
}

#[derive(EventPayload, Debug, PartialEq)]
struct SwappedPairs {
    second: [u64; 2],
    first: [u64; 2],
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, name = "SHOP")]
#[repr(u16)]
enum Swaps {
    #[event(payload = Swapped)]
    Swapped = 2,
    #[event(payload = SwappedPairs)]
    SwappedPairs = 3,
}

#[test]
fn payloads_that_keep_their_size_are_mapped_also_into_a_buffer_of_that_size() {
    let structs = "struct A 16\nfield first u64 0 8\nfield second u64 8 8\nstruct B 32\nfield first u64[2] 0 16\nfield second u64[2] 16 16\n";
    let ring =
        ring(&format!("schema-text 1\ncontent 300 SHOP 1\n{structs}event 2 SWAPPED A\nevent 3 SWAPPED_PAIRS B\n"));
    let mut cursor = open(&ring, &Reader::options().compatible::<Swaps>()).unwrap().cursor();
    for _ in 0..3 {
        ring.record(2, [0; 4], [1u64, 2].map(u64::to_le_bytes).as_flattened());
    }
    for _ in 0..3 {
        ring.record(3, [0; 4], [1u64, 2, 3, 4].map(u64::to_le_bytes).as_flattened());
    }
    let mut buffer = Vec::new();
    let mut ready = cursor.clone();
    for index in 0..6 {
        let Next::Event(event) = cursor.next() else { panic!("it was recorded") };
        check_swapped(index, cursor.payload(&event, &mut buffer).valid().unwrap());
    }
    let mut index = 0;
    ready.each_ready(|event| {
        check_swapped(index, event.payload(&mut buffer).valid().unwrap());
        index += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(index, 6);
}

fn check_swapped(index: usize, payload: &[u8]) {
    match index < 3 {
        true => assert_eq!(Swapped::decode_exact(payload).unwrap(), Swapped { second: 2, first: 1 }),
        false => {
            let expected = SwappedPairs { second: [3, 4], first: [1, 2] };
            assert_eq!(SwappedPairs::decode_exact(payload).unwrap(), expected);
        }
    }
}

#[test]
fn the_ring_that_replaces_a_ring_is_mapped_by_its_own_schema() {
    let (_directory, [path]) = places(["shop"]);
    let make = |text: &str| {
        let content = ContentDescription::new(300, "SHOP").schema_text(text).schema_hash(schema_text_hash(text));
        Recorder::builder(content).config(&path).compact(true).shifts(15, 21).build().unwrap()
    };
    let old = make(OLDEST);
    let reader = compatible().open(&path).unwrap();
    drop(old);
    let new = make(NEWEST);
    new.record(2, [0; 4], &newest_payload(1));
    let events = events(&reader.reopen().unwrap().expect("the ring was replaced"));
    assert_eq!(OrderPlacedView::decode(&events[0].3).unwrap().fixed.grid, [3, 4]);
}
