//! The source of ticks and real time: the machine, or a simulated machine.

use super::estimator::Sample;
use crate::arch::ticks;

/// A tick counter and a real-time clock.
pub(super) trait TimeSource {
    /// Reads the counter as cheaply as possible.
    fn ticks(&self) -> u64;
    /// Reads the counter after all earlier loads.
    fn ticks_after_loads(&self) -> u64;
    /// Reads the system's real-time clock: nanoseconds since the Unix epoch.
    fn realtime_nanos(&self) -> u64;
    /// Returns a number for this process, never 0. A forked child has another number than its parent, even if both
    /// have the same process id.
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

/// Largest number of tries to take a sample. A wide sample was interrupted, so it is taken again. After the last try
/// the narrowest sample is used.
const SAMPLE_TRIES: u32 = 5;

/// Takes a sample: reads the real-time clock between two reads of the counter. Repeats this, at most [`SAMPLE_TRIES`]
/// times, until the two counts are at most `good_width_ticks` apart. Returns the sample with the smallest width.
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
    // If the counter falls between the two reads, the width wraps to a very large number. `sample` then prefers any
    // other sample.
    let width_ticks = source.ticks_after_loads().wrapping_sub(before);
    Sample { ticks: before.wrapping_add(width_ticks / 2), nanos, width_ticks }
}
