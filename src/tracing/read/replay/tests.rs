//! Replays of a few records.

use super::*;
use crate::tracing::read::catalog::Catalog;
use crate::tracing::read::record::{Fields, PerfContent};
use proptest::prelude::*;

fn id(id: u64) -> SpanId {
    SpanId::new(id).unwrap()
}

pub(super) fn record(epoch_nanos: u64, thread: u32, content: PerfContent) -> PerfRecord {
    PerfRecord { shard: 0, seqno: 1, epoch_nanos, thread: Catalog::new().thread(thread), instructions: None, content }
}

pub(super) fn new(span: u64, parent: u64) -> PerfContent {
    PerfContent::SpanNew {
        span: id(span),
        parent: SpanId::new(parent),
        call_site: Catalog::new().call_site(9),
        fields: Fields::default(),
        flags: 0,
    }
}

pub(super) fn enter(span: u64) -> PerfContent {
    PerfContent::SpanEnter { span: id(span), call_site: Catalog::new().call_site(9) }
}

pub(super) fn exit(span: u64) -> PerfContent {
    PerfContent::SpanExit { span: id(span), call_site: Catalog::new().call_site(9), flags: 0 }
}

pub(super) fn close(span: u64) -> PerfContent {
    PerfContent::SpanClose { span: id(span), call_site: Catalog::new().call_site(9) }
}

#[test]
fn events_of_two_threads_that_come_in_the_wrong_order_still_make_one_span() {
    let mut spans = SpanReplay::new();
    spans.push(0, &record(10, 2, enter(5)));
    spans.push(0, &record(11, 1, new(5, 3)));
    spans.push(0, &record(20, 1, close(5)));
    spans.push(0, &record(21, 2, exit(5)));
    assert_eq!(spans.take_closed(), None);
    spans.push(0, &record(20 + GRACE_NANOS, 1, PerfContent::ThreadEnded));
    let span = spans.take_closed().unwrap();
    assert_eq!((span.parent, span.wall_nanos(), span.busy_nanos()), (Some(id(3)), Some(9), 10));
    assert!(!span.may_have_losses && !span.is_open());
    assert!(spans.is_empty());
}

#[test]
fn a_span_says_which_of_its_records_were_not_seen() {
    let mut spans = SpanReplay::new();
    spans.push(0, &record(10, 1, exit(1)));
    spans.push(0, &record(11, 1, new(2, 1)));
    spans.push(0, &record(12, 1, enter(2)));
    spans.gap(None);
    spans.push(0, &record(13, 1, new(3, 2)));
    let [first, second, third] = spans.finish(100).try_into().unwrap();
    assert!(first.may_have_losses && first.created.is_none() && first.slices[0].entered_epoch_nanos.is_none());
    assert!(second.may_have_losses && second.is_open() && second.slices[0].exited_epoch_nanos.is_none());
    assert!(!third.may_have_losses);
}

#[test]
fn a_span_entered_twice_on_one_thread_is_exited_from_the_inside_out() {
    let mut spans = SpanReplay::new();
    for (time, content) in [(1, new(1, 0)), (2, enter(1)), (3, enter(1)), (4, exit(1)), (5, exit(1))] {
        spans.push(0, &record(time, 1, content));
    }
    let span = spans.finish(100).remove(0);
    let ends: Vec<_> = span.slices.iter().map(SpanSlice::nanos).collect();
    assert_eq!((ends, span.busy_nanos()), (vec![Some(3), Some(1)], 3));
}

const MAIN: ThreadKey = ThreadKey { recorder: 0, thread_id: 1 };

