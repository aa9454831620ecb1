//! Scoped overrides. An override replaces a global recorder on one thread, for tests.

use super::global_recorder::GlobalRecorder;
use crate::recorder::Recorder;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

thread_local! {
    /// The thread's overrides, in the order in which they were made, each with the number of its guard.
    static OVERRIDES: RefCell<Vec<Override>> = const { RefCell::new(Vec::new()) };
    static NEXT_ID: Cell<u64> = const { Cell::new(0) };
}

struct Override {
    id: u64,
    global: &'static GlobalRecorder,
    recorder: Recorder,
}

/// A guard. While it lives, the calling thread records to another recorder. [`GlobalRecorder::override_with`] makes
/// guards.
#[derive(Debug)]
#[must_use = "the override ends when this is dropped"]
pub struct OverrideGuard {
    global: &'static GlobalRecorder,
    id: u64,
    /// Marker: the override belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl GlobalRecorder {
    /// Makes the calling thread record to `recorder` through this global recorder until the guard is dropped. Guards
    /// nest, and may be dropped in any order. The newest guard that still lives has effect. Other threads are not
    /// affected, except that their `record!` takes the slow path meanwhile.
    pub fn override_with(&'static self, recorder: Recorder) -> OverrideGuard {
        let id = NEXT_ID.replace(NEXT_ID.get() + 1);
        OVERRIDES.with_borrow_mut(|overrides| overrides.push(Override { id, global: self, recorder }));
        self.change_overrides(1);
        OverrideGuard { global: self, id, _not_send: PhantomData }
    }
}

/// Returns the calling thread's override of `global`.
pub(super) fn of_this_thread(global: &'static GlobalRecorder) -> Option<Recorder> {
    // While the thread ends, its list of overrides does not exist any more. Then the thread has no override.
    let look = |overrides: &RefCell<Vec<Override>>| {
        let overrides = overrides.try_borrow().ok()?;
        let innermost = overrides.iter().rev().find(|other| std::ptr::eq(other.global, global));
        innermost.map(|innermost| innermost.recorder.clone())
    };
    OVERRIDES.try_with(look).ok().flatten()
}

impl Drop for OverrideGuard {
    fn drop(&mut self) {
        self.global.change_overrides(-1);
        let remove = |overrides: &RefCell<Vec<Override>>| {
            let mut overrides = overrides.try_borrow_mut().ok()?;
            let at = overrides.iter().rposition(|other| other.id == self.id)?;
            Some(overrides.remove(at).recorder)
        };
        // The recorder is dropped after the borrow ends: its destructor may record.
        drop(OVERRIDES.try_with(remove));
    }
}
