//! Tests of the sums of instructions that a replay computes.

use super::tests::{close, enter, exit, new, record};
use super::*;
use crate::tracing::read::record::PerfContent;
use crate::tracing::read::slice::SpanInstructions;

/// Replays records: the thread, the thread's count of instructions (0 if they are not counted), and the content.
/// Returns the instructions of the spans, in the order of their ids.
fn counted(records: Vec<(u32, u64, PerfContent)>) -> Vec<Option<(u64, u64)>> {
    let mut spans = SpanReplay::new();
    for (time, (thread, instructions, content)) in records.into_iter().enumerate() {
        let instructions = Some(instructions).filter(|count| *count > 0);
        spans.push(0, &PerfRecord { instructions, ..record(time as u64 + 1, thread, content) });
    }
    let of_span = |span: Span| span.instructions.map(|SpanInstructions { all, own, .. }| (all, own));
    spans.finish(1000).into_iter().map(of_span).collect()
}

#[test]
fn the_polls_of_a_span_count_on_each_thread_by_themselves() {
    let records = vec![
        (1, 0, new(1, 0)),
        (1, 1_000, enter(1)),
        (1, 1_010, exit(1)),
        // Another thread has another count.
        (2, 50, enter(1)),
        (2, 57, exit(1)),
        (1, 9_000, enter(1)),
        (1, 9_100, exit(1)),
        (2, 0, close(1)),
    ];
    assert_eq!(counted(records), [Some((117, 117))]);
}

#[test]
fn a_span_counts_those_inside_it_and_says_what_is_its_own() {
    let records = vec![
        (1, 0, new(1, 0)),
        (1, 100, enter(1)),
        (1, 0, new(2, 1)),
        (1, 110, enter(2)),
        (1, 0, new(3, 2)),
        (1, 120, enter(3)),
        (1, 125, exit(3)),
        (1, 150, exit(2)),
        (1, 160, enter(2)),
        (1, 163, exit(2)),
        (1, 200, exit(1)),
    ];
    assert_eq!(counted(records), [Some((100, 57)), Some((43, 38)), Some((5, 5))]);
}

#[test]
fn a_span_that_is_entered_inside_itself_counts_once() {
    let records = vec![
        (1, 0, new(1, 0)),
        (1, 0, new(2, 1)),
        (1, 10, enter(1)),
        (1, 20, enter(2)),
        (1, 30, enter(1)),
        (1, 35, exit(1)),
        (1, 60, exit(2)),
        (1, 100, exit(1)),
    ];
    // The inner slice of span 1 has 5. The outer one has 90, of which 40 are those of span 2.
    assert_eq!(counted(records), [Some((90, 55)), Some((40, 35))]);
}

#[test]
fn a_span_of_which_one_slice_was_not_counted_has_no_count() {
    let uncounted = vec![(1, 0, new(1, 0)), (1, 10, enter(1)), (1, 20, exit(1)), (2, 0, enter(1)), (2, 0, exit(1))];
    assert_eq!(counted(uncounted), [None]);
    let unseen_enter = vec![(1, 0, new(1, 0)), (1, 20, exit(1)), (1, 30, enter(1)), (1, 40, exit(1))];
    assert_eq!(counted(unseen_enter), [None]);
    // A count that runs backwards is damaged.
    assert_eq!(counted(vec![(1, 0, new(1, 0)), (1, 20, enter(1)), (1, 10, exit(1))]), [None]);
}

#[test]
fn a_close_that_comes_before_the_exit_leaves_the_count_whole() {
    let records = vec![(1, 0, new(1, 0)), (1, 20, enter(1)), (2, 0, close(1)), (1, 50, exit(1))];
    assert_eq!(counted(records), [Some((30, 30))]);
}
