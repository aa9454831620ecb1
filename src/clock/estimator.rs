//! The estimator: the counter's rate against the real-time clock, and the next segment.
//!
//! Pure arithmetic over a few samples: no clock is read here.
//!
//! - The **start** of a segment comes from the newest sample alone, so an error never outlives a segment.
//! - The **rate** comes from a baseline of a quarter of a second or more, so that the noise of a sample (some 15 ns)
//!   does not disturb it. A sample that the rate does not explain starts a new baseline at the sample before it. So the
//!   next segment follows a change of the real-time clock's rate.
//! - A difference that no rate explains is a **step** of the real-time clock. After a step forward, the next segment
//!   starts at the real-time clock's time. After a step backward, segments run at half the rate until the real-time
//!   clock has caught up, because time must not fall.

use super::segment::{Segment, is_possible, mult_for};

/// Length of the longest segment. A change of the rate by 500 ppm, the most that NTP does, puts the end of a segment a
/// quarter of a microsecond off. A change from one extreme of NTP to the other puts it half a microsecond off.
const SEGMENT_NANOS_MAX: f64 = 500_000.0;

/// Length of the shortest segment, unless the calibration itself was held up.
const SEGMENT_NANOS_MIN: f64 = 20_000.0;

/// Largest error that the uncertainty of the rate may cause in a segment. A segment is made so short that its end has
/// no larger error.
const DRIFT_NANOS_MAX: f64 = 200.0;

/// Time between the starts of two baselines. The estimator uses the older of the two newest baselines, which is
/// therefore at least this long (after the first such time).
const BASELINE_NANOS: f64 = 250_000_000.0;

/// Largest change of the rate that is not a step: one and a half times the distance of NTP's two extremes.
const SLEW_MAX: f64 = 1.5e-3;

/// Smallest deviation of the real-time clock from its expected time that counts as a step.
const STEP_NANOS_MIN: f64 = 1_000.0;

/// Error of a difference of two samples that comes from rounding their times to whole nanoseconds.
const ROUNDING_NANOS: f64 = 2.0;

/// Part of its start's error that a segment corrects by its rate. A segment does not correct the whole error, because
/// segments should not follow noise.
const STEERING_GAIN: f64 = 0.5;

/// Largest part of its rate by which steering slows a segment down.
const SLOWDOWN_MAX: f64 = 0.5;

/// A reading of the real-time clock that was made between two reads of the counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// The middle of the two counts.
    pub(super) ticks: u64,
    /// Time of the real-time clock, nanoseconds since the epoch.
    pub(super) nanos: u64,
    /// Ticks between the two counts. The sample can be off by half of this width. Some nanoseconds of the width are the
    /// cost of reading the clock.
    pub(super) width_ticks: u64,
}

/// Rate of the counter, and the samples that it comes from. See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimator {
    /// Start of the baseline in use.
    anchor: Sample,
    /// Start of the next baseline, which replaces the baseline in use when it is long enough.
    next_anchor: Sample,
    /// The newest sample.
    last: Sample,
    /// The rate of the counter: nanoseconds for one tick.
    nanos_per_tick: f64,
    /// Largest relative error of `nanos_per_tick`, if the real rate was constant during the baseline.
    rate_uncertainty: f64,
    /// Distance of the newest segment's start from the real-time clock, in nanoseconds.
    offset_nanos: f64,
    /// Steps of the real-time clock (or of the counter) seen so far.
    steps: u64,
    /// True if the newest sample is the first after a step. The next sample then gives a new rate, measured from this
    /// sample on.
    after_step: bool,
}

impl Estimator {
    /// Creates an estimator from two samples. Returns `None` if they give no sensible rate.
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
            // The counter was set back, because the machine was suspended or restored.
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
            // This is the second sample after a step. It is not checked against the old rate. `take_rate` below
            // measures the rate from the step on.
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

    /// Counts a step, and begins a new baseline at `sample`. The rate stays until the next sample.
    fn step_to(&mut self, sample: Sample) {
        self.steps += 1;
        self.restart(sample);
    }

