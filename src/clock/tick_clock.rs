//! The clock made of a tick counter: fast path, slow path, calibration.
//!
//! # Why time never falls within a thread
//!
//! Let *E* be the highest time that a line gives (its end), or that was given past its end by [`Published::overrun`].
//! The next line starts at or above *E*, because the compare-exchange that publishes it fails as long as *E* grows.
//! So times of a later line are never below times of an earlier one, and a thread never goes back to an earlier line,
//! since it reads one atomic word to choose the line. Within a line, time is a rising function of the counter, and the
//! counter does not run backwards for a thread (that is what an invariant, synchronised counter means). Past the end of
//! a line, *E* itself is given. Before the start of a line (the counter was read before the line was published), the
//! line's start is given, which is neither below earlier times nor above later ones.
//!
//! # Why nobody waits
//!
//! One thread calibrates: it holds `calibrating`, for which the others only try. Those who do not get it read the
//! real-time clock themselves and have that time entered as the line's overrun, so they are neither held up nor wrong,
//! even if the calibrating thread is preempted for seconds. The same holds for a signal handler that interrupts the
//! calibrating thread, and before the first line.
//!
//! # Why time stays with the real-time clock
//!
//! A line is used for at most half a millisecond of ticks, and starts at a fresh sample. After idling for however long,
//! the first call finds the line at its end. As long as calls are far apart, each reads the real-time clock and has
//! that entered as the overrun; the first that follows close upon another makes a new line.

use super::calibration::{Calibration, ClockKind};
use super::estimator::{ESTIMATOR_WORDS, Estimator, Sample};
use super::line::{Line, Place, shift_for};
use super::published::{Edition, Published};
use super::source::{TimeSource, sample};
use crate::sync::{AtomicU64, Ordering};

/// The first rate is measured over this long. Short, because somebody waits; the first lines are shorter for it.
const FIRST_BASELINE_NANOS: u64 = 20_000;

/// Tries for the first rate, each some 50 ns: the real-time clock is stepped, or stands.
const FIRST_BASELINE_TRIES: u32 = 100_000;

/// A line costs some seven readings of the real-time clock and lasts half a millisecond: it pays if the time is asked
/// for more often than this.
const SELDOM_NANOS: u64 = 64_000;

/// A line that ended a minute ago is replaced in any case: the overrun has a largest value.
const OLD_NANOS: u64 = 60_000_000_000;

/// Samples for one line: more only if the thread was held up between sampling and publishing.
const LINE_TRIES: u32 = 4;

/// A clock that follows the source's real-time clock by its tick counter. See the module.
#[derive(Debug)]
pub(super) struct TickClock<S> {
    published: Published,
    calibrator: Calibrator,
    source: S,
}

/// What only the calibrating thread uses, apart from the line that all threads read.
#[derive(Debug)]
#[repr(align(64))]
struct Calibrator {
    /// The number of the process whose thread is calibrating, or 0.
    calibrating: AtomicU64,
    /// The estimator, and how wide a good sample is. Only for who is calibrating, and for show.
    estimator: [AtomicU64; ESTIMATOR_WORDS],
    good_width_ticks: AtomicU64,
}

/// The counter cannot be used after all: it stands, or its rate is out of all reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRate;

