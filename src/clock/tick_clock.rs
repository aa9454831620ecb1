//! The clock that reads a tick counter: fast path, slow path, calibration.
//!
//! # Why time never falls within a thread
//!
//! A thread gets its times from *segments*: lines that convert ticks to nanoseconds. The times of one thread never
//! fall, for two reasons:
//!
//! **Between segments.** No time of a later segment is below a time of an earlier one. Threads may also get times past
//! a segment's end, from [`Latch::overshoot`]. Let *E* be the highest such time that any thread got, or the segment's
//! end if no thread got one.
//!
//! The next segment starts at or above *E*: if *E* has grown meanwhile, the compare-exchange that publishes the segment
//! fails, and the publisher repeats it with a later start.
//!
//! A thread never goes back to an earlier segment: one atomic word names the current segment, and no load of a thread
//! returns an older value than its load before.
//!
//! **Within a segment.** The time grows with the count. The counter does not run backwards for a thread, because the
//! clock uses only counters that are invariant and synchronised between processors. Past the segment's end,
//! [`Latch::overshoot`] never returns less than before for this segment.
//!
//! If the counter of a core lags and shows a count before the segment's start, the thread gets the time of the start.
//! This is the lowest time of this segment, and not below any time of an earlier segment.
//!
//! # Why no thread waits
//!
//! To *calibrate* is to compare the counter with the real-time clock and to publish a new segment. Only one thread
//! calibrates at a time. Meanwhile the word `calibrating` holds a number of its process, which a forked child does not
//! share.
//!
//! A thread that wants to calibrate while another thread calibrates does not wait. It reads the real-time clock, and
//! passes this time to [`Latch::overshoot`]. The call returns this time, or a later time that another thread got
//! already. The call also raises the *overshoot*, the distance past the segment's end, so that the next segment starts
//! later.
//!
//! So threads get right times even if the calibrating thread is preempted for seconds, during the first calibration,
//! and in a signal handler that interrupts a calibration.
//!
//! # Why time stays with the real-time clock
//!
//! A segment starts at a fresh sample of the real-time clock, and is used for at most half a millisecond. So after any
//! idle time, the first call finds that the segment has ended:
//! - If the call comes soon after the last call, or a minute or more after the segment's end, the call makes a new
//!   segment.
//! - Otherwise the call reads the real-time clock, and raises the overshoot to this time, because it might be the only
//!   user of a new segment.

use super::calibration::{Calibration, ClockKind};
use super::estimator::{ESTIMATOR_WORDS, Estimator, Sample};
use super::latch::{Edition, Latch};
use super::segment::{Position, Segment, TickTime, shift_for};
use super::source::{TimeSource, sample};
use crate::sync::{AtomicU64, Ordering};

/// Time over which the first rate is measured. It is short, because a caller waits. A rate that is measured over a
/// short time is less certain, so the first segments are shorter.
const FIRST_BASELINE_NANOS: u64 = 20_000;

/// Largest number of samples for the first rate; each takes about 50 ns. After this number, the clock gives up. This
/// happens only if the real-time clock is stepped all the time, or stands still.
const FIRST_BASELINE_TRIES: u32 = 100_000;

/// Shortest pause between two calls after which the clock makes no new segment. A new segment costs about as much as
/// seven reads of the real-time clock, and lasts half a millisecond. If calls are further apart than this pause, a
/// segment would serve fewer than eight calls, so each call reads the real-time clock instead.
const SELDOM_NANOS: u64 = 64_000;

/// Time after a segment's end from which a call always makes a new segment, even if calls are far apart: one minute.
/// Without a limit, the overshoot would reach its maximum of 274 seconds (see [`Latch::overshoot`]).
const OLD_NANOS: u64 = 60_000_000_000;

/// Largest number of samples for one segment. More than one is needed only if the thread is held up before it can
/// publish the segment.
const SEGMENT_TRIES: u32 = 4;

/// A clock that converts the ticks of its source to times of the source's real-time clock. See the module.
#[derive(Debug)]
pub(super) struct TickClock<S> {
    latch: Latch,
    calibrator: Calibrator,
    source: S,
}

/// The words that only the calibrating thread changes. They are not in the cache line of the segments. So a
/// calibration does not slow down the threads that read the current segment.
#[derive(Debug)]
#[repr(align(64))]
struct Calibrator {
    /// The number of the process whose thread is calibrating, or 0.
    calibrating: AtomicU64,
    /// The words of the estimator. A calibrating thread reads and stores them. The function `calibration` may read them
    /// meanwhile, and get a mixture of two estimators. It only reports them.
    estimator: [AtomicU64; ESTIMATOR_WORDS],
    /// Largest width of a sample that counts as not interrupted.
    good_width_ticks: AtomicU64,
}

