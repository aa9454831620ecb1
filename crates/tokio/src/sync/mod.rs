//! Locks that record which tasks wait for them and hold them, so that `eventring tasks` finds tasks that wait for each
//! other.
//!
//! Each lock wraps the lock of tokio with the same name. A wait or guard belongs to the task that the thread was
//! polling. A guard that is moved to another task still belongs to the first task.
//!
//! | event | fields |
//! |---|---|
//! | `lock_wait` | `lock`: the number of the lock; `guard`: the number of this wait and of the guard that it returns; `mode`: `mutex`, `read` or `write` |
//! | `lock_held` | the same; no `lock_wait` comes before if the lock was free |
//! | `lock_free` | `lock` and `guard`, when the guard is dropped, or the wait was given up |

mod mutex;
mod rwlock;
mod turn;

pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
