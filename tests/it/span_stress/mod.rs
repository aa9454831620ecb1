//! A program that uses spans in all the ways that programs do, on threads and on a tokio runtime at the same time. It
//! nests and crosses spans, clones them, sends them to other threads, enters one span on several threads at a time,
//! fills in fields late, and closes spans in any order. Two runs may differ where threads race.
//!
//! Every span and event has a `uid`.

mod tasks;
mod threads;

use crate::fixtures::*;
use tracing::Span;
use tracing::field::Empty;

const THREADS: u64 = 4;

/// Runs all of it under a global subscriber.
pub fn run() {
    let shared = Shared::default();
    std::thread::scope(|scope| {
        for thread in 1..=THREADS {
            let shared = &shared;
            let body = move || threads::any_order(&mut Random(thread * 7919), shared);
            std::thread::Builder::new().name(format!("any order {thread}")).spawn_scoped(scope, body).unwrap();
        }
        scope.spawn(threads::one_span_on_many_threads);
        scope.spawn(threads::late_fields_from_thread_after_thread);
        scope.spawn(threads::threads_that_end_inside);
        scope.spawn(tasks::run);
    });
    // The remaining spans close here.
    drop(shared);
}

pub fn next_uid() -> u64 {
    static NEXT_UID: AtomicU64 = AtomicU64::new(1);
    NEXT_UID.fetch_add(1, Ordering::Relaxed)
}

/// Spans that threads pass to each other.
#[derive(Default)]
pub struct Shared(Mutex<Vec<Span>>);

impl Shared {
    const SPANS_MAX: usize = 64;

    /// Adds a handle. If there are too many already, the new handle replaces a random one, which is dropped.
    pub fn leave(&self, span: Span, dice: &mut Random) {
        let mut spans = self.0.lock().unwrap();
        let replaced = if spans.len() < Self::SPANS_MAX {
            spans.push(span);
            None
        } else {
            let at = dice.below(spans.len() as u64) as usize;
            Some(std::mem::replace(&mut spans[at], span))
        };
        drop(spans);
        drop(replaced);
    }

    /// Returns a new handle of one of the spans.
    pub fn borrow(&self, dice: &mut Random) -> Option<Span> {
        let spans = self.0.lock().unwrap();
        if spans.is_empty() { None } else { Some(spans[dice.below(spans.len() as u64) as usize].clone()) }
    }

    /// Removes and returns one of the handles.
    pub fn take(&self, dice: &mut Random) -> Option<Span> {
        let mut spans = self.0.lock().unwrap();
        if spans.is_empty() {
            return None;
        }
        let at = dice.below(spans.len() as u64) as usize;
        Some(spans.swap_remove(at))
    }
}

/// Makes a span with fields of all kinds. The field `late` is still empty; a test may record it later.
pub fn new_span(dice: &mut Random) -> Span {
    let uid = next_uid();
    match dice.below(4) {
        0 => tracing::info_span!("request", uid, path = "/öffnen", bytes = dice.below(u64::MAX), late = Empty),
        1 => {
            tracing::debug_span!(target: "stress::db", "query", uid, rows = -7i64, took = 0.25, ok = true, late = Empty)
        }
        2 => tracing::trace_span!("parse", uid, tokens = ?["a", "b"], wide = u128::MAX, late = Empty),
        _ => tracing::error_span!("bare", uid, late = Empty),
    }
}
