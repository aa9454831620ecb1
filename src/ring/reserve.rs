//! Reserve: the step that gives an event its slot and its payload bytes.
//!
//! `try_reserve` and `try_reserve_empty` are the inlined fast paths. They handle only the common case: the slot is
//! free, and the payload fits into the run of chunks of the thread's payload cursor. The other functions handle every
//! case.

use super::allocation::padded;
use super::claim::{Claim, ClaimedSlot, PayloadMemory};
use super::memory::RingMemory;
use super::payload::cursor::{Bump, PayloadCursor};
use super::step::{self, Step};
use super::writer::RingWriter;

/// A reservation that the fast path began and could not finish. Its payload cursor is marked "inside".
pub(crate) struct Unfinished {
    /// Outcome of the attempt to take bytes from the cursor's run.
    bump: Bump,
    /// The seqno of the claimed slot, or 0 if no slot has been claimed. (With an `Option<ClaimedSlot>` the fast path
    /// would store two words for every event.)
    claimed_seqno: u64,
}

impl<M: RingMemory> RingWriter<M> {
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
}
