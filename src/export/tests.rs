//! Exports of a small capture that has one of everything.

use super::*;
use crate::capture::LossCause;
use crate::capture::made::{Made, int, text};
use crate::schema::perf::{CallSiteKind, PerfEvent, PerfExt, ValueType};

/// A request with two queries at once on two threads, an exec event, a log record, a counter, a loss, an open span.
fn everything() -> CaptureFile {
    let mut made = Made::new();
    made.thread(1000, 1, "main");
    made.thread(1001, 2, "worker");
    made.call_site(1002, 1, CallSiteKind::Span, "request", &["path", "status"]);
    made.call_site(1003, 2, CallSiteKind::Span, "query", &["rows"]);
    made.call_site(1004, 3, CallSiteKind::Event, "event src/web.rs:13", &["message", "left"]);
    made.call_site(1005, 4, CallSiteKind::Counter, "connections", &[]);
    made.span_new(2000, 1, (1, 0), 1, &[text(0, "/buy; now")]);
    made.span(PerfEvent::SpanEnter, 2100, 1, 1, 1);
    made.span_new(2200, 1, (2, 1), 2, &[]);
    made.span_new(2300, 1, (3, 1), 2, &[]);
    made.span(PerfEvent::SpanEnter, 2400, 1, 2, 2);
    made.span(PerfEvent::SpanEnter, 2450, 2, 3, 2);
    made.event(1, 20, 2500, [7, 3, 0, 2], b"");
    let in_query = PerfExt { span_id: 3, call_site_id: 3, thread_id: 2, field_count: 2, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 2600, in_query, &[text(0, "slow query"), int(1, -5)].concat());
    let sample =
        PerfExt { related: 12, call_site_id: 4, thread_id: 1, value_type: ValueType::U64 as u8, ..PerfExt::default() };
    made.perf(PerfEvent::Counter, 2650, sample, &[]);
    made.span(PerfEvent::SpanExit, 2700, 1, 2, 2);
    made.span(PerfEvent::SpanClose, 2710, 1, 2, 2);
    let late = PerfExt { span_id: 1, call_site_id: 1, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanRecord, 2720, late, &int(1, 200));
    made.span(PerfEvent::SpanExit, 2800, 1, 1, 1);
    made.span(PerfEvent::SpanExit, 2850, 2, 3, 2);
    made.span(PerfEvent::SpanClose, 2900, 2, 3, 2);
    made.span(PerfEvent::SpanClose, 3001, 2, 1, 1);
    made.gap(0, 40, LossCause::Overwritten);
    made.gap(0, 2, LossCause::NeverCommitted);
    made.event(1, 20, 3100, [7, 0, 0, 0], b"");
    made.span_new(4000, 1, (60, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 4100, 1, 60, 1);
    made.open()
}

fn exported(capture: &CaptureFile, format: Format, view: View) -> String {
    let mut out = Vec::new();
    export(capture, format, view, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn chrome_by_thread() {
    insta::assert_snapshot!(exported(&everything(), Format::Chrome, View::Thread));
}

#[test]
fn chrome_by_span() {
    insta::assert_snapshot!(exported(&everything(), Format::Chrome, View::Span));
}

#[test]
fn json_lines() {
    insta::assert_snapshot!(exported(&everything(), Format::Jsonl, View::Thread));
}

#[test]
fn folded() {
    let capture = everything();
    // Request: 1001 less 2200 to 2900; queries: 510 and 600.
    assert_eq!(exported(&capture, Format::Folded, View::Span), "shop;request 301\nshop;request;query 1110\n");
    // Request: 2100 to 2400 and 2700 to 2800; queries: 300 and 400.
    assert_eq!(exported(&capture, Format::Folded, View::Thread), "shop;request 400\nshop;request;query 700\n");
}

#[test]
fn summary() {
    let summary = summarize(&everything()).unwrap();
    let [query, request] = &summary.spans[..] else { panic!("{summary:?}") };
    assert_eq!((query.name.as_str(), query.count, query.total_nanos, query.self_nanos), ("query", 2, 1110, 1110));
    assert_eq!((query.busy_nanos, query.idle_nanos, query.p50_nanos, query.max_nanos), (700, 410, 510, 600));
    assert_eq!((request.count, request.open, request.total_nanos, request.self_nanos), (1, 1, 1001, 301));
    assert_eq!((request.busy_nanos, request.p99_nanos, summary.lost), (700, 1001, 42));
}

#[test]
fn counts_are_those_of_the_capture() {
    let mut out = Vec::new();
    let counts = export(&everything(), Format::Perfetto, View::Thread, &mut out).unwrap();
    let expected = ExportSummary {
        spans: 4,
        open_spans: 1,
        slices: 4,
        events: 1,
        exec_events: 2,
        counters: 1,
        markers: 0,
        lost: 42,
        problems: Vec::new(),
    };
    assert_eq!(counts, expected);
}

#[test]
fn stays_that_do_not_nest_keep_their_durations_on_a_track_of_their_own() {
    let mut made = Made::new();
    made.span(PerfEvent::SpanEnter, 1000, 1, 1, 0);
    made.span(PerfEvent::SpanEnter, 1010, 1, 2, 0);
    made.span(PerfEvent::SpanExit, 1030, 1, 1, 0);
    made.span(PerfEvent::SpanExit, 1060, 1, 2, 0);
    let chrome: serde_json::Value =
        serde_json::from_str(&exported(&made.open(), Format::Chrome, View::Thread)).unwrap();
    let slices = chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    let slices: Vec<_> =
        slices.map(|slice| (slice["name"].clone(), slice["dur"].clone(), slice["tid"].clone())).collect();
    assert_eq!(slices.len(), 2);
    assert_eq!((&slices[0].0, &slices[0].1), (&"span 1".into(), &0.03.into()));
    assert_eq!((&slices[1].0, &slices[1].1), (&"span 2".into(), &0.05.into()));
    assert_ne!(slices[0].2, slices[1].2);
}

#[test]
fn a_stay_whose_exit_was_lost_ends_with_its_span() {
    let mut made = Made::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.span(PerfEvent::SpanEnter, 1010, 1, 1, 0);
    made.gap(0, 1, LossCause::Overwritten);
    made.span(PerfEvent::SpanClose, 1100, 2, 1, 0);
    let chrome = exported(&made.open(), Format::Chrome, View::Thread);
    assert!(chrome.contains("\"end\":\"lost\"") && chrome.contains("\"dur\":0.090"), "{chrome}");
}

#[test]
fn a_ring_without_spans_and_a_schema_of_another_version_have_their_messages() {
    let error = export(&Made::with_schema([9; 32]).open(), Format::Chrome, View::Thread, &mut Vec::new()).unwrap_err();
    assert_eq!(error.kind(), CaptureErrorKind::WrongSchema);
    assert!(error.to_string().contains("has the schema 0909090909090909…, expected "), "{error}");
}

/// The `busy_ns` of the span with that id in JSON lines, and in the Chrome file by span.
fn busy_of(capture: &CaptureFile, id: u64) -> (serde_json::Value, Option<u64>) {
    let lines = exported(capture, Format::Jsonl, View::Thread);
    let mut lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let line = lines.find(|line| line["type"] == "span" && line["id"] == id).unwrap();
    let chrome: serde_json::Value = serde_json::from_str(&exported(capture, Format::Chrome, View::Span)).unwrap();
    let mut drawn = chrome["traceEvents"].as_array().unwrap().iter();
    let drawn = drawn.find(|event| event["args"]["span_id"] == id && event["name"] == "job").unwrap();
    (line["busy_ns"].clone(), drawn["args"]["busy_ns"].as_u64())
}

#[test]
fn an_open_span_was_busy_until_the_end_of_the_recording_unless_its_exit_may_be_lost() {
    let made = |gap_after: bool| {
        let mut made = Made::new();
        made.thread(1000, 1, "main");
        made.thread(1001, 2, "worker");
        made.call_site(1002, 1, CallSiteKind::Span, "job", &[]);
        // Before the gap that both have.
        made.span_new(1003, 1, (5, 0), 1, &[]);
        made.span(PerfEvent::SpanEnter, 1004, 1, 5, 1);
        made.gap(0, 2, LossCause::Overwritten);
        made.span_new(2000, 1, (6, 0), 1, &[]);
        // Twice on one thread, which counts once; and on another one.
        for (event, nanos, thread) in [
            (PerfEvent::SpanEnter, 2100, 1),
            (PerfEvent::SpanExit, 2200, 1),
            (PerfEvent::SpanEnter, 2300, 1),
            (PerfEvent::SpanEnter, 2350, 1),
            (PerfEvent::SpanEnter, 2400, 2),
        ] {
            made.span(event, nanos, thread, 6, 1);
        }
        if gap_after {
            made.gap(0, 2, LossCause::Overwritten);
        }
        made.event(1, 20, 2500, [0; 4], b"");
        made.open()
    };
    let capture = made(false);
    assert_eq!(busy_of(&capture, 6), ((100 + 200 + 100).into(), Some(400)));
    assert_eq!(busy_of(&capture, 5), (serde_json::Value::Null, None));
    assert_eq!(busy_of(&made(true), 6), (serde_json::Value::Null, None));
}
