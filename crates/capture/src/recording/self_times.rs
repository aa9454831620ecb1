//! The self time of spans. The self time is the part of a span's duration in which no child of the span existed.
//!
//! If the close of a child may be lost, the child counts as open until the end of its parent.

use eventring::schema::perf::PerfEvent;
use eventring::tracing::{IdMap, RawRecord, Span, SpanId, SpanReplay, SpanStep};

/// The number of parents that are kept although nobody may ask for them.
const OLD_MAX: usize = 4096;

/// The children of each span that is not over and has had children. One such map is for one process.
#[derive(Default)]
pub(super) struct SelfTimes {
    parents: IdMap<SpanId, Children>,
}

/// The times in which a span had children.
#[derive(Default)]
struct Children {
    /// The number of children that exist.
    count: u64,
    /// The time from which on there have always been children, if there are any now.
    since_nanos: u64,
    /// The latest end of a child.
    until_nanos: u64,
    /// The sum of the times before `since_nanos` in which there were children.
    covered_nanos: u64,
    /// The last of these times.
    last_nanos: u64,
}

impl SelfTimes {
    /// Notes that a record creates or closes a child.
    pub(super) fn record(&mut self, record: &RawRecord<'_>, step: &SpanStep, replay: &SpanReplay) {
        match (record.event, step) {
            (Some(PerfEvent::SpanNew), _) => {
                if let Some(parent) = record.related() {
                    self.parents.entry(parent).or_default().begin(record.epoch_nanos());
                }
            }
            (_, SpanStep::Closed { span, .. }) => {
                let Some(parent) = replay.get(*span).and_then(|span| span.parent) else { return };
                let Some(children) = self.parents.get_mut(&parent) else { return };
                children.end(record.epoch_nanos());
                // Nobody will ask for the self time of a parent that no record names.
                if children.count == 0 && replay.get(parent).is_none() {
                    self.parents.remove(&parent);
                }
            }
            _ => {}
        }
    }

    /// Returns the self time of a span that is over, and forgets the span. An open span counts until `last_nanos`.
    /// Returns `None` if the beginning or the end of the span was lost.
    pub(super) fn take(&mut self, span: &Span, last_nanos: u64) -> Option<u64> {
        let children = self.parents.remove(&span.id);
        let start_nanos = span.created.as_ref()?.epoch_nanos;
        let closed_nanos = span.closed.as_ref().map(|closed| closed.epoch_nanos);
        let end_nanos = closed_nanos.or((!span.is_end_lost).then_some(last_nanos))?;
        let covered_nanos = children.map_or(0, |children| children.covered_until(end_nanos));
        Some(end_nanos.saturating_sub(start_nanos).saturating_sub(covered_nanos))
    }

    /// Forgets the parents at which nobody will ask any more: neither they nor any child of theirs is in the replay.
    /// There are such parents if the close of a child was lost, or if a ring is damaged.
    pub(super) fn forget_old(&mut self, replay: &SpanReplay) {
        if self.parents.len() > 4 * replay.len() + OLD_MAX {
            let parents: std::collections::HashSet<SpanId> = replay.spans().filter_map(|span| span.parent).collect();
            self.parents.retain(|parent, _| replay.get(*parent).is_some() || parents.contains(parent));
        }
    }

    /// Returns an estimate of the bytes that this keeps in memory.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.parents.len() as u64 * 2 * size_of::<(SpanId, Children)>() as u64
    }
}

impl Children {
    fn begin(&mut self, nanos: u64) {
        // Times can be a few nanoseconds out of order. No time counts twice.
        let nanos = nanos.max(self.until_nanos);
        self.since_nanos = if self.count == 0 { nanos } else { nanos.min(self.since_nanos) };
        self.count += 1;
    }

    fn end(&mut self, nanos: u64) {
        let nanos = nanos.max(self.since_nanos);
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            let until_nanos = nanos.max(self.until_nanos);
            self.last_nanos = until_nanos - self.since_nanos;
            self.covered_nanos = self.covered_nanos.saturating_add(self.last_nanos);
            self.since_nanos = until_nanos;
        }
        self.until_nanos = self.until_nanos.max(nanos);
    }

    /// Returns the time in which there were children before `end_nanos`, the end of the parent.
    fn covered_until(&self, end_nanos: u64) -> u64 {
        if self.count > 0 {
            return self.covered_nanos.saturating_add(end_nanos.saturating_sub(self.since_nanos));
        }
        let after_end_nanos = self.until_nanos.saturating_sub(end_nanos).min(self.last_nanos);
        self.covered_nanos.saturating_sub(after_end_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the time before `end` in which any of the children existed. Each child has a beginning and an end.
    fn covered(children: &[(u64, u64)], end: u64) -> u64 {
        (0..end).filter(|nanos| children.iter().any(|(begin, end)| begin <= nanos && nanos < end)).count() as u64
    }

    proptest! {
        #[test]
        fn the_time_of_children_counts_once_until_the_end_of_the_parent(
            raw in prop::collection::vec((0_u64..50, 0_u64..20), 0..12),
            after in 0_u64..10,
        ) {
            let children: Vec<(u64, u64)> = raw.iter().map(|(begin, length)| (*begin, begin + length)).collect();
            // No child begins after the end of its parent, but children may go on.
            let end = children.iter().map(|(begin, _)| *begin).max().unwrap_or(0) + after;
            let begins = children.iter().map(|(begin, _)| (*begin, 0));
            let ends = children.iter().map(|(_, end)| (*end, 1));
            let mut changes: Vec<(u64, i32)> = begins.chain(ends).collect();
            changes.sort_unstable();
            let mut counted = Children::default();
            for (nanos, change) in changes {
                match change {
                    0 => counted.begin(nanos),
                    _ => counted.end(nanos),
                }
            }
            prop_assert_eq!(counted.covered_until(end), covered(&children, end));
        }
    }
}
