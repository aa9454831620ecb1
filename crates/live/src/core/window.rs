//! Counts and durations in the last seconds.
//!
//! Time is divided into grains of 200 ms, and each window of time into a few slices of one or more grains. An
//! occurrence is counted only in the current grain. When a grain ends, its counts are added to the newest slice. A new
//! slice replaces the oldest slice.

use eventring::tracing::TimeSpent;
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::time::Duration;

/// The length of a grain in nanoseconds.
pub(crate) const GRAIN_NANOS: u64 = 200_000_000;
/// The largest number of slices of a window, beside the one that is being filled.
const SLICES: u64 = 5;

/// Durations count as this one if they are longer: 2^52 ns, some 52 days. So a histogram has at most some 25 KiB.
const WALL_NANOS_MAX: u64 = 1 << 52;

/// The counts of a time.
#[derive(Clone, Default)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    pub(crate) self_nanos: u64,
    pub(crate) busy_nanos: u64,
    /// How threads spent the busy time, as far as it was measured.
    pub(crate) times: Option<TimeSpent>,
    pub(crate) max_nanos: u64,
    pub(crate) payload_bytes: u64,
    /// The wall times, with two significant digits.
    wall_times: Option<Histogram<u32>>,
}

impl Tally {
    pub(crate) fn add_times(&mut self, times: Option<TimeSpent>) {
        self.times = self.times.into_iter().chain(times).reduce(TimeSpent::plus);
    }

    pub(crate) fn add_wall(&mut self, nanos: u64) {
        self.max_nanos = self.max_nanos.max(nanos);
        if self.wall_times.is_none() {
            self.wall_times = Histogram::new(2).ok();
        }
        if let Some(wall_times) = &mut self.wall_times {
            // The histogram grows as it needs to, so it can hold any duration up to this limit.
            let _ = wall_times.record(nanos.min(WALL_NANOS_MAX));
        }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.self_nanos = self.self_nanos.saturating_add(other.self_nanos);
        self.busy_nanos = self.busy_nanos.saturating_add(other.busy_nanos);
        self.add_times(other.times);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
        self.payload_bytes = self.payload_bytes.saturating_add(other.payload_bytes);
        match (&mut self.wall_times, &other.wall_times) {
            // Both grow as they need to, so adding cannot fail.
            (Some(wall_times), Some(others)) => drop(wall_times.add(others)),
            (None, Some(others)) => self.wall_times = Some(others.clone()),
            (_, None) => {}
        }
    }
}

/// The division of a window into slices.
#[derive(Clone, Copy)]
pub(crate) struct WindowShape {
    slices: u64,
    grains_of_slice: u64,
}

impl WindowShape {
    pub(crate) fn new(window: Duration) -> Self {
        let nanos = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let grains = nanos.div_ceil(GRAIN_NANOS).max(1);
        let grains_of_slice = grains.div_ceil(SLICES);
        Self { slices: grains.div_ceil(grains_of_slice), grains_of_slice }
    }

    /// Returns how many grains of the first `grains` the window covers at present.
    fn covered_grains(self, grains: u64) -> u64 {
        grains.min(self.slices * self.grains_of_slice + grains % self.grains_of_slice)
    }

    /// Returns the number of grains after which all in the window is old.
    pub(crate) fn grains(self) -> u64 {
        (self.slices + 1) * self.grains_of_slice
    }
}

/// The counts of one name.
#[derive(Default)]
pub(crate) struct SlidingTallies {
    grain: Tally,
    /// For each window its slices, oldest first. The last one is being filled.
    windows: Vec<VecDeque<Tally>>,
    /// The number of grains since the last one in which something was counted.
    quiet_grains: u64,
}

impl SlidingTallies {
    pub(crate) fn new(windows: usize) -> Self {
        let windows = (0..windows).map(|_| VecDeque::from([Tally::default()])).collect();
        Self { windows, ..Self::default() }
    }

    #[inline]
    pub(crate) fn present(&mut self) -> &mut Tally {
        self.quiet_grains = 0;
        &mut self.grain
    }

