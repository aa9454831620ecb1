//! The waker of a task. It records and forwards wakes, and records the loss of the last waker.
//!
//! The future of the task gets a [`TaskWaker`]. The waker's clones share one `Arc`, so `TaskWaker::drop` runs when the
//! last clone is dropped. The next poll allocates nothing in two cases:
//!
//! - If a task is woken while it is polled, the next poll uses the waker again.
//! - If a wake consumes the only clone, the waker is returned to the task.
//!
//! The *outer waker* is the waker of whoever polls the task. No wake is lost. `is_woken` changes only by `swap`, which
//! both acquires and releases:
//!
//! - If a wake finds `is_woken` false, it reads the value that the last poll's `swap` has stored. So the wake sees the
//!   outer waker of the last poll, and wakes it.
//! - If a wake finds `is_woken` true, an earlier wake wakes the outer waker, and the next poll has not begun. The
//!   `swap` of the next poll follows both wakes, so the poll sees everything that happened before them.
//!
//! `waker_model` tests the interleavings.

use super::primitives::{AtomicBool, Mutex, MutexGuard};
use super::record::Recorded;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, Weak};
use std::task::{Wake, Waker};

/// What a task and its wakers share.
pub(crate) struct Shared {
    pub(crate) recorded: Recorded,
    is_over: AtomicBool,
    /// True from a wake until the next poll begins, and before the first poll.
    is_woken: AtomicBool,
    /// True if the poll may keep its waker for the next one. It is a hint, which saves a clone.
    is_polled: AtomicBool,
    /// The waker of whoever polls the task, as of the first poll. Most executors never have another one for a task.
    first: OnceLock<Waker>,
    /// True if `Wakers::other` stands for `first`.
    has_other: AtomicBool,
    /// True if there is a `Wakers::returned`.
    has_returned: AtomicBool,
    wakers: Mutex<Wakers>,
}

struct Wakers {
    /// The number of [`TaskWaker`]s that live: at most one, and those whose `Drop` runs.
    count: u32,
    /// The waker of whoever polled the task last, if it is not that of the first poll.
    other: Option<Waker>,
    /// A waker for the next poll, if the last poll has kept none.
    returned: Option<Waker>,
    /// The waker that was made last.
    last: Weak<TaskWaker>,
}

impl Shared {
    pub(crate) fn new(recorded: Recorded) -> Arc<Self> {
        let wakers = Wakers { count: 0, other: None, returned: None, last: Weak::new() };
        Arc::new(Self {
            recorded,
            is_over: AtomicBool::new(false),
            is_woken: AtomicBool::new(true),
            is_polled: AtomicBool::new(false),
            first: OnceLock::new(),
            has_other: AtomicBool::new(false),
            has_returned: AtomicBool::new(false),
            wakers: Mutex::new(wakers),
        })
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
        let is_first = self.first.get_or_init(|| outer.clone()).will_wake(outer);
        // Relaxed: only polls change `has_other`. A wake that gives a waker back does so before it wakes.
        let is_usual =
            is_first && !self.has_other.load(Ordering::Relaxed) && !self.has_returned.load(Ordering::Relaxed);
        let waker = match kept {
            Some(kept) if is_usual => kept,
            kept => self.begin_poll_slow(outer, is_first, kept),
        };
        self.is_polled.store(true, Ordering::Relaxed);
        // Last: from here on, wakes wake the new outer waker, and the drop of another waker may say that it was the
        // last.
        self.is_woken.swap(false, Ordering::AcqRel);
        waker
    }

    #[inline(never)]
    fn begin_poll_slow(self: &Arc<Self>, outer: &Waker, is_first: bool, kept: Option<Waker>) -> Waker {
        let mut wakers = self.wakers();
        let old = match &wakers.other {
            Some(known) if !is_first && known.will_wake(outer) => None,
            _ => std::mem::replace(&mut wakers.other, (!is_first).then(|| outer.clone())),
        };
        self.has_other.store(!is_first, Ordering::Relaxed);
        self.has_returned.store(false, Ordering::Relaxed);
        let (waker, spare) = match (kept, wakers.returned.take()) {
            (Some(kept), spare) => (kept, spare),
            (None, Some(returned)) => (returned, None),
            (None, None) => (self.waker(&mut wakers), None),
        };
        drop(wakers);
        // Outside of the lock: these may run code of another executor, and `TaskWaker::drop`.
        drop((old, spare));
        waker
    }

    /// Ends a poll. Returns its waker if the next poll shall have it. Otherwise the waker is dropped: if nobody has
    /// kept a clone, it is the last one, and its drop says so.
    #[inline]
    pub(crate) fn end_poll(&self, waker: Waker) -> Option<Waker> {
        // Relaxed: this decides only who keeps a waker.
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

    /// Wakes whoever polls the task.
    #[inline]
    fn wake(&self) {
        // Relaxed: the `swap` that found `is_woken` false has acquired what the last poll stored.
        if self.has_other.load(Ordering::Relaxed) {
            let other = self.wakers().other.clone();
            // Outside of the lock: this runs code of another executor.
            other.into_iter().for_each(Waker::wake);
        } else if let Some(first) = self.first.get() {
            first.wake_by_ref();
        }
    }

    /// Notes that the task has ended. From now on nothing is recorded.
    pub(crate) fn end(&self) {
        let mut wakers = self.wakers();
        self.is_over.store(true, Ordering::Relaxed);
        let rest = (wakers.other.take(), wakers.returned.take());
        drop(wakers);
        drop(rest);
    }
}

/// The waker that the future of a task gets.
struct TaskWaker {
    shared: Arc<Shared>,
}

impl TaskWaker {
    /// Gives a waker back for the next poll.
    fn give_back(self: &Arc<Self>) {
        let mut wakers = self.shared.wakers();
        if wakers.returned.is_none() && !self.shared.is_over() {
            wakers.returned = Some(Waker::from(Arc::clone(self)));
            self.shared.has_returned.store(true, Ordering::Relaxed);
        }
    }
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
        // First, so that the wake is recorded before the poll that it causes.
        shared.recorded.woken();
        if shared.is_woken.swap(true, Ordering::AcqRel) {
            return;
        }
        if !shared.is_polled.load(Ordering::Relaxed) {
            self.give_back();
        }
        shared.wake();
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
