//! A value that can be set several times. Every value that was ever set lives until the program ends.

use crate::sync::{AtomicPtr, Ordering};
use std::ptr;

/// An optional value. When another value is set, the previous value is leaked. It is never freed, because threads may
/// still be using it.
pub(crate) struct Leaked<T: Send + Sync + 'static>(AtomicPtr<T>);

impl<T: Send + Sync + 'static> Leaked<T> {
    /// Creates an empty value.
    pub(crate) const fn empty() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the value that was set last.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&'static T> {
        // Acquire, pairs with the release in `set`: the value was initialised before its address was stored, so it is
        // initialised when this thread uses it.
        let value = self.0.load(Ordering::Acquire);
        // SAFETY: the pointer is null, or it comes from a box that `set` leaked. The value of such a box is
        // initialised (see above), lives for the rest of the program, and is only ever shared.
        unsafe { value.as_ref() }
    }

    /// Sets the value.
    pub(crate) fn set(&self, value: T) {
        // Release, pairs with the acquire in `get`.
        self.0.store(Box::into_raw(Box::new(value)), Ordering::Release);
    }
}
