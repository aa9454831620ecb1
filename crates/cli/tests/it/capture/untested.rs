//! A condition that depends on a lost payload cannot be tested: the event is not selected, and is counted as a lost
//! payload.

use super::payloads_that_were_lost::{SPANS, TEXT_BYTES, grouped, recorded};
use crate::fixtures::*;

/// Returns the number of events of these types whose payload the ring has lost.
fn lost(ring: &Path, names: &[&str]) -> u64 {
    let lines = run!("watch", ring, "--json", "--full").json_lines();
    let is_lost = |line: &&Value| line["expired"] == true && names.contains(&line["name"].text());
    lines.iter().filter(is_lost).count() as u64
}

fn says(run: &Run, lost: u64) -> bool {
    run.err.contains(&format!("{} events have lost their payload", grouped(lost)))
}

#[test]
fn what_a_lost_payload_hides_from_a_condition_is_counted_and_not_selected() {
    let recorded = recorded(TEXT_BYTES);
    for (ring, condition) in [(&recorded.spans, "field.number>=0"), (&recorded.orders, "field.id>=0")] {
        let untested = lost(ring, &["SPAN_NEW", "ORDER_NOTED"]);
        assert!(untested > SPANS / 2);
        // Lost descriptions of call sites, and times of threads, count in any selection.
        let lost = untested + lost(ring, &["CALL_SITE", "THREAD_TIME"]);
        let ring = argument(ring);
        let file = place(&recorded.directory, "t.evc");
        run!("capture", ring, "-o", &file, "--force").ends(0);
        for from in [ring, argument(&file)] {
            let summary = run!("summary", from, "--where", condition, "--strict");
            assert!(summary.code == Some(16) && says(&summary, lost), "{summary:?}");
            let to = place(&recorded.directory, "export");
            let exported =
                run!("export", from, "--where", condition, "--format", "jsonl", "-o", &to, "--force", "--json");
            assert_eq!(number(&exported.json()["lost_payloads"]), lost, "{exported:?}");
            let begin = if from == ring { &["--from", "oldest"][..] } else { &[] };
            let watched = [&["watch", from, "--where", condition, "--strict", "--json"], begin].concat();
            let watched = run(&watched).fails(16, format!("{} without payload", grouped(untested)));
            assert!(watched.json_lines().iter().all(|line| line["expired"] != true), "{from}");
        }
        // Neither does the opposite hold.
        let opposite = format!("(span=request or event=ORDER_NOTED) not {condition}");
        let opposite = run!("summary", &file, "--where", &opposite);
        assert_ne!(opposite.code, Some(0), "{opposite:?}");
        assert!(opposite.err.contains(&format!("{untested} spans and events could not")), "{opposite:?}");
        // A capture keeps what it cannot test, without its payload.
        run!("capture", ring, "--where", condition, "-o", &file, "--force", "--strict").ends(16);
        for options in [&[][..], &["--where", condition]] {
            run!("summary", &file, "--strict", options).fails(16, "have lost their payload");
        }
    }
}

#[test]
fn what_a_condition_excludes_anyway_is_no_lost_payload() {
    let recorded = recorded(TEXT_BYTES);
    let condition = "span=bare or event=ORDER_PLACED field.id=1 or span=other field.number=1";
    let summary = run!("summary", &recorded.spans, &recorded.orders, "--where", condition, "--json");
    let of_call_sites = lost(&recorded.spans, &["CALL_SITE", "THREAD_TIME"]);
    assert_eq!((number(&summary.json()["lost_payloads"]), summary.code), (of_call_sites, Some(0)), "{summary:?}");
}
