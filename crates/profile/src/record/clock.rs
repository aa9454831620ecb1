//! Conversion of the kernel's times to the times of rings.
//!
//! A kernel record has a time of CLOCK_MONOTONIC, the only clock that tracepoints and software events share. The times
//! in rings are nanoseconds since the epoch by [`Clock::global`], which follows CLOCK_REALTIME and never goes back.
//!
//! Whenever the kernel's buffers are read, both clocks are read together. The time of a record is interpolated between
//! two such readings.
//!
//! If CLOCK_REALTIME is set to another time, the times of records between the readings before and after this step are
//! uncertain. The recorded error includes this uncertainty.

use eventring::recorder::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;

/// The number of measurements that are kept. Records wait for two looks at most.
const KEPT_MAX: usize = 64;
/// The number of readings, of which the quickest counts.
const READINGS: u32 = 3;
/// A difference of the clocks above this, between two measurements, is a step.
const STEP_NANOS: u64 = 100_000;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measured {
    monotonic: u64,
    epoch: u64,
}

/// The relation of the two clocks.
#[derive(Default)]
pub(super) struct TimeLine {
    measured: VecDeque<Measured>,
    error_nanos: u64,
}

/// Returns the time of CLOCK_MONOTONIC.
pub(super) fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl TimeLine {
    /// Reads both clocks. Returns the time of CLOCK_MONOTONIC.
    pub(super) fn measure(&mut self) -> u64 {
        let readings = (0..READINGS).map(|_| {
            let (before, epoch, after) = (monotonic(), Clock::global().now_epoch_nanos(), monotonic());
            (after - before, Measured { monotonic: before + (after - before) / 2, epoch })
        });
        let (width, measured) = readings.min_by_key(|(width, _)| *width).unwrap_or_else(|| unreachable!("some"));
        // The program's own clock has an error like that of this process.
        let error = width / 2 + 2 * Clock::global().calibration().error_bound_nanos;
        self.add(measured, error);
        measured.monotonic
    }

    fn add(&mut self, measured: Measured, error: u64) {
        self.error_nanos = self.error_nanos.max(error);
        if let Some(last) = self.measured.back() {
            let (elapsed, shown) = (measured.monotonic - last.monotonic, measured.epoch.saturating_sub(last.epoch));
            let difference = elapsed.abs_diff(shown);
            if difference > STEP_NANOS {
                self.error_nanos = self.error_nanos.max(difference);
            }
        }
        if self.measured.len() == KEPT_MAX {
            self.measured.pop_front();
        }
        self.measured.push_back(measured);
    }

    /// Returns the largest error of all times until now.
    pub(super) fn error_nanos(&self) -> u64 {
        self.error_nanos
    }

    /// Returns the time of a record on the time line of rings.
    pub(super) fn epoch_nanos(&self, monotonic: u64) -> u64 {
        let after = self.measured.partition_point(|measured| measured.monotonic <= monotonic);
        let Some(begin) = self.measured.get(after.saturating_sub(1)) else { return 0 };
        if monotonic < begin.monotonic {
            return begin.epoch.saturating_sub(begin.monotonic - monotonic);
        }
        let passed = monotonic - begin.monotonic;
        let Some(end) = self.measured.get(after) else { return begin.epoch.saturating_add(passed) };
        let (elapsed, shown) = (end.monotonic - begin.monotonic, end.epoch.saturating_sub(begin.epoch));
        if shown > elapsed + STEP_NANOS {
            // The clock was set forward at some moment between the two.
            return begin.epoch + passed;
        }
        begin.epoch + (u128::from(passed) * u128::from(shown) / u128::from(elapsed.max(1))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(u64, u64)]) -> TimeLine {
        let mut line = TimeLine::default();
        points.iter().for_each(|(monotonic, epoch)| line.add(Measured { monotonic: *monotonic, epoch: *epoch }, 50));
        line
    }

    #[test]
    fn times_lie_between_the_measurements_around_them() {
        let line = line(&[(1_000, 10_000), (2_000, 11_010), (3_000, 12_010)]);
        assert_eq!(
            [900, 1_000, 1_500, 2_500, 3_400].map(|at| line.epoch_nanos(at)),
            [9_900, 10_000, 10_505, 11_510, 12_410]
        );
        assert_eq!(line.error_nanos(), 50);
        assert_eq!(TimeLine::default().epoch_nanos(5), 0);
    }

    #[test]
    fn a_step_forward_is_stated_and_touches_only_the_times_around_it() {
        let line = line(&[(0, 0), (10_000_000, 10_000_000), (20_000_000, 3_020_000_000), (30_000_000, 3_030_000_000)]);
        assert_eq!(
            [5_000_000, 15_000_000, 25_000_000].map(|at| line.epoch_nanos(at)),
            [5_000_000, 15_000_000, 3_025_000_000]
        );
        assert_eq!(line.error_nanos(), 3_000_000_000);
    }

    #[test]
    fn after_a_step_back_times_go_on_as_slowly_as_the_clock_of_rings() {
        let line = line(&[(0, 1_000), (10_000_000, 5_001_000), (20_000_000, 10_001_000)]);
        assert_eq!([0, 4_000_000, 14_000_000].map(|at| line.epoch_nanos(at)), [1_000, 2_001_000, 7_001_000]);
        assert_eq!(line.error_nanos(), 5_000_000);
    }

    #[test]
    fn the_error_of_this_machine_is_small() {
        let mut line = TimeLine::default();
        let now = line.measure();
        let distance = line.epoch_nanos(now).abs_diff(Clock::realtime().now_epoch_nanos());
        assert!(distance < 100_000_000, "{distance}");
    }
}
