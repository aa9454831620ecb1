//! Messages of small captures.

use eventring::internal::layout::record_error;
use eventring::internal::layout::record_error::ErrorType;
use eventring::reader::GapCause;
use eventring::schema::perf::{CallSiteKind, CallSiteLevel, PerfEvent, PerfExt, ThreadTime};
use eventring::schema::{EventPayload as _, RECORD_ERROR_CODE};
use eventring_capture::CaptureFile;
use eventring_capture::fixtures::{CaptureFixture, int, text};
use eventring_export::any_capture::{any_element, capture_of};
use eventring_export::{Format, View, export};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

fn lines_of(capture: &CaptureFile) -> Vec<String> {
    let mut text = Vec::new();
    super::write(capture, &mut text).unwrap();
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

/// Exports a capture, and reads the lines as the crate that wrote them does.
fn exported(capture: &CaptureFile) -> (Vec<Span>, Vec<LogRecord>) {
    let (mut spans, mut logs) = (Vec::new(), Vec::new());
    for line in lines_of(capture) {
        if line.starts_with("{\"resourceSpans\"") {
            let request: ExportTraceServiceRequest = serde_json::from_str(&line).unwrap();
            let scopes = request.resource_spans.into_iter().flat_map(|of_process| of_process.scope_spans);
            spans.extend(scopes.flat_map(|scope| scope.spans));
        } else {
            let request: ExportLogsServiceRequest = serde_json::from_str(&line).unwrap();
            let scopes = request.resource_logs.into_iter().flat_map(|of_process| of_process.scope_logs);
            logs.extend(scopes.flat_map(|scope| scope.log_records));
        }
    }
    (spans, logs)
}

fn value(attributes: &[KeyValue], name: &str) -> Option<any_value::Value> {
    let attribute = attributes.iter().find(|attribute| attribute.key == name)?;
    attribute.value.clone()?.value
}

fn int_value(number: i64) -> Option<any_value::Value> {
    Some(any_value::Value::IntValue(number))
}

fn text_value(text: &str) -> Option<any_value::Value> {
    Some(any_value::Value::StringValue(text.to_owned()))
}

#[test]
fn a_span_has_the_times_of_its_threads_if_they_were_measured() {
    let mut made = CaptureFixture::new();
    made.thread(1000, 1, "main");
    made.call_site(1000, 1, CallSiteKind::Span, "request", &[]);
    made.span_new(2000, 1, (1, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 2000, 1, 1, 1);
    let times = ThreadTime {
        since_epoch_nanos: 1000,
        cpu_nanos: 1200,
        queue_nanos: 300,
        voluntary_switches: 1,
        ..ThreadTime::default()
    };
    let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
    times.with_bytes(|bytes| made.perf(PerfEvent::ThreadTime, 3000, ext, bytes));
    made.span(PerfEvent::SpanExit, 3000, 1, 1, 1);
    made.span(PerfEvent::SpanClose, 3000, 1, 1, 1);
    let (spans, _) = exported(&made.open());
    let parts = ["cpu_ns", "queue_ns", "sleep_ns", "unmeasured_ns"];
    let parts = parts.map(|part| value(&spans[0].attributes, &format!("eventring.{part}")));
    assert_eq!(parts, [200, 300, 500, 0].map(int_value));
}

fn log_record(made: &mut CaptureFixture, nanos: u64, span_id: u64, call_site_id: u32, message: &str) {
    let ext = PerfExt { span_id, call_site_id, thread_id: 1, field_count: 1, ..PerfExt::default() };
    made.perf(PerfEvent::Event, nanos, ext, &text(0, message));
}

fn span_of(spans: &[Span], id: u64) -> &Span {
    spans.iter().find(|span| span.span_id == id.to_be_bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_messages_of_any_capture_are_those_of_its_lines(elements in prop::collection::vec(any_element(), 0..60)) {
        let capture = capture_of(&elements);
        let (spans, logs) = exported(&capture);
        let mut jsonl = Vec::new();
        export(&capture, Format::Jsonl, View::Thread, &mut jsonl).unwrap();
        let jsonl = String::from_utf8(jsonl).unwrap();
        let lines: Vec<Value> = jsonl.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of_type = |kinds: &[&str]| {
            lines.iter().filter(|line| kinds.contains(&line["type"].as_str().unwrap())).count()
        };
        prop_assert_eq!(spans.len(), of_type(&["span"]));
        let events: usize = spans.iter().map(|span| span.events.len()).sum();
        prop_assert_eq!(events + logs.len(), of_type(&["event", "marker", "not_recorded", "typed_event", "loss"]));
        for span in &spans {
            prop_assert!(span.trace_id.len() == 16 && span.trace_id != [0; 16]);
            prop_assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
            let names: BTreeSet<&str> = span.attributes.iter().map(|attribute| &*attribute.key).collect();
            prop_assert_eq!(names.len(), span.attributes.len());
        }
        prop_assert_eq!(lines_of(&capture), lines_of(&capture));
    }
}

#[test]
fn a_program_names_and_judges_its_spans_as_with_tracing_opentelemetry() {
    let fields = ["otel.name", "otel.kind", "otel.status_code", "otel.status_message", "otel.status_description", ""];
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "handle", &fields);
    made.call_site(1000, 2, CallSiteKind::Event, "said", &["message"]);
    let spans = [
        (
            vec![text(0, "GET /users"), text(1, "CLIENT"), text(2, "OK"), text(3, "fine"), int(5, 7)],
            "GET /users",
            (1, ""),
        ),
        (vec![text(2, "error"), text(4, "no such user")], "handle", (2, "no such user")),
        (vec![text(2, "ERROR")], "handle", (2, "")),
        (vec![text(3, "timed out")], "handle", (2, "timed out")),
        (vec![text(0, ""), text(2, "unset")], "handle", (0, "")),
        (vec![text(2, "UNSET"), text(3, "said too much")], "handle", (0, "")),
        // An unknown code is as none.
        (vec![text(2, "bogus")], "handle", (0, "")),
        (vec![text(2, ""), text(3, "timed out")], "handle", (2, "timed out")),
    ];
    for ((recorded, ..), id) in spans.iter().zip(1..) {
        made.span_new(1000 + id, 1, (id, 0), 1, recorded);
        made.span(PerfEvent::SpanClose, 2000 + id, 1, id, 1);
    }
    // What the program says counts for more than its log records of the level ERROR.
    let of_records = [
        (Some("ok"), (1, "")),
        (Some("Unset"), (0, "")),
        (Some("error"), (2, "it failed")),
        (Some("bogus"), (2, "it failed")),
        (Some(""), (2, "it failed")),
        (None, (2, "it failed")),
    ];
    for ((status, _), id) in of_records.iter().zip(21..) {
        let recorded: Vec<_> = status.iter().map(|status| text(2, status)).collect();
        made.span_new(3000 + id, 1, (id, 0), 1, &recorded);
        made.call_site_of(3000 + id, 2, (CallSiteKind::Event, CallSiteLevel::Error), "said", &["message"]);
        log_record(&mut made, 3010 + id, id, 2, "it failed");
        made.span(PerfEvent::SpanClose, 3020 + id, 1, id, 1);
    }
    let (found, _) = exported(&made.open());
    let status =
        |id| span_of(&found, id).status.clone().map_or((0, String::new()), |status| (status.code, status.message));
    for ((_, name, (code, message)), id) in spans.iter().zip(1..) {
        assert_eq!((&*span_of(&found, id).name, status(id)), (*name, (*code, (*message).to_owned())), "span {id}");
    }
    for ((recorded, (code, message)), id) in of_records.iter().zip(21..) {
        assert_eq!(status(id), (*code, (*message).to_owned()), "{recorded:?}");
    }
    let first = span_of(&found, 1);
    assert_eq!((first.kind, value(&first.attributes, "unnamed")), (3, int_value(7)));
    assert!(found.iter().flat_map(|span| &span.attributes).all(|attribute| !attribute.key.is_empty()));
}

#[test]
fn a_tree_has_one_trace_although_its_middle_was_closed_first() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "s", &[]);
    made.span_new(1000, 1, (1, 0), 1, &[]);
    made.span_new(1010, 1, (2, 1), 1, &[]);
    made.span_new(1020, 1, (3, 2), 1, &[]);
    made.span(PerfEvent::SpanClose, 1030, 1, 2, 1);
    // The child of an open span is made long after the middle of the tree was forgotten.
    made.span_new(60_000_000, 1, (4, 3), 1, &[]);
    made.span_new(60_000_010, 1, (5, 0), 1, &[]);
    let link = PerfExt { span_id: 5, related: 2, thread_id: 1, ..PerfExt::default() };
    made.perf(PerfEvent::SpanFollowsFrom, 60_000_020, link, &[]);
    for span in [1, 3, 4, 5] {
        made.span(PerfEvent::SpanClose, 60_000_100, 1, span, 1);
    }
    let (spans, _) = exported(&made.open());
    let trace = |id| &span_of(&spans, id).trace_id;
    assert!([2, 3, 4].iter().all(|id| trace(*id) == trace(1)));
    assert_ne!(trace(5), trace(1));
    let links = &span_of(&spans, 5).links;
    assert_eq!((&links[0].trace_id, &links[0].span_id[..]), (trace(1), &2_u64.to_be_bytes()[..]));
    assert_eq!(span_of(&spans, 4).parent_span_id, 3_u64.to_be_bytes());
}

