//! Fill and commit: the steps that turn a claim into an event that readers can read.

use super::claim::{Claim, PayloadMemory, SlotWords};
use super::memory::RingMemory;
use super::mutation::{self, Mutation};
use super::payload::chunk::Taker;
use super::payload::cursor::PayloadCursor;
use super::step::{self, Step};
use super::writer::RingWriter;
use crate::layout::descriptor::{
    WORD_CONTENT_EXT, WORD_EPOCH_NANOS, WORD_PAYLOAD_OFFSET, WORD_SEQNO, WORD_TYPE_AND_SIZE, pack_type_and_size,
};
use crate::sync::Ordering;

/// The fields of a descriptor that the caller of `commit` chooses.
#[derive(Clone, Copy)]
pub(crate) struct DescriptorFields {
    /// Event code.
    pub(crate) event_type: u16,
    /// Payload bytes.
    pub(crate) payload_bytes: u32,
    /// Time of recording.
    pub(crate) epoch_nanos: u64,
    /// Extension words.
    pub(crate) content_ext: [u64; 4],
}

impl<M: RingMemory> RingWriter<M> {
    /// Copies `bytes` into the claim's payload memory, from byte `at` of the payload on.
    #[inline(always)]
    pub(crate) fn fill(&self, claim: &Claim<'_>, at: u64, bytes: &[u8]) {
        self.memory.store_payload(claim.payload_offset + at, bytes);
        step::at(Step::Filled);
    }

    /// Commits the event. Stores all words of the descriptor; from then on, readers see the event. Then ends the
    /// reservation of the payload memory. `cursor` is the payload cursor with which the event was reserved.
    ///
    /// A fast path calls a `try_*` function, which makes the claim, and then this function. The compiler inlines both
    /// calls. So the compiler knows the claim's kind of payload memory, and leaves out the code for the other kinds.
    #[inline(always)]
    pub(crate) fn commit(&self, cursor: Option<&PayloadCursor>, claim: Claim<'_>, fields: &DescriptorFields) {
        if let Some(words) = claim.words {
            publish(words, claim.seqno, claim.payload_offset, fields);
        }
        if let PayloadMemory::OneOff { chunks } = claim.memory {
            self.free_chunks(claim.payload_offset, chunks, Taker::OneOff(None));
        }
        if let Some(cursor) = cursor
            && !cursor.try_leave()
        {
            self.leave_slow(cursor, (claim.memory == PayloadMemory::Run).then_some(claim.payload_offset));
        }
        step::at(Step::Left);
    }

    /// Ends a reservation while other reservations of the thread are open. `in_run` is the payload's offset if the
    /// payload lies in a run of chunks of the payload cursor. If the payload has chunks of its own, or none, `in_run`
    /// is `None`.
    #[cold]
    #[inline(never)]
    fn leave_slow(&self, cursor: &PayloadCursor, in_run: Option<u64>) {
        if cursor.leave_slow(in_run)
            && let Some(offset) = in_run
        {
            self.chunks.unpin(offset, cursor);
        }
    }
}

/// Stores all words of the descriptor, the seqno last.
#[inline(always)]
fn publish(words: &SlotWords, seqno: u64, payload_offset: u64, fields: &DescriptorFields) {
    // Relaxed: these stores come after the release fence in `claim`, and before the release store of the seqno below.
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
    // Release, pairs with the acquire load in `observe::slot`: the stores of the words and of the payload happen
    // before everything that a reader does after it has seen this seqno.
    words[WORD_SEQNO].store(seqno, order);
    step::at(Step::Committed);
}
