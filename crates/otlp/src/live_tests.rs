//! Tests of the messages made from live rings. They cover spans that the engine does not know or has no room for, and
//! compare the messages with those of a capture of the rings.

use crate::messages::{BATCH_BYTES, OtlpConsumer, OtlpMapper, OtlpRequests};
use eventring::reader::RingSet;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use eventring_capture::capture_now;
use eventring_capture::recording::{CaptureRecording, replay_capture};
use eventring_live::fixture::{START, StreamFixture};
use eventring_live::{Live, LiveOptions, LiveState, Observation};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use std::time::Duration;

const MILLI: u64 = 1_000_000;
const SPANS_MAX: usize = 1000;

fn stream() -> StreamFixture {
    StreamFixture::new(&LiveOptions::new().open_spans_max(SPANS_MAX))
}

/// Takes a record, and gives it to a mapper whose batches never leave.
fn push(stream: &mut StreamFixture, mapper: &mut OtlpMapper, nanos: u64, event: PerfEvent, id: u64) {
    let consumer = &mut OtlpConsumer { mapper, leave: |_: &mut OtlpMapper| Ok(()) };
    stream.push_to(nanos, event, span(id), &[], (&mut |_: &Observation<'_>, _: LiveState<'_>| (), consumer));
}

/// Ends the program. Returns the batches that have left.
fn end(stream: &StreamFixture, mapper: &mut OtlpMapper, nanos: u64) -> Vec<OtlpRequests> {
    let mut batches = Vec::new();
    let leave = |mapper: &mut OtlpMapper| {
        batches.push(mapper.take());
        Ok(())
    };
    let consumer = &mut OtlpConsumer { mapper, leave };
    stream.replay.end_process(0, nanos, &stream.tables, consumer).unwrap();
    batches.push(mapper.take());
    batches
}

fn span(id: u64) -> PerfExt {
    PerfExt::of_span(id, 0)
}

fn spans_of(requests: &OtlpRequests) -> Vec<&Span> {
    let processes = requests.traces.iter().flat_map(|traces| &traces.resource_spans);
    processes.flat_map(|process| &process.scope_spans).flat_map(|scope| &scope.spans).collect()
}

fn logs_of(requests: &OtlpRequests) -> Vec<&LogRecord> {
    let processes = requests.logs.iter().flat_map(|logs| &logs.resource_logs);
    processes.flat_map(|process| &process.scope_logs).flat_map(|scope| &scope.log_records).collect()
}

fn has(attributes: &[opentelemetry_proto::tonic::common::v1::KeyValue], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.key == name)
}

#[test]
fn the_number_of_spans_without_room_never_falls() {
    let mut stream = stream();
    let counts = |stream: &StreamFixture| (stream.state().not_tracked(), stream.state().spans_without_room());
    (1..=5000).for_each(|id| stream.quiet(START + id, PerfEvent::SpanNew, span(id), &[]));
    assert_eq!(counts(&stream), (4000, 4000));
    (1001..=5000).for_each(|id| stream.quiet(START + MILLI, PerfEvent::SpanClose, span(id), &[]));
    assert_eq!(counts(&stream), (0, 4000));
    // Spans whose creations are lost: of one only the close is seen, of another a log record and the close.
    stream.lose();
    stream.quiet(START + 2 * MILLI, PerfEvent::SpanClose, span(6000), &[]);
    stream.quiet(START + 2 * MILLI, PerfEvent::Event, span(6001), &[]);
    assert_eq!(counts(&stream), (1, 4002));
    stream.quiet(START + 2 * MILLI, PerfEvent::SpanClose, span(6001), &[]);
    assert_eq!(counts(&stream), (0, 4002));
}

#[test]
fn spans_that_are_given_up_are_sent_as_spans_whose_end_is_lost() {
    let mut stream = stream();
    let mut mapper = OtlpMapper::new(BATCH_BYTES);
    for id in 1..=SPANS_MAX as u64 {
        push(&mut stream, &mut mapper, START + id, PerfEvent::SpanNew, id);
    }
    stream.lose();
    // Records after the loss show that some are open.
    let nanos = START + 20_000 * MILLI;
    (1..=50).for_each(|id| push(&mut stream, &mut mapper, nanos, PerfEvent::SpanEnter, id));
    let consumer = &mut OtlpConsumer { mapper: &mut mapper, leave: |_: &mut OtlpMapper| Ok(()) };
    stream.tick_to(nanos + MILLI, &mut |_: &Observation<'_>, _: LiveState<'_>| (), consumer);
    assert_eq!(stream.state().spans_given_up(), 950);
    let requests = mapper.take();
    let sent = spans_of(&requests);
    assert_eq!(sent.len(), 950);
    for span in sent {
        assert!(has(&span.attributes, "eventring.end_lost") && !has(&span.attributes, "eventring.open"), "{span:?}");
    }
}

