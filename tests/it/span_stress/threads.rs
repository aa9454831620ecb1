//! Spans on plain threads.

use super::{Shared, new_span, next_uid};
use crate::fixtures::*;
use std::sync::mpsc;
use tracing::Span;
use tracing::field::Empty;
use tracing::span::EnteredSpan;

const STEPS: usize = 2500;

/// Uses spans in a random order of actions.
pub fn any_order(dice: &mut Random, shared: &Shared) {
    let mut entered: Vec<EnteredSpan> = Vec::new();
    let mut held: Vec<Span> = Vec::new();
    for _ in 0..STEPS {
        match dice.below(16) {
            0..=2 => held.push(new_span(dice)),
            3 => held.push(tracing::info_span!(parent: None, "root", uid = next_uid(), late = Empty)),
            4 => {
                let Some(parent) = shared.borrow(dice) else { continue };
                held.push(tracing::info_span!(parent: &parent, "child of a stranger", uid = next_uid(), late = Empty));
            }
            5..=6 => {
                let Some(span) = held.pop() else { continue };
                entered.push(span.entered());
                if entered.len() > 40 {
                    entered.clear();
                }
            }
            // Enters a span that this thread or another thread may have entered already.
            7 => {
                let known = entered.last().map(|span| Span::clone(span));
                let Some(span) = shared.borrow(dice).or(known) else { continue };
                entered.push(span.entered());
            }
            8..=9 => {
                if !entered.is_empty() {
                    let at = dice.below(entered.len() as u64) as usize;
                    held.push(entered.remove(at).exit());
                }
            }
            10 => {
                if !held.is_empty() {
                    let at = dice.below(held.len() as u64) as usize;
                    drop(held.swap_remove(at));
                }
            }
            11 => {
                if let Some(span) = held.last() {
                    shared.leave(span.clone(), dice);
                }
            }
            12 => held.extend(shared.take(dice)),
            13 => {
                let current = Span::current();
                if let (Some(span), false) = (held.last(), current.is_none()) {
                    span.follows_from(&current);
                }
            }
            14 => {
                // Both values are recorded in a new span that no other thread has. If another thread recorded `late`
                // too, the order of the threads would decide which value is the last.
                let fresh = new_span(dice);
                fresh.record("late", dice.below(u64::MAX));
                fresh.record("late", "in the end");
                held.push(fresh);
            }
            _ => match shared.borrow(dice) {
                Some(parent) => tracing::warn!(parent: &parent, uid = next_uid(), "of another thread's span"),
                None => tracing::info!(uid = next_uid(), error = ?Err::<(), _>("none"), "in context"),
            },
        }
    }
    // The vector drops its spans from the first to the last. So the spans are exited in the order in which they were
    // entered, the outermost first.
    entered.clear();
}

/// Enters one span on several threads at the same time. Each thread creates child spans of its own in it.
pub fn one_span_on_many_threads() {
    const THREADS: usize = 5;
    let span = tracing::info_span!("everybody's", uid = next_uid());
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let (span, barrier) = (span.clone(), &barrier);
            scope.spawn(move || {
                for _ in 0..30 {
                    let _entered = span.enter();
                    barrier.wait();
                    let below = tracing::info_span!("mine", uid = next_uid());
                    below.in_scope(|| tracing::debug!(uid = next_uid(), "inside"));
                    barrier.wait();
                    let _again = span.enter();
                    tracing::trace!(uid = next_uid(), "twice");
                }
            });
        }
    });
}

/// Records the field `late` of one span on several threads, one after another. A reader must show the last value,
/// whichever shard it is in.
pub fn late_fields_from_thread_after_thread() {
    for _ in 0..20 {
        let span = tracing::info_span!("handed on", uid = next_uid(), late = Empty, hops = 0u64);
        for hop in 1..=6u64 {
            let span = span.clone();
            std::thread::spawn(move || {
                span.record("hops", hop);
                span.record("late", format!("hop {hop}"));
            })
            .join()
            .unwrap();
        }
    }
}

/// Ends threads that are still inside spans. These spans are never exited; some of them are closed, and some stay
/// open.
pub fn threads_that_end_inside() {
    let (sender, spans) = mpsc::channel();
    for n in 0..40 {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let span = tracing::info_span!("abandoned", uid = next_uid());
            span.with_subscriber(|(id, dispatch)| dispatch.enter(id));
            let below = tracing::info_span!("abandoned below", uid = next_uid(), n);
            match n % 3 {
                0 => std::mem::forget(span),
                1 => sender.send(span).unwrap(),
                // The main thread drops the last handle of this span, after the thread that entered the span has
                // ended. The span was never exited. The subscriber must not take a later span for this one.
                _ => {
                    below.in_scope(|| tracing::info!(uid = next_uid(), "last words"));
                    sender.send(span).unwrap();
                }
            }
        })
        .join()
        .unwrap();
    }
    drop(sender);
    spans.into_iter().for_each(drop);
}
