//! What a thread loses that leaves its processor 50,000 times a second, if the times of threads are measured.
//!
//! A thread computes for some microseconds, in a span, and then wakes another thread on the same processor and waits
//! for it. Turns with and without the measurement take turns, and each has threads of its own.
//!
//! ```console
//! $ cargo bench -p eventring-benches --bench switches
//! ```

#![allow(missing_docs)]

use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tracing::info_span;

const TURNS: usize = 401;
const ROUNDS: u32 = 1_500;

fn main() {
    let work = calibrated(Duration::from_micros(14));
    // The default is 0.5 %.
    let shares = [0.0, 0.005];
    let mut nanos: [Vec<f64>; 2] = Default::default();
    for _ in 0..TURNS {
        for (share, nanos) in shares.into_iter().zip(&mut nanos) {
            nanos.push(thread::spawn(move || turn(share, work)).join().expect("a turn"));
        }
    }
    let medians = nanos.clone().map(|mut nanos| quantile(&mut nanos, 2));
    let fastest = nanos.map(|mut nanos| quantile(&mut nanos, 20));
    println!("{:10} {:>16} {:>16} {:>8}", "", "without, ns", "measured, ns", "more");
    for (name, [without, measured]) in [("median", medians), ("fastest", fastest)] {
        println!("{name:10} {without:>16.0} {measured:>16.0} {:>7.2}%", (measured / without - 1.0) * 100.0);
    }
    println!("{:.0} switches a second", 1e9 / medians[0]);
}

fn quantile(numbers: &mut [f64], part: usize) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / part]
}

/// Returns the number of steps of [`compute`] that take this time.
fn calibrated(time: Duration) -> u32 {
    let fastest = (0..100).map(|_| {
        let begun = Instant::now();
        compute(10_000);
        begun.elapsed().as_nanos()
    });
    (time.as_nanos() * 10_000 / fastest.min().unwrap_or(1).max(1)) as u32
}

fn compute(steps: u32) {
    (0..steps).for_each(|step| _ = black_box(step));
}

/// Returns the nanoseconds of a round.
fn turn(share: f64, work: u32) -> f64 {
    let recorder = PerfRecorder::builder().anonymous().thread_time(share).build().expect("a recorder");
    pin();
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder), || {
        let worker = thread::current();
        let is_over = Arc::new(AtomicBool::new(false));
        let seen = is_over.clone();
        let other = thread::spawn(move || {
            pin();
            while !seen.load(Ordering::Relaxed) {
                thread::park();
                worker.unpark();
            }
        });
        let rounds = |count: u32| {
            for _ in 0..count {
                info_span!("round").in_scope(|| compute(work));
                other.thread().unpark();
                thread::park();
            }
        };
        // What the thread has saved for its first questions is used up.
        rounds(ROUNDS);
        let begun = Instant::now();
        rounds(ROUNDS);
        let nanos = begun.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
        is_over.store(true, Ordering::Relaxed);
        other.thread().unpark();
        other.join().expect("the other thread");
        nanos
    })
}

fn pin() {
    let mut only = rustix::thread::CpuSet::new();
    only.set(0);
    rustix::thread::sched_setaffinity(None, &only).expect("a processor");
}