/// The error that a counter cannot be used: it stands still, or has an impossible rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRate;

impl<S> TickClock<S> {
    /// Creates a clock without a segment. The first call that asks for the time makes a segment.
    pub(super) const fn new(source: S) -> Self {
        Self {
            latch: Latch::new(),
            calibrator: Calibrator {
                calibrating: AtomicU64::new(0),
                estimator: [const { AtomicU64::new(0) }; ESTIMATOR_WORDS],
                good_width_ticks: AtomicU64::new(0),
            },
            source,
        }
    }
}

impl<S: TimeSource> TickClock<S> {
    /// Returns the present count of ticks, if it is on the current segment.
    #[inline(always)]
    pub(super) fn try_now(&self) -> Option<TickTime> {
        self.latch.try_at(|| self.source.ticks())
    }

    /// Returns the time, whether the current segment has it or not.
    pub(super) fn nanos(&self) -> Result<u64, NoRate> {
        loop {
            let (edition, segment) = self.latch.read();
            // The counter is read after the segment is loaded. So the count is before the segment (`Before`) only if
            // the counter of this core lags.
            match segment.position(self.source.ticks_after_loads(), self.latch.shift()) {
                Position::On(nanos) | Position::Before(nanos) => return Ok(nanos),
                Position::Off => {}
            }
            let now = self.source.realtime_nanos();
            let end_nanos = segment.end_nanos(self.latch.shift());
            if !is_asked_seldom(edition, end_nanos, now)
                && let Some(nanos) = self.try_calibrate(edition)?
            {
                return Ok(nanos);
            }
            if segment.nanos0 == 0 {
                // This is the empty segment. Its start is not set yet, and an overshoot can be counted only from a
                // start. So the start is set here, and the loop reads the segment again.
                self.latch.set_empty_segment_start(now);
            } else if let Some(nanos) = self.latch.overshoot(edition, end_nanos, now) {
                return Ok(nanos);
            }
            // Another thread has published a segment meanwhile, or the empty segment now has a start. The loop tries
            // again with the newest segment.
        }
    }

    /// Makes a new segment, and returns the time at which it starts. Returns `None` if another thread is calibrating,
    /// or if the segment of `ended` is no longer the newest.
    fn try_calibrate(&self, ended: Edition) -> Result<Option<u64>, NoRate> {
        let Some(right) = Right::try_take(&self.calibrator.calibrating, &self.source) else {
            return Ok(None);
        };
        if !self.latch.read().0.has_same_segment_as(ended) {
            return Ok(None);
        }
        let segment = if ended.is_first() { self.first_segment()? } else { self.next_segment(right.is_inherited()) };
        Ok(Some(segment.nanos0))
    }

    fn first_segment(&self) -> Result<Segment, NoRate> {
        // Other threads may ask for the time during this first calibration. They count their overshoot from here.
        self.latch.set_empty_segment_start(self.source.realtime_nanos());
        let mut first = sample(&self.source, 0);
        let good_width_ticks = self.learn_good_width(first);
        for _ in 0..FIRST_BASELINE_TRIES {
            let second = sample(&self.source, good_width_ticks);
            if second.nanos < first.nanos || second.ticks < first.ticks {
                first = second;
            } else if second.nanos - first.nanos >= FIRST_BASELINE_NANOS {
                let estimator = Estimator::new(first, second).ok_or(NoRate)?;
                let shift = shift_for(estimator.nanos_per_tick()).ok_or(NoRate)?;
                self.latch.set_shift(shift);
                return Ok(self.publish(estimator, None));
            }
        }
        Err(NoRate)
    }

    fn next_segment(&self, state_is_doubtful: bool) -> Segment {
        let mut estimator = self.kept();
        let newest = self.sample();
        if state_is_doubtful {
            estimator.restart(newest);
        } else {
            estimator.observe(newest);
        }
        let (_, old) = self.latch.read();
        self.publish(estimator, Some(&old))
    }

    fn sample(&self) -> Sample {
        let good_width_ticks = self.calibrator.good_width_ticks.load(Ordering::Relaxed);
        let newest = sample(&self.source, good_width_ticks);
        if newest.width_ticks > good_width_ticks || newest.width_ticks < good_width_ticks / 4 {
            self.learn_good_width(newest);
        }
        newest
    }

    /// Sets the largest width of a good sample to twice the width of `sample`. (Two ticks are added for slow
    /// counters.)
    fn learn_good_width(&self, sample: Sample) -> u64 {
        let good_width_ticks = sample.width_ticks.saturating_mul(2).saturating_add(2);
        self.calibrator.good_width_ticks.store(good_width_ticks, Ordering::Relaxed);
        good_width_ticks
    }

