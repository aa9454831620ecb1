//! A recorded mutex.

use super::turn::{LockId, Turn};
use std::fmt;
use std::ops::{Deref, DerefMut};
use tokio::sync::TryLockError;

/// A [`tokio::sync::Mutex`] that records who waits for it and who holds it.
///
/// ```
/// use eventring_tokio::sync::Mutex;
///
/// static COUNT: Mutex<u32> = Mutex::new(1);
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// *COUNT.lock().await += 1;
/// assert_eq!(*COUNT.lock().await, 2);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    id: LockId,
    inner: tokio::sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { id: LockId::new(), inner: tokio::sync::Mutex::const_new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and takes it.
    pub async fn lock(&self) -> MutexGuard<'_, T> {
        let (inner, turn) = Turn::wait(&self.id, "mutex", self.inner.lock()).await;
        MutexGuard { _turn: turn, inner }
    }

    /// Takes the mutex if it is free.
    ///
    /// # Errors
    /// It is held.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        let (inner, turn) = Turn::tried(&self.id, "mutex", self.inner.try_lock())?;
        Ok(MutexGuard { _turn: turn, inner })
    }

    /// Returns the value of a mutex that nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

/// The right to the value of a [`Mutex`]. Its drop frees the mutex.
///
/// ```
/// let mutex = eventring_tokio::sync::Mutex::new(7);
/// let guard = mutex.try_lock()?;
/// assert!(*guard == 7 && mutex.try_lock().is_err());
/// # Ok::<(), tokio::sync::TryLockError>(())
/// ```
#[must_use = "the mutex is free as soon as the guard is dropped"]
pub struct MutexGuard<'m, T: ?Sized> {
    // Dropped first: whoever takes the mutex next records it later.
    _turn: Turn,
    inner: tokio::sync::MutexGuard<'m, T>,
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
