//! Exports of a small capture that has each kind of event once.

use super::*;
use crate::any_capture::everything;
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, Cut, PerfEvent, PerfExt, flags};
use eventring::tracing::SpanStep;
use eventring_capture::fixtures::{CaptureFixture, SHARD_1, int, text};
use eventring_capture::recording::{
    CaptureRecording, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayState, replay_capture,
};

mod damaged;
mod kernel;
mod names_of_facts;
mod other_schemas;
mod thread_times;

pub(super) fn exported(capture: &CaptureFile, format: Format, view: View) -> String {
    let mut out = Vec::new();
    export(capture, format, view, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Returns the events of the Chrome trace of a capture.
pub(super) fn chrome_events(capture: &CaptureFile, view: View) -> Vec<serde_json::Value> {
    let trace: serde_json::Value = serde_json::from_str(&exported(capture, Format::Chrome, view)).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
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

/// What an export remembers by hashes must not show: each table of an export has a random seed of its own.
#[test]
fn an_export_of_a_capture_has_the_same_bytes_each_time() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    for site in 1..=200 {
        made.call_site(1000, site, CallSiteKind::Span, &format!("span {site}"), &["user"]);
    }
    for round in 0..3_u64 {
        for id in round * 200 + 1..=round * 200 + 200 {
            let nanos = 10_000 * id;
            made.span_new(nanos, 1, (id, 0), (id % 200 + 1) as u32, &[text(0, &format!("user {}", id % 50))]);
            made.span(PerfEvent::SpanEnter, nanos + 10, 1, id, 1);
            if id % 7 != 0 {
                made.span(PerfEvent::SpanExit, nanos + 5_000, 1, id, 1);
                made.span(PerfEvent::SpanClose, nanos + 5_010, 1, id, 1);
            }
        }
    }
    let capture = made.open();
    for (format, view) in [Format::Perfetto, Format::Chrome, Format::Folded, Format::Jsonl]
        .into_iter()
        .flat_map(|format| [(format, View::Thread), (format, View::Span)])
    {
        let bytes = || {
            let mut out = Vec::new();
            export(&capture, format, view, &mut out).unwrap();
            out
        };
        let first = bytes();
        assert!((0..4).all(|_| bytes() == first), "{format:?}, {view:?}");
    }
}

#[test]
fn folded() {
    let capture = everything();
    // In span view, the first request lasts 1001 ns. Its queries exist from 2200 to 2900, so the self time of the
    // request is 301 ns. A second request is open for the last 100 ns. The queries last 510 ns and 600 ns.
    assert_eq!(exported(&capture, Format::Folded, View::Span), "shop;request 401\nshop;request;query 1110\n");
    // In thread view, the request was the innermost span of its thread from 2100 to 2400 and from 2700 to 2800. The
    // queries were innermost for 300 ns and 400 ns.
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
    // Two events have one distance.
    let [event] = &summary.events[..] else { panic!("{summary:?}") };
    assert_eq!((event.count, event.per_second), (2, Some(1e9 / 600.0)));
}

#[test]
fn what_a_truncated_capture_does_not_say_of_its_program_is_unknown() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    let capture = CaptureFile::from_file(made.truncated()).unwrap();
    let state = summarize(&capture).unwrap().programs[0].state;
    assert_eq!(serde_json::to_value(state).unwrap(), "unknown");
}

#[test]
fn a_span_that_ends_with_its_parent_is_drawn_beside_it_and_one_that_ends_before_in_it() {
    for (end, is_inside) in [(1999, true), (2000, false)] {
        let mut made = CaptureFixture::new();
        made.span_new(1000, 1, (1, 0), 0, &[]);
        made.span_new(1500, 1, (2, 1), 0, &[]);
        made.span(PerfEvent::SpanClose, end, 1, 2, 0);
        made.span(PerfEvent::SpanClose, 2000, 1, 1, 0);
        let events = chrome_events(&made.open(), View::Span);
        let track = |span: u64| events.iter().find(|event| event["args"]["span_id"] == span).unwrap()["tid"].clone();
        assert_eq!(track(1) == track(2), is_inside, "{events:?}");
    }
}

#[test]
fn a_span_whose_begin_was_lost_says_so_and_a_slice_that_ends_after_its_span_ends_with_it() {
    let mut made = CaptureFixture::new();
    made.gap(0, 1, GapCause::Overwritten);
    made.span(PerfEvent::SpanEnter, 1000, 2, 1, 0);
    made.span(PerfEvent::SpanClose, 1200, 1, 1, 0);
    made.span(PerfEvent::SpanExit, 1300, 2, 1, 0);
    let capture = made.open();
    let events = chrome_events(&capture, View::Span);
    let drawn = events.iter().find(|event| event["args"]["span_id"] == 1).unwrap();
    assert_eq!(drawn["args"]["start"], "lost");
    let line = span_line(&capture, 1);
    let [slice] = &line["slices"].as_array().unwrap()[..] else { panic!("{line}") };
    assert_eq!((&slice["start_ns"], &slice["end_ns"]), (&1000.into(), &1200.into()));
}

#[test]
fn slices_are_as_long_as_they_were_also_where_their_lengths_take_more_than_32_bits() {
    let lengths: Vec<u64> = ((1 << 32) - 6..(1 << 32) + 2).collect();
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    for (number, length) in (1..).zip(&lengths) {
        made.span(PerfEvent::SpanEnter, number << 33, 1, 1, 0);
        made.span(PerfEvent::SpanExit, (number << 33) + length, 1, 1, 0);
    }
    let line = span_line(&made.open(), 1);
    let slices = line["slices"].as_array().unwrap().iter();
    let found = slices.map(|slice| slice["end_ns"].as_u64().unwrap() - slice["start_ns"].as_u64().unwrap());
    assert_eq!(found.collect::<Vec<_>>(), lengths);
}

#[test]
fn a_program_without_a_number_and_a_loss_before_the_first_event_have_a_place_in_a_chrome_trace() {
    let mut made = CaptureFixture::of_process(0);
    made.gap(1, 3, GapCause::Overwritten);
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.event(1, 20, 1500, [0; 4], b"");
    made.span(PerfEvent::SpanClose, 2000, 1, 1, 0);
    let events = chrome_events(&made.open(), View::Span);
    assert!(events.iter().all(|event| event["pid"].as_u64() >= Some(1 << 30)), "{events:?}");
    // The ring was made at 500, and the first event is of 1000.
    let loss = events.iter().find(|event| event["name"] == "3 events lost").unwrap();
    assert_eq!((&loss["ts"], &loss["dur"]), (&(-0.5).into(), &1.0.into()));
}

#[test]
fn an_event_that_could_not_be_recorded_has_a_line() {
    let mut made = CaptureFixture::new();
    made.perf(PerfEvent::RecordError, 1000, PerfExt { thread_id: 1, ..PerfExt::default() }, &[]);
    assert!(lines(&made.open()).iter().any(|line| line["type"] == "not_recorded"));
}

#[test]
fn slices_that_do_not_nest_keep_their_durations_on_a_track_of_their_own() {
    let mut made = CaptureFixture::new();
    made.span(PerfEvent::SpanEnter, 900, 1, 3, 0);
    made.span(PerfEvent::SpanExit, 910, 1, 3, 0);
    made.span(PerfEvent::SpanEnter, 1000, 1, 1, 0);
    made.span(PerfEvent::SpanEnter, 1010, 1, 2, 0);
    made.span(PerfEvent::SpanExit, 1030, 1, 1, 0);
    made.span(PerfEvent::SpanExit, 1060, 1, 2, 0);
    let events = chrome_events(&made.open(), View::Thread);
    let slices = events.iter().filter(|event| event["ph"] == "X");
    let slices: Vec<_> =
        slices.map(|slice| (slice["name"].clone(), slice["dur"].clone(), slice["tid"].clone())).collect();
    let [before, first, second] = &slices[..] else { panic!("{slices:?}") };
    assert_eq!((&first.0, &first.1), (&"span 1".into(), &0.03.into()));
    assert_eq!((&second.0, &second.1), (&"span 2".into(), &0.05.into()));
    assert!(before.2 == second.2 && first.2 != second.2, "{slices:?}");
}

#[test]
fn a_slice_whose_exit_was_lost_ends_with_its_span() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.span(PerfEvent::SpanEnter, 1010, 1, 1, 0);
    made.gap(0, 1, GapCause::Overwritten);
    made.span(PerfEvent::SpanClose, 1100, 2, 1, 0);
    let chrome = exported(&made.open(), Format::Chrome, View::Thread);
    assert!(chrome.contains("\"end\":\"lost\"") && chrome.contains("\"dur\":0.090"), "{chrome}");
}

