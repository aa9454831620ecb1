//! The hole table: seqnos that were handed out and will never be committed, for readers that would wait for them.
//!
//! The table is divided into sets of [`HOLE_WAYS`] entries, a cache line each; a seqno belongs to the set of its remainder
//! and may stand in any entry of it. A new hole replaces the oldest entry. So an entry only grows, and a hole is forgotten
//! early (its readers then wait until the ring has gone round) only if more than [`HOLE_WAYS`] writers stall for a whole
//! lap in slots of one remainder.

use super::memory::RingMemory;
use super::mutation::{self, Mutation};
use crate::layout::extension::{HOLE_ENTRIES, HOLE_WAYS};
use crate::sync::Ordering;

/// Indices of the entries in which `seqno` may stand.
fn entries(seqno: u64) -> impl Iterator<Item = u64> {
    let set = seqno % (HOLE_ENTRIES / HOLE_WAYS) as u64;
    (0..HOLE_WAYS as u64).map(move |way| set * HOLE_WAYS as u64 + way)
}

/// Publishes that `seqno` will never be committed.
pub(crate) fn publish<M: RingMemory>(memory: &M, seqno: u64) {
    if mutation::active(Mutation::MissingHole) {
        return;
    }
    // Each repetition means that another writer has put a hole into the same entry meanwhile, and nobody does so twice
    // for a seqno.
    loop {
        // Relaxed: the compare-exchange decides. An entry's value says all there is to say; nothing else comes with it.
        let oldest = entries(seqno).map(|index| (memory.hole(index).load(Ordering::Relaxed), index)).min();
        let Some((value, index)) = oldest.filter(|(value, _)| *value < seqno) else {
            // All are newer: we come so late that readers find the slot's next turn.
            return;
        };
        if memory.hole(index).compare_exchange(value, seqno, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Whether the table holds `seqno`.
pub(crate) fn holds<M: RingMemory>(memory: &M, seqno: u64) -> bool {
    // Relaxed: a stale value only delays the answer.
    entries(seqno).any(|index| memory.hole(index).load(Ordering::Relaxed) == seqno)
}
