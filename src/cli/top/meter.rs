//! The events of all rings a second.

use std::collections::VecDeque;

/// The time over which events are counted, in nanoseconds.
const SPAN_NANOS: u64 = 1_000_000_000;

/// The counts of events in the last second of the stream.
#[derive(Default)]
pub(super) struct EventMeter {
    /// Times, in nanoseconds since the epoch, and the number of events up to then.
    counts: VecDeque<(u64, u64)>,
}

impl EventMeter {
    /// Notes how many events there were up to this time.
    pub(super) fn note(&mut self, epoch_nanos: u64, events: u64) {
        if self.counts.back().is_some_and(|(last, _)| *last >= epoch_nanos) {
            return;
        }
        self.counts.push_back((epoch_nanos, events));
        // The first count is that of the last time before the second.
        while self.counts.get(1).is_some_and(|(nanos, _)| nanos + SPAN_NANOS <= epoch_nanos) {
            self.counts.pop_front();
        }
    }

    /// Returns the events a second; 0 before there are two counts.
    pub(super) fn per_second(&self) -> f64 {
        match (self.counts.front(), self.counts.back()) {
            (Some((from, before)), Some((until, events))) if until > from => {
                (events - before) as f64 * 1e9 / (until - from) as f64
            }
            _ => 0.0,
        }
    }
}
