//! Tests that a search which skips blocks finds the same events as a search of all blocks.
//!
//! `EVENTRING_QUERIES` sets the number of random queries.

use super::super::ring::Ring;
use super::*;
use eventring::EventPayload;
use eventring::EventType;
use eventring::reader::Gap;
use eventring::schema::Utf8;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, CallSiteView, PerfExt, ThreadView, ValueType};
use eventring::tracing::Catalog;
use eventring_capture::fixtures::{CaptureFixture, int, text as text_field};
use eventring_capture::{BlockTest, NameKey};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

#[derive(EventPayload)]
struct Order {
    id: u64,
    customer: Customer,
    price: f64,
    is_paid: bool,
    units: i32,
    share: f32,
}

#[derive(EventPayload, Clone, Copy)]
struct Customer {
    number: u32,
    key: [u8; 8],
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 979, name = "SEARCHED")]
#[repr(u16)]
enum Searched9 {
    #[event(payload = Order)]
    OrderPlaced = 2,
    #[event(trailing(note: Utf8))]
    OrderNoted = 3,
}

/// A generator of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 8
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len() as u64) as usize]
    }
}

const SITES: [(&str, CallSiteKind, CallSiteLevel); 6] = [
    ("request", CallSiteKind::Span, CallSiteLevel::Info),
    ("query", CallSiteKind::Span, CallSiteLevel::Debug),
    ("event src/web.rs:7", CallSiteKind::Event, CallSiteLevel::Info),
    ("event src/web.rs:9", CallSiteKind::Event, CallSiteLevel::Warn),
    ("event src/db.rs:3", CallSiteKind::Event, CallSiteLevel::Error),
    ("rare", CallSiteKind::Span, CallSiteLevel::Trace),
];
const FIELDS: [&str; 5] = ["request_id", "rows", "status", "message", "rows"];
/// An integer that no float is.
const LARGE: i64 = (1 << 53) + 1;
const BLOCKS: u64 = 10;
const EVENTS: u64 = 400;

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    for (id, (name, kind, level)) in (1..).zip(SITES) {
        let view = CallSiteView {
            kind,
            level,
            name: name.into(),
            target: if id % 2 == 0 { "shop::db" } else { "shop::web" }.into(),
            module: "shop".into(),
            file: "src/web.rs".into(),
            line: id,
            field_names: FIELDS.map(Into::into).to_vec(),
        };
        assert!(catalog.learn_call_site(id, &view.encode()));
    }
    for (id, name) in (1..).zip(["main", "worker", ""]) {
        assert!(catalog.learn_thread(id, &ThreadView::encode(1, 100 + id, name)));
    }
    catalog
}

fn field_of(index: u8, kind: ValueType, bytes: &[u8]) -> Vec<u8> {
    [&[index, kind as u8, bytes.len() as u8, 0], bytes].concat()
}

/// Adds the events of a block, of which each ring gets some.
fn add_block(made: &mut CaptureFixture, typed: usize, block: u64, random: &mut Random) {
    for number in 0..EVENTS {
        let nanos = 1000 + block * 1_000_000 + number * 1000;
        let span = 1 + block * EVENTS + number;
        // The last call site is in few blocks.
        let site = if block % 7 == 5 { 1 + random.below(6) } else { 1 + random.below(5) } as u32;
        let thread_id = 1 + random.below(3) as u32;
        // Long, so that the block has room for what it says of its values.
        let id: String = (0..4).map(|_| format!("{:016x}", random.next())).collect();
        let status = match random.below(8) {
            0 => field_of(2, ValueType::Bool, &[random.below(2) as u8]),
            1 => field_of(2, ValueType::F64, &(random.below(1000) as f64 / 4.0).to_le_bytes()),
            2 => text_field(
                2,
                random.one_of::<&str>(&[
                    "ok",
                    "failed",
                    "7",
                    "7.0",
                    "true",
                    "-0",
                    "inf",
                    "1e3",
                    "1e400",
                    "9007199254740993.0",
                ]),
            ),
            3 => field_of(2, ValueType::F64, &f64::NAN.to_le_bytes()),
            5 => int(2, LARGE - random.below(2) as i64),
            6 => field_of(2, ValueType::F64, &((LARGE - 1) as f64).to_le_bytes()),
            4 => field_of(2, ValueType::U128, &u128::MAX.to_le_bytes()),
            _ => int(2, random.below(600) as i64 - 100),
        };
        // The second field of the name has other values than the first.
        let rows = [1, 4].map(|index| int(index, (block * 100 + random.below(100)) as i64 + 10_000 * i64::from(index)));
        let fields = [&[text_field(0, &id), status][..], &rows].concat();
        let ext = PerfExt { span_id: span, call_site_id: site, thread_id, field_count: 4, ..PerfExt::default() };
        let kind = SITES[site as usize - 1].1;
        match (kind, random.below(3)) {
            (CallSiteKind::Span, 0) => made.perf(PerfEvent::SpanRecord, nanos, ext, &fields.concat()),
            (CallSiteKind::Span, _) => made.perf(PerfEvent::SpanNew, nanos, ext, &fields.concat()),
            _ => made.perf(PerfEvent::Event, nanos, ext, &fields.concat()),
        }
        made.span(PerfEvent::SpanEnter, nanos + 1, thread_id, span, site);
        let order = Order {
            id: random.next() << 8,
            customer: Customer { number: random.below(50) as u32 * 7919, key: (random.below(40) << 33).to_le_bytes() },
            price: random.below(60) as f64 / 8.0,
            is_paid: random.below(2) == 1,
            units: random.below(9) as i32 - 4,
            share: random.below(90) as f32 / 10.0,
        };
        let mut payload = Vec::new();
        payload.extend(order.id.to_le_bytes());
        payload.extend(order.customer.number.to_le_bytes());
        payload.extend(order.customer.key);
        payload.extend(order.price.to_le_bytes());
        payload.push(order.is_paid.into());
        payload.extend(order.units.to_le_bytes());
        payload.extend(order.share.to_le_bytes());
        made.event(typed, Searched9::OrderPlaced.code(), nanos + 2, [0; 4], &payload);
    }
    made.end_block();
}

