//! The payload cursors of each thread, one for each ring that the thread records to.

use super::core::Core;
use crate::ring::payload_cursor::{CursorId, PayloadCursor};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::{Arc, Weak};

/// Number of recently used rings whose payload cursors a thread finds without a search. Most programs record to one or
/// two rings.
const REMEMBERED: usize = 4;

#[derive(Clone, Copy)]
struct Remembered {
    core_id: u64,
    cursor: *const PayloadCursor,
}

const NOTHING: Remembered = Remembered { core_id: 0, cursor: ptr::null() };

/// A payload cursor that this thread holds until its end.
struct Held {
    core: Weak<Core>,
    core_id: u64,
    cursor: CursorId,
}

/// All payload cursors of this thread; they are given back when the thread ends.
struct HeldCursors(RefCell<Vec<Held>>);

thread_local! {
    // The thread-local has no destructor. So access needs no check, and works until the thread's last instruction.
    static REMEMBER: [Cell<Remembered>; REMEMBERED] = const { [const { Cell::new(NOTHING) }; REMEMBERED] };
    static HELD: HeldCursors = const { HeldCursors(RefCell::new(Vec::new())) };
}

/// Returns the calling thread's payload cursor of `core` if it is one of the few that the thread used last. This is the
/// fast path of [`of_this_thread`].
#[inline(always)]
pub(super) fn remembered(core: &Core) -> Option<&PayloadCursor> {
    let remembered = REMEMBER.with(|slots| slots[core.id as usize % REMEMBERED].get());
    if remembered.core_id != core.id {
        return None;
    }
    // SAFETY: the pointer was made from a `&PayloadCursor` of the core with this id (ids are never used twice); payload
    // cursors live, at the same address, as long as their core, which is borrowed.
    Some(unsafe { &*remembered.cursor })
}

/// Returns the calling thread's payload cursor of `core`.
///
/// Returns `None` if the thread is at its end, if all payload cursors of the recorder are in use, or in a signal
/// handler that interrupted this function. Recording without a payload cursor works, but costs more.
pub(super) fn of_this_thread(core: &Arc<Core>) -> Option<&PayloadCursor> {
    if let Some(cursor) = remembered(core) {
        return Some(cursor);
    }
    let id = HELD.try_with(|held| held.find_or_acquire(core)).ok().flatten()?;
    let cursor = core.writer.cursors().get(id)?;
    REMEMBER.with(|slots| slots[core.id as usize % REMEMBERED].set(Remembered { core_id: core.id, cursor }));
    Some(cursor)
}

impl HeldCursors {
    fn find_or_acquire(&self, core: &Arc<Core>) -> Option<CursorId> {
        let mut held = self.0.try_borrow_mut().ok()?;
        if let Some(found) = held.iter().find(|held| held.core_id == core.id) {
            return Some(found.cursor);
        }
        held.retain(|held| held.core.strong_count() > 0);
        let cursor = core.writer.cursors().acquire()?.id();
        held.push(Held { core: Arc::downgrade(core), core_id: core.id, cursor });
        Some(cursor)
    }
}

impl Drop for HeldCursors {
    fn drop(&mut self) {
        // Other destructors of this thread may still record; they do so without a payload cursor.
        REMEMBER.with(|slots| slots.iter().for_each(|slot| slot.set(NOTHING)));
        for held in self.0.get_mut().drain(..) {
            // In a forked child, a thread that exists only in the parent may hold the lock of the payload cursors.
            let Some(core) = held.core.upgrade().filter(|core| core.is_original_process()) else { continue };
            let Some(cursor) = core.writer.cursors().get(held.cursor) else { continue };
            core.writer.give_back(cursor);
        }
    }
}