#[test]
fn ends_and_beginnings_that_are_not_known_are_told_and_losses_have_their_range() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "s", &["n"]);
    made.span_new(1000, 1, (1, 0), 1, &[int(0, -5)]);
    made.gap(0, 42, GapCause::Overwritten);
    made.span(PerfEvent::SpanClose, 1500, 1, 7, 1);
    made.span_new(60_000_000, 1, (2, 0), 1, &[]);
    made.span(PerfEvent::SpanEnter, 60_000_500, 1, 2, 1);
    let (spans, logs) = exported(&made.open());
    let yes = Some(any_value::Value::BoolValue(true));
    let of = |id, name: &str| value(&span_of(&spans, id).attributes, name);
    assert_eq!((of(1, "n"), of(1, "eventring.end_lost")), (int_value(-5), yes.clone()));
    assert_eq!((of(7, "eventring.start_lost"), of(7, "eventring.open")), (yes.clone(), None));
    assert_eq!((of(2, "eventring.open"), span_of(&spans, 2).end_time_unix_nano), (yes, 60_000_500));
    let loss = &logs[0];
    assert_eq!(loss.event_name, "eventring.lost");
    assert_eq!(value(&loss.attributes, "eventring.lost.count"), int_value(42));
    assert_eq!(value(&loss.attributes, "eventring.lost.cause"), text_value(GapCause::Overwritten.name()));
    assert!(value(&loss.attributes, "eventring.lost.first_seqno").is_some());
}

