//! The cell of a thread's wait for a lock. When the thread gets the lock, the cell becomes the guard's cell.
//!
//! | word | bits | |
//! |---|---|---|
//! | 0 | 0–61 | number of the wait and of its guard; 0 if the cell is free. A free cell still holds the words of its last guard |
//! | 0 | 62 | set if the lock is held, clear while a thread waits for it |
//! | 0 | 63 | the cell is being written |
//! | 1 | | number of the lock |
//! | 2 | | time at which the wait, the holding or the free state began, nanoseconds since the epoch |
//! | 3 | 0–31 | mode: 1 mutex, 2 read, 3 write, 4 condition |
//! | 3 | 32–63 | id of the thread that began the wait, or got the lock |
//! | 4 | | span id of the task that this thread polled; without a task, of the innermost span in which the thread was, or 0 |
//! | 5 | 0–31 | call site of a lock of threads (`eventring::sync`), whose name is that of the lock; 0 for a lock of tasks |

use crate::layout::now::{CELL_WORDS, LOCK_CELLS, LOCK_WINDOW};
use crate::ring::mutation::{self, Mutation};
use crate::sync::{AtomicU64, Ordering, fence};

type Cell = [AtomicU64; CELL_WORDS];

/// Where the cells of locks are.
pub(super) trait LockCells {
    /// Returns the cell with this index, which is taken modulo the number of cells.
    fn lock(&self, index: usize) -> &Cell;
}

const HELD: u64 = 1 << 62;
const WRITING: u64 = 1 << 63;
const NUMBER_MASK: u64 = HELD - 1;

/// A wait for a lock, or a guard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockCell {
    /// The number of the wait and of its guard; 0 if the guard was dropped: the lock was freed then.
    pub guard: u64,
    /// True if the lock is held; false if it is waited for.
    pub is_held: bool,
    /// The number of the lock.
    pub lock: u64,
    /// Since when, in nanoseconds since the epoch.
    pub since_epoch_nanos: u64,
    pub(crate) mode: LockMode,
    /// The id of the thread that began the wait, or got the lock.
    pub thread: u32,
    /// The span id of the task that this thread polled; without one, of the innermost span in which it was, or 0.
    pub span: u64,
    /// The id of the call site of a lock of threads. 0 for a lock of tasks.
    pub site: u32,
}

/// How a lock is held or waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum LockMode {
    /// A mode that this reader does not know.
    Unknown = 0,
    /// A mutex.
    Mutex = 1,
    /// For reading, with others.
    Read = 2,
    /// For writing, alone.
    Write = 3,
    /// A condition variable, which nobody holds.
    Condition = 4,
}

impl LockMode {
    /// Returns the mode with this name in events.
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "mutex" => Self::Mutex,
            "read" => Self::Read,
            "write" => Self::Write,
            "condition" => Self::Condition,
            _ => Self::Unknown,
        }
    }

    /// Returns the mode with this number.
    pub(crate) fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Mutex,
            2 => Self::Read,
            3 => Self::Write,
            4 => Self::Condition,
            _ => Self::Unknown,
        }
    }

    /// Returns the name in events; empty for a mode that is not known.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "",
            Self::Mutex => "mutex",
            Self::Read => "read",
            Self::Write => "write",
            Self::Condition => "condition",
        }
    }
}

/// The cells of a guard: one of them is its cell, if any is.
fn window(memory: &impl LockCells, guard: u64) -> impl Iterator<Item = &Cell> {
    let first = (guard & NUMBER_MASK) as usize % LOCK_CELLS;
    // A model has one cell.
    let cells = if cfg!(loom) { 1 } else { LOCK_WINDOW };
    (0..cells).map(move |step| memory.lock(first + step))
}

