//! The clock on a machine whose tick counter must not be used.

use crate::fixtures::*;
use eventring::recorder::{ClockKind, TickCounter};
use rustix::time::{ClockId, clock_gettime};

fn realtime_nanos() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn the_fallback_is_the_real_time_clock_itself() {
    for clock in [&Clock::new(ClockKind::Realtime), Clock::realtime()] {
        assert_eq!(clock.kind(), ClockKind::Realtime);
        let mut exact = 0;
        for _ in 0..100_000 {
            let before = realtime_nanos();
            let given = clock.now_epoch_nanos();
            let after = realtime_nanos();
            // This holds unless the system's clock is set back in between.
            exact += u32::from(before <= given && given <= after);
        }
        assert!(exact > 99_000, "{exact} of 100000 readings were between two of CLOCK_REALTIME");
    }
}

#[test]
fn the_fallbacks_calibration_says_that_a_tick_is_a_nanosecond_since_the_epoch() {
    let calibration = Clock::realtime().calibration();
    assert_eq!(calibration.kind, ClockKind::Realtime);
    assert_eq!(calibration.ticks_per_second, 1_000_000_000);
    for ticks in [0, 1, 1_700_000_000_123_456_789, u64::MAX] {
        assert_eq!(calibration.epoch_nanos(ticks), ticks);
    }
}

#[test]
fn a_clock_reads_the_tick_counter_exactly_if_that_is_usable() {
    let clock = Clock::global();
    let usable = clock.tick_counter().is_usable();
    assert_eq!(clock.kind() == ClockKind::TickCounter, usable, "{}", clock.tick_counter());
    assert_eq!(clock.calibration().kind, clock.kind());
    if cfg!(eventring_portable) {
        assert_eq!(clock.tick_counter(), TickCounter::Unknown);
    }
}

/// Forbids a thread to read the tick counter. The kernel keeps this permission per thread, so the test uses a thread
/// of its own.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_thread_without_permission_to_read_the_counter_gets_an_error() {
    let found = std::thread::spawn(|| {
        let clock = Clock::new(ClockKind::TickCounter);
        // SAFETY: PR_SET_TSC takes its argument by value. No code between the two calls reads the counter, directly or
        // through the vDSO; if the tested function did, a signal would end the process and the test.
        let forbidden = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) };
        let found = clock.tick_counter();
        // SAFETY: the argument is the one above.
        let allowed = unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_ENABLE) };
        assert_eq!((forbidden, allowed), (0, 0));
        found
    });
    let expected = if cfg!(eventring_portable) { TickCounter::Unknown } else { TickCounter::Forbidden };
    assert_eq!(found.join().unwrap(), expected);
}
