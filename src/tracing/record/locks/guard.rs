//! The guard of all locks.

use super::word::Turn;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError, TryLockError, TryLockResult};

/// The right to the value of a lock. Its drop frees the lock. `G` is the guard of the lock that is wrapped.
///
/// The names [`MutexGuard`], [`RwLockReadGuard`] and [`RwLockWriteGuard`] are those of std.
#[must_use = "the lock is free as soon as the guard is dropped"]
pub struct Guard<'l, G> {
    // Dropped first: a cell that says who holds the lock is free before the lock is.
    pub(super) turn: Turn<'l>,
    pub(super) inner: G,
}

/// The guard of a [`Mutex`](super::Mutex).
#[doc(hidden)]
pub type MutexGuard<'l, T> = Guard<'l, sync::MutexGuard<'l, T>>;
/// The guard of a [`RwLock`](super::RwLock) that others may read, too.
#[doc(hidden)]
pub type RwLockReadGuard<'l, T> = Guard<'l, sync::RwLockReadGuard<'l, T>>;
/// The guard of a [`RwLock`](super::RwLock) that nobody else has.
#[doc(hidden)]
pub type RwLockWriteGuard<'l, T> = Guard<'l, sync::RwLockWriteGuard<'l, T>>;

impl<G: Deref> Deref for Guard<'_, G> {
    type Target = G::Target;

    #[inline(always)]
    fn deref(&self) -> &G::Target {
        &self.inner
    }
}

impl<G: DerefMut> DerefMut for Guard<'_, G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.inner
    }
}

impl<G: fmt::Debug> fmt::Debug for Guard<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<G: fmt::Display> fmt::Display for Guard<'_, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// Makes a guard of what std returns.
#[inline(always)]
pub(super) fn guarded<'l, G>(turn: impl FnOnce() -> Turn<'l>, got: LockResult<G>) -> LockResult<Guard<'l, G>> {
    map(got, |inner| Guard { turn: turn(), inner })
}

/// Changes what std returns, whether it is poisoned or not.
#[inline(always)]
pub(super) fn map<A, B>(got: LockResult<A>, change: impl FnOnce(A) -> B) -> LockResult<B> {
    match got {
        Ok(got) => Ok(change(got)),
        Err(poisoned) => Err(PoisonError::new(change(poisoned.into_inner()))),
    }
}

/// Makes a guard of what a lock that is free gives. Returns `Ok(None)` if it is held.
#[inline(always)]
pub(super) fn tried<'l, G>(turn: impl FnOnce() -> Turn<'l>, got: TryLockResult<G>) -> TryLockResult<Guard<'l, G>> {
    match got {
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Poisoned(poisoned)) => Ok(guarded(turn, Err(poisoned))?),
        Ok(inner) => Ok(guarded(turn, Ok(inner))?),
    }
}
