//! Blocks that are invented, cut off, and damaged.

use crate::View;
use crate::tests::chrome_events;
use eventring::reader::{GapCause, Reader};
use eventring::schema::RecordError;
use eventring::schema::exec::{EvmError, ExecEvent};
use eventring::schema::{EventPayload, EventType};
use eventring_capture::fixtures::CaptureFixture;
use eventring_capture::{CaptureFile, capture_now};
use eventring_stress::chain::{Event, Made};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The ring of execution events of a fixture.
const RING: usize = 1;

fn capture(events: &[Event]) -> CaptureFile {
    let mut made = CaptureFixture::new();
    events.iter().for_each(|event| add(&mut made, event));
    made.open()
}

fn add(made: &mut CaptureFixture, (event, payload): &Event) {
    made.event(RING, event.event_type, event.record_epoch_nanos, event.content_ext, payload);
}

fn bytes(payload: &impl EventPayload) -> Vec<u8> {
    payload.with_bytes(<[u8]>::to_vec)
}

fn drawn(events: &[Event]) -> Vec<Value> {
    chrome_events(&capture(events), View::Thread)
}

/// A slice or an instant: its track, its times, and its place in the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Interval {
    tid: u64,
    start: u64,
    end: u64,
    at: usize,
}

fn intervals(trace: &[Value], is_wanted: impl Fn(&Value) -> bool) -> Vec<Interval> {
    let nanos = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as u64;
    let wanted = trace.iter().enumerate().filter(|(_, event)| is_wanted(event));
    let interval = |(at, event): (usize, &Value)| {
        let start = nanos(&event["ts"]);
        let end = start + event.get("dur").map_or(0, nanos);
        Interval { tid: event["tid"].as_u64().unwrap(), start, end, at }
    };
    wanted.map(interval).collect()
}

fn is_slice_of(event: &Value, name: &str) -> bool {
    event["ph"] == "X" && event["name"].as_str().unwrap().starts_with(name)
}

fn named<'t>(trace: &'t [Value], name: &str) -> Vec<&'t Value> {
    trace.iter().filter(|event| is_slice_of(event, name)).collect()
}

/// Returns the pairs of slices of a track that overlap and do not nest.
fn overlaps(mut slices: Vec<Interval>) -> Vec<[Interval; 2]> {
    slices.sort_by_key(|slice| (slice.tid, slice.start, std::cmp::Reverse(slice.end)));
    let (mut found, mut open): (Vec<[Interval; 2]>, Vec<Interval>) = (Vec::new(), Vec::new());
    for slice in slices {
        open.retain(|outer| outer.tid == slice.tid && outer.end > slice.start);
        found.extend(open.iter().filter(|outer| slice.end > outer.end).map(|outer| [*outer, slice]));
        open.push(slice);
    }
    found
}

/// Events of a block whose transactions begin and end at these times.
fn block_of(times: &[(u64, u64)]) -> Vec<Event> {
    let mut made = Made::default();
    let tag = made.block(7, 1, times.len() as u64);
    made.finalize(tag);
    for (event, _) in &mut made.0 {
        let Some((start, length)) = event.content_ext[1].checked_sub(1).map(|txn| times[txn as usize]) else {
            continue;
        };
        event.record_epoch_nanos = 1_002_000
            + match ExecEvent::from_code(event.event_type) {
                Some(ExecEvent::TxnPerfEvmEnter) => start,
                Some(ExecEvent::TxnPerfEvmExit) => start + length,
                // Nodes of other days record these after the end.
                _ => start + event.seqno % (2 * length + 3),
            };
    }
    made.0
}

/// The largest number of transactions at one time.
fn most(times: &[(u64, u64)]) -> usize {
    let ends = |(start, length): (u64, u64)| start + length.max(1);
    times.iter().map(|(at, _)| times.iter().filter(|it| it.0 <= *at && ends(**it) >= *at).count()).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn no_two_transactions_of_a_row_overlap_and_there_are_as_few_rows_as_possible(
        times in prop::collection::vec((0_u64..300, 0_u64..60), 1..24)
    ) {
        let trace = drawn(&block_of(&times));
        let found = overlaps(intervals(&trace, |event| event["ph"] == "X"));
        prop_assert!(found.is_empty(), "{found:?}");
        let txns = intervals(&trace, |event| is_slice_of(event, "txn "));
        prop_assert_eq!(txns.len(), times.len());
        let mut rows: Vec<u64> = txns.iter().map(|txn| txn.tid).collect();
        rows.sort_unstable();
        rows.dedup();
        prop_assert_eq!(rows.len(), most(&times));
        for txn in &txns {
            let index = trace[txn.at]["args"]["index"].as_u64().unwrap();
            prop_assert_eq!(txn.end - txn.start, times[index as usize].1.max(1));
            let of_txn = |event: &Value| event["ph"] == "i" && event["args"]["txn_index"] == index;
            let events = intervals(&trace, of_txn);
            prop_assert_eq!(events.len(), 4, "two logs and two call frames");
            for event in events {
                prop_assert!((txn.tid, true) == (event.tid, (txn.start..txn.end).contains(&event.start)), "{event:?}");
            }
        }
        // The control: in one row, they overlap if any two of them do.
        let one_row = txns.iter().map(|txn| Interval { tid: 0, ..*txn }).collect();
        let touch = txns.iter().any(|a| txns.iter().any(|b| a.start < b.start && b.start < a.end && a.end < b.end));
        prop_assert_eq!(overlaps(one_row).is_empty(), !touch);
    }
}

