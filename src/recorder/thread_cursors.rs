//! Which payload cursor of which ring belongs to this thread.

use super::core::Core;
use crate::ring::payload_cursor::{CursorId, PayloadCursor};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::{Arc, Weak};

/// A few rings are remembered without a search; most programs record into one or two.
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

/// Everything this thread holds; given back when the thread ends.
struct HeldCursors(RefCell<Vec<Held>>);

thread_local! {
    // Without a destructor, so that access is an address and no check, and works until the thread's last instruction.
    static REMEMBER: [Cell<Remembered>; REMEMBERED] = const { [const { Cell::new(NOTHING) }; REMEMBERED] };
    static HELD: HeldCursors = const { HeldCursors(RefCell::new(Vec::new())) };
}

/// The calling thread's payload cursor of `core`, if it has been used lately; else see [`of_this_thread`].
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

/// The calling thread's payload cursor of `core`. `None` if there is none to be had: the thread is at its end, the
/// recorder's payload cursors are all in use, or we are in a signal handler that interrupted this very function.
/// Recording works without, at a higher price.
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
        // Other destructors of this thread may still record: without a payload cursor.
        REMEMBER.with(|slots| slots.iter().for_each(|slot| slot.set(NOTHING)));
        for held in self.0.get_mut().drain(..) {
            // A forked child has the lock of the payload cursors as it was when it was made: perhaps held by a thread
            // that it has not.
            let Some(core) = held.core.upgrade().filter(|core| core.is_original_process()) else { continue };
            let Some(cursor) = core.writer.cursors().get(held.cursor) else { continue };
            core.writer.give_back(cursor);
        }
    }
}