/// Stores a wait or a guard in its cell, or in a free one. Returns false if there is none. A guard without a number has
/// no cell.
///
/// Nobody else changes the cell of a guard meanwhile: what happens to a guard happens in the program's order, and code
/// that interrupts the thread has guards of its own.
pub(super) fn set(memory: &impl LockCells, of: &LockCell) -> bool {
    let number = of.guard & NUMBER_MASK;
    if number == 0 {
        return false;
    }
    let own = window(memory, number).find(|cell| cell[0].load(Ordering::Relaxed) & NUMBER_MASK == number);
    let claim = || {
        let take = |cell: &&Cell| {
            // Acquire, pairs with the release of the guard that had the cell.
            cell[0].compare_exchange(0, number | WRITING, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        window(memory, number).find(take)
    };
    let Some(cell) = own.or_else(claim) else { return false };
    cell[0].store(number | WRITING, Ordering::Relaxed);
    // Pairs with the acquire fence in `read`.
    if !mutation::active(Mutation::MissingWriterFence) {
        fence(Ordering::Release);
    }
    let who = of.mode as u64 | u64::from(of.thread) << 32;
    let words = [of.lock, of.since_epoch_nanos, who, of.span, of.site.into()];
    cell[1..].iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    // Release, pairs with the acquire in `read`.
    let order = if mutation::active(Mutation::RelaxedCommit) { Ordering::Relaxed } else { Ordering::Release };
    cell[0].store(number | if of.is_held { HELD } else { 0 }, order);
    true
}

/// Frees the cell of a wait or guard.
pub(super) fn free(memory: &impl LockCells, guard: u64, epoch_nanos: u64) {
    let number = guard & NUMBER_MASK;
    let is_own = |cell: &&Cell| number != 0 && cell[0].load(Ordering::Relaxed) & NUMBER_MASK == number;
    if let Some(cell) = window(memory, number).find(is_own) {
        // Of a wait that was given up, nothing is told: the lock was not freed.
        if cell[0].load(Ordering::Relaxed) & HELD == 0 {
            cell[1].store(0, Ordering::Relaxed);
        }
        cell[2].store(epoch_nanos, Ordering::Relaxed);
        // Release, pairs with the acquire in `read` and of the guard that takes the cell.
        cell[0].store(0, Ordering::Release);
    }
}

/// Number of times that a cell is read before its changes are given up.
const TRIES: usize = if cfg!(loom) { 2 } else { 100 };

/// Reads the words of a cell. Returns `None` if no guard had it, or if it stays half written: then its writer was killed.
pub(super) fn read(cell: &Cell) -> Option<[u64; CELL_WORDS]> {
    (0..TRIES).find_map(|_| try_read(cell)).flatten()
}

/// Reads the cell. Returns `None` if it is being written, and `Some(None)` if no guard had it.
fn try_read(cell: &Cell) -> Option<Option<[u64; CELL_WORDS]>> {
    let word = cell[0].load(Ordering::Acquire);
    if word & WRITING != 0 {
        return None;
    }
    let words: [u64; CELL_WORDS] = std::array::from_fn(|at| cell[at].load(Ordering::Relaxed));
    if !mutation::active(Mutation::MissingReaderFence) {
        fence(Ordering::Acquire);
    }
    (cell[0].load(Ordering::Relaxed) == word).then_some(Some(words).filter(|words| words[1] != 0))
}

impl LockCell {
    /// Returns how the lock is held or waited for: `mutex`, `read`, `write` or `condition`; empty if that is not known.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        self.mode.name()
    }

    /// Returns true if the lock is waited for.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.guard != 0 && !self.is_held
    }

    /// Returns what the words of a cell mean.
    pub(super) fn of_words(words: &[u64; CELL_WORDS]) -> Self {
        Self {
            guard: words[0] & NUMBER_MASK,
            is_held: words[0] & HELD != 0,
            lock: words[1],
            since_epoch_nanos: words[2],
            mode: LockMode::from_code(words[3] as u32),
            thread: (words[3] >> 32) as u32,
            span: words[4],
            site: words[5] as u32,
        }
    }
}
