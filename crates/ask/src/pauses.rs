//! The times between the events of a program.

use crate::flag::SILENCE_NANOS;

/// The smallest number of events of a program that records all the time.
const EVENTS_MIN: u64 = 1000;
/// The largest number of long pauses of such a program in [`EVENTS_MIN`] events.
const LONG_MAX: u64 = 3;

/// The pauses of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    events: u64,
    last_nanos: u64,
    /// The pauses that last a fifth of a silence, or longer.
    long: u64,
    /// The longest pause, and when it began.
    longest: (u64, u64),
    /// The latest time at which an event may be lost. What was before is no pause.
    lost_until_nanos: u64,
    /// What was recorded first after the longest pause.
    pub(crate) until: String,
}

impl Pauses {
    /// Takes the time of the next event. Returns true if the longest pause ends with it.
    #[inline]
    pub(crate) fn event(&mut self, nanos: u64) -> bool {
        let pause = (nanos.saturating_sub(self.last_nanos), self.last_nanos);
        let is_known = self.events > 0 && self.last_nanos >= self.lost_until_nanos;
        let is_long = is_known && pause.0 >= SILENCE_NANOS / 5;
        let is_longest = is_long && pause > self.longest;
        self.long += u64::from(is_long);
        if is_longest {
            self.longest = pause;
        }
        self.events += 1;
        self.last_nanos = nanos.max(self.last_nanos);
        is_longest
    }

    /// Notes that events of this time may be lost.
    pub(crate) fn lost(&mut self, from_nanos: u64, until_nanos: u64) {
        self.lost_until_nanos = self.lost_until_nanos.max(until_nanos);
        let (nanos, begin_nanos) = self.longest;
        if begin_nanos < until_nanos && from_nanos < begin_nanos + nanos {
            self.longest = (0, 0);
        }
    }

    /// Returns how long a program that recorded all the time was silent, from when on, and what it recorded then;
    /// nothing if it was silent to its end. It lived until `until_nanos`.
    pub(crate) fn silence(&self, until_nanos: u64) -> Option<(u64, u64, Option<&str>)> {
        let mut all = self.clone();
        let to_its_end = all.event(until_nanos);
        let is_steady = self.events >= EVENTS_MIN && all.long <= LONG_MAX;
        let (nanos, from_nanos) = all.longest;
        let until = Some(self.until.as_str()).filter(|_| !to_its_end);
        (is_steady && nanos >= SILENCE_NANOS).then_some((nanos, from_nanos, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_program_is_silent_and_one_that_waits_often_is_not() {
        let mut steady = Pauses::default();
        (0..2000).for_each(|at| _ = steady.event(at * 1_000_000));
        assert_eq!(steady.silence(2_000_000_000), None);
        assert_eq!(steady.silence(4_999_000_000), Some((3_000_000_000, 1_999_000_000, None)));
        steady.event(4_999_000_000);
        steady.until = "request".into();
        assert_eq!(steady.silence(5_000_000_000), Some((3_000_000_000, 1_999_000_000, Some("request"))));
        let mut waits = Pauses::default();
        (0..2000).for_each(|at| _ = waits.event(at / 100 * 2_000_000_000 + at));
        assert_eq!(waits.silence(60_000_000_000), None);
        let mut rare = Pauses::default();
        (0..3).for_each(|at| _ = rare.event(at * 1_000_000_000_000));
        assert_eq!(rare.silence(4_000_000_000_000), None);
    }

    #[test]
    fn a_pause_in_which_something_may_be_lost_is_no_silence() {
        let mut paused = Pauses::default();
        (0..2000).for_each(|at| _ = paused.event(at * 1_000_000));
        // Another ring has overwritten what it had before.
        let mut later = paused.clone();
        later.event(7_000_000_000);
        assert!(later.silence(7_000_000_000).is_some());
        later.lost(0, 8_000_000_000);
        later.event(8_000_000_000);
        assert_eq!(later.silence(8_000_000_000), None);
        assert!(later.silence(12_000_000_000).is_some(), "after that, all is known");
        later.lost(8_000_000_000, u64::MAX);
        assert_eq!(later.silence(12_000_000_000), None);
        // What was lost before the pause does not matter.
        paused.lost(0, 1_000_000_000);
        assert!(paused.silence(5_000_000_000).is_some());
    }
}