    fn publish(&self, mut estimator: Estimator, old: Option<&Segment>) -> Segment {
        // The estimator is stored before the segment is published, because a thread that sees the first segment must
        // find an estimator. The estimator is stored again after the segment is published, because `publish` may have
        // changed the estimator.
        self.keep(&estimator);
        let shift = self.latch.shift();
        let mut tries = 1;
        let segment = self.latch.publish(|lowest_nanos| {
            let mut ticks = self.source.ticks_after_loads();
            while estimator.is_stale_at(ticks) && tries < SEGMENT_TRIES {
                tries += 1;
                estimator.observe(self.sample());
                ticks = self.source.ticks_after_loads();
            }
            estimator.segment(ticks, old, lowest_nanos, shift)
        });
        self.keep(&estimator);
        segment
    }

    fn keep(&self, estimator: &Estimator) {
        for (word, value) in self.calibrator.estimator.iter().zip(estimator.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn kept(&self) -> Estimator {
        // Relaxed: a calibrating thread sees all words of the previous calibration, because it has acquired `Right`.
        // Other threads may get a mixture of the words of two calibrations.
        Estimator::from_words(std::array::from_fn(|word| self.calibrator.estimator[word].load(Ordering::Relaxed)))
    }

    /// Returns the newest calibration. Returns `None` if no segment has been published yet.
    pub(super) fn calibration(&self) -> Option<Calibration> {
        let (edition, segment) = self.latch.read();
        let estimator = self.kept();
        (!edition.is_first()).then(|| Calibration {
            kind: ClockKind::TickCounter,
            ticks0: segment.ticks0,
            epoch_nanos0: segment.nanos0,
            mult: segment.mult,
            shift: self.latch.shift(),
            ticks_per_second: (1e9 / estimator.nanos_per_tick()).round() as u64,
            error_bound_nanos: estimator.error_bound_nanos().ceil() as u64,
            steps: estimator.steps(),
        })
    }
}

/// Returns true if calls are so far apart that reading the real-time clock is cheaper than a new segment.
///
/// The overshoot of `edition` shows the highest time past the segment's end that a call got. This is about the time of
/// the last call. `now` is a time of the real-time clock. The pause since the last call is the distance between the
/// two.
fn is_asked_seldom(edition: Edition, end_nanos: u64, now: u64) -> bool {
    let since_end = now.saturating_sub(end_nanos);
    let since_asked = since_end.saturating_sub(edition.overshoot_nanos());
    // If the real-time clock was set back, `now` is below times that threads already got. Then `since_asked` is 0, and
    // this function returns false. The caller makes a segment that continues from those times.
    !edition.is_first() && since_asked >= SELDOM_NANOS && since_end < OLD_NANOS
}

/// The right to calibrate. Its drop gives the right back.
///
/// A process may be forked while another thread of it is calibrating. In the child, the right is then held by a thread
/// that does not exist there. The child finds a process number in the word that is not its own, and takes the right
/// over.
struct Right<'a> {
    holder: &'a AtomicU64,
    inherited: bool,
}

impl<'a> Right<'a> {
    fn try_take(holder: &'a AtomicU64, source: &impl TimeSource) -> Option<Self> {
        let this_process = source.process_number();
        // Relaxed: this load only avoids a compare-exchange that would fail. Such an exchange would take the cache
        // line away from the thread that calibrates.
        let found = holder.load(Ordering::Relaxed);
        if found == this_process {
            return None;
        }
        // Acquire, pairs with the release in `drop`: the previous calibration happens before this calibration.
        holder
            .compare_exchange(found, this_process, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Self { holder, inherited: found != 0 })
    }

    /// Returns true if the right was taken over from the parent process. The parent's thread may have been in the
    /// middle of a calibration.
    fn is_inherited(&self) -> bool {
        self.inherited
    }
}

impl Drop for Right<'_> {
    fn drop(&mut self) {
        // Release, pairs with the acquire in `try_take`: this calibration happens before the next calibration.
        self.holder.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::source::Machine;
    use crate::shm::same_pid;

    #[test]
    fn a_child_that_has_its_parents_pid_takes_over_what_a_thread_of_its_parent_held() {
        let asked = same_pid::fork_with_parents_pid(
            || {
                let clock = TickClock::new(Machine);
                // `forget` keeps the right from being given back, as if a thread of the parent were in the middle of a
                // calibration when the process forks.
                std::mem::forget(Right::try_take(&clock.calibrator.calibrating, &Machine));
                clock
            },
            |clock| u8::from(clock.nanos().is_ok() && clock.calibration().is_some()),
            // Counter-check: in the parent the right is held, so no thread can calibrate. Threads still get times.
            |clock| clock.nanos().is_ok() && clock.calibration().is_none(),
        );
        if let Some(asked) = asked {
            assert!(asked.is_one());
        }
    }
}