    /// Begins a new baseline at `sample`, and forgets the older samples, which may be wrong. The rate stays until the
    /// next sample.
    pub(super) fn restart(&mut self, sample: Sample) {
        self.anchor = sample;
        self.next_anchor = sample;
        self.last = sample;
        self.after_step = true;
    }

    /// Computes the rate over the baseline, and uses it from now on if it is possible and certain enough: as certain as
    /// the present rate, or certain enough for a segment of the largest length. (A sample that was interrupted at every
    /// try gives no rate that is certain enough.)
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
        // One tick is added, because the counter shows the same count during a whole tick. With a slow counter a tick
        // is many nanoseconds.
        (sample.width_ticks as f64 / 2.0 + 1.0) * self.nanos_per_tick
    }

    /// Returns the length that a segment may have, from the newest sample on.
    fn segment_nanos(&self) -> f64 {
        (DRIFT_NANOS_MAX / self.rate_uncertainty).clamp(SEGMENT_NANOS_MIN, SEGMENT_NANOS_MAX)
    }

    /// Returns true if the newest sample is too old at `ticks` to start a segment there.
    pub(super) fn is_stale_at(&self, ticks: u64) -> bool {
        let age_nanos = self.ticks_since_sample(ticks) * self.nanos_per_tick;
        !(-SEGMENT_NANOS_MIN..=self.segment_nanos() / 2.0).contains(&age_nanos)
    }

    fn ticks_since_sample(&self, ticks: u64) -> f64 {
        ticks.wrapping_sub(self.last.ticks) as i64 as f64
    }

    /// Returns the segment that starts at `ticks`, after the segment `old`. The time of its start is at least
    /// `lowest_nanos`.
    pub(super) fn segment(&mut self, ticks: u64, old: Option<&Segment>, lowest_nanos: u64, shift: u32) -> Segment {
        let since_sample = self.ticks_since_sample(ticks) * self.nanos_per_tick;
        // The time is rounded down. If a segment is late, the next segment can jump forward to the right time. If a
        // segment is early, the next segments must run slower, because time must not fall.
        let truth = self.last.nanos.wrapping_add_signed(since_sample.floor() as i64);

        // The new segment continues the line of the old segment as far as the sample allows, so that times do not jump
        // by the noise of samples. If the old line is within the sample's uncertainty, the start is on the old line. If
        // it is a little outside, the start is at the border of the uncertainty. If it is far outside, the old line is
        // wrong, and the start is the sample's time.
        let half_width = self.half_width_nanos(self.last);
        let kept = old.map_or(0.0, |old| {
            let old_elapsed = ticks.wrapping_sub(old.ticks0) as i64 as f64 * old.nanos_per_tick(shift);
            let from_old_start = truth.wrapping_sub(old.nanos0) as i64 as f64;
            let offset = old_elapsed - from_old_start;
            if offset.abs() > 2.0 * half_width {
                return 0.0;
            }
            // `clamp` is not used, because its panic formats floats and adds 20 KiB to every program.
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
            // The cast saturates, but no counter makes 2^32 ticks in half a millisecond.
            span: ((length / self.nanos_per_tick) as u32).max(1),
        }
    }

    /// Returns the largest distance of the newest segment's times from the real-time clock, if that clock keeps its
    /// rate.
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

    /// Returns the number of steps of the real-time clock seen so far.
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
    /// Returns the estimator as words, so that the caller can store it in atomics.
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

    /// Returns a sample at `nanos` of a counter that began at 0, with a read that takes no time.
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
            // The test needs words that are the same after a conversion to floats and back. Small integers are exact as
            // floats, and none of them is a NaN, which would not equal itself.
            let words: [u64; ESTIMATOR_WORDS] =
                std::array::from_fn(|word| words.get(word).map_or(u64::from(after_step), |&word| word.into()));
            prop_assert_eq!(Estimator::from_words(words).to_words(), words);
        }
    }
}
