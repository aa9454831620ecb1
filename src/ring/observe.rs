//! Observe: the readers' half of the protocol. Functions of this module only load from the ring.

use super::holes;
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use crate::layout::Descriptor;
use crate::layout::descriptor::WORD_SEQNO;
use crate::sync::{Ordering, fence};

/// Largest seqno. With one event each nanosecond, a ring reaches it after 292 years. A header that names a larger
/// seqno is damaged; readers then use this seqno instead. So sums of seqnos cannot overflow.
pub(crate) const SEQNO_MAX: u64 = i64::MAX as u64;

/// Outcome of reading one seqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Observation {
    /// The event, whole.
    Event(Descriptor),
    /// A seqno that is not committed yet: it is not allocated, or its writer has not finished.
    NotReady,
    /// A seqno whose slot a later lap has overwritten.
    Overrun,
    /// A seqno that was allocated and will never be committed.
    Hole,
}

/// Outcome of reading one slot.
pub(crate) enum Slot {
    /// The event, whole.
    Event(Descriptor),
    /// An event that was overwritten while it was read.
    Overrun,
    /// Another value in the slot's seqno word: another seqno, or 0 (the slot is unused, or a writer is inside it).
    Other(u64),
}

/// Reads the event `seqno` (at least 1). If it cannot be read, returns the reason.
#[inline(always)]
pub(crate) fn descriptor<M: RingMemory>(memory: &M, seqno: u64) -> Observation {
    match slot(memory, seqno) {
        Slot::Event(descriptor) => Observation::Event(descriptor),
        Slot::Overrun => Observation::Overrun,
        Slot::Other(seen) => absent(memory, seqno, seen),
    }
}

/// Reads the event `seqno` (at least 1) from its slot. If the slot holds another value, [`absent`] finds the reason.
#[inline(always)]
pub(crate) fn slot<M: RingMemory>(memory: &M, seqno: u64) -> Slot {
    let words = memory.descriptor(seqno.wrapping_sub(1));
    let word = &words[WORD_SEQNO];
    // Acquire, pairs with the release store of the commit.
    let seen = word.load(Ordering::Acquire);
    if seen != seqno {
        return Slot::Other(seen);
    }
    // These loads are relaxed. The second load of the seqno, below, shows whether all words belong to the event
    // `seqno`.
    let descriptor = M::load_descriptor(words);
    if !mutation::active(Mutation::MissingReaderFence) {
        // Pairs with the release fence in `claim`: if a later writer stored one of the words that we loaded before
        // this fence, the load of the seqno after this fence sees that writer's claim. An acquire load in place of the
        // fence would not be enough, because it does not order the earlier loads before itself.
        fence(Ordering::Acquire);
    }
    if word.load(reload_order()) == seqno { Slot::Event(descriptor) } else { Slot::Overrun }
}

/// Returns the ordering of the load by which a reader checks its copy. Relaxed is enough, because an acquire fence
/// comes between the copy and this load.
#[inline(always)]
fn reload_order() -> Ordering {
    if mutation::active(Mutation::MissingReaderFence) { Ordering::Acquire } else { Ordering::Relaxed }
}

/// Returns the reason why `seqno` is not in its slot. `seen` is the value that the slot holds instead.
pub(crate) fn absent<M: RingMemory>(memory: &M, seqno: u64, seen: u64) -> Observation {
    if seen > seqno {
        return Observation::Overrun;
    }
    // Relaxed: a stale value only makes the reader wait longer.
    let last = memory.control(ControlWord::LastSeqno).load(Ordering::Relaxed).min(SEQNO_MAX);
    if last < seqno {
        return Observation::NotReady;
    }
    if memory.has_holes() && holes::holds(memory, seqno) {
        return Observation::Hole;
    }
    // If the slot's next seqno has been handed out, the event is lost to readers: its writer has not committed it for
    // a whole lap.
    if last - seqno >= memory.geometry().descriptor_capacity() { Observation::Overrun } else { Observation::NotReady }
}

/// Copies the payload of `descriptor` into `out`, which must have the payload's size. Returns false if the payload has
/// expired. Then the bytes in `out` have no meaning.
#[inline(always)]
pub(crate) fn payload<M: RingMemory>(memory: &M, descriptor: &Descriptor, out: &mut [u8]) -> bool {
    load_before_check(memory, descriptor.payload_buf_offset, out);
    payload_is_valid(memory, descriptor)
}

/// Copies the bytes of the payload buffer from the unwrapped offset `offset` on into `out`. They may belong to several
/// payloads. Returns the start of the buffer window after the copy: a payload that begins at or after it is valid.
pub(crate) fn payload_bytes<M: RingMemory>(memory: &M, offset: u64, out: &mut [u8]) -> u64 {
    load_before_check(memory, offset, out);
    if mutation::active(Mutation::MissingWindowCheck) { 0 } else { window_start(memory) }
}

/// Copies payload bytes into `out`. The caller then checks by the buffer window that they have not expired.
#[inline(always)]
fn load_before_check<M: RingMemory>(memory: &M, offset: u64, out: &mut [u8]) {
    // No check is needed before the copy, because expired bytes are still mapped memory. The check after the copy
    // decides.
    memory.load_payload(offset, out);
    if !mutation::active(Mutation::MissingReaderFence) {
        // Pairs with the release fence in `window::move_past`: if a byte that we copied before this fence belongs to a
        // later payload, the load after this fence sees a window that has passed our payload.
        fence(Ordering::Acquire);
    }
}

/// Returns true if the payload has not been overwritten yet. A payload of 0 bytes cannot be overwritten.
#[inline(always)]
pub(crate) fn payload_is_valid<M: RingMemory>(memory: &M, descriptor: &Descriptor) -> bool {
    descriptor.payload_size == 0
        || mutation::active(Mutation::MissingWindowCheck)
        || window_start(memory) <= descriptor.payload_buf_offset
}

/// Returns the first payload offset that has not been overwritten.
#[inline(always)]
fn window_start<M: RingMemory>(memory: &M) -> u64 {
    memory.control(ControlWord::BufferWindowStart).load(reload_order())
}

/// Returns the last seqno that was handed out, or 0 if none was handed out yet.
#[inline]
pub(crate) fn last_seqno<M: RingMemory>(memory: &M) -> u64 {
    // Acquire, pairs with the release of the addition that handed the seqno out. So the caller sees all events that
    // the adding thread had committed before the addition. (An addition continues the release sequences of the
    // additions before it. So the same holds for the threads of all earlier seqnos.)
    memory.control(ControlWord::LastSeqno).load(Ordering::Acquire).min(SEQNO_MAX)
}

/// Returns the oldest seqno whose event can still be in a ring. `last` is the ring's last seqno.
#[inline]
pub(crate) fn oldest_seqno<M: RingMemory>(memory: &M, last: u64) -> u64 {
    last.saturating_sub(memory.geometry().descriptor_capacity()) + 1
}
