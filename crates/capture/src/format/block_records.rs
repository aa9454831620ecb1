//! The events and gaps of a block, in memory.

use eventring::reader::{EventBatch, Gap};
use std::ops::Range;

/// Events and gaps of one ring, in the order of their seqnos.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockRecords {
    /// The index of the ring in the capture.
    pub(crate) ring: u32,
    pub(crate) events: EventBatch,
    pub(crate) gaps: Vec<PlacedGap>,
}

/// A gap, and its place among the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlacedGap {
    /// The number of events of the block that come before the gap.
    pub(crate) events_before: usize,
    pub(crate) gap: Gap,
}

/// A part of the records of a block: a range of its events, with the gaps that stand directly before each of them. The
/// last part of a block also has the gaps at its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RecordRange {
    pub(crate) events: Range<usize>,
    pub(crate) gaps: Range<usize>,
}

impl BlockRecords {
    /// Returns all records.
    pub(crate) fn all(&self) -> RecordRange {
        self.part(0..self.events.len())
    }

    /// Returns the part with these events.
    pub(crate) fn part(&self, events: Range<usize>) -> RecordRange {
        let first_from = |event: usize| self.gaps.partition_point(|gap| gap.events_before < event);
        let gaps_end = if events.end == self.events.len() { self.gaps.len() } else { first_from(events.end) };
        RecordRange { gaps: first_from(events.start)..gaps_end, events }
    }

    /// Removes all records. The memory stays for the next use.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.gaps.clear();
    }
}

impl RecordRange {
    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.events.len() + self.gaps.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eventring::reader::{Descriptor, GapCause, PayloadRead};

    #[test]
    fn each_record_is_in_exactly_one_part() {
        let mut events = EventBatch::new(1 << 20, 100);
        (0..5).for_each(|_| events.push(&Descriptor::default(), PayloadRead::Expired));
        let gap = Gap { first_seqno: 1, count: 1, cause: GapCause::Overwritten };
        let gaps: Vec<_> = [0, 0, 2, 5, 5].map(|events_before| PlacedGap { events_before, gap }).into();
        let records = BlockRecords { ring: 0, events, gaps };
        assert_eq!(records.all(), RecordRange { events: 0..5, gaps: 0..5 });
        let parts = [0..2, 2..3, 3..5].map(|events| records.part(events).gaps);
        assert_eq!(parts, [0..2, 2..3, 3..5]);
    }
}
