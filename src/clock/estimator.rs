//! The estimator measures the counter's rate against the real-time clock, and computes the next segment (the line that
//! converts ticks to nanoseconds).
//!
//! The estimator computes only with given samples, and reads no clock.
//!
//! - A segment **starts** at the time of the newest sample, give or take the sample's uncertainty. So errors of
//!   segments do not accumulate. If threads already got later times, the segment starts at the latest of these.
//! - The **rate** is measured over a *baseline*: a quarter of a second or more, from an older sample to the newest. A
//!   sample's error of about 15 ns then matters little.
//! - Baselines are shorter at first, and after a change of the rate or a step.
//! - If a new sample does not fit the measured rate, the real-time clock has **changed its rate**. Then a new baseline
//!   begins at the sample before.
//! - If no change of the rate explains a new sample, the real-time clock has made a **step**. After a step forward, the
//!   next segment starts at the real-time clock's time.
//! - After a step **backward**, segments run at half the rate until the real-time clock has caught up, because a
//!   thread's times must not fall.

use super::segment::{Segment, is_possible, mult_for};

/// Length of the longest segment. NTP changes the rate of the real-time clock by at most 500 ppm. Such a change makes
/// the end of a segment wrong by a quarter of a microsecond. A change from NTP's one extreme to the other makes it
/// wrong by half a microsecond.
const SEGMENT_NANOS_MAX: f64 = 500_000.0;

/// Length of the shortest segment. A segment is shorter only if the thread that makes it was interrupted meanwhile.
const SEGMENT_NANOS_MIN: f64 = 20_000.0;

/// Largest error at the end of a segment that the uncertainty of the rate may cause. A less certain rate gives a
/// shorter segment, so that the error stays below this limit.
const DRIFT_NANOS_MAX: f64 = 200.0;

/// Time after which the estimator begins another baseline. (A baseline is the period over which the rate is measured.)
/// The estimator keeps two baselines, and takes the rate from the older one. So the rate is measured over at least this
/// time, once the clock has run for that long.
const BASELINE_NANOS: f64 = 250_000_000.0;

/// Largest relative change of the rate that is still taken for a change of the rate, and not for a step of the
/// real-time clock: 1500 ppm. The difference between NTP's two extremes (-500 ppm and +500 ppm) is 1000 ppm.
const SLEW_MAX: f64 = 1.5e-3;

/// Smallest deviation of the real-time clock from its expected time that can count as a step.
const STEP_NANOS_MIN: f64 = 1_000.0;

/// Largest rounding error of the difference between two samples. Their times are whole nanoseconds.
const ROUNDING_NANOS: f64 = 2.0;

/// Part of a time error that one segment corrects. The segment runs a little faster or slower, so that half of the
/// error at its start is gone at its end. The other half stays, so that segments do not follow the noise of samples.
const STEERING_GAIN: f64 = 0.5;

/// Largest change of a segment's rate that the correction of a time error may cause, as a fraction of the rate.
const SLOWDOWN_MAX: f64 = 0.5;

/// A sample: a reading of the real-time clock between two reads of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// The middle of the two counts.
    pub(super) ticks: u64,
    /// Time of the real-time clock, nanoseconds since the epoch.
    pub(super) nanos: u64,
    /// Ticks between the two counts. The sample can be wrong by half of this width. A few nanoseconds of the width are
    /// the cost of reading the real-time clock.
    pub(super) width_ticks: u64,
}

/// The rate of the counter, and the samples from which it was measured. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimator {
    /// Start of the baseline in use.
    anchor: Sample,
    /// Start of the next baseline. When the next baseline is long enough, it replaces the baseline in use.
    next_anchor: Sample,
    /// The newest sample.
    last: Sample,
    /// The rate of the counter: nanoseconds for one tick.
    nanos_per_tick: f64,
    /// Largest relative error of `nanos_per_tick`, provided that the real rate was constant during the baseline.
    rate_uncertainty: f64,
    /// Nanoseconds by which the start of the newest segment is ahead of the real-time clock. Negative if it is late.
    offset_nanos: f64,
    /// Count of the steps of the real-time clock (or of the counter) that the estimator has seen so far.
    steps: u64,
    /// True if the newest sample is the first one after a step. Then the next sample gives a new rate, which is
    /// measured between these two samples.
    after_step: bool,
}

