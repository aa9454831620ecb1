//! Benchmarks with two threads that run at the same time. The results depend on the time that a cache line takes
//! between cores, so `pingpong` measures this time in the same run.

use crate::Medians;
use crate::interleave::{Cases, insert};
use crate::recording::{LARGE, warm_recorder, warm_reference};
use crate::spans::perf_recorder;
use crate::threads::{run_together, stay_on_processor};
use eventring::reader::{Follower, Reader, WaitStrategy};
use eventring::recorder::Recorder;
use eventring::tracing::RecorderSubscriber;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tracing::Dispatch;

const EXT: [u64; 4] = [1, 2, 3, 4];

/// The number of events in a batch. It is so large that the threads' unequal start times do not matter.
const EVENTS: u64 = 400_000;

pub fn measure(rounds: usize) -> Medians {
    let rounds = rounds.min(41);
    let recorder = warm_recorder(LARGE);
    let reference = warm_reference(LARGE);
    // Log records through the perf recorder. It gives each of the two threads a ring of its own.
    let perf = Dispatch::new(RecorderSubscriber::new(perf_recorder()));
    let log = |operations: u64| {
        tracing::dispatcher::with_default(&perf, || {
            (0..operations).for_each(|i| tracing::info!(id = black_box(i), name = "some text"));
        })
    };
    let payload = [7u8; 82];
    let each = |operations: u64| operations / 2;
    let mut cases = Cases::default();
    // The recording cases below give the wall time divided by the number of events that all threads recorded.
    let exec = |operations: u64| {
        (0..operations).for_each(|_| {
            recorder.record(2, EXT, black_box(&payload));
        })
    };
    cases.add_batch("record_2threads_exec", EVENTS, |operations| {
        run_together(2, || exec(1), |_| exec(each(operations)))
    });
    let published = |operations: u64| {
        (0..operations).for_each(|_| {
            reference.record(2, EXT, black_box(&payload));
        })
    };
    cases.add_batch("reference_2threads", EVENTS, |operations| {
        run_together(2, || published(1), |_| published(each(operations)))
    });
    cases.add_batch("record_2threads_perf", EVENTS, |operations| run_together(2, || log(1), |_| log(each(operations))));
    cases.add_batch("record_1thread_perf", EVENTS, |operations| run_together(1, || log(1), |_| log(operations)));
    let ball = AtomicU64::new(0);
    cases.add_batch("pingpong", 40_000, |operations| {
        ball.store(0, Ordering::SeqCst);
        let play = |thread| {
            for turn in (thread as u64..operations).step_by(2) {
                let mut looks = 0u32;
                while ball.load(Ordering::Acquire) != turn {
                    looks += 1;
                    if looks.is_multiple_of(200) {
                        std::thread::yield_now();
                    }
                    std::hint::spin_loop();
                }
                ball.store(turn + 1, Ordering::Release);
            }
        };
        run_together(2, || (), play)
    });
    let mut medians = cases.measure(rounds);
    medians.extend(drag(&recorder, rounds));
    medians
}

/// Measures how much a reader that follows the ring slows down a writer that records without pause. The reader has the
/// default wait strategy, and runs on another processor.
fn drag(recorder: &Recorder, rounds: usize) -> Medians {
    let payload = [7u8; 82];
    let write = || {
        let start = Instant::now();
        (0..100_000).for_each(|_| {
            recorder.record(2, EXT, black_box(&payload));
        });
        start.elapsed().as_nanos() as f64 / 100_000.0
    };
    let (mut alone, mut tailed) = (Vec::new(), Vec::new());
    let mut lost = 0;
    let writer = || {
        stay_on_processor(0);
        for _ in 0..rounds {
            alone.push(write());
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    stay_on_processor(1);
                    let cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
                    let mut follower = Follower::new(cursor, WaitStrategy::default());
                    while !stop.load(Ordering::Relaxed) {
                        black_box(follower.next_timeout(Duration::from_millis(1)));
                    }
                    follower.cursor().lost_count()
                });
                std::thread::sleep(Duration::from_millis(3));
                tailed.push(write());
                stop.store(true, Ordering::Relaxed);
                lost += reader.join().expect("no panic");
            });
        }
    };
    std::thread::scope(|scope| scope.spawn(writer).join().expect("no panic"));
    let mut medians = Medians::from([("drag_lost_events".into(), lost as f64)]);
    insert(&mut medians, "drag_alone", &mut alone);
    insert(&mut medians, "drag_tailed", &mut tailed);
    medians
}
