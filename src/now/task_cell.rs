//! The cell of a task. A task is a span, and its task cell has the index of its span cell.
//!
//! | word | bits | |
//! |---|---|---|
//! | 0 | 0–63 | span id of the task with bit 63; 0 while the cell is written |
//! | 1 | | time of a wake, nanoseconds since the epoch: the first wake since the last poll began; without such a wake, the time that was here before; 0 if there was no wake |
//! | 2 | 0–52 | span id of the innermost span in which the waking thread was, or 0 |
//! | 3 | 0–30 | the low bits of word 1, exclusive-or the generation: they show that words 1 and 3 belong to the same wake |
//! | 3 | 31 | nobody can wake the task any more |
//! | 3 | 32–63 | id of the thread that woke the task |
//! | 4 | | number of all wakes. Two wakes at the same moment may count as one |
//! | 5 | 0–7 | bytes of fields |
//! | 5 | 32–63 | number of polls |
//! | 6 | | time at which the task's last poll began, or 0 |
//! | 7–15 | | the first fields of the task's span, encoded as in the event: as many whole fields as have room |
//!
//! A task ends with its span. The cell of an ended task stays unchanged.
//!
//! A task has three states:
//! - It runs if a thread is in its span.
//! - It is woken if no thread is in its span, and the wake in word 1 came after the last poll began, or the task was
//!   never polled.
//! - Otherwise it is idle.

use super::pair;
use super::span_cell::{INDEX_BITS, Presence, SpanCell};
use crate::layout::now::TASK_WORDS;
use crate::sync::{AtomicU64, Ordering, fence};

type Cell = [AtomicU64; TASK_WORDS];

const OPEN: u64 = 1 << 63;
const UNWAKEABLE: u64 = 1 << 31;
const CHECK_MASK: u64 = UNWAKEABLE - 1;
const FIELDS_AT: usize = 7;
/// The most bytes of fields that a cell holds.
pub(crate) const FIELD_BYTES: usize = 8 * (TASK_WORDS - FIELDS_AT);
const POLL: u64 = 1 << 32;
const TRIES: usize = if cfg!(loom) { 2 } else { 100 };

fn check(id: u64, epoch_nanos: u64) -> u64 {
    (epoch_nanos ^ id >> INDEX_BITS) & CHECK_MASK
}

#[inline(always)]
fn is_of(cell: &Cell, id: u64) -> bool {
    cell[0].load(Ordering::Relaxed) == id | OPEN
}

/// Begins a task. `fields` are whole encoded fields of at most [`FIELD_BYTES`] bytes.
pub(crate) fn begin(cell: &Cell, id: u64, fields: &[u8]) {
    // The task before has ended with its span.
    cell[0].store(0, Ordering::Relaxed);
    // Pairs with the acquire fence in `read`.
    fence(Ordering::Release);
    let fields = &fields[..fields.len().min(FIELD_BYTES)];
    let fixed = [0, 0, check(id, 0), 0, fields.len() as u64, 0];
    cell[1..].iter().zip(fixed).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    let mut bytes = [0; FIELD_BYTES];
    bytes[..fields.len()].copy_from_slice(fields);
    for (word, bytes) in cell[FIELDS_AT..].iter().zip(bytes.chunks_exact(8)) {
        word.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
    }
    // Release, pairs with the acquire in `read`.
    cell[0].store(id | OPEN, Ordering::Release);
}

/// Notes that a poll of the task begins, if the cell is that of the task. Only the polling thread calls this.
pub(crate) fn begin_poll(cell: &Cell, id: u64, epoch_nanos: u64) {
    if is_of(cell, id) {
        cell[6].store(epoch_nanos, Ordering::Relaxed);
        // Only one thread polls the task, so no other one changes the word.
        crate::sync::local_add(&cell[5], POLL);
    }
}

/// Notes a wake, by a thread that is in the span `by`.
pub(crate) fn wake(cell: &Cell, id: u64, thread_id: u32, by: u64, epoch_nanos: u64) {
    if is_of(cell, id) {
        // Only the first wake after a poll has begun changes what the task does.
        if cell[1].load(Ordering::Relaxed) <= cell[6].load(Ordering::Relaxed) {
            let word = u64::from(thread_id) << 32 | check(id, epoch_nanos);
            pair::store(&cell[1], epoch_nanos, &cell[3], word, || cell[2].store(by, Ordering::Relaxed));
        }
        crate::sync::local_add(&cell[4], 1);
    }
}