/// What becomes of an event in a damaged recording.
#[derive(Clone, Debug)]
enum Damage {
    None,
    Lost,
    Payload(Vec<u8>),
    Words([u64; 4]),
    Code(u16),
    Nanos(u64),
}

fn any_damage() -> impl Strategy<Value = Damage> {
    let words = (0..200_u64, 0..6_u64, any::<u64>()).prop_map(|(tag, txn, other)| Damage::Words([tag, txn, other, 0]));
    prop_oneof![
        30 => Just(Damage::None),
        1 => Just(Damage::Lost),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Damage::Payload),
        1 => words,
        1 => (0..40_u16).prop_map(Damage::Code),
        2 => (0..2_000_000_u64).prop_map(Damage::Nanos),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_damaged_blocks_each_event_is_in_a_slice_or_an_instant_and_no_slices_overlap(
        damages in prop::collection::vec(any_damage(), 180),
        last_nanos in prop::option::of(Just(u64::MAX))
    ) {
        let mut whole = Made::default();
        for number in 1..=3 {
            let tag = whole.block(number, number as u8, 2);
            whole.finalize(tag);
        }
        let (mut made, mut kept) = (CaptureFixture::new(), 0_u64);
        for ((event, payload), damage) in whole.0.iter().zip(damages.iter().chain(std::iter::repeat(&Damage::None))) {
            let (mut event, mut payload) = (*event, payload.clone());
            match damage {
                Damage::None => {}
                Damage::Lost => {
                    made.gap(RING, 1, GapCause::Overwritten);
                    continue;
                }
                Damage::Payload(bytes) => payload = bytes.clone(),
                Damage::Words(words) => event.content_ext = *words,
                Damage::Code(code) => event.event_type = *code,
                Damage::Nanos(nanos) => event.record_epoch_nanos = last_nanos.unwrap_or(*nanos),
            }
            kept += 1;
            add(&mut made, &(event, payload));
        }
        let capture = made.open();
        crate::export(&capture, crate::Format::Perfetto, View::Both, &mut Vec::new()).unwrap();
        let trace = chrome_events(&capture, View::Thread);
        let of_chain = |event: &&Value| ["blocks", "transactions"].map(Value::from).contains(&event["args"]["name"]);
        let tracks: Vec<&Value> = trace.iter().filter(of_chain).map(|event| &event["tid"]).collect();
        let others = trace.iter().filter(|event| event["ph"] == "i" && !tracks.contains(&&event["tid"])).count() as u64;
        let blocks = named(&trace, "block ");
        let events: u64 = blocks.iter().map(|block| block["args"]["events"].as_u64().unwrap()).sum();
        prop_assert_eq!(events + others, kept);
        let is_slice = |event: &Value| event["ph"] == "X" && event["cat"] == "EXEC";
        let found = overlaps(intervals(&trace, is_slice));
        // JSON has no exact times of 64 bits.
        prop_assert!(found.is_empty() || last_nanos.is_some(), "{found:?}");
    }
}

#[test]
fn kept_blocks_as_a_chrome_trace() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");
    let (capture, _) = capture_now(vec![Reader::open(kept).unwrap()], || true).unwrap();
    let mut lines = String::new();
    for event in chrome_events(&capture, View::Thread) {
        let mut event = event;
        event["args"].as_object_mut().map(|args| args.remove("data"));
        lines += &format!("{event}\n");
    }
    insta::assert_snapshot!(lines);
}

