//! Finding the start of a block in a ring of execution events.

use crate::layout::header::CONTENT_TYPE_EXEC;
use crate::ring::memory::MappedMemory;
use crate::ring::observe::{self, Observation};

/// How many of the newest seqnos are searched for one that is committed.
const SEARCHED: u64 = 1 << 10;
/// Index of the flow tag that holds the seqno of BLOCK_START.
const BLOCK_SEQNO: usize = 0;

/// The seqno of the BLOCK_START to which the newest committed event belongs; its own seqno if it belongs to none; `last + 1`
/// if there is none.
pub(super) fn start_of_current_block(memory: &MappedMemory, last: u64) -> u64 {
    let newest = (0..SEARCHED).map_while(|back| last.checked_sub(back).filter(|seqno| *seqno > 0)).find_map(|seqno| {
        match observe::descriptor(memory, seqno) {
            Observation::Event(descriptor) => Some(descriptor),
            _ => None,
        }
    });
    let Some(newest) = newest else { return last.saturating_add(1) };
    let tag = newest.content_ext[BLOCK_SEQNO];
    let is_exec = super::info::content_type(memory) == CONTENT_TYPE_EXEC;
    if is_exec && tag != 0 && tag <= newest.seqno { tag } else { newest.seqno }
}
