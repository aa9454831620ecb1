//! The cell of a thread. The module defines the words of the cell, and writes and reads them.
//!
//! | word | bits | |
//! |---|---|---|
//! | 0 | 0–31 | id of the thread in its recorder |
//! | 0 | 32–33 | 0 if the cell is free or being written, 1 if the thread lives, 2 if it has ended |
//! | 1 | 0–31 | id of the thread in the operating system |
//! | 1 | 32–63 | index of the shard to which it records |
//! | 2 | | time of the thread's first recording, nanoseconds since the epoch |
//! | 3 | | time at which the thread ended; 0 before |
//! | 4–7 | | the first 32 bytes of its name, filled with zeros |
//!
//! A thread takes a cell by a compare-exchange of word 0, which stores the thread's id with state 0. Then it stores the
//! other words, and last word 0 with state 1. Another thread can take the cell only after the first thread has ended.

use crate::layout::now::CELL_WORDS;
use crate::sync::{AtomicU64, Ordering, fence};

type Cell = [AtomicU64; CELL_WORDS];

const STATE_SHIFT: u32 = 32;
const LIVES: u64 = 1 << STATE_SHIFT;
const ENDED: u64 = 2 << STATE_SHIFT;
const STATE_MASK: u64 = 3 << STATE_SHIFT;
const NAME_BYTES: usize = 32;

/// Takes a cell for a thread that has just got its shard. Returns false if another thread has the cell.
pub(crate) fn begin(cell: &Cell, id: u32, os_id: u32, shard: u64, epoch_nanos: u64, name: &str) -> bool {
    let before = cell[0].load(Ordering::Relaxed);
    let is_free = before == 0 || before & STATE_MASK == ENDED || before == u64::from(id) | LIVES;
    // Acquire, pairs with the release of the thread that had the cell.
    if !is_free || cell[0].compare_exchange(before, id.into(), Ordering::Acquire, Ordering::Relaxed).is_err() {
        // A thread that is interrupted while it writes its own cell goes on with it.
        return before == u64::from(id);
    }
    // Pairs with the acquire fence in `read`, as in cells of spans.
    fence(Ordering::Release);
    cell[1].store(u64::from(os_id) | shard << 32, Ordering::Relaxed);
    cell[2].store(epoch_nanos, Ordering::Relaxed);
    cell[3].store(0, Ordering::Relaxed);
    let mut bytes = [0; NAME_BYTES];
    let cut = name.floor_char_boundary(NAME_BYTES);
    bytes[..cut].copy_from_slice(&name.as_bytes()[..cut]);
    for (word, bytes) in cell[4..].iter().zip(bytes.chunks_exact(8)) {
        word.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
    }
    // Release, pairs with the acquire in `read`.
    cell[0].store(u64::from(id) | LIVES, Ordering::Release);
    true
}

/// Notes that the thread has ended, if the cell is that of the thread.
pub(crate) fn end(cell: &Cell, id: u32, epoch_nanos: u64) {
    if cell[0].load(Ordering::Relaxed) == u64::from(id) | LIVES {
        cell[3].store(epoch_nanos, Ordering::Relaxed);
        cell[0].store(u64::from(id) | ENDED, Ordering::Release);
    }
}

/// A thread, as its cell shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadCell {
    /// The id of the thread in its recorder.
    pub id: u32,
    /// The id of the thread in its system.
    pub os_id: u32,
    /// The index of the shard to which it records.
    pub shard: u32,
    /// The time at which it first recorded, in nanoseconds since the epoch.
    pub first_epoch_nanos: u64,
    /// The time at which it has ended. `None` if it has not.
    pub ended_epoch_nanos: Option<u64>,
    /// The first 32 bytes of its name. Invalid UTF-8 is replaced.
    pub name: String,
}

/// Number of times that a cell is read before its changes are given up.
const TRIES: usize = 100;

/// Reads the words of a cell. Returns `None` if no thread has it, or if it stays half written: then its writer was
/// killed.
pub(super) fn read(cell: &Cell) -> Option<[u64; CELL_WORDS]> {
    (0..TRIES).find_map(|_| try_read(cell)).flatten()
}

/// Reads the cell. Returns `None` if it is being written, and `Some(None)` if it is free.
fn try_read(cell: &Cell) -> Option<Option<[u64; CELL_WORDS]>> {
    // Acquire, pairs with the release in `begin`.
    let word = cell[0].load(Ordering::Acquire);
    if word == 0 {
        return Some(None);
    }
    if word & STATE_MASK == 0 {
        return None;
    }
    let mut words: [u64; CELL_WORDS] = std::array::from_fn(|at| cell[at].load(Ordering::Relaxed));
    fence(Ordering::Acquire);
    // The thread may have ended meanwhile, but another one must not have taken the cell.
    words[0] = cell[0].load(Ordering::Relaxed);
    (words[0] as u32 == word as u32 && words[0] & STATE_MASK != 0).then_some(Some(words))
}

impl ThreadCell {
    /// Returns what the words of a cell mean.
    pub(super) fn of_words(words: &[u64; CELL_WORDS]) -> Self {
        let name: Vec<u8> = words[4..].iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Self {
            id: words[0] as u32,
            os_id: words[1] as u32,
            shard: (words[1] >> 32) as u32,
            first_epoch_nanos: words[2],
            ended_epoch_nanos: (words[0] & STATE_MASK == ENDED).then_some(words[3]),
            name: String::from_utf8_lossy(&name[..end]).into_owned(),
        }
    }
}