#[test]
fn each_record_returns_its_change_and_slices_have_ids_in_the_order_of_the_enters() {
    let mut spans = SpanReplay::new().without_fields().without_slices();
    assert_eq!(spans.push(0, &record(1, 1, new(1, 0))), SpanChange::Updated(id(1)));
    let SpanChange::SliceBegun(first) = spans.push(0, &record(2, 1, enter(1))) else { panic!() };
    let SpanChange::SliceBegun(second) = spans.push(1, &record(3, 1, enter(1))) else { panic!() };
    assert_eq!((first.id, first.thread, second.id, second.thread.recorder), (0, MAIN, 1, 1));
    assert_eq!((spans.slices_begun(), spans.stack(MAIN)), (2, &[first][..]));
    assert_eq!(spans.push(0, &record(4, 1, exit(1))), SpanChange::SliceEnded(first));
    // Thread 1 has already left the span, which only a thread of the other recorder is in.
    assert_eq!(spans.push(0, &record(5, 1, exit(1))), SpanChange::None);
    assert_eq!(spans.push(0, &record(6, 1, close(1))), SpanChange::Closed { span: id(1), cut: vec![] });
    assert_eq!(spans.open_slices().collect::<Vec<_>>(), [&second]);
    assert!(spans.open_spans().next().is_none() && spans.get(id(1)).unwrap().slices.is_empty());
}

#[test]
fn a_close_after_a_loss_cuts_the_slices_whose_exits_are_missing() {
    let mut spans = SpanReplay::new();
    spans.push(0, &record(1, 1, new(1, 0)));
    spans.push(0, &record(2, 1, enter(1)));
    spans.push(0, &record(3, 2, enter(1)));
    spans.gap(Some((0, 0)));
    let SpanChange::Closed { cut, .. } = spans.push(0, &record(9, 3, close(1))) else { panic!() };
    assert_eq!(cut.iter().map(|slice| slice.id).collect::<Vec<_>>(), [0, 1]);
    // One of the exits was not lost and comes after the close.
    spans.push(0, &record(10, 2, exit(1)));
    let span = spans.finish(20).remove(0);
    let slices: Vec<_> = span.slices.iter().map(|slice| (slice.is_cut, slice.exited_epoch_nanos)).collect();
    assert_eq!((slices, span.may_have_losses), (vec![(true, None), (true, Some(9))], true));
}

#[test]
fn a_span_that_is_left_on_another_thread_than_it_was_entered_ends_with_its_close() {
    let mut spans = SpanReplay::new();
    for (time, content) in [(1, new(1, 0)), (2, enter(1)), (3, new(2, 1)), (4, enter(2)), (5, exit(2)), (6, close(2))] {
        spans.push(0, &record(time, 1, content));
    }
    assert_eq!(spans.push(0, &record(7, 2, exit(1))), SpanChange::None);
    let SpanChange::Closed { cut, .. } = spans.push(0, &record(9, 2, close(1))) else { panic!() };
    assert_eq!((cut.len(), spans.stack(MAIN).len()), (1, 0));
    spans.push(0, &record(20, 1, new(3, 0)));
    let [moved, normal, _] = spans.finish(100).try_into().unwrap();
    assert_eq!((moved.busy_nanos(), moved.wall_nanos(), moved.may_have_losses), (7, Some(8), false));
    let slices: Vec<_> = moved.slices.iter().map(|slice| (slice.is_cut, slice.exited_epoch_nanos)).collect();
    assert_eq!(slices, [(true, None)]);
    assert_eq!((normal.busy_nanos(), normal.slices[0].is_cut), (1, false));
}

#[test]
fn a_span_that_is_left_where_nobody_has_entered_it_may_have_losses() {
    // The other thread may have entered the span in a lost event.
    let mut spans = SpanReplay::new();
    spans.push(0, &record(1, 1, new(1, 0)));
    spans.push(0, &record(2, 1, enter(1)));
    spans.gap(Some((0, 0)));
    spans.push(0, &record(7, 2, exit(1)));
    spans.push(0, &record(8, 1, exit(1)));
    let span = spans.finish(100).remove(0);
    assert!(span.may_have_losses && span.slices.len() == 2, "{span:?}");
}

