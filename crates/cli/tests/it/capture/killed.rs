//! A killed program leaves its rings. A capture of these rings holds all events that the program had committed, and
//! shows the spans as open that were open when the program was killed.

use crate::consumers;
use crate::program::run;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::schema::EventType as _;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring_stress::child;
use eventring_stress::test_name;

const TEST: &str = test_name!("committed_events_of_a_killed_program_are_captured_and_open_spans_are_open");

/// Records spans without end. Every thousandth span stays open, so the later spans are nested in it. The function
/// prints the number of each span that stays open.
fn victim() -> ! {
    let builder = Recorder::builder(ContentDescription::of::<PerfEvent>()).config(child::place()).shifts(20, 27);
    let recorder = builder.prefault(false).build().unwrap();
    let record = |event: PerfEvent, span_id, related| {
        let ext = PerfExt { span_id, related, thread_id: 1, ..PerfExt::default() };
        recorder.record(event.code(), ext.to_words(), &[]);
    };
    let mut open = 0;
    for span in 1_u64.. {
        record(PerfEvent::SpanNew, span, open);
        record(PerfEvent::SpanEnter, span, 0);
        if span % 1000 == 0 {
            open = span;
            child::say(span);
        } else {
            record(PerfEvent::SpanExit, span, 0);
            record(PerfEvent::SpanClose, span, 0);
        }
        if span > 200_000 {
            child::wait_for_parent();
        }
    }
    unreachable!("the parent kills us");
}

#[test]
fn committed_events_of_a_killed_program_are_captured_and_open_spans_are_open() {
    if child::part().is_some() {
        victim();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut talk = child::Talk::with(child::play(TEST, "victim", path("ring").as_ref()));
    let mut printed = 0;
    while printed < 20_000 {
        printed = talk.hear().parse().unwrap();
    }
    talk.child.kill().unwrap();
    talk.child.wait().unwrap();

    let captured = run(&["capture", &path("ring"), "-o", &path("t.evc"), "--json"]).json();
    assert_eq!(captured["reason"], "writers_ended");
    let ring = &captured["rings"][0];
    let (events, lost) = (ring["events"].as_u64().unwrap(), ring["lost"].as_u64().unwrap());
    // At most one event is missing: the one that the program was recording when it was killed.
    assert!(lost <= 1 && ring["lost_by_cause"]["never_committed"] == lost, "{captured}");
    assert_eq!(events + lost, ring["last_seqno"].as_u64().unwrap());
    assert_eq!(ring["unread"], 0);
    assert!(events >= printed * 4 - printed / 1000 * 2, "{events} events, {printed} spans");

    let lines = run(&["export", &path("t.evc"), "--format", "jsonl"]).json_lines();
    let spans = lines.iter().filter(|line| line["type"] == "span");
    let open: Vec<u64> = spans.filter(|span| span["open"] == true).map(|span| span["id"].as_u64().unwrap()).collect();
    let deep = open.iter().filter(|id| *id % 1000 == 0).count() as u64;
    assert!(deep >= printed / 1000 && open.len() as u64 - deep <= 1, "{open:?}");

    for view in ["thread", "span"] {
        let file = path(view);
        assert_eq!(run(&["export", &path("t.evc"), "--view", view, "-o", &file]).code, Some(0));
        let Some(trace) = consumers::read("perfetto_slices.py", file.as_ref()) else { continue };
        let mut shown: Vec<u64> = trace["open"]
            .as_array()
            .unwrap()
            .iter()
            .map(|slice| {
                assert_eq!(slice["args"]["open"], true);
                slice["args"]["span_id"].as_u64().unwrap()
            })
            .collect();
        shown.sort_unstable();
        // The thread view shows only spans that a thread was in. The newest span may be open without a thread in it:
        // if the program was killed before it entered the span, or after it exited the span.
        if view == "thread" {
            let entered: Vec<u64> = open.iter().copied().filter(|id| shown.contains(id) || id % 1000 == 0).collect();
            assert_eq!(shown, entered);
        } else {
            assert_eq!(shown, open);
        }
    }
}
