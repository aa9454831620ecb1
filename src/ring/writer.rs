//! Reserve: the step that gives an event its slot and its payload bytes.
//!
//! `try_reserve` and `try_reserve_empty` are the fast paths, and are inlined where an event is recorded. They handle
//! only the common case: the slot is free, and the payload fits into the run of chunks that the thread's payload
//! cursor fills. The other functions handle every case.

use super::active::ActiveCursors;
use super::chunk::Chunks;
use super::claim::{Claim, ClaimedSlot, PayloadMemory};
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::payload_allocation::padded;
use super::payload_cursor::{Bump, PayloadCursor};
use super::payload_cursors::PayloadCursors;
use super::run_sizes::RunSizes;
use super::step::{self, Step};
use crate::sync::Ordering;

/// A ring that this process writes. The fields that are needed to record an event lie together.
#[repr(C)]
pub(crate) struct RingWriter<M> {
    pub(super) capacity: u64,
    /// Largest distance in bytes between the base of a *near* run of chunks and the next payload byte. It is an eighth
    /// of the buffer. A payload cursor stops filling a run that is no longer near.
    pub(super) stale_bytes: u64,
    pub(super) run_sizes: RunSizes,
    pub(super) memory: M,
    pub(super) chunks: Chunks,
    pub(super) cursors: PayloadCursors,
    pub(super) active: ActiveCursors,
}

/// A reservation that the fast path began and could not finish. Its payload cursor is marked "inside".
pub(crate) struct Unfinished {
    /// Outcome of the attempt to take bytes from the cursor's run.
    bump: Bump,
    /// The seqno of the claimed slot, or 0 if no slot has been claimed. (With an `Option<ClaimedSlot>` the fast path
    /// would store two words for every event.)
    claimed_seqno: u64,
}

impl<M: RingMemory> RingWriter<M> {
    /// Creates a writer of the ring in `memory`. The ring must have no other writer.
    pub(crate) fn new(memory: M) -> Self {
        let geometry = *memory.geometry();
        Self {
            chunks: Chunks::new(&geometry),
            cursors: PayloadCursors::new(),
            active: ActiveCursors::new(),
            capacity: geometry.descriptor_capacity(),
            stale_bytes: geometry.payload_buf_bytes() / 8,
            run_sizes: RunSizes::new(&geometry),
            memory,
        }
    }

    /// Returns the memory.
    #[inline(always)]
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// Returns the payload cursors.
    pub(crate) fn cursors(&self) -> &PayloadCursors {
        &self.cursors
    }