#[test]
fn open_slices_may_have_ended_if_their_ring_has_lost_events_since_they_were_last_seen() {
    let may_have_ended = |spans: &SpanReplay| spans.may_have_ended(spans.open_slices().next().unwrap(), 100);
    let mut spans = SpanReplay::new();
    spans.push(0, &record(1, 1, new(1, 0)));
    spans.push(0, &record(2, 1, enter(1)));
    assert!(!may_have_ended(&spans));
    spans.gap(Some((0, 0)));
    assert!(may_have_ended(&spans));
    spans.push(0, &record(9, 1, new(2, 0)));
    assert!(may_have_ended(&spans));
    // A child was created in the span: the thread is still in it.
    spans.push(0, &record(10, 1, new(3, 1)));
    assert!(!may_have_ended(&spans));
    let ends: Vec<_> = spans.finish(100).iter().map(|span| (span.is_end_lost, span.is_busy_known)).collect();
    assert_eq!(ends, [(false, false), (false, true), (false, true)]);
}

#[test]
fn a_typed_event_shows_that_its_span_exists() {
    let mut spans = SpanReplay::new();
    spans.push(0, &record(1, 1, new(1, 0)));
    assert_eq!(spans.push_typed_event(id(2), 5), None);
    assert_eq!(spans.push_typed_event(id(1), 5).unwrap().last_seen_epoch_nanos, 5);
}

#[test]
fn open_spans_that_may_have_been_closed_can_be_taken() {
    let mut spans = SpanReplay::new();
    for (time, thread, content) in [(1, 1, new(1, 0)), (2, 1, enter(1)), (3, 2, new(2, 0))] {
        spans.push(0, &record(time, thread, content));
    }
    assert_eq!(spans.take_lost(100), []);
    spans.gap(Some((0, 0)));
    spans.push(0, &record(9, 1, new(3, 0)));
    spans.push(0, &record(10, 2, enter(2)));
    // Span 1 was last seen at time 2. So `take_lost(2)` leaves it, and `take_lost(100)` takes it. Span 2 stays
    // because thread 2 is in it, and span 3 stays because it was created after the loss.
    assert_eq!(spans.take_lost(2), []);
    let [lost] = spans.take_lost(100).try_into().unwrap();
    assert_eq!((lost.id, lost.is_end_lost, lost.may_have_losses), (id(1), true, true));
    assert_eq!((spans.len(), spans.stack(MAIN)), (2, &[][..]));
}

#[test]
fn the_time_of_two_threads_in_a_span_is_added_and_a_span_is_idle_while_no_thread_is_in_it() {
    let mut spans = SpanReplay::new().without_slices();
    let steps = [
        (10, 1, new(1, 0)),
        (20, 1, enter(1)),
        (30, 2, enter(1)),
        (40, 1, exit(1)),
        (50, 2, exit(1)),
        (70, 1, enter(1)),
        (75, 1, exit(1)),
        (100, 1, close(1)),
    ];
    steps.into_iter().for_each(|(time, thread, content)| drop(spans.push(0, &record(time, thread, content))));
    let [span] = spans.finish(200).try_into().unwrap();
    assert_eq!(
        (span.wall_nanos(), span.counted_busy_nanos(), span.idle_nanos()),
        (Some(90), 20 + 20 + 5, Some(90 - 30 - 5))
    );
}

#[test]
fn an_exit_that_comes_after_the_close_ends_the_time_in_the_span_as_one_before_it_does() {
    let mut spans = SpanReplay::new();
    let steps = [
        (10, 1, new(1, 0)),
        (20, 1, enter(1)),
        (30, 2, enter(1)),
        (100, 3, close(1)),
        (40, 1, exit(1)),
        (60, 2, exit(1)),
    ];
    steps.into_iter().for_each(|(time, thread, content)| drop(spans.push(0, &record(time, thread, content))));
    let [span] = spans.finish(200).try_into().unwrap();
    assert_eq!((span.counted_busy_nanos(), span.busy_nanos(), span.idle_nanos()), (20 + 30, 20 + 30, Some(90 - 40)));
}

