use super::collect::ValueCollector;
use super::column::BlockValues;
use super::key::{NameKey, NameKind};
use super::pages::{self, bytes_max, page_of};
use super::tables::{RecorderTables, RingNames};
use crate::fixtures::{int, text};
use crate::format::columns::{BlockRecords, RingLayout};
use crate::format::header::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockRef};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfEvent, PerfExt, ThreadView};
use eventring::schema::{EventPayload, EventType, MALFORMED, Utf8};
use eventring::tracing::Catalog;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use xorf::{Filter as _, Xor16};

fn keys(count: u64) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..count).map(|number| NameKey::field("id").number(number as f64)).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn each_key_is_found_and_few_others_with_each_width() {
    let keys = keys(5000);
    for width in [2, 4, 7, 8, 11, 16] {
        let mut bytes = Vec::new();
        let sizes = pages::put(&keys, width, &mut bytes);
        assert_eq!((sizes.bytes(), sizes.thirds.len()), (bytes.len(), 5));
        let has = |key: u64| {
            let (place, size) = sizes.page(page_of(key, 5)).unwrap();
            sizes.has(&bytes[place..place + size], key).unwrap()
        };
        assert!(keys.iter().all(|key| has(*key)), "{width}");
        let others = (0..20_000).filter(|number| has(NameKey::field("other").number(f64::from(*number)))).count();
        let expected = 20_000 >> width;
        assert!(others <= expected * 3 / 2 + 8 && others >= expected / 2, "{width}: {others}");
    }
}

#[test]
fn a_page_says_the_same_as_the_library_that_made_its_filter() {
    let keys = keys(900);
    let mut page = Vec::new();
    let sizes = pages::put(&keys, 16, &mut page);
    let library = Xor16::from(&keys);
    let all = keys.iter().copied().chain((0..200_000).map(|number| NameKey::field("other").number(f64::from(number))));
    let (mut same, mut found) = (true, 0);
    for key in all {
        same &= sizes.has(&page, key) == Some(library.contains(&key));
        found += u32::from(library.contains(&key));
    }
    assert!(same && found >= 900);
}

#[test]
fn a_damaged_page_says_nothing() {
    let keys = keys(50);
    let mut page = Vec::new();
    let sizes = pages::put(&keys, 9, &mut page);
    for at in 0..page.len() {
        let mut damaged = page.clone();
        damaged[at] ^= 1 << (at % 8);
        assert_eq!(sizes.has(&damaged, keys[0]), None, "{at}");
        assert_eq!(sizes.has(&page[..at], keys[0]), None, "{at}");
    }
}

/// Makes the records of spans with an id, a number that counts, and a status.
fn spans(count: u64) -> (BlockRecords, RingNames) {
    let mut catalog = Catalog::new();
    let view = CallSiteView {
        kind: CallSiteKind::Span,
        level: CallSiteLevel::Info,
        name: "request".into(),
        target: "shop".into(),
        module: "shop".into(),
        file: "src/shop.rs".into(),
        line: 1,
        field_names: vec!["id".into(), "number".into(), "status".into()],
    };
    assert!(catalog.learn_call_site(1, &view.encode()) && catalog.learn_thread(1, &ThreadView::encode(1, 1, "main")));
    let mut records = BlockRecords::default();
    records.events.set_limits(1 << 30, 1 << 30);
    for number in 1..=count {
        let fields = [text(0, &id(number)), int(1, number as i64), int(2, 200 + (number as i64 % 3) * 150)].concat();
        let ext = PerfExt { span_id: number, call_site_id: 1, thread_id: 1, field_count: 3, ..PerfExt::default() };
        let descriptor = Descriptor {
            seqno: number,
            event_type: PerfEvent::SpanNew as u16,
            payload_size: fields.len() as u32,
            record_epoch_nanos: 1000 + number,
            payload_buf_offset: 0,
            content_ext: ext.to_words(),
        };
        records.events.push(&descriptor, PayloadRead::Valid(&fields));
    }
    (records, RingNames::Perf(Arc::new(RecorderTables::new(catalog, None))))
}

fn id(number: u64) -> String {
    format!("{:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Writes a block that ends with this column.
fn block_of(column: &[u8]) -> (File, BlockRef) {
    let content = [&[0; 100], column].concat();
    let header = BlockHeader::new(BlockKind::Events, content.len(), content.len(), 0);
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&content, 48 + BLOCK_HEADER_BYTES).unwrap();
    (file, BlockRef { offset: 48, header })
}

fn column(records: &BlockRecords, names: &RingNames, bytes_max: usize) -> Option<Vec<u8>> {
    let mut collector = ValueCollector::default();
    assert!(collector.collect(records, &records.all(), names, 400_000));
    let mut column = Vec::new();
    collector.put(bytes_max, &mut column).then_some(column)
}

#[test]
fn a_block_says_which_values_it_has() {
    let (records, names) = spans(3000);
    let (file, block) = block_of(&column(&records, &names, 1 << 20).unwrap());
    let values = BlockValues::read(&file, &block).unwrap();
    let field = NameKey::field;
    assert!((1..=3000).all(|number| values.may_have_key(field("id").text(&id(number)))));
    assert!(!(4000..5000).all(|number| values.may_have_key(field("id").text(&id(number)))));
    assert_eq!(values.name(field("number").short()).unwrap().range, Some((1.0, 3000.0)));
    // The range says as much of a counter as its keys would.
    assert!(values.name(field("number").short()).unwrap().has_others);
    assert!([200.0, 350.0, 500.0].into_iter().all(|status| values.may_have_key(field("status").number(status))));
    assert!(!values.may_have_key(field("status").number(404.0)));
    let of_kind = |kind, name: &str| values.may_have_key(NameKey::of_kind(kind).text(name));
    assert!(of_kind(NameKind::Span, "request") && of_kind(NameKind::Span, "shop::request"));
    assert!(of_kind(NameKind::Thread, "main") && of_kind(NameKind::Target, "shop"));
    assert!(!of_kind(NameKind::Thread, "shop") && values.name(field("rows").short()).is_none());
    assert_eq!(values.levels, 0);
}

#[derive(EventPayload, Clone, Copy)]
struct Noted {
    id: u64,
    price: f64,
    change: i32,
    hash: [u8; 4],
    text_len: u32,
    line: u32,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 377, name = "VALUES_NOTED")]