impl Estimator {
    /// Creates an estimator from two samples. Returns `None` if time or ticks did not grow between them, or if the
    /// rate is impossible.
    pub(super) fn new(first: Sample, second: Sample) -> Option<Self> {
        let mut estimator = Self {
            anchor: first,
            next_anchor: second,
            last: second,
            nanos_per_tick: nanos_between(first, second) / ticks_between(first, second),
            rate_uncertainty: 0.0,
            offset_nanos: 0.0,
            steps: 0,
            after_step: false,
        };
        let sensible =
            second.ticks > first.ticks && second.nanos > first.nanos && is_possible(estimator.nanos_per_tick);
        estimator.rate_uncertainty = estimator.uncertainty_since(first);
        sensible.then_some(estimator)
    }

    /// Takes a newer sample into account.
    pub(super) fn observe(&mut self, sample: Sample) {
        if sample.ticks <= self.last.ticks {
            // The counter was set back: the machine was suspended or restored.
            self.step_to(sample);
            return;
        }
        let elapsed_nanos = ticks_between(self.last, sample) * self.nanos_per_tick;
        let deviation = (nanos_between(self.last, sample) - elapsed_nanos).abs();
        let noise = self.half_width_nanos(self.last)
            + self.half_width_nanos(sample)
            + elapsed_nanos * self.rate_uncertainty
            + ROUNDING_NANOS;
        if self.after_step {
            // This is the second sample after a step. The old rate may be wrong, so the sample is not compared with
            // it. `take_rate` below measures the new rate between the first sample after the step and this one.
            self.after_step = false;
        } else if deviation > noise + elapsed_nanos * SLEW_MAX + STEP_NANOS_MIN {
            self.step_to(sample);
            return;
        } else if deviation > noise {
            self.anchor = self.last;
            self.next_anchor = self.last;
        }
        self.last = sample;
        self.take_rate();
        if ticks_between(self.next_anchor, sample) * self.nanos_per_tick >= BASELINE_NANOS {
            self.anchor = self.next_anchor;
            self.next_anchor = sample;
        }
    }

    /// Counts a step, and begins a new baseline at `sample`. The old rate stays in use until the next sample.
    fn step_to(&mut self, sample: Sample) {
        self.steps += 1;
        self.restart(sample);
    }

    /// Begins a new baseline at `sample`, and forgets the older samples, which may be wrong. The old rate stays in use
    /// until the next sample.
    pub(super) fn restart(&mut self, sample: Sample) {
        self.anchor = sample;
        self.next_anchor = sample;
        self.last = sample;
        self.after_step = true;
    }

    /// Computes the rate over the baseline. Uses this rate from now on if it is possible and certain enough. A rate is
    /// certain enough if it is at least as certain as the present rate, or if it allows the longest segment. (A rate is
    /// uncertain if a sample was interrupted at every try.)
    fn take_rate(&mut self) {
        let rate = nanos_between(self.anchor, self.last) / ticks_between(self.anchor, self.last);
        let uncertainty = self.uncertainty_since(self.anchor);
        let sure_enough = self.rate_uncertainty.max(DRIFT_NANOS_MAX / SEGMENT_NANOS_MAX);
        if uncertainty <= sure_enough && is_possible(rate) {
            self.nanos_per_tick = rate;
            self.rate_uncertainty = uncertainty;
        }
    }

    fn uncertainty_since(&self, start: Sample) -> f64 {
        let baseline = nanos_between(start, self.last).max(1.0);
        (self.half_width_nanos(start) + self.half_width_nanos(self.last) + ROUNDING_NANOS) / baseline
    }

    fn half_width_nanos(&self, sample: Sample) -> f64 {
        // One tick is added, because the counter shows the same count during a whole tick. With a slow counter, one
        // tick lasts many nanoseconds.
        (sample.width_ticks as f64 / 2.0 + 1.0) * self.nanos_per_tick
    }

