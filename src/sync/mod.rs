//! Locks that record who waits for them and who holds them.
//!
//! Each wraps the lock of std with the same name, and has its methods. The name is for readers: `eventring why` says
//! which lock a slow span has waited for, and who held it; `eventring open` shows who waits for whom, also after a kill.
//!
//! ```
//! use eventring::sync::Mutex;
//!
//! let accounts = Mutex::new("accounts", vec![100, 50]);
//! accounts.lock().unwrap()[0] -= 10;
//! ```
//!
//! A lock that is free costs two stores more than the one that is wrapped. A wait is recorded to the recorder in
//! [`PERF`](crate::tracing::PERF) when it ends, as a log record of the target `eventring::sync` and the level INFO that
//! no filter leaves out. Without a recorder, the locks record nothing.
//!
//! | field | meaning |
//! |---|---|
//! | `lock` | the number of the lock |
//! | `mode` | `mutex`, `read`, `write` or `condition` |
//! | `holder` | the id of the span in which the holder took the lock, when the wait began; of a condition, of who has notified it; 0 if there is none |
//! | `holder_thread` | the id of its thread in the recorder; 0 if nobody knows it |
//! | `waited_ns` | how long the wait was, in nanoseconds |

// The modules of this folder hold state that threads share with each other, or with code that interrupts them. They use
// the atomics of `std`. In models (tests under a model checker), the checker's atomics (`tests/models/src/checker.rs`)
// replace them.

#[cfg(not(any(loom, shuttle)))]
pub(crate) mod interrupted;
pub(crate) mod locked_section;
pub(crate) mod segmented;

#[cfg(not(any(loom, shuttle)))]
mod locks;
#[cfg(not(any(loom, shuttle)))]
pub use locks::*;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};

#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::atomic::AtomicBool;

#[cfg(not(any(loom, shuttle)))]
pub(crate) use std::sync::Mutex as PlainMutex;

#[cfg(any(loom, shuttle))]
pub(crate) use crate::checker::{AtomicU64, Mutex as PlainMutex, Ordering, compiler_fence, fence};

/// Adds `value` to the word with release ordering, executes a sequentially consistent fence, and returns the old value.
///
/// On x86-64 the locked instruction of the addition is also the fence. It drains the store buffer, so no earlier store
/// and no later load of this thread passes it (Intel SDM vol. 3A 9.2.3.9, AMD APM vol. 2 7.4.2). The two compiler
/// fences keep the compiler from reordering. On other machines, and in models, the fence is a separate operation.
#[inline(always)]
pub(crate) fn fetch_add_then_fence(word: &AtomicU64, value: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable))))]
    {
        compiler_fence(Ordering::SeqCst);
        let old = word.fetch_add(value, Ordering::SeqCst);
        compiler_fence(Ordering::SeqCst);
        old
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable)))))]
    {
        let old = word.fetch_add(value, Ordering::Release);
        fence(Ordering::SeqCst);
        old
    }
}

/// Adds `value` to a word that only the calling thread stores to, and returns the old value. A signal handler of the
/// thread cannot interrupt the addition half way. The addition is not atomic against other threads, and has no
/// ordering.
#[inline(always)]
pub(crate) fn local_fetch_add(word: &AtomicU64, value: u64) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable))))]
    return crate::arch::local::fetch_add(word, value);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable)))))]
    return word.fetch_add(value, Ordering::Relaxed);
}

/// Adds `value` like [`local_fetch_add`], but does not return the old value.
#[inline(always)]
pub(crate) fn local_add(word: &AtomicU64, value: u64) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable))))]
    crate::arch::local::add(word, value);
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, shuttle, eventring_portable)))))]
    word.fetch_add(value, Ordering::Relaxed);
}
