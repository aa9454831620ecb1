//! The time at which a ring ended. The time is an interval, because a process that dies does not record the time of its
//! death.

use crate::clock::Clock;
use std::sync::{Mutex, PoisonError};

/// The end of a ring's recording, as an interval: it came after the last sign of life that was seen, and before
/// somebody looked and found that it was over.
///
/// Signs of life are the events, and each look at which the writer was alive. So a reader that was there when the
/// program died knows the time well. One that comes later knows only the last event, and that the program is dead now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RingEnd {
    /// True if the writer died: it was killed, or ended without closing the ring. False if it closed the ring in good
    /// order; its process may go on.
    pub has_died: bool,
    /// The last sign of life, in nanoseconds since the epoch; 0 if there was none.
    pub after_epoch_nanos: u64,
    /// The time at which the end was noticed, in nanoseconds since the epoch.
    pub before_epoch_nanos: u64,
}

impl RingEnd {
    /// Makes an end from its bounds, which may come from a damaged file.
    pub fn between(has_died: bool, after_epoch_nanos: u64, before_epoch_nanos: u64) -> Self {
        Self { has_died, after_epoch_nanos: 0, before_epoch_nanos }.seen_at(after_epoch_nanos)
    }

    /// Adds a sign of life. One that is later than the end was noticed does not count: its clock is wrong.
    #[must_use]
    pub fn seen_at(self, epoch_nanos: u64) -> Self {
        let after_epoch_nanos = self.after_epoch_nanos.max(epoch_nanos).min(self.before_epoch_nanos);
        Self { after_epoch_nanos, ..self }
    }

    /// Returns the end of a process that has written two rings. If it died, it was alive when it closed the other one.
    /// If it closed both, the second close is the end.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let before_epoch_nanos = match (self.has_died, other.has_died) {
            (true, true) => self.before_epoch_nanos.min(other.before_epoch_nanos),
            (true, false) => self.before_epoch_nanos,
            (false, true) => other.before_epoch_nanos,
            (false, false) => self.before_epoch_nanos.max(other.before_epoch_nanos),
        };
        let has_died = self.has_died || other.has_died;
        Self { has_died, before_epoch_nanos, ..self }.seen_at(other.after_epoch_nanos)
    }
}

/// The last time at which a reader saw that the writer lives.
#[derive(Default)]
pub(super) struct SignOfLife {
    pub(super) seen_epoch_nanos: Mutex<u64>,
    /// The time by which the file was copied, if it is a copy of a running program's memory. It was over by then.
    pub(super) copied_epoch_nanos: Option<u64>,
}

impl SignOfLife {
    /// Notes that the writer lived at this time, in nanoseconds since the epoch.
    pub(super) fn see(&self, epoch_nanos: u64) {
        let mut seen = self.seen_epoch_nanos.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = epoch_nanos.max(*seen);
    }

    /// Returns the end that was noticed now.
    pub(super) fn end_now(&self, has_died: bool) -> RingEnd {
        let after_epoch_nanos = *self.seen_epoch_nanos.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Clock::global().now_epoch_nanos();
        let before_epoch_nanos = self.copied_epoch_nanos.map_or(now, |copied| copied.min(now)).max(after_epoch_nanos);
        RingEnd { has_died, after_epoch_nanos, before_epoch_nanos }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(has_died: bool, after_epoch_nanos: u64, before_epoch_nanos: u64) -> RingEnd {
        RingEnd { has_died, after_epoch_nanos, before_epoch_nanos }
    }

    #[test]
    fn the_end_of_a_process_lies_where_that_of_each_of_its_rings_can_lie() {
        assert_eq!(end(true, 10, 50).and(end(true, 20, 40)), end(true, 20, 40));
        // A ring that was closed says nothing about when the process died.
        assert_eq!(end(false, 10, 15).and(end(true, 5, 40)), end(true, 10, 40));
        assert_eq!(end(false, 10, 15).and(end(false, 5, 40)), end(false, 10, 40));
    }

    #[test]
    fn a_sign_of_life_with_a_wrong_clock_does_not_turn_the_interval_around() {
        assert_eq!(end(true, 10, 50).seen_at(20), end(true, 20, 50));
        assert_eq!(end(true, 10, 50).seen_at(5), end(true, 10, 50));
        assert_eq!(end(true, 10, 50).seen_at(u64::MAX), end(true, 50, 50));
    }
}