#[test]
fn an_event_that_could_not_be_recorded_has_the_same_name_in_each_ring() {
    let mut made = CaptureFixture::new();
    let payload = record_error::encode(ErrorType::OverflowExpire, 18, 0, 1 << 40);
    made.event(1, RECORD_ERROR_CODE, 1000, [0; 4], &payload);
    let ext = PerfExt { thread_id: 1, ..PerfExt::default() };
    made.perf(PerfEvent::RecordError, 2000, ext, &payload);
    // There was no room for the reason.
    made.event(1, RECORD_ERROR_CODE, 3000, [0; 4], &[]);
    let (_, logs) = exported(&made.open());
    assert_eq!(logs.len(), 3);
    for log in &logs {
        assert_eq!((&*log.event_name, &*log.severity_text), ("eventring.not_recorded", "WARN"));
        assert!(log.body.is_some());
        let why = value(&log.attributes, "eventring.why");
        match log.time_unix_nano {
            3000 => assert_eq!(why, None),
            _ => assert!(format!("{why:?}").contains("event type 18 with a payload of 1099511627776 bytes"), "{why:?}"),
        }
    }
    let of_typed_ring = logs.iter().find(|log| log.time_unix_nano == 1000).unwrap();
    assert_eq!(value(&of_typed_ring.attributes, "dropped_event_type"), text_value("TXN_LOG"));
    assert!(value(&of_typed_ring.attributes, "eventring.seqno").is_some());
}

