//! The locks that programs see.

#[cfg(feature = "parking_lot")]
pub use crate::tracing::record::locks::parking_lot;
#[cfg(feature = "tracing")]
pub use crate::tracing::record::locks::{Condvar, Guard, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
