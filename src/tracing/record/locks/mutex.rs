//! A mutex of std.

use super::guard::{MutexGuard, guarded, tried};
use super::word::LockWord;
use crate::now::LockMode;
use std::fmt;
use std::sync::{self, LockResult, TryLockError, TryLockResult};

/// A [`std::sync::Mutex`] with a name. It records who waits for it and who holds it.
///
/// ```
/// use eventring::sync::Mutex;
///
/// static ACCOUNTS: Mutex<Vec<u32>> = Mutex::new("accounts", Vec::new());
///
/// ACCOUNTS.lock().unwrap().push(7);
/// assert_eq!(*ACCOUNTS.lock().unwrap(), [7]);
/// ```
pub struct Mutex<T: ?Sized> {
    word: LockWord,
    inner: sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex. Readers show the name, and the file and line of this call.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str, value: T) -> Self {
        Self { word: LockWord::new(name, false), inner: sync::Mutex::new(value) }
    }

    /// Returns the value.
    ///
    /// # Errors
    /// A thread has panicked while it held the mutex. The error has the value, too.
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free, and takes it.
    ///
    /// # Errors
    /// A thread has panicked while it held the mutex. The error has the guard, too.
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Err(poisoned),
            Err(TryLockError::WouldBlock) => self.lock_slow(),
        }
    }

    #[cold]
    fn lock_slow(&self) -> LockResult<MutexGuard<'_, T>> {
        let (turn, got) = self.word.wait(LockMode::Mutex, || self.inner.lock());
        guarded(|| turn, got)
    }

    /// Takes the mutex if it is free.
    ///
    /// # Errors
    /// It is held, or a thread has panicked while it held the mutex.
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        tried(|| self.word.taken(LockMode::Mutex), self.inner.try_lock())
    }

    /// Returns the value of a mutex that nobody else can reach.
    ///
    /// # Errors
    /// A thread has panicked while it held the mutex. The error has the value, too.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    /// Returns true if a thread has panicked while it held the mutex.
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// Forgets that a thread has panicked while it held the mutex.
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
