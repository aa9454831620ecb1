//! Locks that record which tasks wait for a lock and which tasks hold it. So `eventring tasks` finds tasks that wait
//! for each other.
//!
//! Each lock wraps the lock of tokio with the same name. A wait or guard belongs to the task that the thread was
//! polling when the wait began, even if the guard is moved to another task.
//!
//! | event | fields |
//! |---|---|
//! | `lock_wait` | `lock`: the number of the lock; `guard`: the number of this wait and of the guard that it returns; `mode`: `mutex`, `read` or `write` |
//! | `lock_held` | the same fields; if the lock was free, there is no `lock_wait` before |
//! | `lock_free` | `lock` and `guard`; recorded when the guard is dropped, or the wait is cancelled |

mod mutex;
mod rwlock;
mod turn;

pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
