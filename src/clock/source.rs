//! The source of ticks and real time: the machine, or a simulation of it.

use super::estimator::Sample;
use crate::arch::ticks;

/// A tick counter and a real-time clock.
pub(super) trait TimeSource {
    /// Reads the counter as cheaply as possible.
    fn ticks(&self) -> u64;
    /// Reads the counter after all earlier loads.
    fn ticks_after_loads(&self) -> u64;
    /// Reads the system's real-time clock, in nanoseconds since the Unix epoch.
    fn realtime_nanos(&self) -> u64;
    /// Returns a number for this process; not 0. A forked child's number differs from its parent's number, whatever the
    /// child's process id is.
    fn process_number(&self) -> u64;
}

/// The machine that the program runs on.
#[derive(Debug)]
pub(super) struct Machine;

impl TimeSource for Machine {
    #[inline(always)]
    fn ticks(&self) -> u64 {
        ticks::ticks()
    }

    fn ticks_after_loads(&self) -> u64 {
        ticks::ticks_after_loads()
    }

    #[inline]
    fn realtime_nanos(&self) -> u64 {
        crate::shm::realtime_nanos()
    }

    fn process_number(&self) -> u64 {
        crate::shm::process_number()
    }
}

/// Largest number of tries to get a narrow sample; a wide sample was interrupted. After the last try the narrowest
/// sample is taken.
const SAMPLE_TRIES: u32 = 5;

/// Reads the real-time clock between two reads of the counter. Repeats this until the two counts are at most
/// `good_width_ticks` apart, but at most [`SAMPLE_TRIES`] times. Returns the sample with the smallest width.
pub(super) fn sample(source: &impl TimeSource, good_width_ticks: u64) -> Sample {
    let mut narrowest = sample_once(source);
    for _ in 1..SAMPLE_TRIES {
        if narrowest.width_ticks <= good_width_ticks {
            break;
        }
        let sample = sample_once(source);
        if sample.width_ticks < narrowest.width_ticks {
            narrowest = sample;
        }
    }
    narrowest
}

fn sample_once(source: &impl TimeSource) -> Sample {
    let before = source.ticks_after_loads();
    let nanos = source.realtime_nanos();
    // If the counter falls between the two reads, the width wraps to a very large number, so that the sample is not
    // chosen.
    let width_ticks = source.ticks_after_loads().wrapping_sub(before);
    Sample { ticks: before.wrapping_add(width_ticks / 2), nanos, width_ticks }
}
