//! Times from `CLOCK_REALTIME` that never fall within a thread, even if the system's clock is set back.

use crate::sync::interrupted::Mark;
use crate::sync::{Ordering, compiler_fence};
use std::cell::Cell;

thread_local! {
    static KEPT: ThreadReadings = const {
        ThreadReadings { readings: [const { Cell::new(LastReading::NONE) }; 2], newest: Cell::new(0), is_changing: Mark::new() }
    };
}

/// The last reading of a thread. It is two words, and code that interrupts the thread may read it at any time. So there
/// are two places, and one word says which of them is the newest. The other one is changed.
struct ThreadReadings {
    readings: [Cell<LastReading>; 2],
    newest: Cell<usize>,
    /// Mark of a change. Code that interrupts a change keeps nothing. Otherwise the thread would find that the clock was
    /// set back, because it has read the clock before.
    is_changing: Mark,
}

/// The last reading of the real-time clock that a thread made.
#[derive(Clone, Copy, Debug, Default)]
struct LastReading {
    /// Time that the real-time clock showed.
    raw_nanos: u64,
    /// Nanoseconds by which the time that was returned is ahead of `raw_nanos`. 0 unless the clock was set back.
    ahead_nanos: u64,
}

impl LastReading {
    const NONE: Self = Self { raw_nanos: 0, ahead_nanos: 0 };

    /// Takes a new reading `raw_nanos` of the real-time clock. Returns the new state, and the time to return to the
    /// caller.
    ///
    /// If the clock was set back, time continues from the last returned time, at half the rate, until the clock has
    /// caught up. The tick clock does the same.
    fn advance(self, raw_nanos: u64) -> (Self, Reading) {
        let (ahead_nanos, stepped_back) = match raw_nanos.checked_sub(self.raw_nanos) {
            Some(elapsed) => (self.ahead_nanos.saturating_sub(elapsed.div_ceil(2)), false),
            None => (self.ahead_nanos.saturating_add(self.raw_nanos - raw_nanos), true),
        };
        let reading = Reading { nanos: raw_nanos.saturating_add(ahead_nanos), stepped_back };
        (Self { raw_nanos, ahead_nanos }, reading)
    }
}

/// A time that never falls within its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// Nanoseconds since the Unix epoch.
    pub(super) nanos: u64,
    /// True if the clock was set back since this thread last read it.
    pub(super) stepped_back: bool,
}

/// Reads the real-time clock, and converts what it shows to a time that is not below any time that this thread got
/// before. The thread-local `KEPT` remembers the thread's last reading.
pub(super) fn never_falling(read: impl FnOnce() -> u64) -> Reading {
    // `with` cannot panic, even while the thread ends. The thread-local value has no destructor, so it exists until the
    // thread's last instruction.
    KEPT.with(|kept| {
        let newest = || kept.readings[kept.newest.get() & 1].get();
        if kept.is_changing.is_set() {
            return newest().advance(read()).1;
        }
        kept.is_changing.during(|| {
            let (next, reading) = newest().advance(read());
            let other = !kept.newest.get() & 1;
            kept.readings[other].set(next);
            compiler_fence(Ordering::SeqCst);
            kept.newest.set(other);
            reading
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(raw: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut kept = LastReading::default();
        raw.into_iter()
            .map(|raw_nanos| {
                let (next, reading) = kept.advance(raw_nanos);
                kept = next;
                reading.nanos
            })
            .collect()
    }

    #[test]
    fn without_steps_the_clock_is_given_as_it_is() {
        assert_eq!(run([5, 5, 9, 1_000_000]), [5, 5, 9, 1_000_000]);
    }

    #[test]
    fn a_clock_set_back_is_caught_up_with_at_half_the_rate() {
        assert_eq!(run([1000, 900, 950, 1000, 1100, 1101]), [1000, 1000, 1025, 1050, 1100, 1101]);
    }

    #[test]
    fn a_step_back_is_told_once() {
        let kept = LastReading { raw_nanos: 10, ahead_nanos: 0 };
        let (kept, reading) = kept.advance(4);
        assert!(reading.stepped_back);
        assert!(!kept.advance(5).1.stepped_back);
    }

    proptest! {
        #[test]
        fn time_never_falls_whatever_the_clock_does(raw in prop::collection::vec(0u64..1 << 60, 1..200)) {
            let given = run(raw.iter().copied());
            prop_assert!(given.is_sorted());
            prop_assert!(given.iter().zip(&raw).all(|(given, raw)| given >= raw));
        }
    }
}
