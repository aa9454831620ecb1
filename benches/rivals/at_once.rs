//! Several threads at once, by the wall's clock.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs `work(thread)` on so many new threads at once: the time from the earliest start to the latest end.
///
/// Each has a processor of its own, as long as there are enough.
///
/// Each thread notes its own start and end. (Times of their own would make threads that ran one after the other look as if they
/// had run at once; a clock in another thread is read late, when the processors are taken.) `first` is run by each thread before
/// they start: what a thread does once is not what is measured.
pub fn at_once(threads: usize, first: impl Fn() + Sync, work: impl Fn(usize) + Sync) -> Duration {
    let ready = AtomicUsize::new(0);
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let (first, work, ready) = (&first, &work, &ready);
        let run = move |thread| {
            stay_on_processor(thread);
            first();
            ready.fetch_add(1, Ordering::SeqCst);
            // Nobody sleeps, for some threads may have to be waited for.
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

/// Keeps the calling thread on one of the processors that it may use; where there are more threads, they share in turn. (The kernel
/// likes to put a thread beside the one that made or woke it.)
pub fn stay_on_processor(thread: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect();
    let mut one = CpuSet::new();
    one.set(processors[thread % processors.len()]);
    // Refused: it goes wherever the kernel puts it.
    let _ = sched_setaffinity(None, &one);
}
