//! The payload cursors of each thread. A thread has one payload cursor for each ring that it records to.

use super::core::{Core, REMEMBERED};
use crate::ring::payload::cursor::{CursorId, PayloadCursor};
use crate::sync::interrupted::{Owned, OwnedWord};
use std::cell::RefCell;
use std::sync::{Arc, Weak};

/// A payload cursor that this thread holds until its end.
struct ThreadCursor {
    core: Weak<Core>,
    core_id: u64,
    cursor: CursorId,
}

/// The payload cursors that this thread holds. When the thread ends, it gives them back, so that other threads can use
/// them.
struct ThreadCursors(RefCell<Vec<ThreadCursor>>);

thread_local! {
    // `REMEMBER` has no destructor. So an access does not check whether the variable still exists, and succeeds until
    // the thread's last instruction.
    static REMEMBER: [OwnedWord<PayloadCursor>; REMEMBERED] = const { [const { OwnedWord::nothing() }; REMEMBERED] };
    static HELD: ThreadCursors = const { ThreadCursors(RefCell::new(Vec::new())) };
}

/// Returns the calling thread's payload cursor of `core` if the thread remembers it. Otherwise returns `None`. This is
/// the fast path of [`of_this_thread`].
#[inline(always)]
pub(super) fn remembered(core: &Core) -> Option<&PayloadCursor> {
    let remembered = REMEMBER.with(|slots| slots[usize::from(core.place) % REMEMBERED].get());
    let cursor = remembered.of(core.tag)?;
    // SAFETY: the pointer was made from a `&PayloadCursor` of a core with this tag. No two cores have the same tag, so
    // that core is the core `core`. A payload cursor keeps its address and lives until its core is dropped. `core` is
    // borrowed here, so the cursor outlives the result.
    Some(unsafe { &*cursor })
}

/// Returns the calling thread's payload cursor of `core`.
///
/// Returns `None` if the thread is at its end, if all payload cursors of the recorder are in use, or if a signal
/// handler has interrupted this function and calls it again. Without a payload cursor an event can be recorded, too,
/// but at higher cost.
pub(super) fn of_this_thread(core: &Arc<Core>) -> Option<&PayloadCursor> {
    if let Some(cursor) = remembered(core) {
        return Some(cursor);
    }
    let id = HELD.try_with(|held| held.find_or_acquire(core)).ok().flatten()?;
    let cursor = core.writer.cursors().get(id)?;
    REMEMBER.with(|slots| slots[usize::from(core.place) % REMEMBERED].set(Owned::new(core.tag, cursor)));
    Some(cursor)
}

impl ThreadCursors {
    fn find_or_acquire(&self, core: &Arc<Core>) -> Option<CursorId> {
        let mut held = self.0.try_borrow_mut().ok()?;
        if let Some(found) = held.iter().find(|held| held.core_id == core.id) {
            return Some(found.cursor);
        }
        held.retain(|held| held.core.strong_count() > 0);
        let cursor = core.writer.cursors().acquire()?.id();
        held.push(ThreadCursor { core: Arc::downgrade(core), core_id: core.id, cursor });
        Some(cursor)
    }
}

impl Drop for ThreadCursors {
    fn drop(&mut self) {
        // Other destructors of this thread may still record after this one. They then find no payload cursor and
        // record without one.
        REMEMBER.with(|slots| slots.iter().for_each(|slot| slot.set(Owned::NOTHING)));
        for held in self.0.get_mut().drain(..) {
            // A forked child must not call `give_back`, which takes a lock: a thread of the parent may have held this
            // lock at the fork, and this thread does not exist in the child.
            let Some(core) = held.core.upgrade().filter(|core| core.is_original_process()) else { continue };
            let Some(cursor) = core.writer.cursors().get(held.cursor) else { continue };
            core.writer.give_back(cursor);
        }
    }
}
