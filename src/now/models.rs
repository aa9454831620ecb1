//! Models of the cells in the tables of the present. A reader of a changing cell gets one consistent span, lock or wake
//! of a task. The code of the cells runs unchanged, in every interleaving.

use super::lock_cell::{self, LockCell, LockCells, LockMode};
use super::span_cell::{self, Begun, INDEX_BITS, Presence, SpanCell};
use super::task_cell::{self, TaskCell};
use crate::layout::now::{CELL_WORDS, LOCK_CELLS, TASK_WORDS};
use crate::ring::models::explore::{beside, explore};
use crate::sync::AtomicU64;
use std::sync::Arc;

const INDEX: u64 = 3;

/// Returns the span of a generation: every word of its cell is a function of the generation.
fn span(generation: u64) -> Begun {
    Begun {
        id: generation << INDEX_BITS | INDEX,
        call_site_id: generation as u32,
        parent: generation,
        shard: generation,
        epoch_nanos: generation * 100,
        seqno: generation,
        flags: generation as u16,
        field_count: 0,
    }
}

/// Reads the cell, and checks that all of it is of one span. Returns what was seen.
fn look(cell: &[AtomicU64; CELL_WORDS]) -> &'static str {
    let Some(words) = span_cell::read(cell) else { return "none" };
    let seen = SpanCell::of_words(&words);
    let of = span(seen.id >> INDEX_BITS);
    let whole = (seen.call_site_id, seen.parent, seen.begun_epoch_nanos, seen.begun_at, seen.flags)
        == (of.call_site_id, of.parent, of.epoch_nanos, (of.shard, of.seqno), of.flags);
    assert!(whole, "torn cell: {seen:?}");
    match seen.presence {
        Presence::NotYet => "open",
        Presence::Inside(thread, since) => {
            assert_eq!((u64::from(thread), since), (of.parent, of.epoch_nanos + 7), "torn cell");
            "inside"
        }
        Presence::Left(..) => panic!("torn cell: nobody has left it"),
    }
}

#[test]
fn a_cell_passes_to_another_span_while_it_is_read() {
    explore("span_cell", 2, &["none", "open", "inside"], |tally| {
        let cell: Arc<[AtomicU64; CELL_WORDS]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        span_cell::begin(&cell, &span(1), None, &[]);
        let writer = beside(&cell, |cell| {
            span_cell::end(cell, span(1).id);
            span_cell::begin(cell, &span(2), None, &[]);
            span_cell::set_presence(cell, span(2).id, 2, true, span(2).epoch_nanos + 7);
            // Whoever leaves the span before leaves this one as it is.
            span_cell::set_presence(cell, span(1).id, 1, false, 0);
        });
        tally.saw(look(&cell));
        writer.join().unwrap();
        assert_eq!(look(&cell), "inside");
    });
}

/// The cells of a window.
struct Window(Vec<[AtomicU64; CELL_WORDS]>);

impl LockCells for Window {
    fn lock(&self, index: usize) -> &[AtomicU64; CELL_WORDS] {
        &self.0[index % self.0.len()]
    }
}

fn guard(number: u64) -> LockCell {
    let thread = number as u32;
    let of = LockCell {
        guard: number,
        is_held: true,
        lock: number + 1,
        since_epoch_nanos: number + 2,
        mode: LockMode::Mutex,
        thread,
        span: number + 3,
        site: thread + 4,
    };
    LockCell { is_held: number > 1, ..of }
}

#[test]
fn a_cell_passes_to_another_guard_while_it_is_read() {
    explore("lock_cell", 2, &["none", "first", "second", "freed"], |tally| {
        let window = Arc::new(Window(vec![std::array::from_fn(|_| AtomicU64::new(0))]));
        let second = 1 + LOCK_CELLS as u64;
        assert!(lock_cell::set(&*window, &LockCell { is_held: true, ..guard(1) }));
        let writer = beside(&window, move |window| {
            lock_cell::free(window, 1, 9);
            assert!(lock_cell::set(window, &guard(second)));
        });
        let seen = lock_cell::read(window.lock(0)).map(|words| LockCell::of_words(&words));
        tally.saw(match seen {
            None => "none",
            Some(of) if of == guard(second) => "second",
            // The time of a guard changes before it is dropped.
            Some(of) if (of.guard, of.lock, of.span) == (1, 2, 4) => "first",
            Some(of) => {
                assert_eq!((of.guard, of.lock, of.since_epoch_nanos, of.span), (0, 2, 9, 4), "torn cell");
                "freed"
            }
        });
        writer.join().unwrap();
    });
}

#[test]
fn a_wake_is_read_whole_or_without_its_thread() {
    explore("task_cell", 2, &["none", "first", "second", "torn"], |tally| {
        let cell: Arc<[AtomicU64; TASK_WORDS]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let id = span(1).id;
        task_cell::begin(&cell, id, &[]);
        let writer = beside(&cell, move |cell| {
            task_cell::wake(cell, id, 1, 0, 100);
            task_cell::begin_poll(cell, id, 150);
            task_cell::wake(cell, id, 2, 0, 200);
        });
        let words = task_cell::read(&cell, id).expect("the task does not end");
        let woken = TaskCell::of_words(&words).woken;
        tally.saw(match woken.map(|wake| (wake.epoch_nanos, wake.by_thread)) {
            None => "none",
            Some((100, Some(1))) => "first",
            Some((200, Some(2))) => "second",
            Some((_, None)) => "torn",
            Some(other) => panic!("torn wake: {other:?}"),
        });
        writer.join().unwrap();
    });
}
