//! The entries of a span stack that have no room in the thread's own state.
//!
//! The list is never borrowed while it allocates: the program's allocator may record, and enter spans itself. If a
//! signal handler has interrupted a change of the list, or while the thread ends, the list can neither be changed nor
//! read.

use super::entry::SpanEntry;
use std::cell::RefCell;

thread_local! {
    static HEAP_ENTRIES: RefCell<Vec<SpanEntry>> = const { RefCell::new(Vec::new()) };
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

/// Adds an entry. Returns false if the list cannot be changed: then the entry has no place and is dropped, and the
/// later exit of its span finds no entry.
pub(super) fn push(entry: SpanEntry) -> bool {
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
