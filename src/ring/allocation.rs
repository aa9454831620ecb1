//! Allocation of payload memory on the slow path: the writer's thread has no run of chunks that it can use.
//!
//! Payload memory is handed out in whole chunks, one after the other: `next_payload_byte` is the offset of the next
//! chunk. [`super::payload::run_sizes`] decides whether chunks become a run of a payload cursor, or *one-off* chunks
//! for a single payload.

use super::payload::chunk::Taker;
use super::payload::cursor::PayloadCursor;
use super::payload::run_sizes::PAYLOADS_MIN;
use super::payload::window;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::ring::claim::PayloadMemory;
use crate::ring::memory::{ControlWord, RingMemory};
use crate::ring::step::{self, Step};
use crate::ring::writer::RingWriter;
use crate::sync::Ordering;

impl<M: RingMemory> RingWriter<M> {
    /// Allocates `rounded` bytes for a cursor that could not take them from its run of chunks. The run has too few
    /// bytes left, or is no longer near (see [`Self::is_near`]), or a signal handler has replaced it, or there is no
    /// run. Also allocates for a thread without a cursor. Returns the offset of the bytes and the kind of payload
    /// memory.
    pub(in crate::ring) fn allocate_slow(&self, cursor: Option<&PayloadCursor>, rounded: u64) -> (u64, PayloadMemory) {
        match cursor.and_then(|cursor| self.allocate_in_run(cursor, rounded)) {
            Some(offset) => (offset, PayloadMemory::Run),
            None => self.allocate_one_off(cursor, rounded),
        }
    }

    /// Takes `rounded` bytes of the run of chunks that the cursor fills, or of a new run. Returns `None` if the
    /// payload should get chunks of its own.
    fn allocate_in_run(&self, cursor: &PayloadCursor, rounded: u64) -> Option<u64> {
        if !cursor.begin_run_change() {
            return None;
        }
        let offset = self.allocate_during_run_change(cursor, rounded);
        cursor.end_run_change();
        offset
    }

    fn allocate_during_run_change(&self, cursor: &PayloadCursor, rounded: u64) -> Option<u64> {
        let is_near = cursor.run_base().is_some_and(|base| self.is_near(base));
        if is_near && let Some(offset) = cursor.try_bump(rounded) {
            return Some(offset);
        }
        let is_stale = cursor.run_base().is_some() && !is_near;
        if is_stale {
            self.release_run(cursor, false);
        }
        let epoch = self.epoch();
        let is_first = cursor.enter_epoch(epoch);
        let enough = rounded.saturating_mul(PAYLOADS_MIN);
        let (wanted, wanted_next) = match cursor.wanted_bytes().max(self.run_sizes.chunk_bytes) {
            // The thread recorded so slowly that its run of chunks is no longer near (see `is_near`). The rest of that
            // run is lost, so the next run should be small.
            _ if is_stale => (0, 0),
            // The run of chunks is still near (see `is_near`), so the thread has used it up in a short time. The next
            // run may be twice as large.
            before if is_near => [before.saturating_mul(2).max(enough); 2].into(),
            // This is the thread's first run in this epoch, so the size stays the same. If a thread takes only one run
            // in each epoch, it would leave most of a larger run unused.
            before if is_first => (before, before),
            before => (before, before.max(enough)),
        };
        cursor.want_bytes(wanted_next.min(self.run_sizes.run_bytes_max));
        let goal = self.run_sizes.goal_bytes(wanted, self.active.count(epoch, is_first));
        if cursor.free_bytes() > goal / 2 {
            return None;
        }
        let run_bytes = self.run_sizes.run_bytes(goal, rounded)?;
        self.release_run(cursor, is_near);
        step::at(Step::RunReleased);
        let base = self.take_run(run_bytes / self.run_sizes.chunk_bytes, Taker::Cursor(cursor))?;
        cursor.begin_run(base, run_bytes, rounded);
        Some(base)
    }

    /// Makes the cursor stop filling its run of chunks, if it has one, and releases the chunks. Call this during a run
    /// change, or when no signal handler can record.
    ///
    /// `is_kept` has the meaning that it has in [`Chunks::release_run`](super::payload::chunk::Chunks::release_run).
    pub(in crate::ring) fn release_run(&self, cursor: &PayloadCursor, is_kept: bool) {
        if let Some(left) = cursor.end_run() {
            self.chunks.release_run(left, cursor, is_kept);
        }
    }

    /// Returns the number of the present epoch. In each epoch the writers allocate `stale_bytes` bytes. So a run of
    /// chunks that was taken two epochs ago is no longer near (see [`Self::is_near`]).
    fn epoch(&self) -> u64 {
        self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed) / self.stale_bytes
    }

    /// Allocates chunks for a single payload, such as a large payload, or a payload of a thread without payload
    /// cursor.
    fn allocate_one_off(&self, cursor: Option<&PayloadCursor>, rounded: u64) -> (u64, PayloadMemory) {
        let chunks = rounded.div_ceil(self.run_sizes.chunk_bytes);
        match self.take_run(chunks, Taker::OneOff(cursor)) {
            Some(base) => (base, PayloadMemory::OneOff { chunks }),
            None => (self.empty_payload_offset(), PayloadMemory::Missing),
        }
    }

    /// Allocates `count` neighbouring chunks and takes them all. If another writer holds one of them, tries again with
    /// the following chunks. Returns `None` when it has tried chunks for about two passes through the buffer.
    fn take_run(&self, count: u64, taker: Taker<'_>) -> Option<u64> {
        let chunk_bytes = self.run_sizes.chunk_bytes;
        let run_bytes = count * chunk_bytes;
        let next = self.memory.control(ControlWord::NextPayloadByte);
        let tries = 2 * self.memory.geometry().payload_buf_bytes() / run_bytes + 2;
        for _ in 0..tries {
            // Relaxed: the addition is atomic, so no other writer gets this offset. The owner words order the accesses
            // to the chunks.
            let first = next.fetch_add(run_bytes, Ordering::Relaxed);
            step::at(Step::ChunkAllocated);
            let taken = (0..count)
                .take_while(|i| self.chunks.take(first + i * chunk_bytes, taker, &self.cursors))
                .count() as u64;
            if taken == count {
                step::at(Step::ChunksTaken);
                window::move_past(&self.memory, first + run_bytes);
                step::at(Step::WindowMoved);
                return Some(first);
            }
            self.free_chunks(first, taken, taker);
            self.memory.control(ControlWord::SkippedChunks).fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    /// Frees `count` chunks, beginning with the chunk at offset `first`. A chunk that `taker` no longer holds is left
    /// alone.
    pub(in crate::ring) fn free_chunks(&self, first: u64, count: u64, taker: Taker<'_>) {
        for i in 0..count {
            self.chunks.free(first + i * self.run_sizes.chunk_bytes, taker);
            step::at(Step::ChunkFreed);
        }
    }
}

/// Returns `payload_bytes` (at most 2^63) rounded up to the payload alignment. This computation takes two
/// instructions; `next_multiple_of` takes six.
#[inline(always)]
pub(in crate::ring) fn padded(payload_bytes: u64) -> u64 {
    (payload_bytes + (PAYLOAD_ALIGN - 1)) & !(PAYLOAD_ALIGN - 1)
}
