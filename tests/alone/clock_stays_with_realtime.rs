//! A comparison of the clock with the machine's real-time clock. It takes ten seconds, or as many as
//! `EVENTRING_CLOCK_TEST_SECONDS` says. Most of the time, the test sleeps.

use crate::fixtures::*;

use eventring::recorder::ClockKind;
use rustix::time::{ClockId, clock_gettime};

const DEFAULT_SECONDS: u64 = 10;

/// The promised largest error.
const ERROR_NANOS_MAX: u64 = 1_000;

fn nanos(id: ClockId) -> u64 {
    let now = clock_gettime(id);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`. The kernel slews both clocks alike, so the difference changes
/// only when it steps the real-time clock.
fn realtime_beyond_monotonic() -> i64 {
    (0..10)
        .map(|_| {
            let before = nanos(ClockId::Monotonic);
            let realtime = nanos(ClockId::Realtime);
            let after = nanos(ClockId::Monotonic);
            (after - before, (realtime - before / 2 - after / 2) as i64)
        })
        .min()
        .unwrap()
        .1
}

/// One reading of the clock between two readings of the real-time clock.
struct Reading {
    given: u64,
    /// The distance of the reading from the nearer of the two readings of the real-time clock; 0 if it lies between
    /// them.
    error_nanos: u64,
    /// The distance of the reading from the middle between the two readings of the real-time clock.
    from_middle_nanos: u64,
}

fn read(clock: &Clock) -> Reading {
    let before = nanos(ClockId::Realtime);
    let given = clock.now_epoch_nanos();
    let after = nanos(ClockId::Realtime);
    Reading {
        given,
        // The true time of the call lies between `before` and `after`, however long the thread was preempted.
        error_nanos: before.saturating_sub(given).max(given.saturating_sub(after)),
        from_middle_nanos: given.abs_diff(before.midpoint(after)),
    }
}

#[test]
fn the_clock_stays_within_a_microsecond_of_the_real_time_clock() {
    alone!();
    let seconds =
        std::env::var("EVENTRING_CLOCK_TEST_SECONDS").map_or(DEFAULT_SECONDS, |seconds| seconds.parse().unwrap());
    let clock = Clock::global().init_once();
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut last = 0;
    let mut largest_error = 0;
    let mut from_middle = Vec::new();
    let mut steps = 0;
    let mut offset = realtime_beyond_monotonic();
    for round in 0u64.. {
        if Instant::now() >= end {
            break;
        }
        // The thread sleeps for 3 to 40 ms, and sometimes for 1.5 s. Each time, the clock's calibration segment is
        // out of date when the thread wakes up.
        std::thread::sleep(Duration::from_millis(if round % 200 == 199 { 1_500 } else { 3 + round * 7 % 38 }));
        // The readings are 20 µs apart, so 40 readings take nearly a millisecond. Every calibration segment that the
        // clock makes in this time gives some of the readings.
        let readings: Vec<Reading> = (0..40)
            .map(|_| {
                let pause = Instant::now();
                while pause.elapsed() < Duration::from_micros(20) {
                    std::hint::spin_loop();
                }
                read(clock)
            })
            .collect();
        for reading in &readings {
            assert!(last <= reading.given, "time fell from {last} to {}", reading.given);
            last = reading.given;
        }

        let new_offset = realtime_beyond_monotonic();
        let step = new_offset - offset;
        offset = new_offset;
        if step.abs() > 500 {
            // The clock follows a forward step at once, and a backward step at half the rate. Until it has caught up,
            // it promises nothing, and the test checks nothing.
            steps += 1;
            eprintln!("CLOCK_REALTIME was stepped by {step} ns");
            let catching_up = Instant::now();
            while catching_up.elapsed() < Duration::from_nanos(3 * step.unsigned_abs()) + Duration::from_millis(50) {
                clock.now_epoch_nanos();
                std::thread::sleep(Duration::from_micros(300));
            }
            last = clock.now_epoch_nanos();
            offset = realtime_beyond_monotonic();
            continue;
        }
        for reading in readings {
            largest_error = largest_error.max(reading.error_nanos);
            assert!(
                reading.error_nanos < ERROR_NANOS_MAX,
                "{} ns from CLOCK_REALTIME after {round} rounds: {:?}",
                reading.error_nanos,
                clock.calibration()
            );
            from_middle.push(reading.from_middle_nanos);
        }
    }
    assert!(!from_middle.is_empty(), "no reading was checked in {seconds} s");
    from_middle.sort_unstable();
    let part = |part: usize| from_middle[(from_middle.len() - 1) * part / 1_000];
    eprintln!(
        "{seconds} s, {} readings by {:?}: at most {largest_error} ns outside of the two readings of CLOCK_REALTIME around \
         them; from their middle: median {} ns, 99 % {} ns, 99.9 % {} ns; {steps} steps; {:?}",
        from_middle.len(),
        clock.kind(),
        part(500),
        part(990),
        part(999),
        clock.calibration()
    );
    if clock.kind() == ClockKind::TickCounter {
        let counted = clock.calibration().steps;
        assert!(counted <= steps, "{counted} steps were counted, {steps} happened");
    }
}
