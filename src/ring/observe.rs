//! Observing: the reading half of the protocol. Nothing here stores.

use super::holes;
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use crate::layout::Descriptor;
use crate::layout::descriptor::WORD_SEQNO;
use crate::sync::{Ordering, fence};

/// No ring comes to this seqno: at an event each nanosecond it takes 292 years. A header that names a later one is
/// damaged, and is read as if it named this one, so that sums of seqnos cannot overflow.
pub(crate) const SEQNO_MAX: u64 = i64::MAX as u64;

/// What a look at one seqno gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// The event, whole.
    Event(Descriptor),
    /// Not committed yet: not allocated, or a writer is inside.
    NotReady,
    /// Overwritten by a later lap.
    Lapped,
    /// Allocated, and will never be committed.
    Hole,
}

/// What a look at a slot gives.
pub(crate) enum Slot {
    /// The event, whole.
    Event(Descriptor),
    /// It was there and has been overwritten meanwhile.
    Lapped,
    /// The slot holds this instead: 0 while a writer is inside, or another seqno.
    Other(u64),
}

/// Looks at `seqno` (at least 1).
#[inline(always)]
pub(crate) fn descriptor<M: RingMemory>(memory: &M, seqno: u64) -> Observation {
    match slot(memory, seqno) {
        Slot::Event(descriptor) => Observation::Event(descriptor),
        Slot::Lapped => Observation::Lapped,
        Slot::Other(seen) => absent(memory, seqno, seen),
    }
}

/// Looks for `seqno` (at least 1) in its slot and nowhere else.
#[inline(always)]
pub(crate) fn slot<M: RingMemory>(memory: &M, seqno: u64) -> Slot {
    let words = memory.descriptor(seqno.wrapping_sub(1));
    let word = &words[WORD_SEQNO];
    // Acquire: pairs with the release store of the commit.
    let seen = word.load(Ordering::Acquire);
    if seen != seqno {
        return Slot::Other(seen);
    }
    // Relaxed loads: validated below.
    let descriptor = M::load_descriptor(words);
    if !mutation::active(Mutation::MissingReaderFence) {
        // Pairs with the release fence after the claim: if one of the words above is a later occupant's, the load below
        // sees its claim. An acquire load alone would not keep the earlier loads above it.
        fence(Ordering::Acquire);
    }
    if word.load(reload_order()) == seqno { Slot::Event(descriptor) } else { Slot::Lapped }
}

/// The re-load's order: relaxed, for the fence before it does the work.
#[inline(always)]
fn reload_order() -> Ordering {
    if mutation::active(Mutation::MissingReaderFence) { Ordering::Acquire } else { Ordering::Relaxed }
}

/// Why `seqno` is not in its slot, which holds `seen`.
pub(crate) fn absent<M: RingMemory>(memory: &M, seqno: u64, seen: u64) -> Observation {
    if seen > seqno {
        return Observation::Lapped;
    }
    // Relaxed: a stale value only delays the answer.
    let last = memory.control(ControlWord::LastSeqno).load(Ordering::Relaxed).min(SEQNO_MAX);
    if last < seqno {
        return Observation::NotReady;
    }
    if memory.has_holes() && holes::holds(memory, seqno) {
        return Observation::Hole;
    }
    // The slot's next turn has been handed out. Whatever happens to this seqno now, it is a lap late.
    if last - seqno >= memory.geometry().descriptor_capacity() { Observation::Lapped } else { Observation::NotReady }
}

/// Copies the payload of `descriptor` into `out`, which has its `payload_size` bytes; false if it has expired, in which
/// case `out` holds nothing of meaning.
#[inline(always)]
pub(crate) fn payload<M: RingMemory>(memory: &M, descriptor: &Descriptor, out: &mut [u8]) -> bool {
    // No check before the copy: expired bytes are still memory, and the check behind decides.
    memory.load_payload(descriptor.payload_buf_offset, out);
    if !mutation::active(Mutation::MissingReaderFence) {
        // Pairs with the release fence in `window::move_past`: if a byte above is a later payload's, the load below
        // sees a window that has passed ours.
        fence(Ordering::Acquire);
    }
    payload_is_valid(memory, descriptor)
}

/// Whether the payload has not been overwritten yet. Where there are no bytes there is nothing to overwrite.
#[inline(always)]
pub(crate) fn payload_is_valid<M: RingMemory>(memory: &M, descriptor: &Descriptor) -> bool {
    descriptor.payload_size == 0
        || mutation::active(Mutation::MissingWindowCheck)
        || memory.control(ControlWord::BufferWindowStart).load(reload_order()) <= descriptor.payload_buf_offset
}

/// The last seqno handed out, 0 for none.
#[inline]
pub(crate) fn last_seqno<M: RingMemory>(memory: &M) -> u64 {
    // Acquire: with it come the events that its thread had committed before it was handed out. (An addition continues
    // the release sequence of the one before, so those of earlier seqnos' threads come too.)
    memory.control(ControlWord::LastSeqno).load(Ordering::Acquire).min(SEQNO_MAX)
}

/// The oldest seqno that can still be in a ring whose last seqno is `last`.
#[inline]
pub(crate) fn oldest_seqno<M: RingMemory>(memory: &M, last: u64) -> u64 {
    last.saturating_sub(memory.geometry().descriptor_capacity()) + 1
}
