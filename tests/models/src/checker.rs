//! The atomics of the model checker. They replace the atomics of `src/sync/mod.rs`. Each access first calls `step`, which
//! may run a test's signal handler on the thread. Then the access calls the checker, which can stop the thread at
//! this point.

#[cfg(loom)]
pub(crate) use loom::sync::Mutex;
#[cfg(loom)]
use loom::{sync::atomic as checked, thread_local};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::Mutex;
#[cfg(shuttle)]
use shuttle::{sync::atomic as checked, thread_local};
use std::cell::RefCell;

pub(crate) use checked::Ordering;

type Interrupt = Box<dyn FnOnce()>;

thread_local! {
    /// The interrupt that is planned for this thread, and how many atomic accesses the thread makes before the
    /// interrupt.
    static PENDING: RefCell<Option<(u64, Interrupt)>> = RefCell::new(None);
}

/// Plans an interrupt of this thread: `interrupt` is called immediately before an atomic access of the thread.
/// `accesses` says how many accesses the thread makes before that.
pub(crate) fn interrupt_before(accesses: u64, interrupt: impl FnOnce() + 'static) {
    PENDING.with(|pending| *pending.borrow_mut() = Some((accesses, Box::new(interrupt))));
}

/// Cancels the planned interrupt of this thread. Returns true if the interrupt had not run yet.
pub(crate) fn cancel_interrupt() -> bool {
    PENDING.with(|pending| pending.borrow_mut().take()).is_some()
}

fn step() {
    let due = PENDING.with(|pending| {
        let mut pending = pending.borrow_mut();
        match pending.as_mut() {
            Some((0, _)) => pending.take(),
            Some((accesses, _)) => {
                *accesses -= 1;
                None
            }
            None => None,
        }
    });
    if let Some((_, interrupt)) = due {
        interrupt();
    }
}

/// Executes a fence of the checker.
pub(crate) fn fence(order: Ordering) {
    step();
    checked::fence(order);
}

/// Takes a step in place of a compiler fence. It does not call the checker, because the checker does not model
/// reordering by the compiler.
pub(crate) fn compiler_fence(_: Ordering) {
    step();
}

/// An atomic word of the checker.
#[derive(Debug)]
pub(crate) struct AtomicU64(checked::AtomicU64);

impl AtomicU64 {
    pub(crate) fn new(value: u64) -> Self {
        Self(checked::AtomicU64::new(value))
    }

    pub(crate) fn load(&self, order: Ordering) -> u64 {
        step();
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        step();
        self.0.store(value, order);
    }

    pub(crate) fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_add(value, order)
    }

    pub(crate) fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_sub(value, order)
    }

    pub(crate) fn fetch_or(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_or(value, order)
    }

    pub(crate) fn fetch_max(&self, value: u64, order: Ordering) -> u64 {
        step();
        self.0.fetch_max(value, order)
    }

    pub(crate) fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        step();
        self.0.compare_exchange(current, new, success, failure)
    }
}
