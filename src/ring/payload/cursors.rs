//! The payload cursors of one ring.
//!
//! A thread that ends returns its payload cursor with the cursor's run of chunks. The next thread gets the cursor and
//! continues in this run.

use super::cursor::{CursorId, PayloadCursor};
use crate::sync::PlainMutex as Mutex;
use crate::sync::locked_section::LockedSection;
use crate::sync::segmented::SegmentedArray;
use crossbeam_utils::CachePadded;
use std::sync::PoisonError;

/// Number of payload cursors in a block of the array, as a shift. Models have only four payload cursors.
const BLOCK_SHIFT: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
const BLOCKS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// Array of payload cursors. Each is padded to whole cache lines, because its neighbours belong to other threads.
type CursorArray = SegmentedArray<CachePadded<PayloadCursor>, BLOCK_SHIFT, 0, BLOCKS>;

/// Largest number of payload cursors of one ring. A thread beyond this number has no payload cursor, and takes chunks
/// for each of its events.
///
/// (An owner word has 16 bits for the id of a cursor plus one. In these bits, 0 stands for "free" and 65,535 for
/// "one-off". So ids must be below 65,534.)
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
    /// Creates the set without cursors. In models it has all its cursors from the start.
    pub(crate) fn new() -> Self {
        let cursors = Self { cursors: SegmentedArray::new(), free: Mutex::new(FreeCursors::default()) };
        if cfg!(any(loom, shuttle)) {
            cursors.get_or_make(0);
        }
        cursors
    }

    /// Returns a cursor for the calling thread, or `None` if all cursors are in use. Takes a lock. Each thread calls
    /// this once per ring.
    ///
    /// The cursor that was given back last is used first, together with the run of chunks that it fills. The lock
    /// orders the old and the new owner: the old owner stored all words of the cursor before it released the lock, and
    /// the new owner takes the lock afterwards.
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
        let _section = LockedSection::enter();
        self.free.lock().unwrap_or_else(PoisonError::into_inner).returned.push(id);
    }

    fn get_or_make(&self, id: CursorId) -> Option<&PayloadCursor> {
        let new = |id| CachePadded::new(PayloadCursor::new(id as CursorId));
        self.cursors.get_or_make(id.into(), new).map(|cursor| &**cursor)
    }

    /// Returns the cursor with this index. Returns `None` if that cursor has not been made yet.
    pub(crate) fn get(&self, id: CursorId) -> Option<&PayloadCursor> {
        self.cursors.get(id.into()).map(|cursor| &**cursor)
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
