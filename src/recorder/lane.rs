//! Which lane of which ring belongs to this thread.

use super::core::Core;
use crate::ring::lane::{Lane, LaneId};
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::{Arc, Weak};

/// A few rings are remembered without a search; most programs record into one or two.
const REMEMBERED: usize = 4;

#[derive(Clone, Copy)]
struct Remembered {
    core_id: u64,
    lane: *const Lane,
}

const NOTHING: Remembered = Remembered { core_id: 0, lane: ptr::null() };

/// A lane that this thread holds until its end.
struct Held {
    core: Weak<Core>,
    core_id: u64,
    lane: LaneId,
}

/// Everything this thread holds; given back when the thread ends.
struct HeldLanes(RefCell<Vec<Held>>);

thread_local! {
    // Without a destructor, so that access is an address and no check, and works until the thread's last instruction.
    static REMEMBER: [Cell<Remembered>; REMEMBERED] = const { [const { Cell::new(NOTHING) }; REMEMBERED] };
    static HELD: HeldLanes = const { HeldLanes(RefCell::new(Vec::new())) };
}

/// The calling thread's lane of `core`, if it has been used lately; else see [`of_this_thread`].
#[inline(always)]
pub(super) fn remembered(core: &Core) -> Option<&Lane> {
    let remembered = REMEMBER.with(|slots| slots[core.id as usize % REMEMBERED].get());
    if remembered.core_id != core.id {
        return None;
    }
    // SAFETY: the pointer was made from a `&Lane` of the core with this id (ids are never used twice); lanes live, at the
    // same address, as long as their core, which is borrowed.
    Some(unsafe { &*remembered.lane })
}

/// The calling thread's lane of `core`. `None` if there is none to be had: the thread is at its end, the recorder's lanes
/// are all in use, or we are in a signal handler that interrupted this very function. Recording works without, at a
/// higher price.
pub(super) fn of_this_thread(core: &Arc<Core>) -> Option<&Lane> {
    if let Some(lane) = remembered(core) {
        return Some(lane);
    }
    let id = HELD.try_with(|held| held.find_or_acquire(core)).ok().flatten()?;
    let lane = core.writer.lanes().get(id)?;
    REMEMBER.with(|slots| slots[core.id as usize % REMEMBERED].set(Remembered { core_id: core.id, lane }));
    Some(lane)
}

impl HeldLanes {
    fn find_or_acquire(&self, core: &Arc<Core>) -> Option<LaneId> {
        let mut held = self.0.try_borrow_mut().ok()?;
        if let Some(found) = held.iter().find(|held| held.core_id == core.id) {
            return Some(found.lane);
        }
        held.retain(|held| held.core.strong_count() > 0);
        let lane = core.writer.lanes().acquire()?.id();
        held.push(Held { core: Arc::downgrade(core), core_id: core.id, lane });
        Some(lane)
    }
}

impl Drop for HeldLanes {
    fn drop(&mut self) {
        // Other destructors of this thread may still record: without a lane.
        REMEMBER.with(|slots| slots.iter().for_each(|slot| slot.set(NOTHING)));
        for held in self.0.get_mut().drain(..) {
            // A forked child has the lock of the lanes as it was when it was made: perhaps held by a thread that it has not.
            let Some(core) = held.core.upgrade().filter(|core| core.is_original_process()) else { continue };
            let Some(lane) = core.writer.lanes().get(held.lane) else { continue };
            core.writer.give_back(lane);
        }
    }
}