    /// Returns how long a segment may be, in nanoseconds from the newest sample on. The less certain the rate is, the
    /// shorter is the segment.
    fn segment_nanos(&self) -> f64 {
        (DRIFT_NANOS_MAX / self.rate_uncertainty).clamp(SEGMENT_NANOS_MIN, SEGMENT_NANOS_MAX)
    }

    /// Returns true if the newest sample is too old for a segment that starts at `ticks`, or is clearly later than
    /// `ticks`.
    pub(super) fn is_stale_at(&self, ticks: u64) -> bool {
        let age_nanos = self.ticks_since_sample(ticks) * self.nanos_per_tick;
        !(-SEGMENT_NANOS_MIN..=self.segment_nanos() / 2.0).contains(&age_nanos)
    }

    fn ticks_since_sample(&self, ticks: u64) -> f64 {
        ticks.wrapping_sub(self.last.ticks) as i64 as f64
    }

    /// Returns the next segment, which starts at the count `ticks` and follows the segment `old`. The time at this
    /// start is `lowest_nanos` or later.
    pub(super) fn segment(&mut self, ticks: u64, old: Option<&Segment>, lowest_nanos: u64, shift: u32) -> Segment {
        let since_sample = self.ticks_since_sample(ticks) * self.nanos_per_tick;
        // `truth` is the real-time clock's time at `ticks`, rounded down. Rounding down is the safe direction. If a
        // segment shows less than the real-time clock, the next segment can jump forward. If a segment shows more, the
        // next segments must run slower, because time must not fall.
        let truth = self.last.nanos.wrapping_add_signed(since_sample.floor() as i64);

        // If the old segment is nearly right, the new segment continues its line, so that times do not jump by the
        // noise of samples. `offset` is the distance of the old line from the sample's time. `half_width` is the
        // uncertainty of the sample's time. If `offset` is at most `half_width`, the new segment starts on the old
        // line. If `offset` is at most twice `half_width`, the new segment starts at the distance `half_width` from the
        // sample's time. If `offset` is larger still, the old line is wrong, and the new segment starts at the sample's
        // time.
        let half_width = self.half_width_nanos(self.last);
        let kept = old.map_or(0.0, |old| {
            let old_elapsed = ticks.wrapping_sub(old.ticks0) as i64 as f64 * old.nanos_per_tick(shift);
            let from_old_start = truth.wrapping_sub(old.nanos0) as i64 as f64;
            let offset = old_elapsed - from_old_start;
            if offset.abs() > 2.0 * half_width {
                return 0.0;
            }
            // `clamp` is not used here: it can panic, and the panic message formats floats, which adds 20 KiB to every
            // program.
            offset.max(-half_width).min(half_width)
        });
        let nanos0 = truth.wrapping_add_signed(kept.floor() as i64).max(lowest_nanos);
        self.offset_nanos = nanos0.wrapping_sub(truth) as i64 as f64;

        let length = (self.segment_nanos() - since_sample).clamp(SEGMENT_NANOS_MIN / 2.0, SEGMENT_NANOS_MAX);
        let slowdown = (self.offset_nanos * STEERING_GAIN / length).clamp(-SLOWDOWN_MAX, SLOWDOWN_MAX);
        Segment {
            ticks0: ticks,
            nanos0,
            mult: mult_for(self.nanos_per_tick * (1.0 - slowdown), shift),
            // The cast saturates if the length does not fit. No counter makes 2^32 ticks in half a millisecond, so it
            // always fits.
            span: ((length / self.nanos_per_tick) as u32).max(1),
        }
    }

    /// Returns the largest distance in nanoseconds of the newest segment's times from the real-time clock, as long as
    /// the real-time clock keeps its rate.
    pub(super) fn error_bound_nanos(&self) -> f64 {
        self.half_width_nanos(self.last)
            + self.offset_nanos.abs()
            + self.segment_nanos() * self.rate_uncertainty
            + ROUNDING_NANOS
    }

    /// Returns the rate.
    pub(super) fn nanos_per_tick(&self) -> f64 {
        self.nanos_per_tick
    }

