//! `eventring exec blocks`, `replay` and `summary` of execution events.

use crate::fixtures::*;
mod history;
pub mod live;

/// Two invented blocks with events of every type; the second one is rejected.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/all-exec-events.snapshot.zst");

#[test]
fn a_block_is_a_line_and_a_json_object_with_what_is_wrong_with_it() {
    let blocks = run!("exec", "blocks", KEPT, "--json", "--with", "frames,accesses").ends(0).quiet().json_lines();
    let [whole, rejected] = &blocks[..] else { panic!("{blocks:#?}") };
    assert_eq!(
        (&whole["number"], &whole["state"], &whole["outcome"]),
        (&100.into(), &"verified".into(), &"executed".into())
    );
    let txn = &whole["transactions"][0];
    assert!(txn["hash"].text().starts_with("0x") && txn["logs"][0]["topics"].is_array(), "{txn:#}");
    assert!(txn["call_frames"][0]["call_target"].is_string() && whole["epilogue"].is_array(), "{whole:#}");
    assert_eq!((&rejected["complete"], &rejected["outcome"]), (&false.into(), &"rejected".into()));
    let kinds: Vec<&str> = rejected["problems"].list().iter().map(|problem| problem["kind"].text()).collect();
    assert_eq!(kinds, ["rejected", "failed", "record_error", "rejected"]);
    let without = run!("exec", "blocks", KEPT, "--json").json_lines();
    assert!(without[0]["transactions"][0].get("call_frames").is_none() && without[0].get("epilogue").is_none());

    let people = run!("exec", "blocks", KEPT);
    let lines: Vec<&str> = people.out.lines().collect();
    assert!(lines[0].starts_with("100 verified  2 transactions  2 logs  42,001 gas  "), "{people:?}");
    assert!(lines[2].contains("transaction 0 is invalid: reason 3 (BadNonce)"), "{people:?}");
    assert_eq!(people.err, "2 blocks\n1 is not complete\n");

    let stage = |stage| run!("exec", "blocks", KEPT, "--json", "--min-stage", stage).json_lines().len();
    assert_eq!((stage("finalized"), stage("proposed")), (1, 2));
    let sender = txn["sender"].text();
    let of_sender = run!("exec", "blocks", KEPT, "--json", "--address", sender).json_lines();
    let senders: Vec<&Value> =
        of_sender.iter().flat_map(|block| block["transactions"].list()).map(|txn| &txn["sender"]).collect();
    assert!(!senders.is_empty() && senders.iter().all(|found| **found == sender), "{senders:?}");
    let topic = format!("0x{}", "5".repeat(63) + "7");
    assert_eq!(run!("exec", "blocks", KEPT, "--json", "--topic", &topic).out, "");
}

#[test]
fn a_ring_without_execution_events_and_a_block_that_is_not_there_are_refused() {
    let (dir, [ring]) = places(["spans"]);
    let recorder = spans_in(&ring).build().unwrap();
    run!("exec", "blocks", &ring).fails(8, "the ring has no execution events: found content type 3, expected 2");
    drop(recorder);
    run!("exec", "blocks", KEPT, "--from", "7777").fails(3, "there is no such block");
    run!("exec", "blocks", KEPT, "--from", "0x12").ends(2);
    for verb in ["blocks", "archive"] {
        let out = place(&dir, "out");
        let more = if verb == "archive" { &["-o", argument(&out)][..] } else { &[] };
        run(&[&["exec", verb, argument(dir.path())], more].concat())
            .ends(3)
            .shows_nothing()
            .warns("is no archive of blocks: found nothing there");
    }
    fs::write(dir.path().join("notes"), "").unwrap();
    run!("exec", "blocks", dir.path()).warns("found 1 file or directory there, and no N/BLOCK.bcap");
    run!("exec", "blocks", KEPT, "--min-stage", "abandoned").ends(2);
}

