//! Scoped overrides: another recorder for one slot on one thread, for tests.

use super::slot::GlobalRecorder;
use crate::recorder::Recorder;
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    static OVERRIDES: RefCell<Vec<(*const GlobalRecorder, Recorder)>> = const { RefCell::new(Vec::new()) };
}

/// While it lives, the calling thread records to another recorder. Made by [`GlobalRecorder::override_with`].
#[derive(Debug)]
#[must_use = "the override ends when this is dropped"]
pub struct OverrideGuard {
    slot: &'static GlobalRecorder,
    /// The override belongs to a thread.
    _not_send: PhantomData<*const ()>,
}

impl GlobalRecorder {
    /// Makes the calling thread record to `recorder` through this slot until the guard is dropped. Guards nest; drop them
    /// in reverse order. Other threads are not affected, except that their `record!` takes a slower way meanwhile.
    pub fn override_with(&'static self, recorder: Recorder) -> OverrideGuard {
        OVERRIDES.with_borrow_mut(|overrides| overrides.push((self, recorder)));
        self.change_overrides(1);
        OverrideGuard { slot: self, _not_send: PhantomData }
    }
}

/// The calling thread's override of `slot`.
pub(super) fn of_this_thread(slot: &'static GlobalRecorder) -> Option<Recorder> {
    // At the thread's end there are none any more.
    let look = |overrides: &RefCell<Vec<(*const GlobalRecorder, Recorder)>>| {
        let overrides = overrides.try_borrow().ok()?;
        overrides.iter().rev().find(|(of, _)| std::ptr::eq(*of, slot)).map(|(_, recorder)| recorder.clone())
    };
    OVERRIDES.try_with(look).ok().flatten()
}

impl Drop for OverrideGuard {
    fn drop(&mut self) {
        self.slot.change_overrides(-1);
        let remove = |overrides: &RefCell<Vec<(*const GlobalRecorder, Recorder)>>| {
            let mut overrides = overrides.try_borrow_mut().ok()?;
            let at = overrides.iter().rposition(|(of, _)| std::ptr::eq(*of, self.slot))?;
            Some(overrides.remove(at).1)
        };
        // The recorder is dropped after the borrow: its end may record.
        drop(OVERRIDES.try_with(remove));
    }
}
