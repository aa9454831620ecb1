//! The threads that work for readers of captures: they decode blocks, and compress exports.

use std::sync::OnceLock;

/// The threads, and the process that has them.
struct Workers {
    process: u32,
    threads: Option<rayon::ThreadPool>,
}

/// Returns the threads. They are not those of rayon's global pool: a program may read a capture on such a thread, and
/// would then wait for itself. Returns `None` if no threads can be made, and in a forked child: it has a copy of the
/// pool without its threads, and would wait for ever for what it gives to them.
pub fn worker_threads() -> Option<&'static rayon::ThreadPool> {
    static WORKERS: OnceLock<Workers> = OnceLock::new();
    let make = || {
        // The threads never end, and run code of this library.
        eventring::internal::shm::keep_loaded();
        rayon::ThreadPoolBuilder::new().thread_name(|_| "capture-worker".into()).build().ok()
    };
    let workers = WORKERS.get_or_init(|| Workers { process: std::process::id(), threads: make() });
    workers.threads.as_ref().filter(|_| workers.process == std::process::id())
}