    /// Ends the grain with this number.
    pub(crate) fn end_grain(&mut self, number: u64, shapes: &[WindowShape], oldest_grains: u64) {
        if self.quiet_grains > oldest_grains {
            return;
        }
        self.quiet_grains += 1;
        for (slices, shape) in self.windows.iter_mut().zip(shapes) {
            if let Some(last) = slices.back_mut() {
                last.add(&self.grain);
            }
            if (number + 1).is_multiple_of(shape.grains_of_slice) {
                slices.push_back(Tally::default());
                while slices.len() as u64 > shape.slices + 1 {
                    slices.pop_front();
                }
            }
        }
        self.grain = Tally::default();
    }

    /// Removes all counts.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.windows.len());
    }

    fn sum(&self, window: usize) -> Tally {
        let mut sum = self.grain.clone();
        self.windows.get(window).into_iter().flatten().for_each(|slice| sum.add(slice));
        sum
    }

    pub(crate) fn count(&self, window: usize) -> u64 {
        self.windows.get(window).into_iter().flatten().map(|slice| slice.count).sum::<u64>() + self.grain.count
    }
}

/// The clock of all windows: the grains that have ended, and the beginning of the present one.
#[derive(Clone, Default)]
pub(crate) struct WindowClock {
    /// The lengths of the windows.
    pub(crate) lengths: Vec<Duration>,
    pub(crate) shapes: Vec<WindowShape>,
    pub(crate) grains: u64,
    pub(crate) grain_start_nanos: u64,
}

impl WindowClock {
    pub(crate) fn covered(&self, window: usize, now_nanos: u64) -> Duration {
        let grains = self.shapes.get(window).map_or(0, |shape| shape.covered_grains(self.grains));
        Duration::from_nanos(grains * GRAIN_NANOS + now_nanos.saturating_sub(self.grain_start_nanos))
    }

    pub(crate) fn stats(&self, tallies: &SlidingTallies, window: usize, now_nanos: u64) -> WindowStats {
        WindowStats { tally: tallies.sum(window), covered: self.covered(window, now_nanos) }
    }

    /// Returns how often something happened in the window, for each second.
    pub(crate) fn rate(&self, tallies: &SlidingTallies, window: usize, now_nanos: u64) -> f64 {
        self.rate_of(tallies.count(window), window, now_nanos)
    }

    /// Returns how often something happened for each second, that happened this many times in the window.
    pub(crate) fn rate_of(&self, count: u64, window: usize, now_nanos: u64) -> f64 {
        per_second(count, self.covered(window, now_nanos))
    }
}

fn per_second(count: u64, covered: Duration) -> f64 {
    // Before a grain has ended, a rate would say little: it is that of the whole grain.
    count as f64 / covered.as_secs_f64().max(GRAIN_NANOS as f64 / 1e9)
}

/// The counts and durations of one name in a window.
#[derive(Clone)]
pub struct WindowStats {
    tally: Tally,
    covered: Duration,
}