#[test]
fn every_event_is_counted_in_a_slice_or_is_an_instant() {
    let mut made = Made::default();
    for number in 1..=3 {
        let tag = made.block(number, number as u8, 4);
        made.vote(tag);
        made.finalize(tag);
        made.verify(number);
    }
    // An event that belongs to no block.
    made.add(ExecEvent::TxnEnd, [0; 4], vec![]);
    let trace = drawn(&made.0);
    let sum =
        |name: &str, arg: &str| named(&trace, name).iter().map(|it| it["args"][arg].as_u64().unwrap()).sum::<u64>();
    assert_eq!((named(&trace, "block ").len(), named(&trace, "EVM").len(), named(&trace, "txn ").len()), (3, 3, 12));
    assert_eq!(sum("block ", "events") + 3 * 3 + 1, made.0.len() as u64);
    assert_eq!(sum("block ", "events_of_transactions"), sum("txn ", "events"));
    // Of each block, two accounts before its transactions and two after them; three slots each time.
    assert_eq!((sum("block ", "account_accesses"), sum("block ", "storage_accesses")), (3 * 4, 3 * 6));
    assert_eq!((sum("txn ", "account_accesses"), sum("txn ", "storage_accesses")), (12 * 2, 12 * 3));
    let instants: Vec<&str> =
        trace.iter().filter(|event| event["ph"] == "i").map(|event| event["name"].as_str().unwrap()).collect();
    let count = |name: &str| instants.iter().filter(|it| **it == name).count() as u64;
    assert_eq!((count("TXN_LOG"), count("TXN_CALL_FRAME"), count("TXN_END")), (24, 24, 1));
    assert_eq!((sum("txn ", "logs"), sum("txn ", "call_frames")), (24, 24));
    assert_eq!([count("voted 2"), count("finalized 2"), count("verified 2")], [1, 1, 1]);
    assert_eq!(instants.len(), 24 + 24 + 1 + 9);
    assert!(named(&trace, "block ").iter().all(|block| block["args"]["state"] == "verified"), "{trace:?}");
}

#[test]
fn what_is_missing_of_a_block_is_said() {
    let whole = {
        let mut made = Made::default();
        made.block(7, 1, 2);
        made.0
    };
    let block = |trace: &[Value]| named(trace, "block ")[0]["args"].clone();
    // The recording ends in the block.
    let open = drawn(&whole[..whole.len() - 20]);
    let args = block(&open);
    assert_eq!([&args["open"], &args["outcome"], &args["complete"]], [&json!(true), &json!("unknown"), &json!(false)]);
    let problems = args["problems"].as_str().unwrap();
    assert!(problems.starts_with("0 of 1 block_end are there; "), "{problems}");
    assert_eq!(named(&open, "txn ")[0]["args"]["end"], "not seen");
    // It begins in the block.
    let later: Vec<Event> = whole[8..].to_vec();
    let cut = drawn(&later);
    let args = block(&cut);
    assert_eq!((named(&cut, "block ?").len(), &args["start"]), (1, &json!("not seen")));
    assert_eq!((&args["events"], named(&cut, "txn ").len()), (&json!(later.len()), 2));
    // Events were lost in it.
    let mut made = CaptureFixture::new();
    whole.iter().take(40).for_each(|event| add(&mut made, event));
    made.gap(RING, 3, GapCause::Overwritten);
    whole.iter().skip(43).for_each(|event| add(&mut made, event));
    let trace = chrome_events(&made.open(), View::Thread);
    assert_eq!(named(&trace, "block ")[0]["cname"], "bad");
    let lost = block(&trace);
    assert_eq!((&lost["complete"], &lost["outcome"]), (&json!(false), &json!("executed")));
    assert!(lost["problems"].as_str().unwrap().contains("the events 41 to 43 are missing"), "{lost}");
}

#[test]
fn errors_and_rejections_are_said_and_stand_out() {
    let mut made = Made::default();
    made.block(7, 1, 1);
    made.0.truncate(30);
    let (error_type, dropped_event_type) = (2, ExecEvent::TxnLog.code());
    let error = RecordError { error_type, dropped_event_type, truncated_payload_size: 0, requested_payload_size: 99 };
    made.add(ExecEvent::RecordError, [1, 1, 0, 0], bytes(&error));
    made.add(ExecEvent::EvmError, [1, 1, 0, 0], bytes(&EvmError { domain_id: 4, status_code: -5 }));
    made.reject(1);
    let trace = drawn(&made.0);
    let block = named(&trace, "block 7")[0];
    assert_eq!((&block["cname"], &block["args"]["reason_name"]), (&json!("terrible"), &json!("GasAboveLimit")));
    let txn = intervals(&trace, |event| is_slice_of(event, "txn "))[0];
    let problems = trace[txn.at]["args"]["problems"].as_str().unwrap();
    assert!(problems.contains("could not be recorded") && problems.contains("of domain 4"), "{problems}");
    let instants = intervals(&trace, |event| event["cname"] == "terrible" && event["ph"] == "i");
    let mut names: BTreeMap<&str, bool> = BTreeMap::new();
    for instant in &instants {
        let is_inside = instant.tid == txn.tid && (txn.start..txn.end).contains(&instant.start);
        names.insert(trace[instant.at]["name"].as_str().unwrap(), is_inside);
    }
    assert_eq!(names, BTreeMap::from([("EVM_ERROR", true), ("RECORD_ERROR", true)]));
}

#[test]
fn a_block_that_another_one_abandons_says_so() {
    let mut made = Made::default();
    made.block(7, 1, 1);
    let tag = made.block(7, 2, 1);
    made.finalize(tag);
    made.block(8, 3, 0);
    let trace = drawn(&made.0);
    let states: Vec<&Value> = named(&trace, "block ").iter().map(|block| &block["args"]["state"]).collect();
    assert_eq!(states, ["abandoned", "finalized", "proposed"]);
}
