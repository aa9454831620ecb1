//! Many threads ask for the time, and pass it to each other. No thread sees the time fall.

use crate::fixtures::*;
use std::sync::mpsc::channel;

use eventring::recorder::ClockKind;

/// The largest allowed difference between the times of two threads.
const DISAGREEMENT_NANOS_MAX: u64 = 1_000;

fn ask_from_threads(clock: &Clock, threads: usize, duration: Duration) {
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let start = Instant::now();
                let mut last = 0;
                let mut given = 0u64;
                while start.elapsed() < duration {
                    for _ in 0..1_000 {
                        let now = clock.now_epoch_nanos();
                        assert!(last <= now, "time fell from {last} to {now}");
                        last = now;
                    }
                    given += 1_000;
                    // Without this call, the threads would take turns only at the scheduler's ticks. With it, another
                    // thread may run, and calibrate the clock, at any point of this loop.
                    std::thread::yield_now();
                }
                assert!(given > 0);
            });
        }
    });
}

#[test]
fn a_thread_among_many_never_sees_time_fall() {
    ask_from_threads(Clock::global(), 6, Duration::from_millis(800));
}

#[test]
fn a_thread_among_many_never_sees_time_fall_while_a_clock_begins() {
    for _ in 0..200 {
        let clock = Clock::new(ClockKind::TickCounter);
        ask_from_threads(&clock, 3, Duration::from_millis(1));
    }
}

#[test]
fn a_thread_among_many_never_sees_the_fallback_fall() {
    ask_from_threads(Clock::realtime(), 4, Duration::from_millis(300));
}

#[test]
fn times_are_comparable_between_threads() {
    let (ping, pinged) = channel::<u64>();
    let (pong, ponged) = channel::<u64>();
    let check = |sent: u64, received: u64| {
        assert!(sent <= received + DISAGREEMENT_NANOS_MAX, "sent at {sent}, received at {received}");
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for sent in pinged {
                check(sent, Clock::global().now_epoch_nanos());
                pong.send(Clock::global().now_epoch_nanos()).unwrap();
            }
        });
        for _ in 0..20_000 {
            ping.send(Clock::global().now_epoch_nanos()).unwrap();
            let sent = ponged.recv().unwrap();
            check(sent, Clock::global().now_epoch_nanos());
        }
        drop(ping);
    });
}
