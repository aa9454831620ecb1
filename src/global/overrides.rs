//! Overrides, for tests. While a thread has an override of a global recorder, the thread records to another recorder.

use super::ambient::next_id;
use super::global_recorder::GlobalRecorder;
use crate::recorder::Recorder;
use crate::sync::{AtomicU64, Ordering};
use std::cell::RefCell;
use std::marker::PhantomData;

thread_local! {
    /// The overrides of the calling thread, oldest first. The id of an override is the id of its guard.
    static OVERRIDES: RefCell<Vec<Override>> = const { RefCell::new(Vec::new()) };
    static NEXT_ID: AtomicU64 = const { AtomicU64::new(0) };
}

struct Override {
    id: u64,
    global: &'static GlobalRecorder,
    recorder: Recorder,
}

/// A guard that [`GlobalRecorder::override_with`] returns. Until it is dropped, the calling thread records to the
/// override instead of the installed recorder.
#[derive(Debug)]
#[must_use = "the override ends when this is dropped"]
pub struct OverrideGuard {
    global: &'static GlobalRecorder,
    id: u64,
    /// Marker: the override belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl GlobalRecorder {
    /// Makes the calling thread record to `recorder` through this global recorder, until the guard is dropped. A thread
    /// can have several guards and may drop them in any order. It records to the recorder of the newest guard that
    /// still lives. A guard does not change where other threads record. But while any thread has an override, `record!`
    /// takes the slow path on all threads.
    pub fn override_with(&'static self, recorder: Recorder) -> OverrideGuard {
        let id = next_id(&NEXT_ID);
        OVERRIDES.with_borrow_mut(|overrides| overrides.push(Override { id, global: self, recorder }));
        self.change_overrides(1);
        OverrideGuard { global: self, id, _not_send: PhantomData }
    }
}

/// Returns the calling thread's override of `global`.
pub(super) fn of_this_thread(global: &'static GlobalRecorder) -> Option<Recorder> {
    // The first use of `OVERRIDES` allocates, because it has a destructor. A signal handler on a thread that has never
    // had an override must not allocate.
    if NEXT_ID.with(|next| next.load(Ordering::Relaxed)) == 0 {
        return None;
    }
    // While the thread ends, `OVERRIDES` may already be destroyed. Then `try_with` fails, and the thread has no
    // override.
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
        // `remove` returns the recorder, so that it is dropped here, after `OVERRIDES` is no longer borrowed. The
        // recorder's destructor may record an event, which borrows `OVERRIDES` again.
        drop(OVERRIDES.try_with(remove));
    }
}
