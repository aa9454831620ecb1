//! A recorded lock for readers and a writer.

use super::turn::{LockId, Turn};
use std::fmt;
use std::ops::{Deref, DerefMut};
use tokio::sync::TryLockError;

/// A [`tokio::sync::RwLock`] that records who waits for it and who holds it.
///
/// ```
/// use eventring_tokio::sync::RwLock;
///
/// let names = RwLock::new(vec!["one"]);
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// names.write().await.push("two");
/// assert_eq!(names.read().await.len(), 2);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    id: LockId,
    inner: tokio::sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Makes a lock.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self { id: LockId::new(), inner: tokio::sync::RwLock::const_new(value) }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes, and reads.
    pub async fn read(&self) -> RwLockReadGuard<'_, T> {
        let (inner, turn) = Turn::wait(&self.id, "read", self.inner.read()).await;
        RwLockReadGuard { _turn: turn, inner }
    }

    /// Waits until nobody reads or writes, and writes.
    pub async fn write(&self) -> RwLockWriteGuard<'_, T> {
        let (inner, turn) = Turn::wait(&self.id, "write", self.inner.write()).await;
        RwLockWriteGuard { _turn: turn, inner }
    }

    /// Reads if nobody writes.
    ///
    /// # Errors
    /// Somebody writes, or waits to write.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        let (inner, turn) = Turn::tried(&self.id, "read", self.inner.try_read())?;
        Ok(RwLockReadGuard { _turn: turn, inner })
    }

    /// Writes if nobody reads or writes.
    ///
    /// # Errors
    /// Somebody reads or writes.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        let (inner, turn) = Turn::tried(&self.id, "write", self.inner.try_write())?;
        Ok(RwLockWriteGuard { _turn: turn, inner })
    }

    /// Returns the value of a lock that nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// The right to read the value of a [`RwLock`]. Its drop frees the lock.
///
/// ```
/// let lock = eventring_tokio::sync::RwLock::new(7);
/// let (one, two) = (lock.try_read()?, lock.try_read()?);
/// assert!(*one == *two && lock.try_write().is_err());
/// # Ok::<(), tokio::sync::TryLockError>(())
/// ```
#[must_use = "the lock is free as soon as the guard is dropped"]
pub struct RwLockReadGuard<'l, T: ?Sized> {
    // Dropped first: whoever takes the lock next records it later.
    _turn: Turn,
    inner: tokio::sync::RwLockReadGuard<'l, T>,
}

/// The right to write the value of a [`RwLock`]. Its drop frees the lock.
///
/// ```
/// let lock = eventring_tokio::sync::RwLock::new(7);
/// *lock.try_write()? += 1;
/// assert_eq!(*lock.try_read()?, 8);
/// # Ok::<(), tokio::sync::TryLockError>(())
/// ```
#[must_use = "the lock is free as soon as the guard is dropped"]
pub struct RwLockWriteGuard<'l, T: ?Sized> {
    // Dropped first, like that of a reader.
    _turn: Turn,
    inner: tokio::sync::RwLockWriteGuard<'l, T>,
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