impl<S> TickClock<S> {
    /// Without a line: the first use makes one.
    pub(super) const fn new(source: S) -> Self {
        Self {
            published: Published::new(),
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
    /// The time, if the line in use has it.
    #[inline(always)]
    pub(super) fn nanos_on_line(&self) -> Option<u64> {
        self.published.nanos_at(|| self.source.ticks())
    }

    /// The time, whether the line in use has it or not.
    pub(super) fn nanos(&self) -> Result<u64, NoRate> {
        loop {
            let (edition, line) = self.published.read();
            // After the line, so that `Before` is a matter of lagging cores only.
            match line.place(self.source.ticks_after_loads(), self.published.shift()) {
                Place::On(nanos) | Place::Before(nanos) => return Ok(nanos),
                Place::Off => {}
            }
            let now = self.source.realtime_nanos();
            let end_nanos = line.end_nanos(self.published.shift());
            if !is_asked_seldom(edition, end_nanos, now)
                && let Some(nanos) = self.try_calibrate(edition)?
            {
                return Ok(nanos);
            }
            if line.nanos0 == 0 {
                // The empty line before the first. Its end is placed, and looked at again.
                self.published.place_empty_line(now);
            } else if let Some(nanos) = self.published.overrun(edition, end_nanos, now) {
                return Ok(nanos);
            }
            // Another thread has published a line meanwhile.
        }
    }

    /// The start of a new line, if this thread gets to calibrate and the line of `ended` is still the newest.
    fn try_calibrate(&self, ended: Edition) -> Result<Option<u64>, NoRate> {
        let Some(right) = Right::try_take(&self.calibrator.calibrating, &self.source) else {
            return Ok(None);
        };
        if !self.published.read().0.has_same_line_as(ended) {
            return Ok(None);
        }
        let line = if ended.is_first() { self.first_line()? } else { self.next_line(right.is_inherited()) };
        Ok(Some(line.nanos0))
    }

    fn first_line(&self) -> Result<Line, NoRate> {
        // So that threads that come meanwhile have something to count from.
        self.published.place_empty_line(self.source.realtime_nanos());
        let mut first = sample(&self.source, 0);
        let good_width_ticks = self.learn_good_width(first);
        for _ in 0..FIRST_BASELINE_TRIES {
            let second = sample(&self.source, good_width_ticks);
            if second.nanos < first.nanos || second.ticks < first.ticks {
                first = second;
            } else if second.nanos - first.nanos >= FIRST_BASELINE_NANOS {
                let estimator = Estimator::new(first, second).ok_or(NoRate)?;
                let shift = shift_for(estimator.nanos_per_tick()).ok_or(NoRate)?;
                self.published.set_shift(shift);
                return Ok(self.publish(estimator, None));
            }
        }
        Err(NoRate)
    }

    fn next_line(&self, state_is_doubtful: bool) -> Line {
        let mut estimator = self.kept();
        let newest = self.sample();
        if state_is_doubtful {
            estimator.restart(newest);
        } else {
            estimator.observe(newest);
        }
        let (_, old) = self.published.read();
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

    /// Samples up to twice as wide as this one are good ones. (And a few ticks, for counters that tick slowly.)
    fn learn_good_width(&self, sample: Sample) -> u64 {
        let good_width_ticks = sample.width_ticks.saturating_mul(2).saturating_add(2);
        self.calibrator.good_width_ticks.store(good_width_ticks, Ordering::Relaxed);
        good_width_ticks
    }

    fn publish(&self, mut estimator: Estimator, old: Option<&Line>) -> Line {
        // Before the line too: who sees the first line finds an estimator.
        self.keep(&estimator);
        let shift = self.published.shift();
        let mut tries = 1;
        let line = self.published.publish(|lowest_nanos| {
            let mut ticks = self.source.ticks_after_loads();
            while estimator.is_stale_at(ticks) && tries < LINE_TRIES {
                tries += 1;
                estimator.observe(self.sample());
                ticks = self.source.ticks_after_loads();
            }
            estimator.line(ticks, old, lowest_nanos, shift)
        });
        self.keep(&estimator);
        line
    }

    fn keep(&self, estimator: &Estimator) {
        for (word, value) in self.calibrator.estimator.iter().zip(estimator.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn kept(&self) -> Estimator {
        // Relaxed: `Right` orders calibrations. Others may get words of two calibrations.
        Estimator::from_words(std::array::from_fn(|word| self.calibrator.estimator[word].load(Ordering::Relaxed)))
    }

    /// The newest calibration. `None` before the first.
    pub(super) fn calibration(&self) -> Option<Calibration> {
        let (edition, line) = self.published.read();
        let estimator = self.kept();
        (!edition.is_first()).then(|| Calibration {
            kind: ClockKind::TickCounter,
            ticks0: line.ticks0,
            epoch_nanos0: line.nanos0,
            mult: line.mult,
            shift: self.published.shift(),
            ticks_per_second: (1e9 / estimator.nanos_per_tick()).round() as u64,
            error_bound_nanos: estimator.error_bound_nanos().ceil() as u64,
            steps: estimator.steps(),
        })
    }
}

/// Nobody has asked for a while: at this pace, reading the real-time clock is cheaper than a new line.
///
/// By the real-time clock, as the overrun is: by the line's own rate, a pause long enough for its error to count would
/// look like one that never ends.
fn is_asked_seldom(edition: Edition, end_nanos: u64, now: u64) -> bool {
    let since_end = now.saturating_sub(end_nanos);
    let since_asked = since_end.saturating_sub(edition.overrun_nanos());
    // A real-time clock that was set back has not reached the times given: a line is made, to go on from there.
    !edition.is_first() && since_asked >= SELDOM_NANOS && since_end < OLD_NANOS
}

/// The right to calibrate, given back when dropped.
///
/// A process forked while another thread of its parent was calibrating finds the right taken by a thread that it does
/// not have. The holder's number tells, which no child has; the child takes the right over.
struct Right<'a> {
    holder: &'a AtomicU64,
    inherited: bool,
}

impl<'a> Right<'a> {
    fn try_take(holder: &'a AtomicU64, source: &impl TimeSource) -> Option<Self> {
        let this_process = source.process_number();
        // Relaxed: only a look, so that threads that come while another calibrates leave its cache line alone.
        let found = holder.load(Ordering::Relaxed);
        if found == this_process {
            return None;
        }
        // Acquire: this calibration begins after the one before it has ended.
        holder
            .compare_exchange(found, this_process, Ordering::Acquire, Ordering::Relaxed)
            .ok()
            .map(|_| Self { holder, inherited: found != 0 })
    }

    /// Taken over from a thread that may have been in the middle of it.
    fn is_inherited(&self) -> bool {
        self.inherited
    }
}

impl Drop for Right<'_> {
    fn drop(&mut self) {
        // Release: the next calibration begins after this one has ended.
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
                // A thread that is in the middle of a calibration.
                std::mem::forget(Right::try_take(&clock.calibrator.calibrating, &Machine));
                clock
            },
            |clock| u8::from(clock.nanos().is_ok() && clock.calibration().is_some()),
            // The control: in the parent nobody else may calibrate.
            |clock| clock.nanos().is_ok() && clock.calibration().is_none(),
        );
        if let Some(asked) = asked {
            assert!(asked.is_one());
        }
    }
}
