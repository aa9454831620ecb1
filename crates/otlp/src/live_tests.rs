//! Messages about spans for which the engine has no room, and about those that it does not know.

use crate::messages::{LiveMapper, OtlpRequests};
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring_live::LiveOptions;
use eventring_live::LiveState;
use eventring_live::fixture::{START, StreamFixture};
use eventring_live::{ProgramEnd, Sight};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::trace::v1::Span;

const MILLI: u64 = 1_000_000;
const SPANS_MAX: usize = 1000;

fn stream() -> StreamFixture {
    StreamFixture::new(&LiveOptions::new().open_spans_max(SPANS_MAX))
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
    let mut mapper = LiveMapper::new(None);
    let mut see = |sight: &Sight<'_>, state: LiveState<'_>| mapper.see(sight, state, |_| ());
    for id in 1..=SPANS_MAX as u64 {
        stream.push(START + id, PerfEvent::SpanNew, span(id), &[], &mut see);
    }
    stream.lose();
    // Records after the loss show that some are open.
    let nanos = START + 20_000 * MILLI;
    (1..=50).for_each(|id| stream.push(nanos, PerfEvent::SpanEnter, span(id), &[], &mut see));
    stream.tick(nanos + MILLI, &mut see);
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
    let mut mapper = LiveMapper::new(None);
    let mut see = |sight: &Sight<'_>, state: LiveState<'_>| mapper.see(sight, state, |_| ());
    // A span without a beginning, although nothing was lost, was closed before. Nobody sends it.
    for id in 1..=60 {
        stream.push(START, PerfEvent::SpanEnter, span(id), &[], &mut see);
        (0..100).for_each(|_| stream.push(START, PerfEvent::Event, span(id), &[], &mut see));
    }
    assert!(mapper.batch().is_empty());
    let (mut batches, mut all) = (Vec::new(), 0);
    let end = ProgramEnd { program: &stream.tables.programs[0], has_died: false, epoch_nanos: START, bounds: None };
    mapper.see(&Sight::ProgramEnded(end), stream.state(), |mapper| batches.push(mapper.take()));
    batches.push(mapper.take());
    for batch in &batches {
        let logs = logs_of(batch);
        assert!(logs.len() <= 2000 && logs.iter().all(|log| has(&log.attributes, "eventring.apart")), "{}", logs.len());
        all += logs.len();
    }
    assert_eq!((all, mapper.not_in_spans().apart), (6000, 6000));
}

#[test]
fn a_program_that_ends_twice_has_its_open_spans_sent_once() {
    let mut stream = stream();
    let mut mapper = LiveMapper::new(None);
    let mut sent = |stream: &StreamFixture| {
        let end = ProgramEnd {
            program: &stream.tables.programs[0],
            has_died: false,
            epoch_nanos: START + MILLI,
            bounds: None,
        };
        mapper.see(&Sight::ProgramEnded(end), stream.state(), |_| ());
        let requests = mapper.take();
        spans_of(&requests).into_iter().map(|span| span.span_id.clone()).collect::<Vec<_>>()
    };
    let ids = |ids: &[u64]| ids.iter().map(|id| id.to_be_bytes().to_vec()).collect::<Vec<_>>();
    (1..=2).for_each(|id| stream.quiet(START, PerfEvent::SpanNew, span(id), &[]));
    assert_eq!(sent(&stream), ids(&[1, 2]));
    // Its rings had ended, and it has made another one.
    stream.quiet(START + MILLI, PerfEvent::SpanNew, span(3), &[]);
    assert_eq!(sent(&stream), ids(&[3]));
}