#[test]
fn a_schema_that_is_not_known_can_be_given_as_a_file_to_every_verb() {
    use eventring::recorder::{ContentDescription, Recorder};
    use eventring::schema::EventType as _;
    use eventring::schema::exec::ExecEvent;
    let (dir, [ring, capture, text]) = places(["node", "node.evc", "tomorrow.txt"]);
    // Tomorrow's codes are larger by 40; the ring carries no description, as one of another implementation.
    let content = ContentDescription::new(2, "EXEC").schema_hash([0x5a; 32]);
    let recorder =
        Recorder::builder(content).config(argument(&ring)).shifts(15, 21).compact(true).keep(true).build().unwrap();
    let kept = eventring::reader::Reader::open(KEPT).unwrap();
    let (mut cursor, mut buffer) = (kept.cursor(), Vec::new());
    cursor.seek(eventring::reader::Seek::Oldest);
    while let eventring::reader::Next::Event(event) = cursor.next() {
        let code = if event.event_type == 1 { 1 } else { event.event_type + 40 };
        let payload = cursor.payload(&event, &mut buffer).valid().unwrap();
        recorder.record(code, event.content_ext, payload);
    }
    drop(recorder);
    let tomorrow = ExecEvent::schema().text().lines().map(|line| match *line.split(' ').collect::<Vec<_>>() {
        ["hash", _] => format!("hash {}\n", "5a".repeat(32)),
        ["event", code, ref rest @ ..] if code != "1" => {
            format!("event {} {}\n", code.parse::<u16>().unwrap() + 40, rest.join(" "))
        }
        _ => format!("{line}\n"),
    });
    fs::write(&text, tomorrow.collect::<String>()).unwrap();
    let (ring, text) = (argument(&ring), argument(&text));
    run!("capture", ring, "--now", "-o", &capture).ends(0);
    for name in [ring, argument(&capture)] {
        run!("exec", "blocks", name).fails(9, "`eventring --schema FILE` reads");
        let numbers = |line: &Value| (line["number"].clone(), line["hash"].clone(), line["gas_used"].clone());
        let expected: Vec<_> = run!("exec", "blocks", KEPT, "--json").json_lines().iter().map(numbers).collect();
        let given = run!("exec", "blocks", name, "--json", "--schema", text);
        assert_eq!(given.json_lines().iter().map(numbers).collect::<Vec<_>>(), expected, "{given:?}");
        let shown = run!("watch", "--schema", text, name, "--json", "--from", "oldest", "--type", "BLOCK_END");
        let lines = shown.json_lines();
        assert!(lines.iter().any(|line| line["payload"]["eth_block_hash"].is_string()), "{shown:?}");
    }
    fs::write(dir.path().join("wrong"), "schema-text 1\ncontent 2 EXEC 1\nevnt\n").unwrap();
    run!("watch", ring, "--schema", &dir.path().join("wrong")).fails(2, "line 3");
    run!("info", ring, "--schema", "no-such-file").ends(2);
}

#[test]
fn a_replayed_recording_is_the_recording() {
    let recording = real_data::path("emn-1b-15m.snapshot").unwrap_or_else(|| KEPT.into());
    let (dir, [ring, capture]) = places(["node", "node.evc"]);
    let done = run!("exec", "replay", &recording, "--ring", &ring, "--json").json();
    let shown = |name: &str| {
        let mut lines = run!("watch", name, "--json", "--quiet", "--from", "oldest").json_lines();
        lines.retain(|line| line.get("seqno").is_some());
        lines
    };
    let lines = shown(argument(&ring));
    assert_eq!((done["recorded"].number() as usize, done["left_out"].as_u64()), (lines.len(), Some(0)));
    assert_eq!(lines, shown(argument(&recording)));
    // A capture of the ring has the same blocks, and the summary counts them.
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    let blocks = |name: &str| run!("exec", "blocks", name, "--json", "--with", "frames,accesses").out;
    let of_recording = blocks(argument(&recording));
    assert!(!of_recording.is_empty());
    assert_eq!((blocks(argument(&ring)), blocks(argument(&capture))), (of_recording.clone(), of_recording.clone()));
    let summary = run!("summary", &capture, "--json").json();
    let objects: Vec<Value> = of_recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let txns: usize = objects.iter().map(|block| block["transactions"].list().len()).sum();
    let gas: u64 = objects.iter().filter_map(|block| block["gas_used"].as_u64()).sum();
    assert_eq!(
        (&summary["blocks"], &summary["transactions"], &summary["gas_used"]),
        (&objects.len().into(), &txns.into(), &gas.into())
    );
    // It takes at least as long as the recording took.
    let slow = run!("exec", "replay", KEPT, "--ring", &place(&dir, "slow"), "--rate", "0.001x", "--json").json();
    assert!(slow["seconds"].as_f64().unwrap() > 0.01, "{slow}");
    run!("exec", "replay", KEPT, "--ring", "x", "--rate", "0x").ends(2);
}
