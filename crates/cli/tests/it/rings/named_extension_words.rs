//! A program gives names to its extension words. Scopes, filters and seeks take these names. The output of `watch` and
//! `export` shows them.

use crate::fixtures::*;
use eventring::global::GlobalRecorder;
use eventring::reader::{EventFilter, Next, Seek};
use eventring::schema::{ArrayView, RecordErrorView};
use eventring::{ext_scope, recordv};

#[derive(EventPayload, Clone, Copy, Debug, PartialEq)]
struct Order {
    id: u64,
    line_count: u16,
}

#[derive(EventType, Clone, Copy, Debug, PartialEq)]
#[event(
    content_type = 300,
    name = "SHOP",
    recorder = SHOP,
    ext(0 = order: seqno, 1 = line: index, 2 = shelf),
    payloads(ShopPayload: Clone, Copy, Debug, PartialEq)
)]
#[repr(u16)]
enum Shop {
    RecordError = 1,
    #[event(payload = Order, trailing(lines: u32 * line_count, note: Utf8), carries(shelf))]
    OrderPlaced = 2,
    LinePacked = 3,
    #[event(carries())]
    DayEnded = 4,
}

static SHOP: GlobalRecorder = GlobalRecorder::new("shop");

/// Records two orders of two lines each. Returns the extension words of all recorded events.
fn record_orders() -> Vec<[u64; 4]> {
    let _shelf = ext_scope!(Shop, shelf = 9);
    let mut expected = Vec::new();
    for id in [70, 71] {
        let lines = eventring::schema::encode_array(&[5u32, 6]);
        let order = recordv!(Shop::OrderPlaced, &Order { id, line_count: 2 }, [&lines, b"in a hurry"]);
        expected.push([0, 0, 9, 0]);
        let _order = ext_scope!(Shop, order = order);
        for line in 1..=2 {
            let _line = ext_scope!(Shop, line = line);
            record!(Shop::LinePacked);
            expected.push([order, line, 9, 0]);
        }
        record!(Shop::LinePacked; line = 8, shelf = 0);
        expected.push([order, 8, 0, 0]);
    }
    expected
}

fn read(reader: &Reader, start: Seek, filter: &EventFilter) -> Vec<[u64; 4]> {
    let mut cursor = reader.cursor();
    cursor.seek(start);
    let mut words = Vec::new();
    while let Next::Event(event) = cursor.next() {
        if filter.accepts(&event) {
            words.push(event.content_ext);
        }
    }
    words
}

#[test]
fn names_of_extension_words_are_known_wherever_the_ring_is_read() {
    let (directory, [ring]) = places(["shop"]);
    let recorder = SHOP.try_init::<Shop>(&format!("{}:16:27", ring.display())).unwrap();
    recorder.record(3, [0; 4], &[]);
    let expected = [vec![[0; 4]], record_orders()].concat();

    let reader = Reader::open_typed::<Shop>(&ring).unwrap();
    let words = reader.ext_words();
    assert_eq!(words, Shop::INFO.ext_words);
    assert_eq!(read(&reader, Seek::Oldest, &EventFilter::new()), expected);
    let line = words.index_of("line").unwrap();
    assert_eq!(read(&reader, Seek::Oldest, &EventFilter::new().content_ext(line, 2)), [[2, 2, 9, 0], [6, 2, 9, 0]]);
    // The newest event belongs to the second order.
    let order = words.index_of("order").map(Seek::NamedByWord).unwrap();
    assert_eq!(read(&reader, order, &EventFilter::new()), expected[5..]);
    assert_eq!(read(&reader, Seek::NamedByWord(line), &EventFilter::new()), expected[7..]);
    for nothing in [3, 4, usize::MAX] {
        assert_eq!(read(&reader, Seek::NamedByWord(nothing), &EventFilter::new()), expected[8..]);
    }

    let watched = run!("watch", &ring, "--from", "6", "--count", "2", "--json").json_lines();
    assert_eq!(watched[0]["order_seqno"], 0);
    assert!(watched[0]["line_index"].is_null() && watched[0].get("line_index").is_some());
    assert_eq!((&watched[1]["order_seqno"], &watched[1]["line_index"]), (&json!(6), &json!(0)));
    assert_eq!((&watched[1]["shelf"], &watched[1]["ext"]), (&json!(9), &json!([6, 1, 9, 0])));
    let text = run!("watch", &ring, "--from", "7", "--count", "1", "-q").out;
    assert!(text.trim_end().ends_with("order=6 line=0 shelf=9"), "{text}");

    let capture = place(&directory, "shop.evc");
    run!("capture", &ring, "-o", &capture, "--now").ends(0);
    let lines = run!("export", &capture, "--format", "jsonl", "-o", "-").json_lines();
    let packed: Vec<&Value> = lines.iter().filter(|line| line["name"] == "LINE_PACKED").collect();
    assert_eq!((&packed[1]["order_seqno"], &packed[1]["line_index"]), (&json!(2), &json!(0)));
    // All four words have names, so the line has no `content_ext`.
    assert_eq!((&packed[1]["code"], &packed[1]["shelf"], packed[1].get("content_ext")), (&json!(3), &json!(9), None));

    // The snapshot leaves out the first event, so each event has a seqno that is one less than in the ring. Writing the
    // snapshot also subtracts one from the seqnos in extension words.
    let snapshot = place(&directory, "shop.zst");
    run!("snapshot", &ring, "-o", &snapshot, "--from", "2").ends(0);
    let saved = read(&Reader::open(&snapshot).unwrap(), Seek::Oldest, &EventFilter::new());
    let renumbered = expected[1..].iter().map(|[order, rest @ ..]| {
        let [line, kind, span] = *rest;
        [order.saturating_sub(1), line, kind, span]
    });
    assert_eq!(saved, renumbered.collect::<Vec<_>>());
}

