//! The waker of a task: it records each wake, forwards it, and notices when nobody is left who can wake the task.
//!
//! A [`TaskWaker`] is what the future inside gets. Its clones are clones of one `Arc`, so its `Drop` runs when the last of
//! them is gone. Most wakes use up the only clone; so a wake gives one back for the next poll, which then allocates
//! nothing.
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
    wakers: Mutex<Wakers>,
}

struct Wakers {
    /// True from a wake until the next poll begins, and before the first poll.
    is_woken: bool,
    /// The number of [`TaskWaker`]s that live: at most one, and those whose `Drop` runs.
    count: u32,
    /// The waker of whoever polls the task; taken by the first wake.
    outer: Option<Waker>,
    /// A waker for the next poll.
    returned: Option<Waker>,
    /// The waker that was made last.
    last: Weak<TaskWaker>,
}

impl Shared {
    pub(crate) fn new(recorded: Recorded) -> Arc<Self> {
        let wakers = Wakers { is_woken: true, count: 0, outer: None, returned: None, last: Weak::new() };
        Arc::new(Self { recorded, is_over: AtomicBool::new(false), wakers: Mutex::new(wakers) })
    }

    fn wakers(&self) -> MutexGuard<'_, Wakers> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        // Relaxed: `end` stores it inside of the lock, and whoever must be certain loads it there.
        self.is_over.load(Ordering::Relaxed)
    }

    /// Begins a poll. Returns the waker for the future inside.
    #[inline]
    pub(crate) fn begin_poll(self: &Arc<Self>, outer: &Waker) -> Waker {
        let mut wakers = self.wakers();
        wakers.is_woken = false;
        let other = match &wakers.outer {
            Some(known) if known.will_wake(outer) => None,
            _ => wakers.outer.replace(outer.clone()),
        };
        let waker = wakers.returned.take().unwrap_or_else(|| self.waker(&mut wakers));
        drop(wakers);
        // Outside of the lock: this may run code of another executor.
        drop(other);
        waker
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
        wakers.is_woken = true;
        if wakers.returned.is_none() {
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
        let is_last = wakers.count == 0 && !wakers.is_woken && !shared.is_over();
        drop(wakers);
        if is_last {
            shared.recorded.unwakeable();
        }
    }
}
