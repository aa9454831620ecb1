//! Rings without spans: what the verbs about spans show of them.

use crate::fixtures::*;
use crate::triggers::{wait_for, watch_before};

fn count_of(events: &Value, name: &str) -> Value {
    let found = events.list().iter().find(|event| event["name"] == name);
    found.unwrap_or_else(|| panic!("{name}: {events}"))["count"].clone()
}

#[test]
fn summary_counts_typed_events_by_type_with_their_rates_and_sizes() {
    let summary = run!("summary", KEPT, "--json").json();
    let (events, lines) = (&summary["events"], run!("watch", KEPT, "--json").json_lines());
    let of_name = |name: &str| lines.iter().filter(|line| line["name"] == name).count();
    assert_eq!(count_of(events, "TXN_LOG"), of_name("TXN_LOG"));
    let all: u64 = events.list().iter().map(|event| event["count"].number()).sum();
    assert_eq!((all, &summary["spans"]), (lines.len() as u64, &json!([])));
    assert!(events.list().iter().any(|event| event["payload_bytes"].number() > 0));
    insta::assert_snapshot!(run!("summary", KEPT).out);
}

#[test]
fn top_open_and_report_show_what_the_ring_has() {
    let (dir, [path]) = places(["exec"]);
    let ring = exec_ring(&path);
    (0..3).for_each(|_| _ = ring.record(ExecEvent::TxnEnd.code(), [0, 0, 0, 7], &[]));
    ring.record(ExecEvent::EvmError.code(), [0; 4], &[0; 16]);
    let top = run!("top", &path, "--once", "--json").json();
    assert_eq!(count_of(&top["events"], "TXN_END"), 3);
    let frame = run!("top", &path, "--once").out;
    assert!(frame.contains("typed event, ") && frame.contains("EVM_ERROR"), "{frame}");
    assert!(!frame.contains("by self time"), "a table of spans without spans: {frame}");
    let open = run!("open", &path);
    assert!(open.out.contains("typed events have no end, so none is open"), "{open:?}");
    assert!(open.out.lines().any(|line| line.trim_start().starts_with("3 ") && line.ends_with("TXN_END")), "{open:?}");
    // The events name a span of which nothing is known: it is not one that is open.
    assert_eq!(run!("open", &path, "--json").json()["spans"], json!([]));
    assert_eq!(run!("summary", &path, "--json").json()["spans"], json!([]));
    let page = place(&dir, "page.html");
    run!("report", &path, "-o", &page).ends(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<tr><td>TXN_END</td><td>3</td>") && !page.contains("<h2>Spans</h2>"), "{page}");
    // A flame graph needs spans. The advice is one that a program without spans can follow.
    run!("export", &path, "--format", "folded").fails(8, "`eventring summary` counts them");
    drop(ring);
}

#[test]
fn the_manifest_of_a_file_that_a_typed_event_has_fired_calls_it_no_span() {
    let (dir, [path, files]) = places(["exec", "t-{n}.evc"]);
    let watch = watch_before(&path, &["--on", "event=TXN_END", "--after", "0", "-o", argument(&files)]);
    let ring = exec_ring(&path);
    ring.record(ExecEvent::TxnEnd.code(), [0; 4], &[]);
    let manifest = wait_for(&place(&dir, "t-1.evc"));
    assert_eq!((&manifest["what"], &manifest["span"]), (&"event TXN_END".into(), &Value::Null));
    drop(ring);
    watch.end().ends(0);
}
