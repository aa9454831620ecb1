//! A value for the rest of the program, set when its time comes.

use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

/// Empty, or a value that is never freed, because threads may be using it. Setting another one leaks the one before.
pub(crate) struct Leaked<T: Send + Sync + 'static>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Leaked<T> {
    /// Nothing yet.
    pub(crate) const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// The value set last.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire: pairs with the release in `set`; with the pointer comes the value behind it.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: null, or a box that `set` leaked: valid, and only shared, for the rest of the program.
        unsafe { value.as_ref() }
    }

    /// Sets the value.
    pub(crate) fn set(&self, value: T) {
        // Release: see `get`.
        self.0.store(Box::into_raw(Box::new(value)), Ordering::Release);
    }
}
