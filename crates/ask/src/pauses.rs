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
    /// What was recorded first after the longest pause.
    pub(crate) until: String,
}

impl Pauses {
    /// Takes the time of the next event. Returns true if the longest pause ends with it.
    #[inline]
    pub(crate) fn event(&mut self, nanos: u64) -> bool {
        let pause = (nanos.saturating_sub(self.last_nanos), self.last_nanos);
        let is_long = self.events > 0 && pause.0 >= SILENCE_NANOS / 5;
        let is_longest = is_long && pause > self.longest;
        self.long += u64::from(is_long);
        if is_longest {
            self.longest = pause;
        }
        self.events += 1;
        self.last_nanos = nanos.max(self.last_nanos);
        is_longest
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
}
