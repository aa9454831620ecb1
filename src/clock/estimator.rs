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

/// Drift at which a segment ends: the uncertainty of its rate may have put it this far off.
const DRIFT_NANOS_MAX: f64 = 200.0;

/// Half of the shortest baseline. A new baseline is begun this often, and used when the next baseline begins.
const BASELINE_NANOS: f64 = 250_000_000.0;

/// Largest change of the rate that is not a step: one and a half times the distance of NTP's two extremes.
const SLEW_MAX: f64 = 1.5e-3;

/// Smallest deviation that is a step.
const STEP_NANOS_MIN: f64 = 1_000.0;

/// Noise of a sample besides its width: rounding to whole nanoseconds, at both ends.
const ROUNDING_NANOS: f64 = 2.0;

/// Part of an error that one segment corrects. A segment does not correct the whole error, because segments should not
/// follow noise.
const STEERING_GAIN: f64 = 0.5;

/// Largest part of its rate by which steering slows a segment down.
const SLOWDOWN_MAX: f64 = 0.5;

/// The real-time clock read between two reads of the counter.
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
    /// Start of the baseline after it.
    next_anchor: Sample,
    /// The newest sample.
    last: Sample,
    /// The rate.
    nanos_per_tick: f64,
    /// Largest error of the rate, as a part of it, if the rate is constant.
    rate_uncertainty: f64,
    /// Distance of the newest segment's start from the real-time clock, in nanoseconds.
    offset_nanos: f64,
    /// Steps of the real-time clock (or of the counter) seen so far.
    steps: u64,
    /// True if the newest sample is the first after a step: the next sample makes a new rate.
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
            // The new rate is the rate since the step.
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

    /// Starts again from `sample` with the rate as it is, and counts a step.
    fn step_to(&mut self, sample: Sample) {
        self.steps += 1;
        self.restart(sample);
    }

    /// Starts again from `sample` with the rate as it is, because the rest of the state may be wrong.
    pub(super) fn restart(&mut self, sample: Sample) {
        self.anchor = sample;
        self.next_anchor = sample;
        self.last = sample;
        self.after_step = true;
    }

    /// Takes the rate over the baseline if this rate is possible, and as certain as the present rate or certain enough
    /// for a whole segment. (A sample that was interrupted at every try gives no rate that is certain enough.)
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
        // One tick is added, because a count holds for a whole tick. This is much for a slow counter.
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

    /// Returns the segment from `ticks` on, after `old`, which starts at or above `lowest_nanos`.
    pub(super) fn segment(&mut self, ticks: u64, old: Option<&Segment>, lowest_nanos: u64, shift: u32) -> Segment {
        let since_sample = self.ticks_since_sample(ticks) * self.nanos_per_tick;
        // The start is rounded down, so that a segment is late rather than early. A late segment can jump to the right
        // time.
        let truth = self.last.nanos.wrapping_add_signed(since_sample.floor() as i64);

        // Within the sample's uncertainty the old segment is as good as the sample, and smoother: the new segment
        // leaves its line only as far as the uncertainty demands. Far outside of the sample's uncertainty, the old
        // segment is of no use.
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
            // `as` saturates; a counter that makes 2^32 ticks in half a millisecond does not exist.
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
    /// Returns the estimator as words, to be kept in atomics.
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
            // The words are small enough to be exact as floats. None of them is NaN, which would not equal itself.
            let words: [u64; ESTIMATOR_WORDS] =
                std::array::from_fn(|word| words.get(word).map_or(u64::from(after_step), |&word| word.into()));
            prop_assert_eq!(Estimator::from_words(words).to_words(), words);
        }
    }
}