/// Returns the `busy_ns` of the span with this id: first from the JSON lines, then from the Chrome trace in span view.
fn busy_of(capture: &CaptureFile, id: u64) -> (serde_json::Value, Option<u64>) {
    let line = span_line(capture, id);
    let events = chrome_events(capture, View::Span);
    let drawn = events.iter().find(|event| event["args"]["span_id"] == id && event["name"] == "job").unwrap();
    (line["busy_ns"].clone(), drawn["args"]["busy_ns"].as_u64())
}

#[test]
fn an_open_span_was_busy_until_the_end_of_the_recording_unless_its_exit_may_be_lost() {
    let made = |gap_after: bool| {
        let mut made = CaptureFixture::new();
        made.thread(1000, 1, "main");
        made.thread(1001, 2, "worker");
        made.call_site(1002, 1, CallSiteKind::Span, "job", &[]);
        // Span 5 is created before a gap that both captures have.
        made.span_new(1003, 1, (5, 0), 1, &[]);
        made.span(PerfEvent::SpanEnter, 1004, 1, 5, 1);
        made.gap(0, 2, GapCause::Overwritten);
        made.span_new(2000, 1, (6, 0), 1, &[]);
        // Thread 1 is in the span twice at the same time, and this time counts once. Thread 2 is in the span, too.
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
            made.gap(0, 2, GapCause::Overwritten);
        }
        made.event(1, 20, 2500, [0; 4], b"");
        made.open()
    };
    let capture = made(false);
    assert_eq!(busy_of(&capture, 6), ((100 + 200 + 100).into(), Some(400)));
    assert_eq!(busy_of(&capture, 5), (serde_json::Value::Null, None));
    assert_eq!(busy_of(&made(true), 6), (serde_json::Value::Null, None));
}