/// The derive refuses these names, but a ring of another program may have them.
#[test]
fn a_word_with_the_name_of_another_key_is_shown_only_among_all_words() {
    for name in ["name", "content_ext", "type"] {
        let (directory, [ring]) = places(["shop"]);
        let text = Shop::schema().text().replace("shelf", name);
        let description = ContentDescription::new(300, "SHOP").schema_hash(Shop::schema_hash()).schema_text(text);
        let recorder = Recorder::builder(description).config(&ring).shifts(16, 27).prefault(false).build().unwrap();
        recorder.record(3, [6, 1, 9, 0], &[]);
        assert_eq!(Reader::open(&ring).unwrap().ext_words().index_of(name), Some(2));

        let watched = &run!("watch", &ring, "--from", "1", "--count", "1", "--json").json_lines()[0];
        assert_eq!((&watched["name"], &watched["type"]), (&json!("LINE_PACKED"), &json!(3)), "{name}");
        assert_eq!((&watched["order_seqno"], &watched["ext"]), (&json!(6), &json!([6, 1, 9, 0])), "{name}");

        let capture = place(&directory, "shop.evc");
        run!("capture", &ring, "-o", &capture, "--now").ends(0);
        let lines = run!("export", &capture, "--format", "jsonl", "-o", "-").json_lines();
        let packed = lines.iter().find(|line| line["type"] == "typed_event").unwrap();
        assert_eq!((&packed["name"], &packed["content_ext"]), (&json!("LINE_PACKED"), &json!([6, 1, 9, 0])), "{name}");
    }
}

#[test]
fn a_payload_is_read_by_its_view_or_whatever_event_it_is_of() {
    let order = Order { id: 70, line_count: 2 };
    let lines = eventring::schema::encode_array(&[5u32, 6]);
    let bytes = [order.with_bytes(<[u8]>::to_vec), lines, b"caf\xc3\xa9".to_vec()].concat();
    let view = OrderPlacedView::decode(&bytes).unwrap();
    let lines: ArrayView<'_, u32> = view.lines;
    assert_eq!((view.fixed, lines.to_vec().unwrap(), &*view.note.to_text()), (order, vec![5, 6], "café"));
    assert!(
        format!("{view:?}")
            .starts_with("OrderPlacedView { fixed: Order { id: 70, line_count: 2 }, lines: [Ok(5), Ok(6)]")
    );

    let payload = ShopPayload::decode(2, &bytes).unwrap();
    assert_eq!((payload, payload.event()), (ShopPayload::OrderPlaced(view), Shop::OrderPlaced));
    assert_eq!(Shop::DayEnded.decode(&[]).unwrap(), ShopPayload::DayEnded);
    let nothing = RecordErrorView { error: None, truncated_payload: &[] };
    assert_eq!(ShopPayload::decode(1, &[]).unwrap(), ShopPayload::RecordError(nothing));
    for (code, bytes, problem) in [
        (2, &bytes[..9], "payload of Order is too short: 9 bytes, expected at least 16"),
        (2, &bytes[..23], "payload of ORDER_PLACED is too short: 7 bytes, expected at least 8 (field `lines`)"),
        (3, &bytes[..1], "payload of () is too long: 1 bytes are left over, expected none"),
        (5, &[][..], "event type 5 is not in schema SHOP"),
    ] {
        let error = ShopPayload::decode(code, bytes).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}