#[test]
fn links_and_errors_of_more_spans_than_can_be_held_leave_as_log_records() {
    // As many spans as can be held, and some.
    const HELD: u64 = 1 << 16;
    const MORE: u64 = 10;
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "s", &[]);
    made.call_site_of(1000, 2, (CallSiteKind::Event, CallSiteLevel::Error), "said", &["message"]);
    let link = |span_id| PerfExt { span_id, related: 1, thread_id: 1, ..PerfExt::default() };
    for id in 1..=HELD + MORE {
        made.span_new(1010 + 2 * id, 1, (id, 0), 1, &[]);
        made.perf(PerfEvent::SpanFollowsFrom, 1011 + 2 * id, link(id), &[]);
        if id.is_multiple_of(1000) {
            made.end_block();
        }
    }
    log_record(&mut made, 200_030, HELD, 2, "held");
    log_record(&mut made, 200_040, HELD + 1, 2, "apart");
    // Of many links of one span, those that are dropped are counted.
    (0..200).for_each(|_| made.perf(PerfEvent::SpanFollowsFrom, 200_050, link(1), &[]));
    let (spans, logs) = exported(&made.open());
    assert_eq!((spans.len() as u64, logs.len() as u64), (HELD + MORE, MORE + 1));
    let with_links = spans.iter().filter(|span| !span.links.is_empty()).count();
    assert_eq!((with_links as u64, span_of(&spans, 1).dropped_links_count), (HELD, 73));
    let yes = Some(any_value::Value::BoolValue(true));
    assert!(logs.iter().all(|log| value(&log.attributes, "eventring.apart") == yes));
    let links: Vec<&LogRecord> = logs.iter().filter(|log| log.event_name == "eventring.link").collect();
    assert_eq!(links.len() as u64, MORE);
    let last = span_of(&spans, HELD + 1);
    assert_eq!((&links[0].span_id, &links[0].trace_id), (&last.span_id, &last.trace_id));
    assert_eq!(value(&links[0].attributes, "eventring.link.span_id"), text_value("0000000000000001"));
    let trace: String = span_of(&spans, 1).trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(value(&links[0].attributes, "eventring.link.trace_id"), text_value(&trace));
    assert_eq!((span_of(&spans, HELD).status.is_some(), last.status.is_none()), (true, true));
    let error = logs.iter().find(|log| log.severity_text == "ERROR").unwrap();
    assert_eq!(error.span_id, last.span_id);
}

#[test]
fn what_finds_no_room_in_a_span_leaves_as_log_records() {
    let mut made = CaptureFixture::new();
    made.call_site(1000, 1, CallSiteKind::Span, "s", &[]);
    made.call_site_of(1000, 2, (CallSiteKind::Event, CallSiteLevel::Error), "said", &["message"]);
    made.span_new(1000, 1, (1, 0), 1, &[]);
    (0..200).for_each(|number| log_record(&mut made, 1010 + number, 1, 2, &format!("record {number}")));
    log_record(&mut made, 1500, 0, 2, "outside");
    made.span(PerfEvent::SpanClose, 2000, 1, 1, 1);
    let (spans, logs) = exported(&made.open());
    let span = &spans[0];
    assert_eq!((span.events.len(), logs.len()), (128, 73));
    assert_eq!(value(&span.attributes, "eventring.events_as_logs"), int_value(72));
    assert_eq!((span.events[0].name.as_str(), span.events[0].time_unix_nano), ("record 0", 1010));
    assert_eq!(span.status.as_ref().map(|status| (status.code, status.message.as_str())), Some((2, "record 0")));
    let inside = logs.iter().filter(|log| log.span_id == span.span_id && log.trace_id == span.trace_id).count();
    assert_eq!(inside, 72);
    let outside = logs.iter().find(|log| log.span_id.is_empty()).unwrap();
    assert_eq!((outside.severity_text.as_str(), outside.trace_id.len()), ("ERROR", 0));
}
