//! Reserve, claim, place, fill, commit: the writing half of the protocol.

use super::active::ActiveLanes;
use super::chunk::{Chunks, Taker};
use super::holes;
use super::lane::{Bump, Lane, Lanes};
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::place::{RunSizes, padded};
use super::step::{self, Step};
use crate::layout::descriptor::{
    WORD_CONTENT_EXT, WORD_EPOCH_NANOS, WORD_PAYLOAD_OFFSET, WORD_SEQNO, WORD_TYPE_AND_SIZE, pack_type_and_size,
};
use crate::layout::limits::{DESCRIPTOR_BYTES, DESCRIPTOR_WORDS};
use crate::sync::{AtomicU64, Ordering, fence, fetch_add_then_fence};

/// How far ahead of the last seqno's descriptor a cache line is asked for: six slots.
const PREFETCH_BYTES: usize = 6 * DESCRIPTOR_BYTES as usize;
/// Instead of a seqno: none was claimed.
pub(super) const NO_SLOT: u64 = 0;

/// A ring that this process writes. What each event needs lies together.
#[repr(C)]
pub(crate) struct RingWriter<M> {
    capacity: u64,
    /// How far a run may lie behind the next payload byte for its lane to go on with it: much less than a turn.
    pub(super) stale_bytes: u64,
    pub(super) run_sizes: RunSizes,
    pub(super) memory: M,
    pub(super) chunks: Chunks,
    pub(super) lanes: Lanes,
    pub(super) active: ActiveLanes,
}

/// A claimed slot and placed payload bytes: the right to write them, until commit.
pub(crate) struct Claim {
    /// Sequence number. 0 if no slot could be had, because as many reservations are open as the ring has descriptors: the
    /// event is lost (each seqno that was tried counts as a refused claim), `placed` is false, committing does nothing.
    pub(crate) seqno: u64,
    /// Unwrapped offset of the payload.
    pub(crate) payload_offset: u64,
    /// How many one-off chunks, from `payload_offset` on, the commit must free; 0 for a place in the lane's run.
    pub(super) one_off_chunks: u64,
    /// Whether payload bytes were found; false leaves only an event without payload.
    pub(crate) placed: bool,
}

/// The ordinary claim: its payload, if any, lies in the run of the calling thread's lane.
pub(crate) struct SlotClaim<'r> {
    /// Sequence number.
    pub(crate) seqno: u64,
    /// Unwrapped offset of the payload.
    pub(crate) payload_offset: u64,
    words: &'r [AtomicU64; DESCRIPTOR_WORDS],
}

/// How far a reservation came that is not an ordinary one. Its lane says "inside".
pub(crate) struct Unfinished {
    /// What was taken from the lane's run.
    bump: Bump,
    /// The seqno whose slot was claimed, or [`NO_SLOT`]: none was, or none was tried.
    seqno: u64,
}

/// What a writer stores in a descriptor beside seqno and payload place.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    /// Event code.
    pub(crate) event_type: u16,
    /// Payload bytes.
    pub(crate) payload_bytes: u32,
    /// Time of recording.
    pub(crate) epoch_nanos: u64,
    /// Content extension.
    pub(crate) content_ext: [u64; 4],
}

impl<M: RingMemory> RingWriter<M> {
    /// Writes to `memory`, of which no other writer may exist.
    pub(crate) fn new(memory: M) -> Self {
        let geometry = *memory.geometry();
        Self {
            chunks: Chunks::new(&geometry),
            lanes: Lanes::new(),
            active: ActiveLanes::new(),
            capacity: geometry.descriptor_capacity(),
            stale_bytes: geometry.payload_buf_bytes() / 8,
            run_sizes: RunSizes::of(&geometry),
            memory,
        }
    }

    /// The memory.
    #[inline(always)]
    pub(crate) fn memory(&self) -> &M {
        &self.memory
    }

