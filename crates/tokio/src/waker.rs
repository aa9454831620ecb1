//! The waker of a task: it records each wake, forwards it, and notices when nobody is left who can wake the task.
//!
//! A [`TaskWaker`] is what the future inside gets. Its clones are clones of one `Arc`, so its `Drop` runs when the last of
//! them is gone. A poll that is woken meanwhile keeps its waker for the next poll. Later wakes use up the only clone; so
//! such a wake gives one back. In both cases the next poll allocates nothing.
//!
//! No wake is lost. A wake sets `is_woken` and takes the outer waker, in one critical section; a poll puts it back before
//! it polls. A wake that finds no outer waker comes after one that has taken it, and before the next poll begins: this
//! poll sees everything that happened before both of them, because it takes the same lock.

use crate::record::Recorded;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Wake, Waker};

/// What a task and its wakers share.
pub(crate) struct Shared {
    pub(crate) recorded: Recorded,
    is_over: AtomicBool,
    /// True from a wake until the next poll begins, and before the first poll. It changes inside of the lock.
    is_woken: AtomicBool,
    /// True if the poll may keep its waker for the next one. It is a hint, which saves a clone.
    is_polled: AtomicBool,
    wakers: Mutex<Wakers>,
}

struct Wakers {
    /// The number of [`TaskWaker`]s that live: at most one, and those whose `Drop` runs.
    count: u32,
    /// The waker of whoever polls the task; taken by the first wake.
    outer: Option<Waker>,
    /// A waker for the next poll, if the last poll has kept none.
    returned: Option<Waker>,
    /// The waker that was made last.
    last: Weak<TaskWaker>,
}

impl Shared {
    pub(crate) fn new(recorded: Recorded) -> Arc<Self> {
        let wakers = Wakers { count: 0, outer: None, returned: None, last: Weak::new() };
        let [is_over, is_woken, is_polled] = [false, true, false].map(AtomicBool::new);
        Arc::new(Self { recorded, is_over, is_woken, is_polled, wakers: Mutex::new(wakers) })
    }

    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        // Relaxed: `end` stores it inside of the lock, and whoever must be certain loads it there.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Begins a poll. Returns the waker for the future inside, which may be what the last poll has kept.
    #[inline]
    pub(crate) fn begin_poll(self: &Arc<Self>, outer: &Waker, kept: Option<Waker>) -> Waker {
        let mut wakers = self.wakers();
        // Relaxed: who loads these outside of the lock decides only who keeps a waker.
        self.is_woken.store(false, Ordering::Relaxed);
        self.is_polled.store(true, Ordering::Relaxed);
        let other = match &wakers.outer {
            Some(known) if known.will_wake(outer) => None,
            _ => wakers.outer.replace(outer.clone()),
        };
        let (waker, spare) = match (kept, wakers.returned.take()) {
            (Some(kept), spare) => (kept, spare),
            (None, Some(returned)) => (returned, None),
            (None, None) => (self.waker(&mut wakers), None),
        };
        drop(wakers);
        // Outside of the lock: these may run code of another executor, and `TaskWaker::drop`.
        drop((other, spare));
        waker
    }

    /// Ends a poll. Returns its waker if the next poll shall have it. Otherwise the waker is dropped: if nobody has kept
    /// a clone, it is the last one, and its drop says so.
    #[inline]
    pub(crate) fn end_poll(&self, waker: Waker) -> Option<Waker> {
        self.is_polled.store(false, Ordering::Relaxed);
        self.is_woken.load(Ordering::Relaxed).then_some(waker)
    }

    /// Returns a waker that wakes as that of the last poll, so that a future need not register again.
    fn waker(self: &Arc<Self>, wakers: &mut Wakers) -> Waker {
        let known = wakers.last.upgrade();
        Waker::from(known.unwrap_or_else(|| {
            let new = Arc::new(TaskWaker { shared: self.clone() });
            wakers.count += 1;
            wakers.last = Arc::downgrade(&new);
            new
        }))
    }

    /// Notes that the task has ended. From now on nothing is recorded and nobody is woken.
    pub(crate) fn end(&self) {
        let mut wakers = self.wakers();
        self.is_over.store(true, Ordering::Relaxed);
        let rest = (wakers.outer.take(), wakers.returned.take());
        drop(wakers);
        drop(rest);
    }
}

/// The waker that the future of a task gets.
struct TaskWaker {
    shared: Arc<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[inline]
    fn wake_by_ref(self: &Arc<Self>) {
        let shared = &*self.shared;
        if shared.is_over() {
            return;
        }
        // Before the lock, so that the wake is recorded before the poll that it causes.
        shared.recorded.woken();
        let mut wakers = shared.wakers();
        if shared.is_over() {
            return;
        }
        shared.is_woken.store(true, Ordering::Relaxed);
        if wakers.returned.is_none() && !shared.is_polled.load(Ordering::Relaxed) {
            wakers.returned = Some(Waker::from(Arc::clone(self)));
        }
        let outer = wakers.outer.take();
        drop(wakers);
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

impl Drop for TaskWaker {
    fn drop(&mut self) {
        let shared = &*self.shared;
        let mut wakers = shared.wakers();
        wakers.count -= 1;
        let is_last = wakers.count == 0 && !shared.is_woken.load(Ordering::Relaxed) && !shared.is_over();
        drop(wakers);
        if is_last {
            shared.recorded.unwakeable();
        }
    }
}