/// Returns how long a thread was in a span, from its slices.
fn nanos_with_a_thread(span: &Span, end_nanos: u64) -> u64 {
    let times = |slice: &SpanSlice| {
        let entered = slice.entered_epoch_nanos?;
        Some((entered, slice.exited_epoch_nanos.unwrap_or(end_nanos).max(entered)))
    };
    let mut times: Vec<(u64, u64)> = span.slices.iter().filter_map(times).collect();
    times.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (entered, exited) in times {
        sum += exited.saturating_sub(entered.max(until));
        until = until.max(exited);
    }
    sum
}

proptest! {
    /// Threads enter and exit a few spans in any order, also spans that they are in already.
    #[test]
    fn the_time_in_a_span_is_the_same_with_and_without_its_slices(
        steps in prop::collection::vec((1_u32..3, 1_u64..4, any::<bool>(), 0_u64..9), 0..60),
        ends in any::<bool>(),
    ) {
        let replays = [SpanReplay::new(), SpanReplay::new().without_slices()];
        let [whole, counted] = replays.map(|mut spans| {
            let mut now = 10;
            for (thread, span, enters, nanos) in &steps {
                now += nanos;
                spans.push(0, &record(now, *thread, if *enters { enter(*span) } else { exit(*span) }));
            }
            if ends {
                (1..4).for_each(|span| drop(spans.push(0, &record(now + 1, 1, close(span)))));
            }
            spans.finish(now + 5)
        });
        let now = 10 + steps.iter().map(|(.., nanos)| nanos).sum::<u64>() + 5;
        for (whole, counted) in whole.iter().zip(&counted) {
            let busy = if whole.is_open() { whole.busy_nanos_until(now) } else { whole.busy_nanos() };
            prop_assert_eq!((counted.id, counted.counted_busy_nanos), (whole.id, busy));
            if let Some(closed) = &whole.closed {
                prop_assert_eq!(counted.entered_nanos, nanos_with_a_thread(whole, closed.epoch_nanos));
            }
        }
    }
}

#[test]
fn closed_spans_are_known_as_long_as_a_span_inside_is_there_and_in_bounded_memory() {
    let mut spans = SpanReplay::live(1000);
    let around = |spans: &SpanReplay, of: u64| spans.spans_around(id(of)).map(|span| span.id.get()).collect::<Vec<_>>();
    let push = |spans: &mut SpanReplay, nanos, content| {
        spans.push(0, &record(nanos, 1, content));
        while spans.take_closed().is_some() {}
    };
    // Each job starts the next one inside of its own span, and ends.
    push(&mut spans, 0, new(1, 0));
    for job in 1..100_000 {
        push(&mut spans, job * GRACE_NANOS, new(job + 1, job));
        push(&mut spans, job * GRACE_NANOS + 1, close(job));
    }
    // Of the last jobs, those of the grace time are still there.
    assert_eq!(around(&spans, 100_000), (99_001..=100_000).rev().collect::<Vec<_>>());
    assert!((65_000..=1 << 16).contains(&spans.around_count()), "{}", spans.around_count());
    assert!(spans.kept_bytes() < 128 << 20, "{}", spans.kept_bytes());
    push(&mut spans, 100_001 * GRACE_NANOS, close(100_000));
    push(&mut spans, 100_003 * GRACE_NANOS, new(200_000, 0));
    assert_eq!((spans.around_count(), spans.len()), (0, 1));
    // A span that is its own ancestor, and two that are each other's.
    for (span, parent) in [(7, 7), (8, 9), (9, 8)] {
        push(&mut spans, 100_004 * GRACE_NANOS, new(span, parent));
    }
    (7..=9).for_each(|span| push(&mut spans, 100_004 * GRACE_NANOS, close(span)));
    push(&mut spans, 100_006 * GRACE_NANOS, close(200_000));
    assert!(spans.around_count() <= 2 && around(&spans, 8).len() <= 1000);
}
