//! The spans with which a selection of spans begins, and the times in which they are open.

use std::collections::HashSet;

/// The process and the id of a span.
pub(crate) type ProcessSpan = (u32, u64);

/// The spans that fulfil a condition. Selected are these spans and everything in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    ids: HashSet<ProcessSpan>,
    /// The times in which roots are open, in ascending order, apart from each other.
    times: Vec<OpenTime>,
}

/// A time in which a root is open: its first and its last nanosecond.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct OpenTime {
    since: u64,
    until: u64,
}

impl Roots {
    pub(crate) fn add(&mut self, span: ProcessSpan, since: u64, until: u64) {
        self.ids.insert(span);
        self.add_time(since, until);
    }

    /// Adds a time in which something of the selection lies.
    pub(crate) fn add_time(&mut self, since: u64, until: u64) {
        self.times.push(OpenTime { since, until });
    }

    /// Joins times that overlap.
    pub(crate) fn join_times(&mut self) {
        self.times.sort_unstable();
        let mut joined: Vec<OpenTime> = Vec::new();
        for time in self.times.drain(..) {
            match joined.last_mut() {
                Some(last) if time.since <= last.until => last.until = time.until.max(last.until),
                _ => joined.push(time),
            }
        }
        self.times = joined;
    }

    pub(crate) fn has(&self, span: ProcessSpan) -> bool {
        self.ids.contains(&span)
    }

    /// Returns true if a root is open in this time.
    pub(crate) fn may_be_open(&self, first_nanos: u64, last_nanos: u64) -> bool {
        let after = self.times.partition_point(|time| time.until < first_nanos);
        self.times.get(after).is_some_and(|time| time.since <= last_nanos)
    }
}
