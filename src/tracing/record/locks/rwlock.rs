//! A lock of std that has many readers or one writer.

use super::guard::{RwLockReadGuard, RwLockWriteGuard, guarded, tried};
use super::word::LockWord;
use crate::now::LockMode;
use std::fmt;
use std::sync::{self, LockResult, TryLockError, TryLockResult};

/// A [`std::sync::RwLock`] with a name. It records who waits for it, and who holds it: a writer, or the reader that
/// came last and has not left. Of other readers it knows nothing.
///
/// ```
/// let prices = eventring::sync::RwLock::new("prices", vec![1250]);
/// assert_eq!(prices.read().unwrap()[0], 1250);
/// prices.write().unwrap()[0] = 990;
/// ```
pub struct RwLock<T: ?Sized> {
    pub(super) word: LockWord,
    inner: sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Makes a lock. Readers show the name, and the file and line of this call.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str, value: T) -> Self {
        Self { word: LockWord::new(name, true), inner: sync::RwLock::new(value) }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// A writer has panicked. The error has the value, too.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until there is no writer, and takes the lock together with other readers.
    ///
    /// # Errors
    /// A writer has panicked. The error has the guard, too.
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        match self.try_read() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => self.read_slow(),
        }
    }

    #[cold]
    fn read_slow(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let (turn, got) = self.word.wait(LockMode::Read, || self.inner.read());
        guarded(|| turn, got)
    }

    /// Takes the lock together with other readers, if there is no writer.
    ///
    /// # Errors
    /// There is one, or a writer has panicked.
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        tried(|| self.word.taken(LockMode::Read), self.inner.try_read())
    }

    /// Waits until the lock is free, and takes it alone.
    ///
    /// # Errors
    /// A writer has panicked. The error has the guard, too.
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        match self.try_write() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => self.write_slow(),
        }
    }

    #[cold]
    fn write_slow(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let (turn, got) = self.word.wait(LockMode::Write, || self.inner.write());
        guarded(|| turn, got)
    }

    /// Takes the lock alone, if it is free.
    ///
    /// # Errors
    /// It is not, or a writer has panicked.
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        tried(|| self.word.taken(LockMode::Write), self.inner.try_write())
    }

    /// Returns the value of a lock that nobody else can reach.
    ///
    /// # Errors
    /// A writer has panicked. The error has the value, too.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Returns true if a writer has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a writer has panicked.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
