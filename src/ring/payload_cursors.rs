//! The payload cursors of one ring, and how they pass from thread to thread.
//!
//! A thread that ends gives its payload cursor back together with the run that the cursor fills. The next thread
//! continues in that run.

use super::memory::RingMemory;
use super::mutation::{self, Mutation};
use super::payload_cursor::{CursorId, PayloadCursor};
use super::writer::RingWriter;
use crate::segmented::SegmentedArray;
use crate::sync::Mutex;
use crossbeam_utils::CachePadded;
use std::sync::PoisonError;

/// Number of cursors in a block, as a shift. Models have only four cursors.
const BLOCK_SHIFT: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
const BLOCKS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// Array of cursors. Each cursor is padded, because neighbouring cursors belong to other threads.
type CursorArray = SegmentedArray<CachePadded<PayloadCursor>, BLOCK_SHIFT, 0, BLOCKS>;

/// Largest number of payload cursors of one ring. Threads beyond this number take chunks for each event.
///
/// (Owner words have 16 bits for a cursor: 0 stands for "free" and 65,535 for "one-off".)
pub(crate) const MAX_CURSORS: usize = CursorArray::LEN_MAX;

/// The payload cursors of one ring.
pub(crate) struct PayloadCursors {
    cursors: CursorArray,
    free: Mutex<FreeCursors>,
}

#[derive(Default)]
struct FreeCursors {
    returned: Vec<CursorId>,
    used: usize,
}

impl PayloadCursors {
    /// Creates the set. It is empty, except in models, where it has all cursors from the start.
    pub(crate) fn new() -> Self {
        let cursors = Self { cursors: SegmentedArray::new(), free: Mutex::new(FreeCursors::default()) };
        if cfg!(any(loom, shuttle)) {
            cursors.get_or_make(0);
        }
        cursors
    }

    /// Returns a cursor for a thread, or `None` when all cursors are in use. Takes a lock. Each thread calls this once
    /// per ring.
    ///
    /// The cursor that was given back last is used first, with the run that it fills. The thread that gave it back
    /// stored all of the cursor's words before it released the lock, and the new owner takes the lock afterwards.
    pub(crate) fn acquire(&self) -> Option<&PayloadCursor> {
        let id = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            match free.returned.pop() {
                Some(id) => id,
                None if free.used < MAX_CURSORS => {
                    free.used += 1;
                    (free.used - 1) as CursorId
                }
                None => return None,
            }
        };
        self.get_or_make(id)
    }

    /// Takes a cursor back; its thread will not use it any more.
    pub(crate) fn release(&self, id: CursorId) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).returned.push(id);
    }

    fn get_or_make(&self, id: CursorId) -> Option<&PayloadCursor> {
        let new = |id| CachePadded::new(PayloadCursor::new(id as CursorId));
        self.cursors.get_or_make(id.into(), new).map(|cursor| &**cursor)
    }

    /// Returns the cursor with this index, or `None` if no thread has ever needed so many cursors.
    pub(crate) fn get(&self, id: CursorId) -> Option<&PayloadCursor> {
        self.cursors.get(id.into()).map(|cursor| &**cursor)
    }
}

impl<M: RingMemory> RingWriter<M> {
    /// Gives a thread's payload cursor back at the thread's end. The next thread gets the cursor together with the run
    /// that it fills. No signal handler of the ending thread may record during this call.
    ///
    /// A reservation may still be open: another thread-local variable owns it, or the program has leaked it. The cursor
    /// then becomes an *orphan*, which no thread gets until the last of its reservations has ended and
    /// [`Self::give_back_orphan`] is called. Its run is freed at that time.
    pub(crate) fn give_back(&self, cursor: &PayloadCursor) {
        if cursor.is_outside() || mutation::active(Mutation::EarlyHandOver) {
            self.cursors.release(cursor.id());
            return;
        }
        self.release_run(cursor, false);
        cursor.make_orphan();
    }

    /// Gives an orphan back if the last of its reservations has ended. Call this after the end of a reservation.
    pub(crate) fn give_back_orphan(&self, cursor: &PayloadCursor) {
        if cursor.is_outside() && cursor.take_orphan_mark() {
            self.cursors.release(cursor.id());
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn there_are_payload_cursors_for_16_384_threads_and_one_that_is_given_back_is_used_again() {
        let cursors = PayloadCursors::new();
        let taken: std::collections::HashSet<CursorId> =
            std::iter::from_fn(|| cursors.acquire()).map(|cursor| cursor.id()).collect();
        println!("{} payload cursors", taken.len());
        assert_eq!((taken.len(), taken.len()), (MAX_CURSORS, 16_384));
        cursors.release(77);
        let ids = [(); 2].map(|()| cursors.acquire().map(PayloadCursor::id));
        assert_eq!(ids, [Some(77), None]);
    }
}