#[test]
fn what_happened_in_spans_that_nobody_knows_leaves_in_batches() {
    let mut stream = stream();
    let mut mapper = OtlpMapper::new(BATCH_BYTES);
    // A span without a beginning, although nothing was lost, was closed before. Nobody sends it.
    for id in 1..=60 {
        push(&mut stream, &mut mapper, START, PerfEvent::SpanEnter, id);
        (0..100).for_each(|_| push(&mut stream, &mut mapper, START, PerfEvent::Event, id));
    }
    assert!(mapper.is_empty());
    let mut all = 0;
    for batch in &end(&stream, &mut mapper, START) {
        let logs = logs_of(batch);
        assert!(logs.len() <= 2000 && logs.iter().all(|log| has(&log.attributes, "eventring.apart")), "{}", logs.len());
        all += logs.len();
    }
    assert_eq!((all, mapper.counts.apart), (6000, 6000));
}

#[test]
fn a_program_that_ends_twice_has_its_open_spans_sent_once() {
    let mut stream = stream();
    let mut mapper = OtlpMapper::new(BATCH_BYTES);
    let sent = |stream: &StreamFixture, mapper: &mut OtlpMapper| {
        let batches = end(stream, mapper, START + MILLI);
        batches.iter().flat_map(spans_of).map(|span| span.span_id.clone()).collect::<Vec<_>>()
    };
    let ids = |ids: &[u64]| ids.iter().map(|id| id.to_be_bytes().to_vec()).collect::<Vec<_>>();
    (1..=2).for_each(|id| push(&mut stream, &mut mapper, START, PerfEvent::SpanNew, id));
    assert_eq!(sent(&stream, &mut mapper), ids(&[1, 2]));
    // Its rings had ended, and it has made another one.
    push(&mut stream, &mut mapper, START + MILLI, PerfEvent::SpanNew, 3);
    assert_eq!(sent(&stream, &mut mapper), ids(&[3]));
}

/// Returns the resource, the spans by id, and the log records by time.
fn parts_of(batches: &[OtlpRequests]) -> (Option<&Resource>, Vec<&Span>, Vec<&LogRecord>) {
    let traces = batches.iter().flat_map(|batch| &batch.traces).flat_map(|traces| &traces.resource_spans);
    let (mut spans, mut logs): (Vec<_>, Vec<_>) =
        (batches.iter().flat_map(spans_of).collect(), batches.iter().flat_map(logs_of).collect());
    spans.sort_by_key(|span| span.span_id.clone());
    logs.sort_by_key(|log| log.time_unix_nano);
    (traces.flat_map(|process| &process.resource).next(), spans, logs)
}

#[test]
fn a_capture_and_its_rings_give_equal_requests() {
    let recorder = PerfRecorder::builder().anonymous().shifts(15, 21).prefault(false).build().unwrap();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        let request = tracing::info_span!("request", path = "/", rows = tracing::field::Empty).entered();
        tracing::info!(code = 7, "inside");
        let query = tracing::info_span!("query");
        query.follows_from(&request);
        query.in_scope(|| tracing::error!("it failed"));
        request.record("rows", 3);
        drop(request.exit());
        tracing::info!("outside");
    });
    let rings = || recorder.open_readers().unwrap();
    let mut live = Live::new(RingSet::options().from_readers(rings()), &LiveOptions::new());
    let mut of_rings = OtlpMapper::new(BATCH_BYTES);
    let leave = |_: &mut OtlpMapper| Ok(());
    live.drive(Duration::from_millis(60), &mut OtlpConsumer { mapper: &mut of_rings, leave }).unwrap();
    let (capture, _) = capture_now(rings(), || true).unwrap();
    let mut of_capture = OtlpMapper::new(BATCH_BYTES);
    let recording = CaptureRecording::new(&capture).unwrap();
    replay_capture(&recording, &mut OtlpConsumer { mapper: &mut of_capture, leave }).unwrap();
    let (of_rings, of_capture) = ([of_rings.take()], [of_capture.take()]);
    let (resource, spans, logs) = parts_of(&of_rings);
    assert!(resource.is_some() && spans.len() == 2 && logs.len() == 1, "{spans:?} {logs:?}");
    assert_eq!((resource, spans, logs), parts_of(&of_capture));
}
