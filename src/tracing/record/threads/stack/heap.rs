//! The entries of a span stack that have no room in the thread's own state.
//!
//! The list of these entries is never borrowed while memory is allocated for it, because the program's allocator may
//! record. A signal handler that interrupts a change of the list can neither change nor read the list.

use super::entry::SpanEntry;
use crate::tracing::record::threads::end_of_thread;
use std::cell::RefCell;
use std::mem::{ManuallyDrop, take};

thread_local! {
    // This thread-local has no destructor: it could run before the one that ends the scopes of the thread. That one
    // calls `free`.
    static HEAP_ENTRIES: ManuallyDrop<RefCell<Vec<SpanEntry>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Number of entries for which the list has room when it first gets one.
const FIRST_ROOM: usize = 32;

/// Calls `change` with the list, which must not make the list larger than its capacity. Returns `None` if the list
/// cannot be changed.
pub(super) fn change<R>(change: impl FnOnce(&mut Vec<SpanEntry>) -> R) -> Option<R> {
    HEAP_ENTRIES
        .try_with(|entries| entries.try_borrow_mut().ok().map(|mut entries| change(&mut entries)))
        .ok()
        .flatten()
}

/// Calls `look` with the list. Returns `None` if the list cannot be read.
pub(super) fn look<R>(look: impl FnOnce(&[SpanEntry]) -> R) -> Option<R> {
    HEAP_ENTRIES.try_with(|entries| entries.try_borrow().ok().map(|entries| look(&entries))).ok().flatten()
}

/// Frees the memory of the list, with the entries that are still in it. The thread ends.
pub(super) fn free() {
    drop(change(take));
}

/// Adds an entry. Returns false if the list cannot be changed, or nobody would free it because the thread ends: then
/// the entry has no place and is dropped, and the later exit of its span finds no entry.
pub(super) fn push(entry: SpanEntry) -> bool {
    if !end_of_thread::register() {
        return false;
    }
    loop {
        let push = |entries: &mut Vec<SpanEntry>| {
            let has_room = entries.len() < entries.capacity();
            if has_room {
                entries.push(entry);
            }
            (has_room, entries.len())
        };
        let Some((is_added, len)) = change(push) else { return false };
        if is_added {
            return true;
        }
        let mut larger = Vec::with_capacity((2 * len).max(FIRST_ROOM));
        let replace = |entries: &mut Vec<SpanEntry>| {
            if entries.len() < larger.capacity() {
                larger.append(entries);
                std::mem::swap(entries, &mut larger);
            }
        };
        // The old memory is released after the change.
        change(replace);
    }
}
