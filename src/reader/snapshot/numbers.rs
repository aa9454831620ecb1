//! The new seqnos of events in a snapshot.

use crate::layout::Descriptor;
use crate::layout::header::CONTENT_TYPE_EXEC;
use crate::reader::handle::Reader;
use crate::schema::{RECORD_ERROR_CODE, published_schema};

/// The seqnos that the events of a snapshot had in the ring. Neighbouring seqnos take no memory.
#[derive(Default)]
pub(super) struct SeqnoRuns {
    /// True if code 1 is RECORD_ERROR. It is something else in the oldest schemas of EXEC.
    has_errors: bool,
    runs: Vec<SeqnoRun>,
    events: u64,
    last_seqno: u64,
    /// The seqnos of RECORD_ERROR events.
    errors: Vec<u64>,
}

/// A run of events with neighbouring seqnos.
#[derive(Clone, Copy)]
struct SeqnoRun {
    first_seqno: u64,
    events_before: u64,
}

impl SeqnoRuns {
    /// Makes the runs of a snapshot of this ring.
    pub(super) fn from_reader(reader: &Reader) -> Self {
        let info = reader.info();
        let is_known = || published_schema(info.content_type, info.schema_hash).is_some();
        let has_errors = info.extension.is_some() || info.content_type != CONTENT_TYPE_EXEC || is_known();
        Self { has_errors, ..Self::default() }
    }

    /// Adds the next event. Seqnos rise from event to event.
    pub(super) fn push(&mut self, descriptor: &Descriptor) {
        if self.runs.is_empty() || descriptor.seqno != self.last_seqno + 1 {
            self.runs.push(SeqnoRun { first_seqno: descriptor.seqno, events_before: self.events });
        }
        if self.has_errors && descriptor.event_type == RECORD_ERROR_CODE {
            self.errors.push(descriptor.seqno);
        }
        self.last_seqno = descriptor.seqno;
        self.events += 1;
    }

    /// Returns the number of events.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// Returns the new seqno of the event that had the number `seqno` in the ring. Returns 0 if the snapshot does not
    /// have this event.
    pub(super) fn renumber(&self, seqno: u64) -> u64 {
        // A RECORD_ERROR may have been recorded in place of the event that the word names. Then the named event does
        // not exist, and the word becomes 0.
        if self.errors.binary_search(&seqno).is_ok() {
            return 0;
        }
        let next = self.runs.partition_point(|run| run.first_seqno <= seqno);
        let Some(run) = next.checked_sub(1).map(|run| self.runs[run]) else { return 0 };
        let end = self.runs.get(next).map_or(self.events, |next| next.events_before);
        let index = run.events_before + (seqno - run.first_seqno);
        if index < end { index + 1 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_get_their_place_as_number_and_others_get_none() {
        let mut runs = SeqnoRuns { has_errors: true, ..SeqnoRuns::default() };
        let event = |seqno, event_type| Descriptor { seqno, event_type, ..Descriptor::default() };
        for (seqno, event_type) in [(5, 2), (6, RECORD_ERROR_CODE), (7, 2), (20, 2), (31, 2), (32, 2)] {
            runs.push(&event(seqno, event_type));
        }
        assert_eq!(runs.events(), 6);
        let expected = [(4, 0), (5, 1), (6, 0), (7, 3), (8, 0), (19, 0), (20, 4), (21, 0), (31, 5), (32, 6), (33, 0)];
        for (seqno, number) in expected {
            assert_eq!(runs.renumber(seqno), number, "{seqno}");
        }
        assert_eq!(SeqnoRuns::default().renumber(1), 0);
        // In the oldest schemas of EXEC, code 1 is BLOCK_START.
        let mut runs = SeqnoRuns::default();
        runs.push(&event(6, RECORD_ERROR_CODE));
        assert_eq!(runs.renumber(6), 1);
    }
}
