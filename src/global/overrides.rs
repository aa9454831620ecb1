//! Scoped overrides: another recorder for one slot on one thread, for tests.

use super::slot::GlobalRecorder;
use crate::recorder::Recorder;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

thread_local! {
    /// In the order in which they were made, each with the number of its guard.
    static OVERRIDES: RefCell<Vec<Override>> = const { RefCell::new(Vec::new()) };
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
}

struct Override {
    id: u64,
    slot: &'static GlobalRecorder,
    recorder: Recorder,
}

/// While it lives, the calling thread records to another recorder. Made by [`GlobalRecorder::override_with`].
#[derive(Debug)]
#[must_use = "the override ends when this is dropped"]
pub struct OverrideGuard {
    slot: &'static GlobalRecorder,
    id: u64,
    /// The override belongs to a thread.
    _not_send: PhantomData<*const ()>,
}

impl GlobalRecorder {
    /// Makes the calling thread record to `recorder` through this slot until the guard is dropped. Guards nest, and may be dropped
    /// in any order: the recorder is that of the guard that was made last of those that still live. Other threads are not affected, except
    /// that their `record!` takes a slower way meanwhile.
    pub fn override_with(&'static self, recorder: Recorder) -> OverrideGuard {
        let id = NEXT_ID.replace(NEXT_ID.get() + 1);
        OVERRIDES.with_borrow_mut(|overrides| overrides.push(Override { id, slot: self, recorder }));
        self.change_overrides(1);
        OverrideGuard { slot: self, id, _not_send: PhantomData }
    }
}

/// The calling thread's override of `slot`.
pub(super) fn of_this_thread(slot: &'static GlobalRecorder) -> Option<Recorder> {
    // At the thread's end there are none any more.
    let look = |overrides: &RefCell<Vec<Override>>| {
        let overrides = overrides.try_borrow().ok()?;
        let innermost = overrides.iter().rev().find(|one| std::ptr::eq(one.slot, slot));
        innermost.map(|one| one.recorder.clone())
    };
    OVERRIDES.try_with(look).ok().flatten()
}

impl Drop for OverrideGuard {
    fn drop(&mut self) {
        self.slot.change_overrides(-1);
        let remove = |overrides: &RefCell<Vec<Override>>| {
            let mut overrides = overrides.try_borrow_mut().ok()?;
            let at = overrides.iter().rposition(|one| one.id == self.id)?;
            Some(overrides.remove(at).recorder)
        };
        // The recorder is dropped after the borrow: its end may record.
        drop(OVERRIDES.try_with(remove));
    }
}