    /// Reserves an event without payload. No payload cursor takes part, so commit the claim without one.
    pub(crate) fn reserve_empty(&self) -> Claim<'_> {
        match self.try_claim_slot().or_else(|| self.claim_slot_slow()) {
            Some(slot) => slot.with_payload(self.empty_payload_offset(), PayloadMemory::Run),
            None => Claim::lost(),
        }
    }

    /// Reserves an event without payload, if the next slot is free. Otherwise returns `None`. The caller must then
    /// call [`Self::reserve_empty`].
    #[inline(always)]
    pub(crate) fn try_reserve_empty(&self) -> Option<Claim<'_>> {
        let slot = self.try_claim_slot()?;
        Some(slot.with_payload(self.empty_payload_offset(), PayloadMemory::Run))
    }

    /// Returns an offset for a payload of 0 bytes. Any offset that is not before the buffer window will do.
    #[inline(always)]
    pub(super) fn empty_payload_offset(&self) -> u64 {
        // Relaxed: no payload bytes depend on the offset.
        self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed)
    }

    /// Reserves an event with `payload_bytes` bytes of payload: more than 0 bytes, and fewer than the overflow limit.
    ///
    /// `cursor` is the payload cursor of the calling thread. If it is `None`, the payload gets chunks of its own.
    pub(crate) fn reserve(&self, cursor: Option<&PayloadCursor>, payload_bytes: u64) -> Claim<'_> {
        match cursor {
            Some(cursor) => match self.try_reserve(cursor, payload_bytes) {
                Ok(claim) => claim,
                Err(unfinished) => self.reserve_slow(cursor, unfinished, payload_bytes),
            },
            None => match self.try_claim_slot().or_else(|| self.claim_slot_slow()) {
                Some(slot) => self.allocate_for(slot, None, payload_bytes),
                None => Claim::lost(),
            },
        }
    }

    /// Reserves like [`Self::reserve`], if the payload fits into the run of chunks that the cursor fills and the next
    /// slot is free. Otherwise returns the unfinished reservation. The caller must then call [`Self::reserve_slow`].
    #[inline(always)]
    pub(crate) fn try_reserve(&self, cursor: &PayloadCursor, payload_bytes: u64) -> Result<Claim<'_>, Unfinished> {
        let bump = cursor.enter_and_bump(padded(payload_bytes));
        step::at(Step::Entered);
        let Bump::Fits { offset, base } = bump else {
            return Err(Unfinished { bump, claimed_seqno: 0 });
        };
        // This call claims the slot, and also executes a full fence. The fence must come after the mark "inside" (set
        // by `enter_and_bump`) and before the check `may_fill`.
        let Some(slot) = self.try_claim_slot() else { return Err(Unfinished { bump, claimed_seqno: 0 }) };
        if !self.may_fill(cursor, base) {
            return Err(Unfinished { bump, claimed_seqno: slot.seqno });
        }
        Ok(slot.with_payload(offset, PayloadMemory::Run))
    }

    /// Finishes the reservation that [`Self::try_reserve`] began.
    #[cold]
    #[inline(never)]
    pub(crate) fn reserve_slow<'r>(
        &'r self,
        cursor: &PayloadCursor,
        unfinished: Unfinished,
        payload_bytes: u64,
    ) -> Claim<'r> {
        let Unfinished { bump, claimed_seqno } = unfinished;
        let mut slot = self.claimed_slot(claimed_seqno).or_else(|| self.claim_slot_slow());
        match bump {
            Bump::Fits { offset, base } => {
                // The payload fits into the run of chunks. If a slot has been claimed by now and `may_fill` returns
                // true, the reservation is complete.
                if let Some(slot) = slot.take_if(|_| self.may_fill(cursor, base)) {
                    return slot.with_payload(offset, PayloadMemory::Run);
                }
                cursor.withdraw(offset);
            }
            Bump::DoesNotFit { base } => cursor.undo_bump(base, padded(payload_bytes)),
        }
        match slot {
            Some(slot) => self.allocate_for(slot, Some(cursor), payload_bytes),
            None => Claim::lost(),
        }
    }

    /// Allocates payload memory for the event of a claimed slot.
    #[cold]
    #[inline(never)]
    fn allocate_for<'r>(
        &'r self,
        slot: ClaimedSlot<'r>,
        cursor: Option<&PayloadCursor>,
        payload_bytes: u64,
    ) -> Claim<'r> {
        let (payload_offset, memory) = self.allocate_slow(cursor, padded(payload_bytes));
        slot.with_payload(payload_offset, memory)
    }

    /// Returns true if the cursor may write to the bytes that it has taken from the run of chunks at `base`. Two
    /// things must hold: no other thread can have taken the run's chunks, and no signal handler has changed runs.
    /// Call this after the fence that follows the mark "inside".
    #[inline(always)]
    fn may_fill(&self, cursor: &PayloadCursor, base: u64) -> bool {
        self.is_near(base) && cursor.is_filling(base)
    }

    /// Returns true if the run of chunks at `base` is near: at most `stale_bytes` bytes have been allocated since the
    /// run was taken. If the run is not near, other threads may have taken its chunks from the cursor.
    ///
    /// Call this after the fence that follows the mark "inside".
    #[inline(always)]
    pub(super) fn is_near(&self, base: u64) -> bool {
        // Relaxed: the fence after the mark "inside" decides. Either this load sees the allocation of a thread that
        // wants the run's chunks, or that thread sees the mark. See `Chunks::is_abandoned`.
        let next = self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed);
        next.wrapping_sub(base) <= self.stale_bytes || mutation::active(Mutation::MissingStaleCheck)
    }
}
