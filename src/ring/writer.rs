//! Reserve, claim, place, fill, commit: the writing half of the protocol.

use super::chunk::{Chunks, Taker};
use super::holes;
use super::lane::{Lane, Lanes};
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::window;
use crate::layout::descriptor::{
    WORD_CONTENT_EXT, WORD_EPOCH_NANOS, WORD_PAYLOAD_OFFSET, WORD_SEQNO, WORD_TYPE_AND_SIZE, pack_type_and_size,
};
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::sync::{Ordering, fence, fetch_add_then_fence};

/// How far ahead of the last seqno a descriptor's cache line is asked for.
const PREFETCH_SLOTS: u64 = 6;
/// Instead of a seqno: none was claimed.
const NO_SLOT: u64 = 0;

/// A ring that this process writes.
pub(crate) struct RingWriter<M> {
    memory: M,
    chunks: Chunks,
    lanes: Lanes,
    capacity: u64,
    stale_bytes: u64,
}

/// A claimed slot and placed payload bytes: the right to write them, until commit.
pub(crate) struct Claim {
    /// Sequence number. 0 if no slot could be had, because as many reservations are open as the ring has descriptors: the
    /// event is lost (each seqno that was tried counts as a refused claim), `placed` is false, committing does nothing.
    pub(crate) seqno: u64,
    /// Unwrapped offset of the payload.
    pub(crate) payload_offset: u64,
    /// How many one-off chunks, from `payload_offset` on, the commit must free; 0 for a place in the lane's chunk.
    one_off_chunks: u64,
    /// Whether payload bytes were found; false leaves only an event without payload.
    pub(crate) placed: bool,
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
            capacity: geometry.descriptor_capacity(),
            stale_bytes: geometry.payload_buf_bytes() / 8,
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
    #[inline(always)]
    pub(crate) fn reserve_empty(&self) -> Claim {
        let seqno = self.claim_next();
        // Relaxed: any offset not below the window will do for zero bytes.
        let payload_offset = self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed);
        Claim { seqno, payload_offset, one_off_chunks: 0, placed: seqno != NO_SLOT }
    }

    /// Reserves an event with `payload_bytes` (more than 0, less than the overflow limit) bytes of payload. `lane` belongs
    /// to the calling thread; without one, the payload gets chunks of its own. End it with [`Self::commit`].
    #[inline(always)]
    pub(crate) fn reserve(&self, lane: Option<&Lane>, payload_bytes: u64) -> Claim {
        if let Some(lane) = lane {
            lane.enter();
        }
        // The full fence between "inside" and the look at the lane's chunk is in here.
        let seqno = self.claim_next();
        if seqno == NO_SLOT {
            return Claim { seqno, payload_offset: 0, one_off_chunks: 0, placed: false };
        }
        let rounded = payload_bytes.next_multiple_of(PAYLOAD_ALIGN);
        let (payload_offset, one_off_chunks, placed) = self.place(lane, rounded);
        Claim { seqno, payload_offset, one_off_chunks, placed }
    }

    /// Allocates a seqno and claims its slot.
    #[inline(always)]
    fn claim_next(&self) -> u64 {
        let seqno = self.next_seqno();
        if self.claim(seqno) { seqno } else { self.claim_another() }
    }

    /// Allocates seqnos until one's slot can be claimed; [`NO_SLOT`] after a whole lap of them.
    ///
    /// A seqno is given up only if another writer is stalled inside its slot or has lapped us. A stalled one is inside one
    /// slot for each reservation it has open, so that within a lap there is a slot for us unless all are open.
    #[cold]
    #[inline(never)]
    fn claim_another(&self) -> u64 {
        (0..self.capacity).map(|_| self.next_seqno()).find(|seqno| self.claim(*seqno)).unwrap_or(NO_SLOT)
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
        // Before the claim looks at its own line, so that the lines to come travel while it waits.
        self.memory.prefetch_slot(seqno + PREFETCH_SLOTS);
        seqno
    }

    /// Takes the slot of `seqno` from the event of an earlier lap.
    #[inline(always)]
    fn claim(&self, seqno: u64) -> bool {
        let word = self.memory.descriptor_word(seqno.wrapping_sub(1), WORD_SEQNO);
        // Relaxed: the compare-exchange decides.
        let seen = word.load(Ordering::Relaxed);
        if mutation::active(Mutation::MissingClaim) {
            word.store(0, Ordering::Release);
            fence(Ordering::Release);
            return true;
        }
        let claimed = if seqno <= self.capacity {
            // First lap: 0 means unused, and only this seqno of the slot may claim an unused slot.
            seen == 0
        } else {
            // Acquire: the previous occupant's stores are behind its commit, which we have read; so ours are later than
            // its in the modification order of every word of the slot.
            let order = match () {
                () if mutation::active(Mutation::RelaxedClaim) => Ordering::Relaxed,
                () if mutation::active(Mutation::MissingWriterFence) => Ordering::AcqRel,
                () => Ordering::Acquire,
            };
            seen != 0 && seen < seqno && word.compare_exchange(seen, 0, order, Ordering::Relaxed).is_ok()
        };
        if !claimed {
            self.give_up(seqno, word.load(Ordering::Relaxed));
            return false;
        }
        if !mutation::active(Mutation::MissingWriterFence) {
            // Pairs with the acquire fence in `observe`: whoever sees one of the words that we store next, sees the 0 (or a
            // later seqno) when it looks at the seqno again.
            fence(Ordering::Release);
        }
        true
    }

    /// Publishes that `seqno` will never be committed, and counts it. `seen` is what its slot holds.
    #[cold]
    #[inline(never)]
    fn give_up(&self, seqno: u64, seen: u64) {
        // A writer stalls inside the slot: readers would wait for it. Or the slot's next turn has begun: readers will see
        // that in the slot, but only once it has been committed.
        holes::publish(&self.memory, seqno);
        let counter = if seen == 0 { ControlWord::RefusedClaims } else { ControlWord::LappedClaims };
        // Relaxed: a count.
        self.memory.control(counter).fetch_add(1, Ordering::Relaxed);
    }

    /// Finds `rounded` bytes: (offset, one-off chunks, found).
    #[inline(always)]
    fn place(&self, lane: Option<&Lane>, rounded: u64) -> (u64, u64, bool) {
        let chunk_bytes = self.chunks.chunk_bytes();
        if let Some(lane) = lane
            && rounded <= chunk_bytes / 2
        {
            // A chunk that lies far behind would expire soon after it is written: leave it.
            // Relaxed: a heuristic; expiry itself is decided by the window.
            let next = self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed);
            let fresh = |base: u64| next.wrapping_sub(base) <= self.stale_bytes;
            if let Some(offset) = lane.bump(rounded, chunk_bytes, fresh) {
                return (offset, 0, true);
            }
            if let Some(offset) = self.refill(lane, rounded) {
                return (offset, 0, true);
            }
        }
        self.place_one_off(lane, rounded)
    }

    /// Gives `lane` a new chunk and takes `rounded` bytes of it.
    #[cold]
    #[inline(never)]
    fn refill(&self, lane: &Lane, rounded: u64) -> Option<u64> {
        if !lane.begin_placing() {
            return None;
        }
        if let Some((old, open)) = lane.let_go() {
            self.chunks.let_go(old, open, lane);
        }
        let base = self.take_run(1, Taker::Lane(lane));
        if let Some(base) = base {
            lane.attach(base, rounded);
        }
        lane.end_placing();
        base
    }

    /// Places a large payload, or one of a thread without a lane, in chunks of its own.
    #[cold]
    #[inline(never)]
    fn place_one_off(&self, lane: Option<&Lane>, rounded: u64) -> (u64, u64, bool) {
        let chunks = rounded.div_ceil(self.chunks.chunk_bytes());
        match self.take_run(chunks, Taker::OneOff(lane)) {
            Some(base) => (base, chunks, true),
            None => (self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed), 0, false),
        }
    }

    /// Allocates `count` chunks in a row and takes them all, trying further on where a stalled writer is in the way.
    /// `None` after about two turns of the buffer.
    fn take_run(&self, count: u64, taker: Taker<'_>) -> Option<u64> {
        let chunk_bytes = self.chunks.chunk_bytes();
        let run_bytes = count * chunk_bytes;
        let next = self.memory.control(ControlWord::NextPayloadByte);
        let tries = 2 * self.memory.geometry().payload_buf_bytes() / run_bytes + 2;
        for _ in 0..tries {
            // Relaxed: unique by atomicity; the owner words order everything else.
            let first = next.fetch_add(run_bytes, Ordering::Relaxed);
            let taken =
                (0..count).take_while(|i| self.chunks.take(first + i * chunk_bytes, taker, &self.lanes)).count() as u64;
            if taken == count {
                window::move_past(&self.memory, first + run_bytes);
                return Some(first);
            }
            for i in 0..taken {
                self.chunks.free(first + i * chunk_bytes, taker);
            }
            self.memory.control(ControlWord::SkippedChunks).fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    /// Copies `bytes` into the claim's payload, `at` bytes from its start.
    #[inline(always)]
    pub(crate) fn fill(&self, claim: &Claim, at: u64, bytes: &[u8]) {
        self.memory.store_payload(claim.payload_offset + at, bytes);
    }

    /// Stores all words of the descriptor and publishes the event. `lane` is the one it was reserved with.
    #[inline(always)]
    pub(crate) fn commit(&self, lane: Option<&Lane>, claim: Claim, fields: &Fields) {
        if claim.seqno == NO_SLOT {
            return self.leave(lane, &claim);
        }
        let slot = claim.seqno.wrapping_sub(1);
        let word = |index: usize| self.memory.descriptor_word(slot, index);
        // Relaxed: ordered by the fence after the claim on one side, by the release store below on the other.
        let type_and_size = pack_type_and_size(fields.event_type, fields.payload_bytes);
        word(WORD_TYPE_AND_SIZE).store(type_and_size, Ordering::Relaxed);
        word(WORD_EPOCH_NANOS).store(fields.epoch_nanos, Ordering::Relaxed);
        word(WORD_PAYLOAD_OFFSET).store(claim.payload_offset, Ordering::Relaxed);
        for (index, ext) in fields.content_ext.into_iter().enumerate() {
            word(WORD_CONTENT_EXT + index).store(ext, Ordering::Relaxed);
        }
        let order = if mutation::active(Mutation::RelaxedCommit) { Ordering::Relaxed } else { Ordering::Release };
        // Release: whoever reads this seqno (acquire) has the words and the payload behind it.
        word(WORD_SEQNO).store(claim.seqno, order);
        self.leave(lane, &claim);
    }

    /// Ends the claim's hold on payload memory.
    #[inline(always)]
    fn leave(&self, lane: Option<&Lane>, claim: &Claim) {
        for i in 0..claim.one_off_chunks {
            self.chunks.free(claim.payload_offset + i * self.chunks.chunk_bytes(), Taker::OneOff(None));
        }
        if let Some(lane) = lane {
            let in_chunk = (claim.placed && claim.one_off_chunks == 0).then_some(claim.payload_offset);
            if lane.leave(in_chunk, self.chunks.chunk_bytes()) {
                self.chunks.unpin(claim.payload_offset, lane);
            }
        }
    }

    /// Gives up a thread's chunk at its end. No handler of the thread may record meanwhile.
    pub(crate) fn retire(&self, lane: &Lane) {
        if let Some((base, open)) = lane.let_go() {
            self.chunks.let_go(base, open, lane);
        }
    }
}
