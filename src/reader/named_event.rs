//! Finding the event that an extension word of the newest event names.

use crate::ring::memory::MappedMemory;
use crate::ring::observe::{self, Observation};

/// Number of the newest seqnos that are searched for a committed event.
const SEARCHED: u64 = 1 << 10;

/// Returns the seqno in extension word `index` of the newest committed event. Returns that event's own seqno if the
/// word names no earlier event, and `last + 1` if no committed event is found.
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