fn capture() -> CaptureFile {
    let mut made = CaptureFixture::new();
    made.describe(&catalog());
    let typed = made.add_typed::<Searched9>("orders");
    let mut random = Random(7);
    (0..BLOCKS).for_each(|block| add_block(&mut made, typed, block, &mut random));
    made.open()
}

type Places = Rc<RefCell<BTreeSet<(String, u64)>>>;

/// A printer that notes the rings and seqnos of hits.
struct Noted(Places);

impl Printer for Noted {
    fn event(&mut self, ring: &Ring, entry: &RecordingEntry<'_>) -> io::Result<()> {
        let (event, _) = entry.event().unwrap();
        self.0.borrow_mut().insert((ring.label.clone(), event.seqno));
        Ok(())
    }

    fn gap(&mut self, _: &Ring, _: Gap) -> io::Result<()> {
        Ok(())
    }

    fn reopened(&mut self, _: &Ring) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self, _: &Rings) -> io::Result<()> {
        Ok(())
    }
}

fn hits(capture: &CaptureFile, condition: &Condition) -> BTreeSet<(String, u64)> {
    let places = Places::default();
    let printer = |_: &Rings| -> io::Result<Box<dyn Printer>> { Ok(Box::new(Noted(places.clone()))) };
    search_with(capture, condition, u64::MAX, &|| false, || Ok(()), printer).unwrap();
    places.take()
}

/// Tests each event once on all conditions.
fn hits_of_all(capture: &CaptureFile, conditions: &[Condition]) -> Vec<BTreeSet<(String, u64)>> {
    let mut rings = Rings::of_capture(capture);
    let mut found = vec![BTreeSet::new(); conditions.len()];
    while let Some(NextItem::Entry(ring, entry)) = rings.next(Duration::ZERO, |_, _| true) {
        let Some((event, _)) = entry.event() else { continue };
        tested(&entry, |subject| {
            for (condition, found) in conditions.iter().zip(&mut found) {
                if condition.holds(subject) {
                    found.insert((ring.label.clone(), event.seqno));
                }
            }
            false
        });
    }
    found
}

/// The values that events of the capture have, as conditions write them.
fn values(capture: &CaptureFile) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut rings = Rings::of_capture(capture);
    while let Some(NextItem::Entry(_, entry)) = rings.next(Duration::ZERO, |_, _| true) {
        if entry.event().is_none_or(|(event, _)| event.seqno % 7 != 0) {
            continue;
        }
        tested(&entry, |subject| {
            let paths = [
                "request_id",
                "rows",
                "status",
                "id",
                "customer.number",
                "customer.key",
                "price",
                "is_paid",
                "units",
                "share",
            ];
            for path in paths {
                subject.field(path, &mut |value| {
                    found.push((
                        path,
                        match value {
                            eventring_live::Operand::Integer(number) => number.to_string(),
                            eventring_live::Operand::Float(number) => format!("{number:?}"),
                            eventring_live::Operand::Float32(number) => format!("{number:?}"),
                            eventring_live::Operand::Bool(value) => value.to_string(),
                            eventring_live::Operand::Text(text) => format!("\"{text}\""),
                        },
                    ));
                });
            }
            false
        });
    }
    found
}

