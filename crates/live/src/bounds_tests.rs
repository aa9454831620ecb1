//! Tests that the options bound the memory of the engine, whatever a ring holds. If there is no room for a span or a
//! name, it is only counted.

use super::fixture::{START, StreamFixture};
use super::observation::Observation;
use super::options::LiveOptions;
use super::state::LiveState;
use eventring::schema::perf::{PerfEvent, PerfExt};
use eventring::tracing::SpanId;
use std::collections::HashSet;

const MILLI: u64 = 1_000_000;
const SPANS_MAX: usize = 1000;

fn stream() -> StreamFixture {
    StreamFixture::new(&LiveOptions::new().open_spans_max(SPANS_MAX))
}

fn ignore(_: &Observation<'_>, _: LiveState<'_>) {}

fn span(id: u64) -> PerfExt {
    PerfExt::of_span(id, 0)
}

fn not_tracked(stream: &StreamFixture) -> (u64, u64) {
    (stream.state().not_tracked(), stream.state().spans_given_up())
}

#[test]
fn a_span_without_room_whose_close_is_lost_does_not_count_for_ever() {
    let mut stream = stream();
    (1..=1500).for_each(|id| stream.quiet(START + id, PerfEvent::SpanNew, span(id), &[]));
    stream.tick(START + 100 * MILLI, &mut ignore);
    assert_eq!(not_tracked(&stream), (500, 0));
    // Without a loss, time alone changes nothing.
    stream.tick(START + 100_000 * MILLI, &mut ignore);
    assert_eq!(not_tracked(&stream), (500, 0));
    (1001..=1100).for_each(|id| stream.quiet(START + 100_001 * MILLI, PerfEvent::SpanClose, span(id), &[]));
    assert_eq!(not_tracked(&stream), (400, 0));
    // The closes of 300 of them are lost. Records after the loss show that 100 are open.
    stream.lose();
    let nanos = START + 100_002 * MILLI;
    (1401..=1500).for_each(|id| stream.quiet(nanos, PerfEvent::SpanEnter, span(id), &[]));
    stream.tick(nanos + MILLI, &mut ignore);
    assert_eq!(not_tracked(&stream), (100, 300));
    // A span that was forgotten is seen again, and counts again until its close.
    let nanos = nanos + 2 * MILLI;
    stream.quiet(nanos, PerfEvent::SpanRecord, span(1200), &[]);
    assert_eq!(not_tracked(&stream), (101, 300));
    (1200..=1500).for_each(|id| stream.quiet(nanos, PerfEvent::SpanClose, span(id), &[]));
    assert_eq!(not_tracked(&stream), (0, 300));
}

#[test]
fn more_spans_without_room_than_ids_are_kept_count_until_they_close_or_events_are_lost() {
    let mut stream = stream();
    (1..=5000).for_each(|id| stream.quiet(START + id, PerfEvent::SpanNew, span(id), &[]));
    assert_eq!(not_tracked(&stream), (4000, 0));
    (1001..=4500).for_each(|id| stream.quiet(START + MILLI, PerfEvent::SpanClose, span(id), &[]));
    assert_eq!(not_tracked(&stream), (500, 0));
    stream.lose();
    stream.quiet(START + 2 * MILLI, PerfEvent::SpanNew, span(1), &[]);
    stream.tick(START + 3 * MILLI, &mut ignore);
    assert_eq!(not_tracked(&stream), (0, 500));
}

#[test]
fn descriptions_of_call_sites_and_threads_have_a_bounded_room_and_the_rest_are_counted() {
    let mut stream = stream();
    let name = "n".repeat(100_000);
    for id in 1..=2000 {
        stream.call_site(id, &format!("{id}{name}"));
    }
    let refused = stream.state().refused();
    let known = stream.tables.catalogs[0].call_sites().count() as u64;
    assert!((900..1100).contains(&known) && known + refused == 2000, "{known}, {refused}");
    // Those that have room go on having their names, and the threads have the rest.
    (1..=100_000).for_each(|id| stream.thread(id, "a thread whose end is never seen"));
    let threads = stream.tables.catalogs[0].threads().count();
    assert!(threads < 100_000, "{threads}");
}

#[test]
fn an_id_keeps_its_first_description_and_spans_share_it() {
    let mut stream = stream();
    for n in 1..=SPANS_MAX as u64 {
        stream.call_site(1, &format!("name {n}"));
        stream.thread(7, &format!("thread {n}"));
        let ext = PerfExt { thread_id: 7, ..PerfExt::of_span(n, 1) };
        stream.quiet(START + n, PerfEvent::SpanNew, ext, &[]);
        stream.quiet(START + n, PerfEvent::ThreadEnded, ext, &[]);
    }
    let open = stream.state().open_spans().to_vec();
    let names: HashSet<String> = open.iter().map(|span| span.name().into_owned()).collect();
    let threads: HashSet<_> =
        open.iter().map(|span| span.span().unwrap().created.clone().unwrap().thread.name.clone()).collect();
    assert_eq!((names, threads), (["name 1".to_owned()].into(), [Some("thread 1".to_owned())].into()));
    assert_eq!((open.len(), stream.state().refused()), (SPANS_MAX, 2 * (SPANS_MAX as u64 - 1)));
}

