//! Tests of the times of threads: how long they ran, could have run, and waited in spans.

use super::fixture::{START, StreamFixture};
use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use crate::conditions::ConditionSet;
use crate::core::series::SeriesKind;
use eventring::schema::EventPayload as _;
use eventring::schema::perf::{PerfEvent, PerfExt, ThreadTime};
use eventring::tracing::TimeSpent;
use std::time::Duration;

type See<'s> = &'s mut dyn FnMut(&Observation<'_>, LiveState<'_>);

fn push(stream: &mut StreamFixture, micros: u64, event: PerfEvent, (thread_id, span): (u32, u64), see: See<'_>) {
    let ext = PerfExt { thread_id, ..PerfExt::of_span(span, 1) };
    stream.push(START + micros * 1000, event, ext, &[], &mut |observation, state| see(observation, state));
}

/// Takes a THREAD_TIME: the thread ran for half of the time since then, and had no processor for a tenth.
fn measure(stream: &mut StreamFixture, micros: u64, since: u64, thread_id: u32, see: See<'_>) {
    let nanos = (micros - since) * 1000;
    let (cpu_nanos, queue_nanos) = (nanos / 2, nanos / 10);
    let since_epoch_nanos = START + since * 1000;
    let voluntary_switches = 1;
    let times = ThreadTime { since_epoch_nanos, cpu_nanos, queue_nanos, voluntary_switches, ..ThreadTime::default() };
    let ext = PerfExt { thread_id, ..PerfExt::of_span(0, 0) };
    times.with_bytes(|bytes| {
        stream.push(START + micros * 1000, PerfEvent::ThreadTime, ext, bytes, &mut |observation, state| {
            see(observation, state);
        });
    });
}

/// Takes a span of 1000 µs of thread 1, in which it left its processor once; a span as long of thread 2, which measures
/// nothing; and an open span of thread 1, whose last event is 1000 µs after its begin, and a second ago.
fn stream(set: &mut ConditionSet, fired: &mut Vec<(usize, u64)>) -> StreamFixture {
    let mut stream = StreamFixture::new(&set.options(LiveOptions::new().windows([Duration::from_secs(10)])));
    stream.call_site(1, "query");
    let see: See<'_> = &mut |observation, state| {
        set.see(observation, state, &mut |index, _, occurrence| {
            fired.push((index, occurrence.span().map_or(0, |span| span.id.get())));
        });
    };
    measure(&mut stream, 0, 0, 1, see);
    for (thread, span) in [(1, 1), (2, 2)] {
        push(&mut stream, 0, PerfEvent::SpanNew, (thread, span), see);
        push(&mut stream, 0, PerfEvent::SpanEnter, (thread, span), see);
    }
    measure(&mut stream, 1000, 0, 1, see);
    for (thread, span) in [(1, 1), (2, 2)] {
        push(&mut stream, 1000, PerfEvent::SpanExit, (thread, span), see);
        push(&mut stream, 1000, PerfEvent::SpanClose, (thread, span), see);
    }
    push(&mut stream, 2000, PerfEvent::SpanNew, (1, 3), see);
    push(&mut stream, 2000, PerfEvent::SpanEnter, (1, 3), see);
    measure(&mut stream, 3000, 2000, 1, see);
    // A closed span is counted when no exit can come any more.
    stream.tick(START + 1_003_000 * 1000, &mut |observation, state| see(observation, state));
    stream
}

fn micros(times: TimeSpent) -> [u64; 4] {
    [times.cpu_nanos, times.queue_nanos, times.sleep_nanos, times.unmeasured_nanos].map(|nanos| nanos / 1000)
}

#[test]
fn the_times_of_a_name_add_up_to_its_busy_time_with_spans_of_which_nothing_is_known() {
    let stream = stream(&mut ConditionSet::new(Vec::new()), &mut Vec::new());
    let stats = stream.state().series_of(SeriesKind::Spans, "query", None).unwrap().window(0);
    assert_eq!((stats.count(), stats.busy_nanos()), (2, 2_000_000));
    assert_eq!(micros(stats.times().unwrap()), [500, 100, 400, 1000]);
}

#[test]
fn an_open_span_has_the_times_until_the_last_event_of_its_thread() {
    let stream = stream(&mut ConditionSet::new(Vec::new()), &mut Vec::new());
    let open = stream.state().open_spans().to_vec();
    assert_eq!(open.len(), 1);
    assert_eq!((open[0].id().get(), micros(open[0].times().unwrap())), (3, [500, 100, 400, 1_000_000]));
}

#[test]
fn a_trigger_tests_the_times_of_a_span_when_it_closes() {
    let conditions = ["cpu>=500us", "cpu>500us", "sleep>399us span=query", "queue<1s", "queue<=99us or sleep=400us"];
    let mut set = ConditionSet::new(conditions.iter().map(|text| text.parse().unwrap()).collect());
    let mut fired = Vec::new();
    stream(&mut set, &mut fired);
    // Nothing is known of span 2, and span 3 is open.
    assert_eq!(fired, [(0, 1), (2, 1), (3, 1), (4, 1)]);
}
