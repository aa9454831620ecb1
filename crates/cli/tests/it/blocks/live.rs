//! `eventring exec blocks --follow` while a node executes, forks, is killed and started again.

use crate::program::{Live, argument, directory, place, run};
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::exec::ExecEvent;
use eventring_stress::chain::Made;
use serde_json::Value;
use std::path::Path;

pub fn node(path: &Path) -> Recorder {
    let content = ContentDescription::from_event_type::<ExecEvent>();
    Recorder::builder(content).config(path).shifts(15, 24).compact(true).keep(true).prefault(false).build().unwrap()
}

fn numbers(lines: &[Value]) -> Vec<(u64, bool)> {
    lines.iter().map(|line| (line["number"].as_u64().unwrap(), line["complete"].as_bool().unwrap())).collect()
}

#[test]
fn a_block_that_never_becomes_final_holds_up_no_other_one() {
    let dir = directory();
    let ring = place(&dir, "node");
    let recorder = node(&ring);
    let mut follow =
        Live::start(&["exec", "blocks", argument(&ring), "--follow", "--min-stage", "finalized", "--json"]);
    let mut made = Made::default();
    // Block 10 has no end, and none of its number becomes final.
    made.block(10, 10, 1);
    made.0.pop();
    let mut recorded = made.record(0, &recorder);
    for number in 11..=14 {
        let tag = made.block(number, number as u8, 1);
        made.finalize(tag);
        recorded = made.record(recorded, &recorder);
        // It comes while the node lives.
        assert_eq!(follow.json_line()["number"], number);
    }
    follow.interrupt();
    assert_eq!(follow.end().code, Some(0));
}

#[test]
fn a_block_that_was_cut_off_is_told_once_more_when_it_is_executed_again() {
    let dir = directory();
    let ring = place(&dir, "node");
    let mut made = Made::default();
    for number in 1..=3 {
        let tag = made.block(number, number as u8, 2);
        made.finalize(tag);
    }
    // The node ends in the middle of block 3, and is started again.
    let mut first = Made(made.0.clone());
    let end = first.0.iter().rposition(|(event, _)| event.event_type == ExecEvent::TxnEnd as u16).unwrap();
    first.0.truncate(end);
    let recorder = node(&ring);
    first.record(0, &recorder);
    let mut follow = Live::start(&["exec", "blocks", argument(&ring), "--follow", "--json"]);
    let mut of_finals =
        Live::start(&["exec", "blocks", argument(&ring), "--follow", "--min-stage", "finalized", "--json"]);
    let seen: Vec<Value> = (0..2).map(|_| follow.json_line()).collect();
    assert_eq!(numbers(&seen), [(1, true), (2, true)]);
    let finals: Vec<Value> = (0..2).map(|_| of_finals.json_line()).collect();
    assert_eq!(numbers(&finals), [(1, true), (2, true)]);
    drop(recorder);
    assert_eq!(numbers(&[follow.json_line()]), [(3, false)]);
    let recorder = node(&ring);
    made.record(0, &recorder);
    assert_eq!(numbers(&[follow.json_line(), of_finals.json_line()]), [(3, true), (3, true)]);
    // Another node takes the name, with other events.
    drop(recorder);
    let other = ContentDescription::from_event_type::<eventring_stress::market::Market>();
    let _other = Recorder::builder(other).config(argument(&ring)).shifts(15, 24).compact(true).build().unwrap();
    let ended = follow.end();
    assert!(ended.code == Some(8) && ended.err.contains("has no execution events"), "{ended:?}");
    of_finals.interrupt();
}

#[test]
fn problems_are_told_when_they_come_and_strict_is_about_what_is_missing() {
    let dir = directory();
    let ring = place(&dir, "node");
    let recorder = node(&ring);
    let mut made = Made::default();
    made.block(1, 1, 1);
    let recorded = made.record(0, &recorder);
    let mut follow = Live::start(&["exec", "blocks", argument(&ring), "--follow", "--json"]);
    assert_eq!(follow.json_line()["number"], 1);
    recorder.record(99, [0; 4], b"");
    let said = follow.notice("unknown type 99");
    assert!(said.contains("outside of any block"), "{said}");
    follow.interrupt();
    assert_eq!(follow.end().code, Some(0));
    assert_eq!(run(&["exec", "blocks", argument(&ring), "--strict"]).code, Some(0));
    let lost = recorder.reserve(ExecEvent::TxnLog as u16, [0; 4], 8);
    drop(lost);
    // A block without its end.
    made.block(2, 2, 1);
    made.0.pop();
    made.record(recorded, &recorder);
    drop(recorder);
    assert_eq!(run(&["exec", "blocks", argument(&ring), "--strict"]).code, Some(16));
    let snapshot = place(&dir, "node.snapshot");
    assert_eq!(run(&["snapshot", argument(&ring), "-o", argument(&snapshot)]).code, Some(0));
    let refused = run(&["exec", "blocks", argument(&snapshot), "--follow"]);
    assert!(refused.code == Some(2) && refused.err.contains("--follow needs a ring"), "{refused:?}");
}
