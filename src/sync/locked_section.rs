//! Locked sections: code that a thread runs while it holds a lock of this crate, or while it initialises something that
//! is made once.
//!
//! A recording call that finds its thread inside a locked section does not wait for a lock. It continues without the
//! data that the lock protects. Such a call comes from the program's allocator or from a signal handler.
//!
//! If the call waited, it could deadlock: the lock may be held by the same thread, or by another thread that waits for
//! a lock of this thread.

use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    // This thread-local has no destructor. So it can be used until the thread's last instruction.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A guard: the thread is inside a locked section until it is dropped. Declare it before the lock, so that it is
/// dropped after the lock.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub(crate) struct LockedSection {
    _not_send: std::marker::PhantomData<*const ()>,
}

impl LockedSection {
    /// Begins a locked section. Returns `None` if the thread is inside one already: then it must not wait for a lock.
    pub(crate) fn enter() -> Option<Self> {
        let is_first = !IS_INSIDE.replace(true);
        // Not `then_some`, which would make a guard, and drop it, in every case.
        is_first.then(|| Self { _not_send: std::marker::PhantomData })
    }

    /// Returns true if the thread is inside a locked section.
    pub(crate) fn is_inside() -> bool {
        IS_INSIDE.get()
    }
}

impl Drop for LockedSection {
    fn drop(&mut self) {
        IS_INSIDE.set(false);
    }
}

/// Returns the value of `cell`. If there is none yet, `make` makes it, and no other thread waits meanwhile: threads
/// that do this at the same time make a value each, and one of these values stays.
///
/// `make` may come here again, which `OnceLock::get_or_init` does not allow.
pub fn get_or_make<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(value) => value,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_inside_until_the_first_guard_is_dropped() {
        let outer = LockedSection::enter();
        assert!(outer.is_some() && LockedSection::is_inside());
        assert!(LockedSection::enter().is_none());
        assert!(LockedSection::is_inside(), "a refusal ends nothing");
        std::thread::spawn(|| assert!(!LockedSection::is_inside())).join().unwrap();
        drop(outer);
        assert!(!LockedSection::is_inside());
    }

    #[test]
    fn a_value_may_be_made_while_it_is_being_made() {
        let cell = OnceLock::new();
        assert_eq!(get_or_make(&cell, || *get_or_make(&cell, || 1) + 1), &1);
    }
}
