//! A condition variable of std.

use super::guard::{Guard, MutexGuard, guarded, map};
use super::wait::Waiting;
use super::word::LockWord;
use crate::now::LockMode;
use std::sync::{self, LockResult, WaitTimeoutResult};
use std::time::Duration;

/// A [`std::sync::Condvar`] with a name, for a [`Mutex`](super::Mutex). It records each wait, with the span and thread
/// that has notified it last.
///
/// ```
/// use eventring::sync::{Condvar, Mutex};
///
/// let (is_ready, ready) = (Mutex::new("is_ready", false), Condvar::new("ready"));
/// std::thread::scope(|scope| {
///     scope.spawn(|| {
///         *is_ready.lock().unwrap() = true;
///         ready.notify_one();
///     });
///     let is_ready = ready.wait_while(is_ready.lock().unwrap(), |is_ready| !*is_ready).unwrap();
///     assert!(*is_ready);
/// });
/// ```
#[derive(Debug)]
pub struct Condvar {
    word: LockWord,
    inner: sync::Condvar,
}

impl Condvar {
    /// Makes a condition variable. Readers show the name, and the file and line of this call.
    #[track_caller]
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self { word: LockWord::new(name, false), inner: sync::Condvar::new() }
    }

    /// Frees the mutex, waits for a notification, and takes the mutex again. A wait may end without a notification.
    ///
    /// # Errors
    /// A thread has panicked while it held the mutex. The error has the guard, too.
    ///
    /// # Panics
    /// Where the condition variable of std does: if it is used with several mutexes.
    pub fn wait<'l, T>(&self, guard: MutexGuard<'l, T>) -> LockResult<MutexGuard<'l, T>> {
        let mut wait = Wait::new(self);
        let (mutex, inner) = release(guard);
        wait.begin();
        let got = self.inner.wait(inner);
        wait.end(true);
        guarded(|| mutex.taken(LockMode::Mutex), got)
    }

    /// Waits as [`Self::wait`] does, as long as the condition is true.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_while<'l, T>(
        &self,
        guard: MutexGuard<'l, T>,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'l, T>> {
        let mut wait = Wait::new(self);
        let (mutex, inner) = release(guard);
        let got = self.inner.wait_while(inner, wait.begin_if(condition));
        wait.end(true);
        guarded(|| mutex.taken(LockMode::Mutex), got)
    }

    /// Waits as [`Self::wait`] does, for this time at most.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_timeout<'l, T>(&self, guard: MutexGuard<'l, T>, timeout: Duration) -> LockResult<InTime<'l, T>> {
        let mut wait = Wait::new(self);
        let (mutex, inner) = release(guard);
        wait.begin();
        wait.end_in_time(mutex, self.inner.wait_timeout(inner, timeout))
    }

    /// Waits as long as the condition is true, and for this time at most. If the result says that the time is over, the
    /// condition is still true.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_timeout_while<'l, T>(
        &self,
        guard: MutexGuard<'l, T>,
        timeout: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<InTime<'l, T>> {
        let mut wait = Wait::new(self);
        let (mutex, inner) = release(guard);
        let got = self.inner.wait_timeout_while(inner, timeout, wait.begin_if(condition));
        wait.end_in_time(mutex, got)
    }

    /// Wakes one thread that waits.
    #[inline]
    pub fn notify_one(&self) {
        self.word.set_owner(LockMode::Condition);
        self.inner.notify_one();
    }

    /// Wakes all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.word.set_owner(LockMode::Condition);
        self.inner.notify_all();
    }
}

/// A guard, and whether the time was over before it was got.
type InTime<'l, T> = (MutexGuard<'l, T>, WaitTimeoutResult);

/// Notes that the guard is given up, and returns what it has.
fn release<'l, T>(guard: MutexGuard<'l, T>) -> (&'l LockWord, sync::MutexGuard<'l, T>) {
    (guard.turn.0, guard.inner)
}

/// A wait that may not have begun.
struct Wait<'c> {
    condvar: &'c Condvar,
    has_begun: bool,
    waiting: Option<Waiting<'c>>,
}

impl<'c> Wait<'c> {
    fn new(condvar: &'c Condvar) -> Self {
        Self { condvar, has_begun: false, waiting: None }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.waiting = Waiting::begin(&self.condvar.word, LockMode::Condition);
        }
    }

    /// Returns the condition, which begins the wait when it is true for the first time.
    fn begin_if<T>(&mut self, mut condition: impl FnMut(&mut T) -> bool) -> impl FnMut(&mut T) -> bool {
        move |value| {
            let waits = condition(value);
            if waits {
                self.begin();
            }
            waits
        }
    }

    fn end(self, is_notified: bool) {
        self.waiting.into_iter().for_each(|waiting| waiting.end(is_notified));
    }

    fn end_in_time<'l, T>(
        self,
        mutex: &'l LockWord,
        got: LockResult<(sync::MutexGuard<'l, T>, WaitTimeoutResult)>,
    ) -> LockResult<InTime<'l, T>> {
        map(got, |(inner, result)| {
            self.end(!result.timed_out());
            (Guard { turn: mutex.taken(LockMode::Mutex), inner }, result)
        })
    }
}
