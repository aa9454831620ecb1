//! Tests of the parts of a replay.

use crate::fixtures::CaptureFixture;
use crate::recording::{
    CaptureRecording, EntryContent, RecordingEntry, ReplayConsumer, ReplayPart, ReplayParts, ReplayState,
    replay_capture,
};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::SpanStep;
use std::io;

/// A part of a program's own: it counts the records of each kind.
#[derive(Default)]
struct Enters(u64);

impl ReplayPart for Enters {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, _: ReplayState<'_>) {
        if let EntryContent::Perf { record, .. } = &entry.content {
            self.0 += u64::from(record.event == Some(PerfEvent::SpanEnter));
        }
    }

    fn kept_bytes(&self) -> u64 {
        if self.0 > 5000 { 1 << 40 } else { 0 }
    }
}

/// What a consumer finds in the part at each entry, and at the end.
#[derive(Default)]
struct Found {
    asks: bool,
    at_entries: Vec<Option<u64>>,
    at_end: Option<u64>,
}

impl ReplayConsumer for Found {
    fn follow(&self, parts: &mut ReplayParts) {
        if self.asks {
            parts.ask(Enters::default);
            // Another consumer may ask for the same part, which is there once.
            parts.ask(|| Enters(1_000_000));
        }
    }

    fn entry(&mut self, _: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        self.at_entries.push(state.part::<Enters>().map(|part| part.0));
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, _: &[u64]) -> io::Result<()> {
        self.at_end = state.part::<Enters>().map(|part| part.0);
        Ok(())
    }
}

fn found(asks: bool, enters: u64) -> Result<Found, crate::CaptureError> {
    let mut made = CaptureFixture::new();
    made.span_new(1000, 1, (1, 0), 9, &[]);
    (0..enters).for_each(|at| made.span(PerfEvent::SpanEnter, 1001 + at, 1, 1, 9));
    let capture = made.open();
    let mut found = Found { asks, ..Found::default() };
    replay_capture(&CaptureRecording::new(&capture)?, &mut found)?;
    Ok(found)
}

#[test]
fn a_part_that_a_consumer_asks_for_knows_each_entry_before_the_consumer_does() {
    let all = found(true, 2).unwrap();
    assert_eq!((all.at_entries, all.at_end), (vec![Some(0), Some(1), Some(2)], Some(2)));
    let none = found(false, 2).unwrap();
    assert_eq!((none.at_entries, none.at_end), (vec![None; 3], None));
}

#[test]
fn what_a_part_keeps_counts_against_the_memory_of_a_replay() {
    assert!(found(false, 10_000).is_ok());
    assert!(found(true, 10_000).is_err());
}
