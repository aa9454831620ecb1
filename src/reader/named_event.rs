//! Finding an event by its seqno, which the newest event has in one of its extension words.

use crate::ring::memory::MappedMemory;
use crate::ring::observe::{self, Observation};

/// The number of seqnos that are searched for a committed event, from the newest one backwards.
const SEARCHED: u64 = 1 << 10;

/// Finds the newest committed event, and returns the seqno in its extension word `index`. If this seqno is 0 or larger
/// than the newest event's own seqno, returns the newest event's own seqno. If none of the searched seqnos has a
/// committed event, returns `last + 1`.
pub(super) fn seqno_in_word(memory: &MappedMemory, last: u64, index: usize) -> u64 {
    let newest = (0..SEARCHED).map_while(|back| last.checked_sub(back).filter(|seqno| *seqno > 0)).find_map(|seqno| {
        match observe::descriptor(memory, seqno) {
            Observation::Event(descriptor) => Some(descriptor),
            _ => None,
        }
    });
    let Some(newest) = newest else { return last.saturating_add(1) };
    let named = newest.content_ext.get(index).filter(|seqno| (1..=newest.seqno).contains(seqno));
    *named.unwrap_or(&newest.seqno)
}
