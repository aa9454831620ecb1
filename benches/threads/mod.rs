//! Threads that run at the same time, timed by the wall clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs `work(thread)` on `threads` new threads. Returns the time from the earliest start to the latest end.
///
/// While there are enough processors, each thread has a processor of its own. Each thread calls `first` before
/// the start. So work that a thread does only once is not measured.
///
/// Each thread notes its own start and end. If a separate thread measured the time, it might read its clock late,
/// because the processors are busy. A sum of the threads' durations would not show whether the threads ran at the
/// same time.
pub fn run_together(threads: usize, first: impl Fn() + Sync, work: impl Fn(usize) + Sync) -> Duration {
    let ready = AtomicUsize::new(0);
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let (first, work, ready) = (&first, &work, &ready);
        let run = move |thread| {
            stay_on_processor(thread);
            first();
            ready.fetch_add(1, Ordering::SeqCst);
            // A thread that slept here would start late.
            while ready.load(Ordering::SeqCst) < threads {
                std::thread::yield_now();
            }
            let start = Instant::now();
            work(thread);
            (start, Instant::now())
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let start = times.iter().map(|(start, _)| *start).min().expect("at least one thread");
    let end = times.iter().map(|(_, end)| *end).max().expect("at least one thread");
    end - start
}

/// Keeps the calling thread on one of the processors that it may use. If there are more threads than processors, the
/// later threads start again at the first processor. Without this call, the kernel tends to put a thread on the
/// processor of the thread that made or woke it.
pub fn stay_on_processor(thread: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let mut one = CpuSet::new();
    one.set(processors[thread % processors.len()]);
    // If the kernel refuses, the thread runs wherever the kernel puts it.
    let _ = sched_setaffinity(None, &one);
}
