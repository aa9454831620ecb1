//! Spans of a thread that measures its times.

use super::{chrome_events, exported};
use crate::{ExportOptions, Format, View, Weight, export, summarize};
use eventring::reader::GapCause;
use eventring::schema::EventPayload as _;
use eventring::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ThreadTime};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::CaptureFixture;
use serde_json::{Value, json};

/// Records a THREAD_TIME of thread 1.
pub(super) fn measured(
    made: &mut CaptureFixture,
    nanos: u64,
    since_epoch_nanos: u64,
    cpu_nanos: u64,
    queue_nanos: u64,
) {
    let times =
        ThreadTime { since_epoch_nanos, cpu_nanos, queue_nanos, voluntary_switches: 1, ..ThreadTime::default() };
    let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
    times.with_bytes(|bytes| made.perf(PerfEvent::ThreadTime, nanos, ext, bytes));
}

/// Makes a request of 1500 ns with a query of 900 ns. The thread has left its processor in the query for 850 ns, and
/// after the query for a time that is not known.
fn made() -> CaptureFixture {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    made.call_site(1000, 1, CallSiteKind::Span, "request", &[]);
    made.call_site(1000, 2, CallSiteKind::Span, "query", &[]);
    for (nanos, id) in [(2000, 1), (2100, 2)] {
        made.span_new(nanos, 1, (id, id - 1), id as u32, &[]);
        made.span(PerfEvent::SpanEnter, nanos, 1, id, id as u32);
    }
    measured(&mut made, 3000, 1000, 1150, 150);
    made.span(PerfEvent::SpanExit, 3000, 1, 2, 2);
    made.span(PerfEvent::SpanClose, 3000, 1, 2, 2);
    made.span(PerfEvent::ThreadSwitched, 3500, 1, 0, 0);
    made.span(PerfEvent::SpanExit, 3500, 1, 1, 1);
    made.span(PerfEvent::SpanClose, 3500, 1, 1, 1);
    made
}

fn folded(capture: &CaptureFile, weight: Weight, view: View) -> String {
    let mut out = Vec::new();
    export(capture, Format::Folded, ExportOptions::from(view).weight(weight), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the states that the trace of a capture has, with their begins and ends.
pub(super) fn states(capture: &CaptureFile) -> Vec<(String, f64, f64)> {
    let events = chrome_events(capture, View::Thread);
    let is_row = |event: &&Value| event["name"] == "thread_name" && event["args"]["name"] == "state";
    let Some(row) = events.iter().find(is_row).map(|event| &event["tid"]) else { return Vec::new() };
    let slices = events.iter().filter(|event| event["tid"] == *row && event["ph"] == "X");
    let number = |value: &Value| value.as_f64().unwrap();
    let state = |event: &Value| {
        let (from, duration) = (number(&event["ts"]), number(&event["dur"]));
        (event["name"].as_str().unwrap().to_owned(), from, duration)
    };
    slices.map(state).collect()
}

#[test]
fn times_of_threads_are_columns_of_spans() {
    let lines = exported(&made().open(), Format::Jsonl, View::Thread);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let spans: Vec<Value> = lines.filter(|line| line["type"] == "span").collect();
    let parts =
        |span: &Value| ["busy_ns", "cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"].map(|key| span[key].clone());
    assert_eq!(parts(&spans[0]), [1500, 150, 150, 700, 500].map(Value::from));
    assert_eq!(parts(&spans[1]), [900, 50, 150, 700, 0].map(Value::from));
}

#[test]
fn a_trace_has_the_times_of_threads_at_its_slices_and_the_states_in_a_row() {
    let capture = made().open();
    for view in [View::Thread, View::Span] {
        let events = chrome_events(&capture, view);
        let slice = events.iter().find(|event| event["name"] == "request").unwrap();
        let parts = ["cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"].map(|key| &slice["args"][key]);
        assert_eq!(parts, [150, 150, 700, 500], "{slice}");
    }
    let states = states(&capture);
    let states: Vec<_> = states.iter().map(|(name, from, duration)| (name.as_str(), *from, *duration)).collect();
    // The first event is at 1000 ns.
    let expected = [("running", 0.0, 1.15), ("sleeping", 1.15, 0.7), ("runnable", 1.85, 0.15), ("off", 2.0, 0.5)];
    assert_eq!(states, expected);
}

#[test]
fn after_a_loss_no_state_is_told_until_the_next_event_of_the_thread() {
    let mut made = made();
    made.gap(0, 1, GapCause::Overwritten);
    made.span_new(9000, 1, (3, 0), 1, &[]);
    measured(&mut made, 9900, 3000, 5000, 900);
    let states = states(&made.open());
    assert_eq!(states[4..], [("runnable".to_owned(), 8.0, 0.9)], "{states:?}");
}

#[test]
fn stacks_have_the_own_times_of_threads() {
    let capture = made().open();
    for view in [View::Thread, View::Span] {
        assert_eq!(folded(&capture, Weight::Cpu, view), "shop;request 100\nshop;request;query 50\n");
        assert_eq!(folded(&capture, Weight::Queue, view), "shop;request;query 150\n");
        assert_eq!(folded(&capture, Weight::Sleep, view), "shop;request;query 700\n");
    }
}

#[test]
fn a_summary_has_the_times_of_threads_and_says_about_if_some_are_not_known() {
    let summary = summarize(&made().open()).unwrap();
    let [request, query] = &summary.spans[..] else { panic!("{summary:?}") };
    let expected = json!({"cpu_ns": 150, "queue_ns": 150, "sleep_ns": 700, "unmeasured_ns": 500, "exact": false});
    assert_eq!(serde_json::to_value(request).unwrap()["times"], expected);
    assert_eq!(
        request.times.unwrap().in_words(),
        ["~150 ns 10.0 %", "~150 ns 10.0 %", "~700 ns 46.7 %", "~500 ns 33.3 %"]
    );
    assert_eq!(query.times.unwrap().in_words(), ["50 ns 5.6 %", "150 ns 16.7 %", "700 ns 77.8 %", "–"]);
}