    /// Returns how many steps of the real-time clock the estimator has seen so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }
}

fn ticks_between(from: Sample, to: Sample) -> f64 {
    to.ticks.wrapping_sub(from.ticks) as i64 as f64
}

fn nanos_between(from: Sample, to: Sample) -> f64 {
    to.nanos.wrapping_sub(from.nanos) as i64 as f64
}

/// Number of words that hold an [`Estimator`].
pub(super) const ESTIMATOR_WORDS: usize = 14;

impl Estimator {
    /// Returns the estimator as words, which the caller can store in atomics.
    pub(super) fn to_words(self) -> [u64; ESTIMATOR_WORDS] {
        let [a, n, l] =
            [self.anchor, self.next_anchor, self.last].map(|sample| [sample.ticks, sample.nanos, sample.width_ticks]);
        [
            a[0],
            a[1],
            a[2],
            n[0],
            n[1],
            n[2],
            l[0],
            l[1],
            l[2],
            self.nanos_per_tick.to_bits(),
            self.rate_uncertainty.to_bits(),
            self.offset_nanos.to_bits(),
            self.steps,
            u64::from(self.after_step),
        ]
    }

    /// Creates the estimator from the words of [`Estimator::to_words`].
    pub(super) fn from_words(w: [u64; ESTIMATOR_WORDS]) -> Self {
        let sample = |at: usize| Sample { ticks: w[at], nanos: w[at + 1], width_ticks: w[at + 2] };
        Self {
            anchor: sample(0),
            next_anchor: sample(3),
            last: sample(6),
            nanos_per_tick: f64::from_bits(w[9]),
            rate_uncertainty: f64::from_bits(w[10]),
            offset_nanos: f64::from_bits(w[11]),
            steps: w[12],
            after_step: w[13] != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a sample that was taken at `nanos`. The counter began at 0, and the read of the clock takes no time.
    fn sample_at(nanos: u64, nanos_per_tick: f64) -> Sample {
        Sample { ticks: (nanos as f64 / nanos_per_tick) as u64, nanos: nanos + (1 << 60), width_ticks: 0 }
    }

    proptest! {
        #[test]
        fn the_end_of_a_segment_is_within_the_error_bound_however_coarse_the_ticks(
            nanos_per_tick in 0.2f64..60.0,
            start in 1_000u64..1_000_000,
            baseline in 20_000u64..1_000_000_000,
        ) {
            let (first, second) = (sample_at(start, nanos_per_tick), sample_at(start + baseline, nanos_per_tick));
            let estimator = Estimator::new(first, second).unwrap();
            let drift = (estimator.nanos_per_tick() / nanos_per_tick - 1.0).abs() * estimator.segment_nanos();
            prop_assert!(drift <= estimator.error_bound_nanos(), "{drift} {:?}", estimator);
            prop_assert!(drift <= 300.0, "{drift} {:?}", estimator);
        }

        #[test]
        fn coarse_ticks_at_a_steady_rate_are_no_steps(
            nanos_per_tick in 0.2f64..60.0,
            start in 1_000u64..1_000_000,
            pauses in prop::collection::vec(20_000u64..1_000_000, 2..20),
        ) {
            let mut nanos = start;
            let mut samples = pauses.into_iter().map(|pause| {
                nanos += pause;
                sample_at(nanos, nanos_per_tick)
            });
            let (first, second) = (samples.next().unwrap(), samples.next().unwrap());
            let mut estimator = Estimator::new(first, second).unwrap();
            samples.for_each(|sample| estimator.observe(sample));
            prop_assert_eq!(estimator.steps(), 0);
        }

        #[test]
        fn an_estimator_survives_its_words(words in any::<[u32; 13]>(), after_step: bool) {
            // The test compares words after a conversion to floats and back. Small integers are exact as floats. And
            // they are no NaNs, which would not be equal to themselves.
            let words: [u64; ESTIMATOR_WORDS] =
                std::array::from_fn(|word| words.get(word).map_or(u64::from(after_step), |&word| word.into()));
            prop_assert_eq!(Estimator::from_words(words).to_words(), words);
        }
    }
}
