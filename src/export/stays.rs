//! The stays of threads in spans: where something is drawn that happened in a span.

use super::timeline::ThreadKey;

/// A stay of a thread in a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stay {
    pub(super) thread: ThreadKey,
    /// The number of its enter.
    pub(super) enter: u64,
    pub(super) start_nanos: u64,
    /// When it ended, or the last that is known of it; of an open one, the largest number.
    pub(super) end_nanos: u64,
}

impl Stay {
    /// When something is drawn that happened in it at `nanos`, if it is drawn from `start_nanos` on: before its end, which is no part of
    /// a slice. An event can have the very time at which its span is left, for the clock has ticks.
    pub(super) fn drawn(&self, start_nanos: u64, nanos: u64) -> u64 {
        nanos.min(drawn_end(start_nanos, self.end_nanos) - 1).max(start_nanos)
    }
}

/// When a slice is drawn to end: one that took no time lasts a nanosecond, so that there is room in it.
pub(super) fn drawn_end(start_nanos: u64, end_nanos: u64) -> u64 {
    end_nanos.max(start_nanos.saturating_add(1))
}

/// The stays in one span.
#[derive(Default, Debug)]
pub(super) struct Stays(Vec<Stay>);

impl Stays {
    pub(super) fn add(&mut self, stay: Stay) {
        self.0.push(stay);
    }

    /// Once all are there.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|stay| (stay.start_nanos, stay.enter));
        self.0.shrink_to_fit();
    }

    /// The stay in which something lies that happened in the span at that time, on that thread if it is known: one that goes on, else one
    /// that has just ended; the later one of several.
    pub(super) fn at(&self, thread: Option<ThreadKey>, nanos: u64) -> Option<Stay> {
        let begun = &self.0[..self.0.partition_point(|stay| stay.start_nanos <= nanos)];
        let is_its = |stay: &&Stay| stay.end_nanos >= nanos && thread.is_none_or(|thread| thread == stay.thread);
        let mut around = begun.iter().rev().filter(is_its);
        let last = around.next()?;
        if last.end_nanos > nanos {
            return Some(*last);
        }
        Some(*around.find(|stay| stay.end_nanos > nanos).unwrap_or(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(thread: u32, enter: u64, start_nanos: u64, end_nanos: u64) -> Stay {
        Stay { thread: (0, thread), enter, start_nanos, end_nanos }
    }

    #[test]
    fn what_happened_in_a_span_lies_in_the_stay_of_that_time() {
        let mut stays = Stays::default();
        for stay in [stay(1, 2, 30, 40), stay(1, 0, 10, 20), stay(2, 1, 15, 18), stay(1, 3, 40, 40), stay(1, 4, 60, 90)]
        {
            stays.add(stay);
        }
        stays.sort();
        let enter =
            |thread: Option<u32>, nanos| stays.at(thread.map(|thread| (0, thread)), nanos).map(|stay| stay.enter);
        assert_eq!(
            [9, 10, 16, 18, 19, 20, 25].map(|nanos| enter(None, nanos)),
            [None, Some(0), Some(1), Some(0), Some(0), Some(0), None]
        );
        assert_eq!([40, 60, 90, 91].map(|nanos| enter(None, nanos)), [Some(3), Some(4), Some(4), None]);
        assert_eq!([enter(Some(1), 16), enter(Some(2), 18), enter(Some(2), 30)], [Some(0), Some(1), None]);
    }

    #[test]
    fn it_is_drawn_before_the_end_and_not_before_the_begin() {
        let drawn = |(start, end), nanos| stay(1, 0, start, end).drawn(start, nanos);
        assert_eq!([10, 15, 20].map(|nanos| drawn((10, 20), nanos)), [10, 15, 19]);
        assert_eq!((drawn((10, 10), 10), drawn((10, u64::MAX), 12)), (10, 12));
        // Where others have taken its time, it begins later.
        assert_eq!((stay(1, 0, 10, 10).drawn(12, 10), stay(1, 0, 10, 20).drawn(11, 10)), (12, 11));
        assert_eq!(drawn((u64::MAX, u64::MAX), u64::MAX), u64::MAX);
    }
}
