//! The locks of [`parking_lot`](https://docs.rs/parking_lot) with names. They record what the locks of
//! [`eventring::sync`](crate::sync) record.
//!
//! ```
//! use eventring::sync::parking_lot::Mutex;
//!
//! static ACCOUNTS: Mutex<Vec<u32>> = Mutex::new("accounts", Vec::new());
//!
//! ACCOUNTS.lock().push(7);
//! assert_eq!(*ACCOUNTS.lock(), [7]);
//! ```

use super::guard::Guard;
use super::wait::Waiting;
use super::word::LockWord;
use crate::now::LockMode;
use ::parking_lot as inner;
use std::fmt;
use std::time::Duration;

/// The guard of a [`Mutex`].
#[doc(hidden)]
pub type MutexGuard<'l, T> = Guard<'l, inner::MutexGuard<'l, T>>;
/// The guard of a [`RwLock`] that others may read, too.
#[doc(hidden)]
pub type RwLockReadGuard<'l, T> = Guard<'l, inner::RwLockReadGuard<'l, T>>;
/// The guard of a [`RwLock`] that nobody else has.
#[doc(hidden)]
pub type RwLockWriteGuard<'l, T> = Guard<'l, inner::RwLockWriteGuard<'l, T>>;

/// The mutex of `parking_lot`, with a name.
pub struct Mutex<T: ?Sized> {
    word: LockWord,
    inner: inner::Mutex<T>,
}

/// The lock of `parking_lot` with many readers or one writer, with a name.
pub struct RwLock<T: ?Sized> {
    word: LockWord,
    inner: inner::RwLock<T>,
}

/// The condition variable of `parking_lot`, with a name, for a [`Mutex`].
#[derive(Debug)]
pub struct Condvar {
    word: LockWord,
    inner: inner::Condvar,
}

/// Makes the methods that take a lock in one of its ways.
macro_rules! ways {
    ($mode:ident, $guard:ident: $(#[$lock_doc:meta])* $lock:ident, $(#[$try_doc:meta])* $try_lock:ident, $(#[$for_doc:meta])* $try_for:ident) => {
        $(#[$lock_doc])*
        #[inline]
        pub fn $lock(&self) -> $guard<'_, T> {
            match self.$try_lock() {
                Some(guard) => guard,
                None => {
                    let (turn, inner) = self.word.wait(LockMode::$mode, || self.inner.$lock());
                    Guard { turn, inner }
                }
            }
        }

        $(#[$try_doc])*
        #[inline]
        pub fn $try_lock(&self) -> Option<$guard<'_, T>> {
            let inner = self.inner.$try_lock()?;
            Some(Guard { turn: self.word.taken(LockMode::$mode), inner })
        }

        $(#[$for_doc])*
        pub fn $try_for(&self, timeout: Duration) -> Option<$guard<'_, T>> {
            self.$try_lock().or_else(|| {
                let (turn, inner) = self.word.wait_for(LockMode::$mode, || self.inner.$try_for(timeout))?;
                Some(Guard { turn, inner })
            })
        }
    };
}

/// Makes the methods of a lock that take nothing.
macro_rules! lock {
    ($lock:ident, $has_readers:literal) => {
        impl<T> $lock<T> {
            /// Makes a lock. Readers show the name, and the file and line of this call.
            #[track_caller]
            #[must_use]
            pub const fn new(name: &'static str, value: T) -> Self {
                Self { word: LockWord::new(name, $has_readers), inner: inner::$lock::new(value) }
            }

            /// Returns the value.
            pub fn into_inner(self) -> T {
                self.inner.into_inner()
            }
        }

        impl<T: ?Sized> $lock<T> {
            /// Returns the value of a lock that nobody else can reach.
            pub fn get_mut(&mut self) -> &mut T {
                self.inner.get_mut()
            }

            /// Returns true if somebody holds the lock.
            pub fn is_locked(&self) -> bool {
                self.inner.is_locked()
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $lock<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }
    };
}

lock!(Mutex, false);
lock!(RwLock, true);

impl<T: ?Sized> Mutex<T> {
    ways! { Mutex, MutexGuard:
        /// Waits until the mutex is free, and takes it.
        lock,
        /// Takes the mutex if it is free.
        try_lock,
        /// Waits for this time at most until the mutex is free, and takes it.
        try_lock_for
    }
}

impl<T: ?Sized> RwLock<T> {
    ways! { Read, RwLockReadGuard:
        /// Waits until there is no writer, and takes the lock together with other readers.
        read,
        /// Takes the lock together with other readers, if there is no writer.
        try_read,
        /// Waits for this time at most until there is no writer, and takes the lock together with other readers.
        try_read_for
    }
    ways! { Write, RwLockWriteGuard:
        /// Waits until the lock is free, and takes it alone.
        write,
        /// Takes the lock alone, if it is free.
        try_write,
        /// Waits for this time at most until the lock is free, and takes it alone.
        try_write_for
    }
}

impl Condvar {
    /// Makes a condition variable. Readers show the name, and the file and line of this call.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { word: LockWord::new(name, false), inner: inner::Condvar::new() }
    }

    /// Frees the mutex, waits for a notification, and takes the mutex again.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        guard.turn.release();
        let waiting = Waiting::begin(&self.word, LockMode::Condition);
        self.inner.wait(&mut guard.inner);
        waiting.into_iter().for_each(|waiting| waiting.end(true));
        guard.turn.retake(LockMode::Mutex);
    }

    /// Waits as [`Self::wait`] does, for this time at most.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> inner::WaitTimeoutResult {
        guard.turn.release();
        let waiting = Waiting::begin(&self.word, LockMode::Condition);
        let result = self.inner.wait_for(&mut guard.inner, timeout);
        waiting.into_iter().for_each(|waiting| waiting.end(!result.timed_out()));
        guard.turn.retake(LockMode::Mutex);
        result
    }

    /// Waits as [`Self::wait`] does, as long as the condition is true.
    pub fn wait_while<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, mut condition: impl FnMut(&mut T) -> bool) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    /// Wakes one thread that waits. Returns false if there is none.
    #[inline]
    pub fn notify_one(&self) -> bool {
        self.word.set_owner(LockMode::Condition);
        self.inner.notify_one()
    }

    /// Wakes all threads that wait, and returns how many.
    #[inline]
    pub fn notify_all(&self) -> usize {
        self.word.set_owner(LockMode::Condition);
        self.inner.notify_all()
    }
}