#[repr(u16)]
enum NotedEvent {
    #[event(payload = Noted, trailing(text: Utf8 * text_len))]
    Noted = 2,
}

#[test]
fn a_block_says_which_values_its_typed_events_have() {
    let schema = NotedEvent::schema();
    let layout = RingLayout::of_ring(NotedEvent::CONTENT_TYPE, schema.hash(), schema.text());
    let mut records = BlockRecords::default();
    records.events.set_limits(1 << 30, 1 << 30);
    for number in 0..100_u64 {
        let name = format!("name {number}");
        let fixed = [
            &(number * 1_000_003).to_le_bytes()[..],
            &(number as f64 / 4.0).to_le_bytes(),
            &(-3 * number as i32).to_le_bytes(),
            &(number as u32).to_be_bytes(),
            &(name.len() as u32).to_le_bytes(),
            &7_u32.to_le_bytes(),
        ];
        let payload = [&fixed.concat()[..], name.as_bytes()].concat();
        let (event_type, payload_size) = (NotedEvent::Noted as u16, payload.len() as u32);
        let descriptor = Descriptor { seqno: number + 1, event_type, payload_size, ..Descriptor::default() };
        assert_eq!(payload.len(), 32 + name.len());
        records.events.push(&descriptor, PayloadRead::Valid(&payload));
    }
    let (file, block) = block_of(&column(&records, layout.names.as_ref().unwrap(), 1 << 20).unwrap());
    let values = BlockValues::read(&file, &block).unwrap();
    let has = |name: &str, number: f64| values.may_have_key(NameKey::field(name).number(number));
    let has_text = |name: &str, text: &str| values.may_have_key(NameKey::field(name).text(text));
    for number in 0..100 {
        assert!(has("id", f64::from(number) * 1_000_003.0) && has("change", f64::from(-3 * number)), "{number}");
        assert!(has("price", f64::from(number) / 4.0) && has_text("text", &format!("name {number}")), "{number}");
        assert!(has_text("hash", &format!("0x{number:08x}")), "{number}");
    }
    assert!(!has("id", 5.0) && !has("change", -4.0) && !has("price", 0.3));
    assert!(!has_text("text", "name 100") && !has_text("hash", "0x00000064"));
    assert!(values.may_have_key(NameKey::of_kind(NameKind::Event).text("NOTED")));
    assert!(values.name(NameKey::field(MALFORMED).short()).is_none());
}

#[test]
fn the_column_keeps_to_its_size_and_gives_up_the_most_values_first() {
    let (records, names) = spans(3000);
    let mut widths = Vec::new();
    for bytes_max in [100_000, 6000, 3000, 400] {
        let column = column(&records, &names, bytes_max).unwrap();
        assert!(column.len() <= bytes_max, "{} of {bytes_max}", column.len());
        let (file, block) = block_of(&column);
        let values = BlockValues::read(&file, &block).unwrap();
        assert!(values.may_have_key(NameKey::field("status").number(350.0)));
        widths.push((column.len() > 1000, values.name(NameKey::field("id").short()).unwrap().has_others));
    }
    assert_eq!(widths, [(true, false), (true, false), (true, false), (false, true)]);
    assert_eq!(column(&records, &names, 60), None);
    assert_eq!((bytes_max(4095), bytes_max(100_000)), (None, Some(2900)));
}

#[test]
fn a_call_site_that_the_tables_do_not_have_makes_no_column() {
    let (records, _) = spans(10);
    let names = RingNames::Perf(Arc::new(RecorderTables::new(Catalog::new(), None)));
    assert!(!ValueCollector::default().collect(&records, &records.all(), &names, 1 << 20));
}

#[test]
fn a_damaged_column_never_hides_a_value() {
    let (records, names) = spans(300);
    let whole = column(&records, &names, 2000).unwrap();
    let key = NameKey::field("id").text(&id(77));
    let (mut unread, mut read) = (0, 0);
    for at in 0..whole.len() {
        for bit in [0, 3, 7] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            let (file, block) = block_of(&damaged);
            match BlockValues::read(&file, &block) {
                None => unread += 1,
                Some(values) => {
                    assert!(values.may_have_key(key), "byte {at}, bit {bit}");
                    read += 1;
                }
            }
        }
        let (file, block) = block_of(&whole[..at]);
        assert!(BlockValues::read(&file, &block).is_none(), "{at}");
    }
    // Damage of the head is noticed at once, damage of a page when it is read.
    assert!(unread > 100 && read > 100, "{unread} {read}");
}