/// Notes that nobody can wake the task any more.
pub(crate) fn set_unwakeable(cell: &Cell, id: u64) {
    if is_of(cell, id) {
        cell[3].fetch_or(UNWAKEABLE, Ordering::Relaxed);
    }
}

/// A task, as its cell shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskCell {
    /// The id of its span.
    pub id: u64,
    /// The first wake since the last poll began, or the one before. `None` if there was none.
    pub woken: Option<Wake>,
    /// The time at which its last poll began, in nanoseconds since the epoch; 0 if it was never polled.
    pub polled_epoch_nanos: u64,
    /// True if nobody can wake it any more.
    pub is_unwakeable: bool,
    /// The number of its polls.
    pub polls: u32,
    /// The number of its wakes. Two wakes at the same moment may count as one.
    pub wakes: u64,
    fields: [u8; FIELD_BYTES],
    field_bytes: usize,
}

/// A wake of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// The time, in nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The span id of the innermost span in which the waking thread was; 0 if it was in none.
    pub by_span: u64,
    /// The id of the waking thread in the recorder. `None` if two threads woke the task at the same moment.
    pub by_thread: Option<u32>,
}

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskPhase {
    /// A thread polls it.
    Running,
    /// It was woken, or was never polled, and waits for a thread.
    Woken,
    /// It waits to be woken.
    Idle,
}

impl TaskCell {
    /// Returns what the task does and since when, in nanoseconds since the epoch. `span` is its span.
    #[must_use]
    pub fn phase(&self, span: &SpanCell) -> (TaskPhase, u64) {
        let woken = self.woken.filter(|wake| wake.epoch_nanos > self.polled_epoch_nanos);
        match (span.presence, woken) {
            (Presence::Inside(_, since), _) => (TaskPhase::Running, since),
            (Presence::Left(_, since), Some(wake)) => (TaskPhase::Woken, wake.epoch_nanos.max(since)),
            (Presence::Left(_, since), None) => (TaskPhase::Idle, since),
            (Presence::NotYet, _) => (TaskPhase::Woken, span.begun_epoch_nanos),
        }
    }

    /// Returns the first fields of the task's span, encoded as in events: as many as have room in the cell.
    #[must_use]
    pub fn fields(&self) -> &[u8] {
        self.fields.get(..self.field_bytes).unwrap_or_default()
    }
}

fn fits(id: u64, words: &[u64; TASK_WORDS]) -> bool {
    words[3] & CHECK_MASK == check(id, words[1])
}

/// Reads the words of the cell of this task, whose span is open. Returns `None` if it is not its cell.
pub(super) fn read(cell: &Cell, id: u64) -> Option<[u64; TASK_WORDS]> {
    // Acquire, pairs with the release in `begin`.
    if cell[0].load(Ordering::Acquire) != id | OPEN {
        return None;
    }
    let load = || -> [u64; TASK_WORDS] { std::array::from_fn(|at| cell[at].load(Ordering::Relaxed)) };
    let words = (0..TRIES).map(|_| load()).find(|words| fits(id, words)).unwrap_or_else(load);
    fence(Ordering::Acquire);
    is_of(cell, id).then_some(words)
}

impl TaskCell {
    /// Returns what the words of the cell of a task mean.
    pub(super) fn of_words(words: &[u64; TASK_WORDS]) -> Self {
        let id = words[0] & !OPEN;
        let mut fields = [0; FIELD_BYTES];
        for (bytes, word) in fields.chunks_exact_mut(8).zip(&words[FIELDS_AT..]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let by_thread = fits(id, words).then_some((words[3] >> 32) as u32);
        let wake = Wake { epoch_nanos: words[1], by_span: words[2], by_thread };
        Self {
            id,
            woken: (words[1] != 0).then_some(wake),
            polled_epoch_nanos: words[6],
            is_unwakeable: words[3] & UNWAKEABLE != 0,
            polls: (words[5] >> 32) as u32,
            wakes: words[4],
            fields,
            field_bytes: (words[5] as u8).into(),
        }
    }
}