/// Returns the objects of the JSON lines.
fn lines(capture: &CaptureFile) -> Vec<serde_json::Value> {
    exported(capture, Format::Jsonl, View::Thread).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn span_line(capture: &CaptureFile, id: u64) -> serde_json::Value {
    lines(capture).into_iter().find(|line| line["type"] == "span" && line["id"] == id).unwrap()
}

/// Returns the slices of spans that the Chrome trace has. For each slice: the id of its span, its phase (`X` if it has
/// an end, `B` if not), its duration in µs, and what its arguments say about the end.
fn drawn(capture: &CaptureFile, view: View) -> Vec<(u64, String, Option<f64>, String)> {
    let events = chrome_events(capture, view);
    let slices = events.iter().filter(|event| event["ph"] == "X" || event["ph"] == "B");
    let of_spans = slices.filter(|slice| slice["args"]["span_id"].is_u64());
    let mut drawn: Vec<_> = of_spans
        .map(|slice| {
            let args = &slice["args"];
            let end = if args["open"] == true { "open" } else { args["end"].as_str().unwrap_or("seen") };
            let phase = slice["ph"].as_str().unwrap().to_owned();
            (args["span_id"].as_u64().unwrap(), phase, slice["dur"].as_f64(), end.to_owned())
        })
        .collect();
    drawn.sort_by_key(|(span, ..)| *span);
    drawn
}

/// Makes a capture in which shard 0 has lost its events between the times 1010 and 5000, and shard 1 has lost nothing.
/// Thread 1 records to shard 0, and thread 2 to shard 1.
fn with_a_gap_in_one_shard() -> CaptureFile {
    let mut made = CaptureFixture::sharded();
    made.thread(900, 1, "main");
    made.call_site(901, 1, CallSiteKind::Span, "job", &["late"]);
    made.call_site(902, 2, CallSiteKind::Event, "event", &[]);
    made.in_shard(SHARD_1);
    made.thread(903, 2, "worker");
    made.in_shard(0);
    // Thread 1 may have closed both spans during the loss. But thread 2 enters span 10 later and does not exit it, so
    // span 10 is known to be open.
    made.span_new(1000, 1, (11, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1005, 1, 11, 1);
    made.span_new(1010, 1, (10, 0), 1, &[]);
    made.gap(0, 40, GapCause::Overwritten);
    made.in_shard(SHARD_1);
    // The recording has neither the creation nor the close of spans 7 and 8.
    let late = PerfExt { span_id: 7, call_site_id: 1, thread_id: 2, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanRecord, 2000, late, &int(0, 200));
    made.span(PerfEvent::SpanEnter, 2500, 2, 8, 1);
    let inside = PerfExt { span_id: 8, call_site_id: 2, thread_id: 2, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 2550, inside, &[]);
    made.span(PerfEvent::SpanExit, 2600, 2, 8, 1);
    made.perf(PerfEvent::Event, 2700, inside, &[]);
    // Span 12 is created with span 8 as its parent, so span 8 is known to exist at this time.
    made.span_new(2800, 2, (12, 8), 1, &[]);
    made.span(PerfEvent::SpanClose, 2900, 2, 12, 1);
    made.span(PerfEvent::SpanEnter, 3000, 2, 10, 1);
    made.in_shard(0);
    // No event after the gap is lost.
    made.span(PerfEvent::SpanEnter, 5000, 1, 13, 1);
    made.span(PerfEvent::SpanExit, 5100, 1, 13, 1);
    made.span_new(6000, 1, (9, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 6100, 1, 9, 1);
    made.event(1, 20, 9000, [0; 4], b"");
    made.open()
}

#[test]
fn a_span_whose_end_may_be_lost_is_drawn_as_far_as_it_is_known_and_one_that_cannot_have_ended_is_open() {
    let capture = with_a_gap_in_one_shard();
    let lost = |id: u64, micros: f64| (id, "X".to_owned(), Some(micros), "lost".to_owned());
    let open = |id: u64| (id, "B".to_owned(), None, "open".to_owned());
    let seen = |id: u64, micros: f64| (id, "X".to_owned(), Some(micros), "seen".to_owned());
    assert_eq!(
        drawn(&capture, View::Span),
        [lost(7, 0.0), lost(8, 0.3), open(9), open(10), lost(11, 0.005), seen(12, 0.1), open(13)]
    );
    assert_eq!(drawn(&capture, View::Thread), [seen(8, 0.1), open(9), open(10), lost(11, 0.001), seen(13, 0.1)]);

    let of = |id: u64| {
        let line = span_line(&capture, id);
        ["open", "end_lost", "last_seen_ns", "may_have_losses", "busy_ns"].map(|field| line[field].clone())
    };
    let null = serde_json::Value::Null;
    for (id, last_seen) in [(7, 2000), (8, 2800), (11, 1005)] {
        assert_eq!(of(id), [false.into(), true.into(), last_seen.into(), true.into(), null.clone()], "{id}");
    }
    assert_eq!(of(9), [true.into(), false.into(), null.clone(), false.into(), 2900.into()]);
    // The busy times of both spans are not known. Thread 1 may have been in span 10 during the loss. It may also have
    // been in span 13 before the first known record of span 13.
    for id in [10, 13] {
        assert_eq!(of(id), [true.into(), false.into(), null.clone(), true.into(), null.clone()], "{id}");
    }
    let end = lines(&capture).pop().unwrap();
    assert_eq!((&end["spans"], &end["open_spans"], &end["lost_ends"]), (&7.into(), &3.into(), &3.into()));

    let summary = summarize(&capture).unwrap();
    let [job] = &summary.spans[..] else { panic!("{summary:?}") };
    assert_eq!((job.count, job.open, job.incomplete, job.end_lost), (1, 3, 0, 3));
}

#[test]
fn a_scope_whose_begin_or_end_was_overwritten_is_a_scope() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "parse", &[]);
    let of = |span_id, flags| PerfExt { thread_id: 1, flags, ..PerfExt::of_span(span_id, 1) };
    made.gap(0, 1, GapCause::Overwritten);
    made.perf(PerfEvent::SpanExit, 2000, of(1, flags::CLOSED), &[]);
    made.perf(PerfEvent::SpanNew, 3000, of(2, flags::SCOPE | flags::ENTERED), &[]);
    made.perf(PerfEvent::SpanExit, 4000, of(2, flags::CLOSED), &[]);
    made.perf(PerfEvent::SpanNew, 5000, of(3, flags::SCOPE | flags::ENTERED), &[]);
    made.gap(0, 1, GapCause::Overwritten);
    made.event(1, 20, 6000, [0; 4], b"");
    let capture = made.open();
    let [parse] = &summarize(&capture).unwrap().spans[..] else { panic!() };
    assert_eq!((parse.count + parse.incomplete, parse.end_lost, parse.kind), (2, 1, SpanKind::Scope));
    let lines = exported(&capture, Format::Jsonl, View::Thread);
    assert_eq!(lines.matches(r#""scope":true"#).count(), 3, "{lines}");
}

#[test]
fn events_that_a_killed_program_never_committed_leave_its_spans_open() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.span(PerfEvent::SpanEnter, 1010, 1, 1, 0);
    made.gap(0, 1, GapCause::NeverCommitted);
    made.event(1, 20, 1500, [0; 4], b"");
    let capture = made.open();
    let open = [(1, "B".to_owned(), None, "open".to_owned())];
    assert_eq!((drawn(&capture, View::Span), drawn(&capture, View::Thread)), (open.to_vec(), open.to_vec()));
    assert_eq!(exported(&capture, Format::Folded, View::Thread), "shop;call site 0 490\n");
    assert_eq!(exported(&capture, Format::Folded, View::Span), "shop;call site 0 500\n");
}

#[test]
fn a_span_whose_end_may_be_lost_has_no_time_of_its_own() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.gap(0, 1, GapCause::Overwritten);
    made.event(1, 20, 1500, [0; 4], b"");
    assert_eq!(exported(&made.open(), Format::Folded, View::Span), "");
}

#[test]
fn open_time_ends_in_all_formats_with_the_last_event_of_any_ring_and_a_gap_stops_the_time_of_its_threads_only() {
    let mut made = CaptureFixture::new();
    made.thread(900, 1, "main");
    made.call_site(901, 1, CallSiteKind::Span, "job", &[]);
    made.span_new(1000, 1, (1, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1100, 1, 1, 1);
    made.span_new(1200, 1, (2, 1), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1300, 1, 2, 1);
    // The recording ends with an event that is not about spans.
    made.event(1, 20, 2000, [0; 4], b"");
    let capture = made.open();
    assert_eq!(exported(&capture, Format::Folded, View::Thread), "shop;job 200\nshop;job;job 700\n");
    assert_eq!(exported(&capture, Format::Folded, View::Span), "shop;job 200\nshop;job;job 800\n");
    assert_eq!(["1", "2"].map(|id| span_line(&capture, id.parse().unwrap())["busy_ns"].clone()), [900, 700]);

    // Threads are in spans 9 and 10 until the end at 9000. Threads were in spans 8 and 13 for 100 ns each. The time of
    // span 11 is not known.
    let capture = with_a_gap_in_one_shard();
    let nanos = 2900 + 6000 + 100 + 100;
    assert_eq!(exported(&capture, Format::Folded, View::Thread), format!("shop;job {nanos}\n"));
}

#[test]
fn a_field_that_is_not_whole_keeps_its_name_and_says_beside_what_is_wrong_as_watch_does() {
    let cut = |index: u8, value: &str, code: u32| {
        let mut field = text(index, value);
        field[1] |= 0x80;
        field[2] += 4;
        [field, code.to_le_bytes().to_vec()].concat()
    };
    let mut made = CaptureFixture::new();
    made.thread(900, 1, "main");
    made.call_site(901, 1, CallSiteKind::Span, "job", &["big", "odd", "whole"]);
    made.call_site(902, 2, CallSiteKind::Event, "event", &["big"]);
    made.span_new(1000, 1, (1, 0), 1, &[cut(0, "abc", 300), cut(1, "x", Cut::Failed.code()), text(2, "w")]);
    let inside =
        PerfExt { span_id: 1, call_site_id: 2, thread_id: 1, field_count: 1, missing_fields: 2, ..PerfExt::default() };
    made.perf(PerfEvent::Event, 1100, inside, &cut(0, "ab", u32::MAX));
    // The field `odd` is recorded a second time. Its value is whole now, and replaces the cut value.
    let late = PerfExt { span_id: 1, call_site_id: 1, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanRecord, 1200, late, &text(1, "y"));
    made.span(PerfEvent::SpanClose, 1300, 1, 1, 1);
    let capture = made.open();

    let [lines, chrome] = [(Format::Jsonl, View::Thread), (Format::Chrome, View::Span)]
        .map(|(format, view)| exported(&capture, format, view));
    insta::assert_snapshot!(format!("{lines}{chrome}"));
}

#[test]
fn a_slice_whose_exit_may_have_been_lost_has_no_end_in_any_format() {
    let mut made = CaptureFixture::sharded();
    made.in_shard(SHARD_1);
    made.span_new(1000, 2, (1, 0), 0, &[]);
    made.in_shard(0);
    made.span(PerfEvent::SpanEnter, 1100, 1, 1, 0);
    made.in_shard(SHARD_1);
    made.span(PerfEvent::SpanClose, 3000, 2, 1, 0);
    made.in_shard(0);
    // The thread may have left the span in these 40 events.
    made.gap(0, 40, GapCause::Overwritten);
    made.perf(PerfEvent::Event, 5000, PerfExt { thread_id: 1, ..PerfExt::default() }, &[]);
    let capture = made.open();
    // It is drawn until the close.
    assert_eq!(drawn(&capture, View::Thread), [(1, "X".to_owned(), Some(1.9), "lost".to_owned())]);
    let thread = serde_json::json!({ "id": 1, "tid": null, "name": null });
    let slice = serde_json::json!({ "thread": thread, "start_ns": 1100, "end_ns": null, "end_lost": true });
    assert_eq!(span_line(&capture, 1)["slices"], serde_json::json!([slice]));
}

#[test]
fn a_loop_that_records_a_span_each_thirty_nanoseconds_is_no_damage() {
    const SPANS: u64 = 150_000;
    let mut made = CaptureFixture::new();
    for number in 0..SPANS {
        let (nanos, id) = (1000 + 30 * number, 1 + number);
        made.span_new(nanos, 1, (id, 0), 0, &[]);
        made.span(PerfEvent::SpanClose, nanos + 20, 1, id, 0);
        if id % 1000 == 0 {
            made.end_block();
        }
    }
    let summary = export(&made.open(), Format::Jsonl, View::Thread, &mut Vec::new()).unwrap();
    assert_eq!(summary.spans, SPANS);
}

#[test]
fn the_line_of_a_span_has_a_limit_and_further_slices_have_lines_of_their_own() {
    const ENTERS: u64 = 10_000;
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    for number in 0..ENTERS {
        made.span(PerfEvent::SpanEnter, 2000 + 10 * number, 1, 1, 0);
        made.span(PerfEvent::SpanExit, 2005 + 10 * number, 1, 1, 0);
        let record = PerfExt { span_id: 1, thread_id: 1, field_count: 1, ..PerfExt::default() };
        made.perf(PerfEvent::SpanRecord, 2006 + 10 * number, record, &text(0, &"x".repeat(100)));
        let link = PerfExt { span_id: 1, related: 2, thread_id: 1, ..PerfExt::default() };
        made.perf(PerfEvent::SpanFollowsFrom, 2007 + 10 * number, link, &[]);
    }
    made.span(PerfEvent::SpanEnter, 200_000, 1, 1, 0);
    made.span(PerfEvent::SpanEnter, 200_001, 2, 1, 0);
    // The second thread never leaves the span.
    made.span(PerfEvent::SpanExit, 200_010, 1, 1, 0);
    made.span(PerfEvent::SpanClose, 200_020, 1, 1, 0);
    let capture = made.open();
    let lines = exported(&capture, Format::Jsonl, View::Thread);
    assert!(lines.lines().all(|line| line.len() < 500_000));
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_type = |what: &str| lines.iter().filter(|line| line["type"] == what).collect::<Vec<_>>();
    let (spans, more) = (of_type("span"), of_type("slice"));
    let [span] = &spans[..] else { panic!("{spans:?}") };
    let slices = span["slices"].as_array().unwrap();
    assert_eq!((slices.len() + more.len()) as u64, ENTERS + 2);
    assert_eq!((&span["more_slices"], &span["follows_from_dropped"]), (&more.len().into(), &(ENTERS - 128).into()));
    assert_eq!(
        (&slices.last().unwrap()["exit_missing"], span["busy_ns"].as_u64()),
        (&true.into(), Some(5 * ENTERS + 29))
    );
    let times = slices.iter().chain(more.iter().copied()).map(|slice| slice["start_ns"].as_u64().unwrap());
    assert_eq!(times.collect::<std::collections::BTreeSet<_>>().len() as u64, ENTERS + 2);
    assert!(more.iter().all(|slice| slice["span"] == 1 && slice["end_ns"].is_u64() && slice["thread"]["id"] == 1));
    // A value again and again is one value, and the replay keeps no more than that.
    let mut peak = KeptBytes(0);
    replay_capture(&CaptureRecording::new(&capture).unwrap(), &mut peak).unwrap();
    assert!((1..16 << 10).contains(&peak.0), "{} bytes", peak.0);
}

/// The most that a replay has kept.
struct KeptBytes(u64);

impl ReplayConsumer for KeptBytes {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { fields: true, ..ReplayNeeds::default() }
    }

    fn entry(&mut self, _: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> std::io::Result<()> {
        self.0 = self.0.max(state.replays[0].kept_bytes());
        Ok(())
    }
}

#[test]
fn an_event_before_all_that_is_known_of_its_span_or_after_it_is_drawn_at_its_own_time() {
    let mut made = CaptureFixture::sharded();
    let event = |span_id| PerfExt { thread_id: 1, span_id, ..PerfExt::default() };
    made.in_shard(SHARD_1);
    made.span_new(1000, 2, (1, 0), 0, &[]);
    made.span(PerfEvent::SpanClose, 1200, 2, 1, 0);
    made.in_shard(0);
    made.gap(0, 40, GapCause::Overwritten);
    made.perf(PerfEvent::Event, 1700, event(1), &[]);
    // The creation of this span was lost: it is known from its close on.
    made.perf(PerfEvent::Event, 2000, event(2), &[]);
    made.span(PerfEvent::SpanClose, 2500, 1, 2, 0);
    let capture = made.open();
    for view in [View::Thread, View::Span, View::Both] {
        let events = chrome_events(&capture, view);
        let instants = events.iter().filter(|event| event["ph"] == "i");
        let micros: Vec<f64> = instants.map(|event| event["ts"].as_f64().unwrap()).collect();
        assert_eq!(micros, [0.7, 1.0], "{view:?}");
    }
}

#[test]
fn a_thread_that_exits_a_span_when_another_has_closed_it_draws_it_no_second_time() {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 0, &[]);
    made.span(PerfEvent::SpanEnter, 1100, 2, 1, 0);
    made.span(PerfEvent::SpanClose, 1200, 1, 1, 0);
    made.span(PerfEvent::SpanExit, 1201, 2, 1, 0);
    assert_eq!(drawn(&made.open(), View::Span), [(1, "X".to_owned(), Some(0.2), "seen".to_owned())]);
}

#[test]
fn a_gap_in_the_ring_of_other_threads_does_not_stop_the_time_of_a_thread() {
    let mut made = CaptureFixture::sharded();
    made.thread(900, 1, "main");
    made.call_site(901, 1, CallSiteKind::Span, "job", &[]);
    made.in_shard(SHARD_1);
    made.thread(903, 2, "worker");
    made.span_new(1000, 2, (10, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1100, 2, 10, 1);
    // Another thread records to shard 0, which loses events.
    made.in_shard(0);
    made.span_new(1200, 1, (20, 0), 1, &[]);
    made.gap(0, 5, GapCause::Overwritten);
    made.span(PerfEvent::SpanClose, 1500, 1, 20, 1);
    made.in_shard(SHARD_1);
    made.span(PerfEvent::SpanExit, 2000, 2, 10, 1);
    made.span(PerfEvent::SpanClose, 2100, 2, 10, 1);
    assert_eq!(exported(&made.open(), Format::Folded, View::Thread), "shop;job 900\n");
}

#[test]
fn names_with_their_target_are_in_the_slices_and_stacks_of_all_formats() {
    let capture = everything();
    let exported = |format, view: View| {
        let mut out = Vec::new();
        export(&capture, format, ExportOptions::from(view).names(Names::Target), &mut out).unwrap();
        if format == Format::Perfetto {
            out = crate::formats::perfetto::tests::decompressed(&out);
        }
        String::from_utf8_lossy(&out).into_owned()
    };
    for view in [View::Thread, View::Span] {
        assert!(exported(Format::Folded, view).contains("\nshop;shop::web::request;shop::web::query "));
        for format in [Format::Perfetto, Format::Chrome] {
            let trace = exported(format, view);
            assert!(trace.contains("shop::web::request") && trace.contains("shop::web::query"), "{format:?} {view:?}");
            // Log records and losses keep their names.
            assert!(trace.contains("slow query") && !trace.contains("::slow query"), "{format:?} {view:?}");
            assert!(trace.contains("events lost") && !trace.contains("eventring::"), "{format:?} {view:?}");
        }
    }
}

/// Returns the arrows of a Chrome trace: the names of the slices at which each begins and ends.
fn arrows(capture: &CaptureFile, view: View) -> Vec<(String, String)> {
    let events = chrome_events(capture, view);
    let at = |flow: &serde_json::Value| {
        let is_there = |event: &&serde_json::Value| {
            event["ph"] == "X" && ["pid", "tid", "ts"].iter().all(|key| event[key] == flow[key])
        };
        format!("{}", events.iter().find(is_there).unwrap()["args"]["span_id"])
    };
    let ends = |phase: &str| {
        let of_phase = events.iter().filter(|event| event["ph"] == phase);
        of_phase.map(|flow| (flow["id"].as_u64(), at(flow))).collect::<std::collections::BTreeMap<_, _>>()
    };
    let (begins, ends) = (ends("s"), ends("f"));
    assert_eq!(begins.keys().collect::<Vec<_>>(), ends.keys().collect::<Vec<_>>());
    begins.into_values().zip(ends.into_values()).collect()
}

#[test]
fn arrows_go_to_spans_that_follow_and_to_children_on_other_threads() {
    let mut made = CaptureFixture::new();
    made.call_site(901, 1, CallSiteKind::Span, "job", &[]);
    let follows = |made: &mut CaptureFixture, nanos, span_id, related| {
        made.perf(PerfEvent::SpanFollowsFrom, nanos, PerfExt { span_id, related, ..PerfExt::default() }, &[]);
    };
    made.span_new(1000, 1, (1, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1100, 1, 1, 1);
    // Span 2 is a child on the same thread, and span 3 a child on another one.
    made.span_new(1200, 1, (2, 1), 1, &[]);
    made.span(PerfEvent::SpanEnter, 1300, 1, 2, 1);
    made.span(PerfEvent::SpanExit, 1400, 1, 2, 1);
    made.span_new(1410, 1, (3, 1), 1, &[]);
    made.span(PerfEvent::SpanExit, 1500, 1, 1, 1);
    made.span(PerfEvent::SpanEnter, 1600, 2, 3, 1);
    made.span(PerfEvent::SpanExit, 1700, 2, 3, 1);
    // A second slice of span 3 has no arrow of its own.
    made.span(PerfEvent::SpanEnter, 1710, 1, 3, 1);
    made.span(PerfEvent::SpanExit, 1720, 1, 3, 1);
    made.span_new(1800, 1, (4, 0), 1, &[]);
    follows(&mut made, 1810, 4, 2);
    follows(&mut made, 1820, 4, 3);
    // No such span was recorded.
    follows(&mut made, 1830, 4, 99);
    made.span(PerfEvent::SpanEnter, 1900, 1, 4, 1);
    made.span(PerfEvent::SpanExit, 2000, 1, 4, 1);
    // A span cannot follow from a later one.
    follows(&mut made, 2100, 1, 4);
    for (nanos, span) in [(3000, 1), (3001, 2), (3002, 3), (3003, 4)] {
        made.span(PerfEvent::SpanClose, nanos, 1, span, 1);
    }
    let capture = made.open();
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    assert_eq!(arrows(&capture, View::Thread), [arrow("1", "3"), arrow("2", "4"), arrow("3", "4")]);
    assert_eq!(arrows(&capture, View::Span), [arrow("2", "4"), arrow("3", "4")]);
}

#[test]
fn an_arrow_to_a_child_begins_at_the_slice_of_its_parent_in_which_it_was_created_up_to_the_very_end_of_it() {
    // A parent that is idle then has the arrow at its last slice.
    for (created, from) in [(1200, 0.199), (1201, 0.349)] {
        let mut made = CaptureFixture::new();
        made.call_site(901, 1, CallSiteKind::Span, "job", &[]);
        made.span_new(1000, 1, (1, 0), 1, &[]);
        made.span(PerfEvent::SpanEnter, 1100, 1, 1, 1);
        made.span(PerfEvent::SpanExit, 1200, 1, 1, 1);
        made.span_new(created, 1, (2, 1), 1, &[]);
        made.span(PerfEvent::SpanEnter, 1250, 1, 1, 1);
        made.span(PerfEvent::SpanExit, 1300, 1, 1, 1);
        made.span(PerfEvent::SpanEnter, 1350, 2, 2, 1);
        made.span(PerfEvent::SpanExit, 1400, 2, 2, 1);
        (1..=2).for_each(|span| made.span(PerfEvent::SpanClose, 2000, 1, span, 1));
        let events = chrome_events(&made.open(), View::Thread);
        let arrows: Vec<Option<f64>> =
            events.iter().filter(|event| event["ph"] == "s").map(|event| event["ts"].as_f64()).collect();
        assert_eq!(arrows, [Some(from)], "created at {created}");
    }
}