impl WindowStats {
    /// Adds the counts of another name in the same window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
    }

    /// Returns the time that the counts cover. It is at least the length of the window, and at most a fifth more if the
    /// length is whole seconds. (If it is not, it may be two fifths more.) It is less at the beginning, and if one of
    /// the rings holds less: it is never longer than the time of which all rings have all events.
    #[must_use]
    pub fn covered(&self) -> Duration {
        self.covered
    }

    /// Returns how many spans were closed, or how many events there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tally.count
    }

    /// Returns the count for each second.
    #[must_use]
    pub fn per_second(&self) -> f64 {
        per_second(self.tally.count, self.covered)
    }

    /// Returns the sum of the times in which the closed spans existed and none of their children did, in nanoseconds.
    /// Returns 0 if self times are left out.
    #[must_use]
    pub fn self_nanos(&self) -> u64 {
        self.tally.self_nanos
    }

    /// Returns the sum of the times that threads were in the closed spans, in nanoseconds. The times of several threads
    /// are added.
    #[must_use]
    pub fn busy_nanos(&self) -> u64 {
        self.tally.busy_nanos
    }

    /// Returns how threads spent [`Self::busy_nanos`], if any of it was measured. The time of spans in which nothing was
    /// measured is unmeasured.
    #[must_use]
    pub fn times(&self) -> Option<TimeSpent> {
        Some(self.tally.times?.of_busy(self.tally.busy_nanos))
    }

    /// Returns the sum of the sizes of the payloads of typed events, in bytes; 0 for spans and log records.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        self.tally.payload_bytes
    }

    /// Returns the longest time from creation to close in nanoseconds; 0 if there is none.
    #[must_use]
    pub fn max_nanos(&self) -> u64 {
        self.tally.max_nanos
    }

    /// Returns the time from creation to close, in nanoseconds, that this part of the closed spans did not exceed. The
    /// 99th percentile is that of the part `0.99`. The result is exact to 1 %. Returns `None` if no span of a known
    /// duration was closed.
    #[must_use]
    pub fn quantile_nanos(&self, part: f64) -> Option<u64> {
        let wall_times = self.tally.wall_times.as_ref().filter(|wall_times| !wall_times.is_empty())?;
        Some(wall_times.value_at_quantile(part).min(self.tally.max_nanos))
    }
}

impl std::fmt::Debug for WindowStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WindowStats").field("count", &self.tally.count).field("covered", &self.covered).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_are_exact_to_one_percent_from_nanoseconds_to_days() {
        let shapes = [WindowShape::new(Duration::from_secs(1))];
        let mut tallies = SlidingTallies::new(1);
        let mut wall_times: Vec<u64> = (0..3000).map(|n| 1.013_f64.powi(n) as u64).collect();
        for (grain, some) in wall_times.chunks(1000).enumerate() {
            some.iter().for_each(|wall| tallies.present().add_wall(*wall));
            tallies.end_grain(grain as u64, &shapes, 5);
        }
        wall_times.sort_unstable();
        let clock = WindowClock { lengths: Vec::new(), shapes: shapes.to_vec(), grains: 3, grain_start_nanos: 0 };
        let stats = clock.stats(&tallies, 0, 0);
        for part in [0.1, 0.5, 0.9, 0.99, 1.0] {
            let expected = wall_times[((wall_times.len() as f64 * part).ceil() as usize).max(1) - 1];
            let found = stats.quantile_nanos(part).unwrap();
            let error = found.abs_diff(expected.min(WALL_NANOS_MAX)) as f64 / expected as f64;
            assert!(error <= 0.01 || found.abs_diff(expected) <= 1, "{part}: {found}, expected {expected}");
        }
        assert_eq!(stats.max_nanos(), *wall_times.last().unwrap());
    }

    proptest! {
        #[test]
        fn a_window_has_all_of_its_length_and_at_most_two_slices_more(
            counts in prop::collection::vec(0_u64..5, 1..200),
            window_grains in 1_u64..60,
        ) {
            let shape = WindowShape::new(Duration::from_nanos(window_grains * GRAIN_NANOS));
            let mut tallies = SlidingTallies::new(1);
            for (number, count) in counts.iter().zip(0..) {
                if *number > 0 {
                    tallies.present().count += number;
                    tallies.present().payload_bytes += 100 * number;
                }
                tallies.end_grain(count, &[shape], shape.grains());
            }
            let grains = counts.len() as u64;
            let covered = shape.covered_grains(grains);
            prop_assert!(covered >= window_grains.min(grains), "{covered}");
            prop_assert!(covered <= window_grains + 2 * window_grains.div_ceil(SLICES), "{covered}");
            let expected: u64 = counts.iter().rev().take(covered as usize).sum();
            prop_assert_eq!(tallies.count(0), expected);
            let sum = tallies.sum(0);
            prop_assert_eq!((sum.count, sum.payload_bytes), (expected, 100 * expected));
        }
    }
}
