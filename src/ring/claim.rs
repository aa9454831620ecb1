//! Claims: a claim is a seqno together with the exclusive right to write the slot of that seqno.

use super::holes;
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::step::{self, Step};
use super::writer::RingWriter;
use crate::layout::descriptor::WORD_SEQNO;
use crate::layout::limits::{DESCRIPTOR_BYTES, DESCRIPTOR_WORDS};
use crate::sync::{AtomicU64, Ordering, fence, fetch_add_then_fence};

/// Prefetch distance in bytes. When a writer claims a slot, it prefetches the cache line that is six slots further,
/// for a later event.
const PREFETCH_BYTES: usize = 6 * DESCRIPTOR_BYTES as usize;

/// The words of a slot.
pub(super) type SlotWords = [AtomicU64; DESCRIPTOR_WORDS];

/// A claimed slot and its payload bytes. Until the commit, only the owner of the claim may write them.
pub(crate) struct Claim<'r> {
    /// Sequence number; 0 if the event is lost, see [`Self::lost`].
    pub(crate) seqno: u64,
    /// Unwrapped offset of the payload.
    pub(crate) payload_offset: u64,
    pub(super) memory: PayloadMemory,
    /// The words of the claimed slot, or `None` if the event is lost.
    pub(super) words: Option<&'r SlotWords>,
}

/// Kind of payload memory that a claim has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PayloadMemory {
    /// Bytes in the run of chunks that the thread's payload cursor fills. An event without payload has this kind, too,
    /// and needs no bytes.
    Run,
    /// Chunks that hold only this payload, `chunks` in number. The first chunk is at the payload's offset. The commit
    /// frees them.
    OneOff { chunks: u64 },
    /// No memory: stalled writers hold every chunk, or no slot could be claimed.
    Missing,
}

/// A seqno whose slot has been claimed.
pub(super) struct ClaimedSlot<'r> {
    pub(super) seqno: u64,
    words: &'r SlotWords,
}

impl<'r> ClaimedSlot<'r> {
    #[inline(always)]
    pub(super) fn with_payload(self, payload_offset: u64, memory: PayloadMemory) -> Claim<'r> {
        Claim { seqno: self.seqno, payload_offset, memory, words: Some(self.words) }
    }
}

impl Claim<'_> {
    /// Returns the claim of an event that is lost because no slot could be claimed (see
    /// `RingWriter::claim_slot_slow`). Each seqno that the writer tried has been skipped and counted. The commit of
    /// this claim publishes nothing; it only ends the reservation in the payload cursor.
    #[cold]
    pub(super) fn lost() -> Self {
        Self { seqno: 0, payload_offset: 0, memory: PayloadMemory::Missing, words: None }
    }

    /// Returns true if the claim has payload memory. If it has none, the event can only be committed without payload.
    #[inline(always)]
    pub(crate) fn has_payload_memory(&self) -> bool {
        self.memory != PayloadMemory::Missing
    }
}

impl<M: RingMemory> RingWriter<M> {
    /// Allocates a seqno and claims its slot. If the slot is not free, gives the seqno up and returns `None`.
    #[inline(always)]
    pub(super) fn try_claim_slot(&self) -> Option<ClaimedSlot<'_>> {
        let seqno = self.next_seqno();
        self.claim(seqno).map(|words| ClaimedSlot { seqno, words })
    }

    /// Returns the slot of `seqno`, which this thread has already claimed. Returns `None` if `seqno` is 0, which
    /// means that no slot has been claimed.
    pub(super) fn claimed_slot(&self, seqno: u64) -> Option<ClaimedSlot<'_>> {
        seqno.checked_sub(1).map(|index| ClaimedSlot { seqno, words: self.memory.descriptor(index) })
    }

    /// Allocates seqnos until the slot of one of them can be claimed. Returns `None` if all seqnos of a whole lap were
    /// skipped, or if the file was truncated.
    ///
    /// A seqno is skipped only if another writer is stalled inside the seqno's slot, or if the slot already belongs to
    /// a later lap. A stalled writer is inside one slot for each of its open reservations. So a claim succeeds within a
    /// lap, unless every slot has an open reservation.
    #[cold]
    #[inline(never)]
    pub(super) fn claim_slot_slow(&self) -> Option<ClaimedSlot<'_>> {
        (0..self.capacity)
            // The slots of a truncated file read as 0 for ever, so no claim can succeed there. Then one attempt is
            // enough.
            .take_while(|tried| *tried == 0 || !self.memory.is_truncated())
            .find_map(|_| self.try_claim_slot())
    }

    /// Allocates a seqno.
    #[inline(always)]
    fn next_seqno(&self) -> u64 {
        let last_seqno = self.memory.control(ControlWord::LastSeqno);
        let seqno = if mutation::active(Mutation::MissingEnterFence) {
            last_seqno.fetch_add(1, Ordering::Relaxed) + 1
        } else {
            fetch_add_then_fence(last_seqno, 1) + 1
        };
        step::at(Step::Reserved);
        seqno
    }

    /// Claims the slot of `seqno`, and returns the words of the slot. The claim succeeds if the slot is unused or
    /// holds an event of an earlier lap. Otherwise this function gives the seqno up and returns `None`.
    #[inline(always)]
    fn claim(&self, seqno: u64) -> Option<&SlotWords> {
        let words = self.memory.descriptor(seqno.wrapping_sub(1));
        // We prefetch before we load the seqno word. So the cache line of a later event travels while that load waits.
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
            // On the first lap, a seqno word of 0 means that the slot is unused. Only this seqno may claim it, so no
            // exchange is needed. On later laps, 0 means that another writer is inside the slot.
            if seqno > self.capacity {
                self.skip(seqno);
                return None;
            }
        } else {
            // Acquire, pairs with the release of the commit that stored `seen`: the previous writer's stores happen
            // before our stores. So our stores come later in the modification order of every word of the slot.
            let order = match () {
                () if mutation::active(Mutation::RelaxedClaim) => Ordering::Relaxed,
                () if mutation::active(Mutation::MissingWriterFence) => Ordering::AcqRel,
                () => Ordering::Acquire,
            };
            // If `seen` is larger than our seqno, writers of a later lap have used the slot while we were stalled.
            // (`seen` equals our seqno only in a damaged file.) If the exchange fails, another writer has claimed the
            // slot since we loaded `seen`.
            if seen >= seqno || word.compare_exchange(seen, 0, order, Ordering::Relaxed).is_err() {
                self.skip(seqno);
                return None;
            }
        }
        if !mutation::active(Mutation::MissingWriterFence) {
            // Pairs with the acquire fence in `observe::slot`. A reader of the slot's earlier event may see a word that
            // we store after this fence. Then the reader's second load of the seqno sees the 0 that marks our claim, or
            // a later value. So the reader rejects what it has read.
            fence(Ordering::Release);
        }
        step::at(Step::Claimed);
        Some(words)
    }

    /// Publishes `seqno` as a hole, so that readers learn that it will never be committed. Also counts it.
    #[cold]
    #[inline(never)]
    fn skip(&self, seqno: u64) {
        let seen = self.memory.descriptor(seqno.wrapping_sub(1))[WORD_SEQNO].load(Ordering::Relaxed);
        step::at(Step::Refused);
        // Readers need the hole. Without it, they would wait for `seqno` until the slot's next seqno is handed out.
        holes::publish(&self.memory, seqno);
        step::at(Step::HolePublished);
        let counter = if seen == 0 { ControlWord::RefusedClaims } else { ControlWord::OverrunClaims };
        // Relaxed: a count.
        self.memory.control(counter).fetch_add(1, Ordering::Relaxed);
    }
}