#[test]
fn threads_that_end_make_room_for_others() {
    let mut stream = stream();
    for id in 1..=300_000_u32 {
        stream.thread(id, "worker");
        let ext = PerfExt { thread_id: id, ..span(id.into()) };
        let nanos = START + u64::from(id) * 1000;
        [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose, PerfEvent::ThreadEnded]
            .into_iter()
            .for_each(|event| stream.quiet(nanos, event, ext, &[]));
    }
    let known = stream.tables.catalogs[0].threads().count();
    // Spans are kept for 5 ms after their close: here, 5,000.
    assert!(stream.state().refused() == 0 && known < 20_000, "{known}");
}

#[test]
fn threads_whose_ends_are_lost_take_a_bounded_memory() {
    let mut stream = stream();
    for id in 1..=200_000_u32 {
        let ext = PerfExt { thread_id: id, ..span(1 + u64::from(id)) };
        let nanos = START + u64::from(id) * MILLI;
        [PerfEvent::SpanNew, PerfEvent::SpanEnter, PerfEvent::SpanExit, PerfEvent::SpanClose]
            .into_iter()
            .for_each(|event| stream.quiet(nanos, event, ext, &[]));
        if id % 1000 == 0 {
            stream.tick(nanos, &mut ignore);
        }
    }
    let replay = &stream.state().replayed.replays[0];
    let (links, stacks) = replay.thread_counts();
    assert!(links < 135_000 && stacks <= 1 << 16, "{links}, {stacks}");
    assert_eq!(stream.state().refused(), 0);
}

#[test]
fn more_threads_in_spans_than_have_room_are_counted() {
    let mut stream = stream();
    stream.quiet(START, PerfEvent::SpanNew, span(1), &[]);
    for id in 1..=70_000_u32 {
        let ext = PerfExt { thread_id: id, ..span(1) };
        stream.quiet(START + u64::from(id), PerfEvent::SpanEnter, ext, &[]);
    }
    // Each span has room for four enters.
    assert_eq!(stream.state().refused(), 66_000);
}

#[test]
fn a_span_that_is_closed_again_and_again_waits_once() {
    let mut stream = stream();
    stream.quiet(START, PerfEvent::SpanNew, span(1), &[]);
    (0..100_000).for_each(|_| stream.quiet(START, PerfEvent::SpanClose, span(1), &[]));
    assert_eq!(stream.state().replayed.replays[0].closing_count(), 1);
    let mut closed = 0;
    stream.tick(START + 10 * MILLI, &mut |observation, _| {
        closed += u64::from(matches!(observation, Observation::SpanClosed(_)))
    });
    assert_eq!(closed, 1);
}

#[test]
fn parents_that_nobody_asks_for_are_forgotten() {
    let mut stream = stream();
    stream.quiet(START, PerfEvent::SpanNew, span(1), &[]);
    for parent in 2..=300_000 {
        // One span is created again and again, each time with another parent that does not exist.
        let ext = PerfExt { related: parent + 1_000_000, ..span(1) };
        stream.quiet(START + parent, PerfEvent::SpanNew, ext, &[]);
        if parent % 1000 == 0 {
            stream.tick(START + parent, &mut ignore);
        }
    }
    let kept = stream.replay.kept_bytes();
    assert!(kept < 1 << 20, "{kept}");
}

#[test]
fn a_span_that_is_given_up_and_seen_again_and_again_is_listed_once() {
    let mut stream = stream();
    let mut nanos = START;
    for round in 1..=150 {
        // A hundred spans are the same again and again. The others are new.
        let others = (1..=900).map(|n| round * 1000 + n);
        (1..=100).chain(others).for_each(|id| stream.quiet(nanos, PerfEvent::SpanRecord, span(id), &[]));
        nanos += 11_000 * MILLI;
        stream.tick(nanos, &mut ignore);
        nanos += 11_000 * MILLI;
        stream.lose();
        // The record ends the loss.
        stream.quiet(nanos, PerfEvent::SpanNew, span(1), &[]);
        stream.tick(nanos, &mut ignore);
    }
    assert!(stream.state().spans_given_up() > 120_000, "{}", stream.state().spans_given_up());
    assert!(stream.core.processes[0].order.len() <= 2 * SPANS_MAX + 4096 + 1);
    (1..=100).for_each(|id| stream.quiet(nanos, PerfEvent::SpanRecord, span(id), &[]));
    let ids = |spans: Vec<SpanId>| (spans.len(), spans.into_iter().collect::<HashSet<_>>().len());
    let open = stream.state().open_spans().to_vec().iter().map(|span| span.id()).collect();
    let order = &mut stream.core.processes[0].order;
    order.remove_closed(&stream.replay.state(&stream.tables).replays[0]);
    let listed = ids(order.iter().collect());
    assert_eq!((listed.0, ids(open)), (listed.1, listed));
}
