//! Forks: the child begins with the thread that forked, and with no instructions.

use crate::slots::{Threads, threads};
use std::cell::RefCell;
use std::io;
use std::sync::MutexGuard;

thread_local! {
    /// The lock of the slots, which a forking thread holds. Otherwise another thread could hold the lock, and the child
    /// would wait forever.
    static HELD: RefCell<Option<MutexGuard<'static, Threads>>> = const { RefCell::new(None) };
}

/// Makes each fork of the process call the functions of this module.
pub fn follow() -> Result<(), String> {
    // SAFETY: the three functions live as long as the library, and glibc forgets them if the library is unloaded.
    let error = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    if error == 0 {
        return Ok(());
    }
    Err(format!("pthread_atfork failed: {}; free some memory", io::Error::from_raw_os_error(error)))
}

extern "C" fn before() {
    HELD.set(Some(threads()));
}

extern "C" fn after_in_parent() {
    HELD.take();
}

extern "C" fn after_in_child() {
    if let Some(mut threads) = HELD.take() {
        threads.begin_child();
    }
}
