//! Tests of interruptions: other threads, signal handlers and forks interrupt a calibration at the worst moments.

use super::{calibration, largest_error, now, now_with_error, simulated};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Asks for the time in the middle of a calibration, on the calibrating thread, as a signal handler would. For the
/// clock there is no difference between such a call and a call by another thread.
#[test]
fn whoever_comes_during_a_calibration_gets_the_truth_and_never_waits() {
    let (simulation, clock) = simulated(2_596_150_000, 13);
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static GIVEN: Mutex<Vec<(u64, i64)>> = Mutex::new(Vec::new());
    static READS: AtomicU64 = AtomicU64::new(0);
    simulation.intrude(Box::new(|| {
        // Only one read in three is interrupted. The clock repeats an interrupted sample a few times, and one of these
        // tries has to succeed.
        if !READS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) || INSIDE.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..3 {
            // The calibrating thread is held up for a long time.
            simulation.idle(700_000);
            let given = now_with_error(simulation, clock);
            GIVEN.lock().unwrap().push(given);
        }
        INSIDE.store(false, Ordering::Relaxed);
    }));
    for _ in 0..200 {
        simulation.idle(600_000);
        // The first call comes after a long pause, so it reads the real-time clock. The second call follows at once,
        // and makes a new segment.
        for _ in 0..2 {
            let given = now_with_error(simulation, clock);
            GIVEN.lock().unwrap().push(given);
        }
    }
    let given = GIVEN.lock().unwrap();
    assert!(given.len() > 600, "{} times: no calibration was interrupted", given.len());
    assert!(given.is_sorted_by_key(|&(nanos, _)| nanos), "time fell");
    let largest = given.iter().map(|&(_, error)| error.abs()).max().unwrap();
    assert!(largest < 1_000, "{largest} ns");
}

/// Checks a thread that reads the latch before the first segment is published, sleeps, and continues after the second
/// segment has been published.
#[test]
fn a_thread_that_sleeps_through_the_first_segments_gets_the_truth_when_it_wakes() {
    use std::sync::mpsc::channel;

    let (simulation, clock) = simulated(2_596_150_000, 29);
    let (calibrating, first_is_calibrating) = channel();
    let (asleep, second_is_asleep) = channel::<()>();
    let (latch, two_segments_are_published) = channel::<()>();
    thread_local! {
        /// The action of this thread when it next reads the real-time clock.
        static NEXT: std::cell::Cell<Option<Box<dyn FnOnce()>>> = const { std::cell::Cell::new(None) };
    }
    simulation.intrude(Box::new(|| NEXT.take().into_iter().for_each(|next| next())));

    let second = std::thread::spawn(move || {
        first_is_calibrating.recv().unwrap();
        // The first thread holds the right to calibrate. So both calls get times past the end of the empty segment.
        now(clock);
        simulation.idle(2_000_000);
        now(clock);
        NEXT.set(Some(Box::new(move || {
            asleep.send(()).unwrap();
            two_segments_are_published.recv().unwrap();
        })));
        now_with_error(simulation, clock).1
    });
    NEXT.set(Some(Box::new(move || {
        calibrating.send(()).unwrap();
        second_is_asleep.recv().unwrap();
    })));
    now(clock);
    simulation.idle(1_000_000);
    now(clock);
    now(clock);
    latch.send(()).unwrap();
    let error = second.join().unwrap();
    assert!(error.abs() < 1_000, "{error} ns");
}

#[test]
fn a_child_forked_during_a_calibration_of_its_parent_calibrates_itself() {
    let (simulation, clock) = simulated(2_596_150_000, 17);
    largest_error(simulation, clock, 600_000_000, 50_000);
    // The process forks in the middle of a calibration. The calibrating thread does not exist in the child.
    static FORKED: AtomicBool = AtomicBool::new(false);
    simulation.intrude(Box::new(|| {
        if FORKED.swap(true, Ordering::Relaxed) {
            return;
        }
        simulation.process.store(2, Ordering::Relaxed);
        let segments_before = calibration(clock).ticks0;
        for _ in 0..10_000 {
            simulation.idle(30_000);
            let (_, error) = now_with_error(simulation, clock);
            assert!(error.abs() < 1_000, "{error} ns");
        }
        assert!(calibration(clock).ticks0 > segments_before, "the child makes segments of its own");
        assert!(calibration(clock).error_bound_nanos < 100, "{:?}", calibration(clock));
    }));
    simulation.idle(500_000);
    now(clock);
    now(clock);
    assert!(FORKED.load(Ordering::Relaxed));
}

#[test]
fn many_threads_each_see_time_that_never_falls() {
    let (simulation, clock) = simulated(2_596_150_000, 19);
    simulation.interrupt(300, 300_000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..20_000 {
                    let (nanos, error) = now_with_error(simulation, clock);
                    assert!(last <= nanos, "fell from {last} to {nanos}");
                    assert!(error.abs() < 1_000, "{error} ns");
                    last = nanos;
                }
            });
        }
        scope.spawn(|| {
            for round in 0..2_000u64 {
                simulation.slew([500.0, -500.0, 0.0][(round % 3) as usize]);
                // `idle` moves the simulated time forward. This interrupts the samples that other threads are taking.
                // The sleep makes interruptions rare, so that at least one try of each sample is not interrupted.
                simulation.idle(round * 100);
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
    });
}
