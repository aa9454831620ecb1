//! The locks of [`crate::sync`]: each wraps a lock of std or of parking_lot.
//!
//! A lock that is free is taken as before, and the owner leaves its word: its span and its thread. Only who must wait
//! writes to the tables of the present, and records an event.
//!
//! | file | idea |
//! |---|---|
//! | `word` | what each lock keeps: its name, its place, the word of its owner |
//! | `wait` | one wait: its cells in the tables of the present, and its event |
//! | `site` | the call site of a lock, under which readers find its events |
//! | `guard` | the guard of all locks |
//! | `mutex`, `rwlock`, `condvar` | the locks of std |
//! | `parking_lot` | those of parking_lot |

mod condvar;
mod guard;
mod mutex;
#[cfg(feature = "parking_lot")]
pub mod parking_lot;
mod rwlock;
mod site;
#[cfg(test)]
mod tests;
mod wait;
mod word;

pub use condvar::Condvar;
pub use guard::{Guard, MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub use mutex::Mutex;
pub use rwlock::RwLock;
pub use wait::record_waits;
