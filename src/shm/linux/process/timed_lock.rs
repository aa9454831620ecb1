//! Locking with a timeout, because a lock may be held for ever in a forked child.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

/// The time after which a thread gives up waiting for a lock. These locks are held for microseconds,
/// except in a forked child whose parent held one at the fork: there it is held for ever.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Locks a mutex. Returns `None` if the lock does not become free.
pub(crate) fn lock_with_timeout<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    let start = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(locked) => return Some(locked),
            // The values behind these locks are consistent between any two statements.
            Err(TryLockError::Poisoned(locked)) => return Some(locked.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() > TIMEOUT => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}
