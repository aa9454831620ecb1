//! A ring as its writer has it: the memory, the chunks and the payload cursors of the threads.

use super::active::ActiveCursors;
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::payload::chunk::Chunks;
use super::payload::cursor::PayloadCursor;
use super::payload::cursors::PayloadCursors;
use super::payload::run_sizes::RunSizes;
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

    /// Gives a thread's payload cursor back at the thread's end. The next thread gets the cursor together with the run
    /// of chunks that it fills. No signal handler of the ending thread may record during this call.
    ///
    /// A reservation may still be open: another thread-local variable owns it, or the program has leaked it. Then the
    /// cursor becomes an *orphan*, and its run of chunks is released. No thread gets an orphan until its last
    /// reservation has ended and [`Self::give_back_orphan`] is called.
    pub(crate) fn give_back(&self, cursor: &PayloadCursor) {
        if cursor.is_outside() || mutation::active(Mutation::EarlyHandOver) {
            self.cursors.release(cursor.id());
            return;
        }
        self.release_run(cursor, false);
        cursor.make_orphan();
    }

    /// Gives the cursor back if it is an orphan and its last reservation has ended. Call this after the end of a
    /// reservation.
    pub(crate) fn give_back_orphan(&self, cursor: &PayloadCursor) {
        if cursor.is_outside() && cursor.take_orphan_mark() {
            self.cursors.release(cursor.id());
        }
    }

    /// Returns an offset for a payload of 0 bytes. Any offset that is not before the buffer window will do.
    #[inline(always)]
    pub(super) fn empty_payload_offset(&self) -> u64 {
        // Relaxed: no payload bytes depend on the offset.
        self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed)
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
