//! Locks that record who waits for them and who holds them, so that `eventring tasks` finds tasks that wait for each
//! other.
//!
//! Each of them wraps the lock of tokio with the same name. The task is the one that is polled on the thread. A guard
//! that is handed to another task is still that of the task that got it.
//!
//! | event | fields |
//! |---|---|
//! | `lock_wait` | `lock`: the number of the lock; `guard`: the number of this wait and of the guard that comes of it; `mode`: `mutex`, `read` or `write` |
//! | `lock_held` | the same; without a `lock_wait` before if the lock was free |
//! | `lock_free` | `lock` and `guard`, when the guard is dropped, or the wait was given up |

mod mutex;
mod rwlock;
mod turn;

pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