    /// The lanes.
    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Reserves an event without payload.
    pub(crate) fn reserve_empty(&self) -> Claim {
        let (seqno, payload_offset) = match self.reserve_empty_at_once() {
            Some(claim) => (claim.seqno, claim.payload_offset),
            None => (self.claim_another(), self.empty_payload_offset()),
        };
        Claim { seqno, payload_offset, one_off_chunks: 0, placed: seqno != NO_SLOT }
    }

    /// As [`Self::reserve_empty`] in the ordinary case; `None` if the slot was not to be had. End it with
    /// [`Self::commit_empty`].
    #[inline(always)]
    pub(crate) fn reserve_empty_at_once(&self) -> Option<SlotClaim<'_>> {
        let seqno = self.next_seqno();
        let words = self.claim(seqno)?;
        Some(SlotClaim { seqno, payload_offset: self.empty_payload_offset(), words })
    }

    /// Any offset not below the window will do for zero bytes.
    #[inline(always)]
    fn empty_payload_offset(&self) -> u64 {
        // Relaxed: see above.
        self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed)
    }

    /// Reserves an event with `payload_bytes` (more than 0, less than the overflow limit) bytes of payload. `lane` belongs
    /// to the calling thread; without one, the payload gets chunks of its own. End it with [`Self::commit`].
    pub(crate) fn reserve(&self, lane: Option<&Lane>, payload_bytes: u64) -> Claim {
        let Some(lane) = lane else {
            let seqno = self.next_seqno();
            let seqno = if self.claim(seqno).is_some() { seqno } else { self.claim_another() };
            return self.place_slow(None, seqno, payload_bytes);
        };
        match self.reserve_in_lane(lane, payload_bytes) {
            Ok(SlotClaim { seqno, payload_offset, .. }) => {
                Claim { seqno, payload_offset, one_off_chunks: 0, placed: true }
            }
            Err(unfinished) => self.resume(lane, unfinished, payload_bytes),
        }
    }

    /// As [`Self::reserve`] in the ordinary case, in few instructions; to be ended with [`Self::commit_in_lane`]. In any
    /// other case, go on with [`Self::resume`].
    #[inline(always)]
    pub(crate) fn reserve_in_lane(&self, lane: &Lane, payload_bytes: u64) -> Result<SlotClaim<'_>, Unfinished> {
        let bump = lane.enter_and_bump(padded(payload_bytes));
        step::at(Step::Entered);
        let Bump::Fits { offset: payload_offset, base } = bump else {
            return Err(Unfinished { bump, seqno: NO_SLOT });
        };
        // The full fence between "inside" and the look at the lane's run is in here.
        let seqno = self.next_seqno();
        let Some(words) = self.claim(seqno) else { return Err(Unfinished { bump, seqno: NO_SLOT }) };
        if !self.may_fill(lane, base) {
            return Err(Unfinished { bump, seqno });
        }
        Ok(SlotClaim { seqno, payload_offset, words })
    }

    /// Goes on where [`Self::reserve_in_lane`] could not.
    #[cold]
    #[inline(never)]
    pub(crate) fn resume(&self, lane: &Lane, unfinished: Unfinished, payload_bytes: u64) -> Claim {
        let Unfinished { bump, seqno } = unfinished;
        let seqno = if seqno == NO_SLOT { self.claim_another() } else { seqno };
        match bump {
            // Only the slot was not to be had.
            Bump::Fits { offset, base } if seqno != NO_SLOT && self.may_fill(lane, base) => {
                return Claim { seqno, payload_offset: offset, one_off_chunks: 0, placed: true };
            }
            Bump::Fits { offset, .. } => lane.withdraw(offset),
            Bump::DoesNotFit { base } => lane.undo_bump(base, padded(payload_bytes)),
        }
        self.place_slow(Some(lane), seqno, payload_bytes)
    }

    /// Whether the run at `base`, in which the lane took bytes before the fence, may be written to.
    #[inline(always)]
    fn may_fill(&self, lane: &Lane, base: u64) -> bool {
        self.is_near(base) && lane.is_filling(base)
    }

    /// Whether the run at `base` lies close to the next payload byte. If not, its chunks may have been taken from the lane
    /// (and would expire soon after they were written). To be asked after the fence that follows "inside".
    #[inline(always)]
    pub(super) fn is_near(&self, base: u64) -> bool {
        // Relaxed: the fence after "inside" decides whether a thief's allocation is seen here; see `Chunks::take`.
        let next = self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed);
        next.wrapping_sub(base) <= self.stale_bytes || mutation::active(Mutation::MissingStaleCheck)
    }

    /// Allocates seqnos until one's slot can be claimed; [`NO_SLOT`] after a whole lap of them, or if the file was cut.
    ///
    /// A seqno is given up only if another writer is stalled inside its slot or has lapped us. A stalled one is inside one
    /// slot for each reservation it has open, so that within a lap there is a slot for us unless all are open.
    #[cold]
    #[inline(never)]
    fn claim_another(&self) -> u64 {
        (0..self.capacity)
            // Of a file that was cut, the slots are zeros for ever.
            .take_while(|tried| *tried == 0 || !self.memory.is_cut())
            .map(|_| self.next_seqno())
            .find(|seqno| self.claim(*seqno).is_some())
            .unwrap_or(NO_SLOT)
    }

    /// Allocates a seqno.
    #[inline(always)]
    fn next_seqno(&self) -> u64 {
        let last_seqno = self.memory.control(ControlWord::LastSeqno);
        let seqno = if mutation::active(Mutation::MissingLaneFence) {
            last_seqno.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            fetch_add_then_fence(last_seqno, 1) + 1
        };
        step::at(Step::Reserved);
        seqno
    }

    /// Takes the slot of `seqno` from the event of an earlier lap: gives its words, or has given the seqno up.
    #[inline(always)]
    fn claim(&self, seqno: u64) -> Option<&[AtomicU64; DESCRIPTOR_WORDS]> {
        let words = self.memory.descriptor(seqno.wrapping_sub(1));
        // Before the look at this line, so that the lines to come travel while it waits.
        self.memory.prefetch_after::<PREFETCH_BYTES>(words);
        let word = &words[WORD_SEQNO];
        // Relaxed: the compare-exchange decides.
        let seen = word.load(Ordering::Relaxed);
        step::at(Step::SlotSeen);
        if mutation::active(Mutation::MissingClaim) {
            word.store(0, Ordering::Release);
            fence(Ordering::Release);
            step::at(Step::Claimed);
            return Some(words);
        }
        if seen == 0 {
            // First lap: 0 means unused, and only this seqno of the slot may claim an unused slot. Later: somebody is inside.
            if seqno > self.capacity {
                self.give_up(seqno);
                return None;
            }
        } else {
            // Acquire: the previous occupant's stores are behind its commit, which we have read; so ours are later than
            // its in the modification order of every word of the slot.
            let order = match () {
                () if mutation::active(Mutation::RelaxedClaim) => Ordering::Relaxed,
                () if mutation::active(Mutation::MissingWriterFence) => Ordering::AcqRel,
                () => Ordering::Acquire,
            };
            // A seqno like ours or a later one: we have been lapped.
            if seen >= seqno || word.compare_exchange(seen, 0, order, Ordering::Relaxed).is_err() {
                self.give_up(seqno);
                return None;
            }
        }
        if !mutation::active(Mutation::MissingWriterFence) {
            // Pairs with the acquire fence in `observe`: whoever sees one of the words that we store next, sees the 0 (or a
            // later seqno) when it looks at the seqno again.
            fence(Ordering::Release);
        }
        step::at(Step::Claimed);
        Some(words)
    }

    /// Publishes that `seqno` will never be committed, and counts it.
    #[cold]
    #[inline(never)]
    fn give_up(&self, seqno: u64) {
        let seen = self.memory.descriptor(seqno.wrapping_sub(1))[WORD_SEQNO].load(Ordering::Relaxed);
        step::at(Step::Refused);
        // A writer stalls inside the slot: readers would wait for it. Or the slot's next turn has begun: readers will see
        // that in the slot, but only once it has been committed.
        holes::publish(&self.memory, seqno);
        step::at(Step::HolePublished);
        let counter = if seen == 0 { ControlWord::RefusedClaims } else { ControlWord::LappedClaims };
        // Relaxed: a count.
        self.memory.control(counter).fetch_add(1, Ordering::Relaxed);
    }

    /// Copies `bytes` into the claim's payload, `at` bytes from its start.
    #[inline(always)]
    pub(crate) fn fill(&self, claim: &Claim, at: u64, bytes: &[u8]) {
        self.memory.store_payload(claim.payload_offset + at, bytes);
        step::at(Step::Filled);
    }

    /// As [`Self::fill`] for the ordinary claim.
    #[inline(always)]
    pub(crate) fn fill_in_lane(&self, claim: &SlotClaim<'_>, at: u64, bytes: &[u8]) {
        self.memory.store_payload(claim.payload_offset + at, bytes);
        step::at(Step::Filled);
    }

    /// As [`Self::commit`] for the ordinary claim.
    #[inline(always)]
    pub(crate) fn commit_in_lane(&self, lane: &Lane, claim: SlotClaim<'_>, fields: &Fields) {
        publish(claim.words, claim.seqno, claim.payload_offset, fields);
        if !lane.leave_outermost() {
            self.leave_nested(lane, Some(claim.payload_offset));
        }
        step::at(Step::Left);
    }

    /// As [`Self::commit`] for an event without payload.
    #[inline(always)]
    pub(crate) fn commit_empty(&self, claim: SlotClaim<'_>, fields: &Fields) {
        publish(claim.words, claim.seqno, claim.payload_offset, fields);
        step::at(Step::Left);
    }

    /// Stores all words of the descriptor and publishes the event. `lane` is the one it was reserved with.
    #[inline(always)]
    pub(crate) fn commit(&self, lane: Option<&Lane>, claim: Claim, fields: &Fields) {
        if claim.seqno != NO_SLOT {
            let words = self.memory.descriptor(claim.seqno.wrapping_sub(1));
            publish(words, claim.seqno, claim.payload_offset, fields);
        }
        self.leave(lane, &claim);
    }

    /// Ends the claim's hold on payload memory.
    #[inline(always)]
    fn leave(&self, lane: Option<&Lane>, claim: &Claim) {
        for i in 0..claim.one_off_chunks {
            self.chunks.free(claim.payload_offset + i * self.run_sizes.chunk_bytes, Taker::OneOff(None));
            step::at(Step::ChunkFreed);
        }
        if let Some(lane) = lane
            && !lane.leave_outermost()
        {
            self.leave_nested(lane, (claim.placed && claim.one_off_chunks == 0).then_some(claim.payload_offset));
        }
        step::at(Step::Left);
    }
}