fn term(random: &mut Random, values: &[(&'static str, String)]) -> String {
    let sign = *random.one_of(&["=", "=", "=", "=", "!=", "<", ">", "<=", ">="]);
    let is = *random.one_of(&["=", "=", "=", "!="]);
    match random.below(16) {
        0 => format!("span{is}{}", random.one_of(&["request", "rare", "shop::db::rare", "qu*", "nothing"])),
        1 => {
            format!(
                "event{is}{}",
                random.one_of(&["\"event src/web.rs:7\"", "ORDER_PLACED", "OrderPlaced", "2", "ORDER_NOTED", "event*"])
            )
        }
        2 => format!("target{is}{}", random.one_of(&["shop::web", "shop::db", "shop*", "nothing"])),
        3 => format!("thread{is}{}", random.one_of(&["main", "worker", "nobody"])),
        4 => format!("level{}{}", random.one_of(&["=", ">=", "<", "!="]), random.one_of(&["WARN", "ERROR", "INFO"])),
        5 => {
            let wanted = ["ok", "7", "7.0", "true", "inf", "NaN", "-0", "0", "1000", "1e3", "1e400"];
            let large = ["9007199254740992", "9007199254740993", "9007199254740993.0", "9007199254740992.5"];
            format!("status{is}{}", random.one_of(&[&wanted[..], &large].concat()))
        }
        6 => format!("{}={}", random.one_of(&["request_id", "id", "customer", "missing"]), random.next()),
        7 => {
            let name = random.one_of(&["rows", "rows", "rows#2", "\"rows\"", "\"rows#2\""]);
            format!("{name}{sign}{}", random.one_of(&[10_000, 40_000]) + random.below(BLOCKS * 110))
        }
        _ => {
            let (path, value) = random.one_of(values);
            let needs_order = sign.contains(['<', '>']);
            let has_order = !["true", "false", "NaN", "inf"].contains(&value.as_str());
            format!("field.{path}{}{value}", if needs_order && !has_order { "=" } else { sign })
        }
    }
}

fn query(random: &mut Random, values: &[(&'static str, String)]) -> Condition {
    loop {
        let terms: Vec<String> = (0..1 + random.below(3))
            .map(|_| format!("{}{}", random.one_of(&["", "", "", "", "not "]), term(random, values)))
            .collect();
        let text = terms.join(*random.one_of(&[" ", " ", " or "]));
        // Some never hold, and are refused.
        if let Ok(condition) = Condition::for_search(&text) {
            return condition;
        }
    }
}

/// Returns the conditions for which a search that reads few blocks does not find what a search of all finds, and what
/// part of the blocks was read.
fn differing(count: u64, test_of: impl Fn(&Condition) -> BlockTest) -> (Vec<String>, f64) {
    let mut capture = capture();
    let (mut random, values) = (Random(11), values(&capture));
    let conditions: Vec<Condition> = (0..count).map(|_| query(&mut random, &values)).collect();
    let (mut kept, mut blocks, mut differing) = (0, 0, Vec::new());
    for conditions in conditions.chunks(200) {
        capture.keep_blocks(&BlockTest::May, 0, u64::MAX);
        let expected = hits_of_all(&capture, conditions);
        for (condition, expected) in conditions.iter().zip(expected) {
            let found = capture.keep_blocks(&test_of(condition), 0, u64::MAX);
            (kept, blocks) = (kept + found.kept, blocks + found.blocks);
            // A search of all blocks is what is expected.
            if found.kept < found.blocks && hits(&capture, condition) != expected {
                differing.push(condition.to_string());
            }
        }
    }
    (differing, kept as f64 / blocks as f64)
}

#[test]
fn random_queries_find_what_a_search_of_all_blocks_finds() {
    let count = std::env::var("EVENTRING_QUERIES").ok().map_or(100, |count| count.parse().unwrap());
    let (differing, part) = differing(count, Condition::block_test);
    println!("{count} queries read {:.1} % of the blocks", 100.0 * part);
    assert!(differing.is_empty(), "{differing:?}");
    // Many queries ask for what every block has.
    assert!(part < 0.6, "{part}");
}

#[test]
fn with_a_filter_that_is_wrong_the_queries_find_less() {
    fn broken(test: BlockTest) -> BlockTest {
        match test {
            BlockTest::All(parts) => BlockTest::All(parts.into_iter().map(broken).collect()),
            BlockTest::Any(parts) => BlockTest::Any(parts.into_iter().map(broken).collect()),
            BlockTest::Key { name, key } => BlockTest::Key { name, key: key ^ 1 << 40 },
            other => other,
        }
    }
    let (differing, _) = differing(60, |condition| broken(condition.block_test()));
    assert!(differing.len() > 5, "{differing:?}");
}

#[test]
fn a_value_that_one_block_has_is_found_by_reading_it_and_few_others() {
    let mut capture = capture();
    let values = values(&capture);
    let ids: Vec<&str> = values.iter().filter(|(path, _)| *path == "request_id").map(|(_, id)| id.as_str()).collect();
    let mut kept = 0;
    for id in ids.iter().take(30) {
        let condition = Condition::for_search(&format!("request_id={id}")).unwrap();
        let found = capture.keep_blocks(&condition.block_test(), 0, u64::MAX);
        assert!(found.kept > 0 && !hits(&capture, &condition).is_empty(), "{id}");
        kept += found.kept;
    }
    assert!(kept < 60, "{kept} blocks were read for 30 values");
    assert_eq!(capture.keep_blocks(&BlockTest::Name(NameKey::field("missing")), 0, u64::MAX).kept, 0);
}
