//! Two processes, each with a clock of its own, agree on the time. A forked child continues with its parent's clock.

use crate::fixtures::*;

use rustix::time::{ClockId, clock_gettime};

/// The largest allowed difference between the times of two processes.
const DISAGREEMENT_NANOS_MAX: u64 = 1_000;

#[test]
fn two_processes_agree_on_the_time() {
    alone!();
    let test = plays!({
        // This process plays the other one: it answers every line with the time.
        std::io::stdin().lines().for_each(|_| say(Clock::global().now_epoch_nanos()));
    });
    let mut other = Talk::start(test, "other", Path::new(""));
    for round in 0..2_000u64 {
        let before = Clock::global().now_epoch_nanos();
        other.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let there: u64 = other.hear().parse().unwrap();
        let after = Clock::global().now_epoch_nanos();
        assert!(
            before <= there + DISAGREEMENT_NANOS_MAX && there <= after + DISAGREEMENT_NANOS_MAX,
            "round {round}: asked at {before}, answered at {there}, heard at {after}"
        );
        if round % 100 == 0 {
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    assert!(other.end().success());
}

/// Checks the clock in a forked child. Returns an exit status: 0 if the clock is right, otherwise the number of the
/// fault.
fn fault_of_a_childs_clock(mut last: u64) -> i32 {
    let realtime = || {
        let now = clock_gettime(ClockId::Realtime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    for _ in 0..10 {
        std::thread::sleep(Duration::from_micros(700));
        for _ in 0..10 {
            let before = realtime();
            let now = Clock::global().now_epoch_nanos();
            let after = realtime();
            if now < last {
                return 1;
            }
            if now + DISAGREEMENT_NANOS_MAX < before || now > after + DISAGREEMENT_NANOS_MAX {
                return 2;
            }
            last = now;
        }
    }
    0
}

#[test]
fn a_forked_child_goes_on_with_the_clock_while_its_parents_threads_calibrate() {
    alone!();
    static DONE: AtomicBool = AtomicBool::new(false);
    let busy: Vec<_> = (0..2)
        .map(|_| {
            std::thread::spawn(|| {
                while !DONE.load(Ordering::Relaxed) {
                    Clock::global().now_epoch_nanos();
                }
            })
        })
        .collect();
    for _ in 0..40 {
        let before_fork = Clock::global().now_epoch_nanos();
        // The child allocates nothing and takes no lock.
        let fault = forked::in_child(|| fault_of_a_childs_clock(before_fork));
        assert_eq!(fault, 0, "1: time fell; 2: it was over a microsecond off");
    }
    DONE.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}