/// Stores all words of the descriptor, the seqno last.
#[inline(always)]
fn publish(words: &[AtomicU64; DESCRIPTOR_WORDS], seqno: u64, payload_offset: u64, fields: &Fields) {
    // Relaxed: ordered by the fence after the claim on one side, by the release store below on the other.
    let type_and_size = pack_type_and_size(fields.event_type, fields.payload_bytes);
    if mutation::active(Mutation::EarlyCommit) {
        words[WORD_SEQNO].store(seqno, Ordering::Release);
    }
    words[WORD_TYPE_AND_SIZE].store(type_and_size, Ordering::Relaxed);
    step::at(Step::HalfDescribed);
    words[WORD_EPOCH_NANOS].store(fields.epoch_nanos, Ordering::Relaxed);
    words[WORD_PAYLOAD_OFFSET].store(payload_offset, Ordering::Relaxed);
    for (word, ext) in words[WORD_CONTENT_EXT..].iter().zip(fields.content_ext) {
        word.store(ext, Ordering::Relaxed);
    }
    let order = if mutation::active(Mutation::RelaxedCommit) { Ordering::Relaxed } else { Ordering::Release };
    step::at(Step::Described);
    // Release: whoever reads this seqno (acquire) has the words and the payload behind it.
    words[WORD_SEQNO].store(seqno, order);
    step::at(Step::Committed);
}
