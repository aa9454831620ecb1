//! The threads that work for readers of captures: they decode blocks, and compress what is exported.

use std::sync::OnceLock;

/// Returns the threads. They are not those of rayon's global pool: a program may read a capture on such a thread, and
/// would then wait for itself. Returns `None` if no threads can be made.
pub(crate) fn worker_threads() -> Option<&'static rayon::ThreadPool> {
    static THREADS: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();
    let make = || rayon::ThreadPoolBuilder::new().thread_name(|_| "capture-worker".into()).build().ok();
    THREADS.get_or_init(make).as_ref()
}
