//! One event or loss of a recording.

use super::tables::RecordingTables;
use crate::condition::{SeenContent, TypedContent};
use eventring::reader::{Descriptor, Gap, PayloadRead};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, PerfRecord, RawRecord, ThreadKey};

/// One event or loss of a recording.
pub struct RecordingEntry<'e> {
    /// All that is known of the rings at this entry.
    pub tables: &'e RecordingTables,
    /// The index of the ring in the recording.
    pub ring: u32,
    /// The process that wrote the ring.
    pub process: u32,
    /// The index of the process in [`RecordedRings::processes`](super::RecordedRings::processes).
    pub process_index: usize,
    /// The event or loss itself.
    pub content: EntryContent<'e>,
    /// The time of the event after a loss, in nanoseconds since the epoch. `None` if this is no loss in a selection, or
    /// the time is not known. The event itself may not be selected.
    pub gap_until_nanos: Option<u64>,
}

/// The content of a [`RecordingEntry`].
pub enum EntryContent<'e> {
    /// A record of a perf ring. A perf recorder writes several rings, its shards.
    Perf {
        /// The index of the ring that is shard 0.
        recorder: u32,
        /// The record.
        record: RawRecord<'e>,
        /// The call sites and threads of the recorder.
        catalog: &'e Catalog,
    },
    /// An event of another ring.
    Typed {
        /// The event without its payload.
        descriptor: &'e Descriptor,
        /// Its payload.
        payload: PayloadRead<'e>,
    },
    /// A loss, or seqnos that never had an event.
    Gap(Gap),
}

impl RecordingEntry<'_> {
    /// Returns the time of the event, in nanoseconds since the epoch; `None` for a loss.
    #[inline]
    pub fn epoch_nanos(&self) -> Option<u64> {
        match &self.content {
            EntryContent::Perf { record, .. } => Some(record.epoch_nanos()),
            EntryContent::Typed { descriptor, .. } => Some(descriptor.record_epoch_nanos),
            EntryContent::Gap(_) => None,
        }
    }

    /// Returns the event without its payload, and the payload; `None` for a loss.
    #[inline]
    pub fn event(&self) -> Option<(&Descriptor, PayloadRead<'_>)> {
        match &self.content {
            EntryContent::Perf { record, .. } => Some((record.descriptor, record.payload)),
            EntryContent::Typed { descriptor, payload } => Some((descriptor, *payload)),
            EntryContent::Gap(_) => None,
        }
    }

    /// Returns what the event says, as conditions see it; `None` for a loss.
    #[inline]
    pub fn seen(&self) -> Option<SeenContent<'_>> {
        match &self.content {
            EntryContent::Perf { record, catalog, .. } => Some(SeenContent::Record(record, catalog)),
            EntryContent::Typed { descriptor, payload } => {
                let (model, words) = (self.tables.rings.model(self.ring), self.tables.rings.words(self.ring));
                Some(SeenContent::Typed(TypedContent { descriptor, payload: *payload, model, words }))
            }
            EntryContent::Gap(_) => None,
        }
    }

    /// Returns the thread that has recorded it; `None` if this is no record of a perf ring.
    #[inline]
    pub fn thread(&self) -> Option<ThreadKey> {
        match &self.content {
            EntryContent::Perf { recorder, record, .. } => {
                Some(ThreadKey { recorder: *recorder, thread_id: record.ext.thread_id })
            }
            _ => None,
        }
    }

    /// Returns the thread whose end this is.
    #[inline]
    pub fn ended_thread(&self) -> Option<ThreadKey> {
        let EntryContent::Perf { record, .. } = &self.content else { return None };
        self.thread().filter(|_| record.event == Some(PerfEvent::ThreadEnded))
    }

    /// Returns the record of a perf ring, decoded; `None` for anything else.
    pub fn decoded(&self) -> Option<PerfRecord> {
        match &self.content {
            EntryContent::Perf { record, catalog, .. } => Some(record.decode(catalog)),
            _ => None,
        }
    }

    /// Returns true if this is an event that was not counted with the entry before it: a replay makes two entries of
    /// the one event that begins or ends a scope.
    #[inline]
    pub fn is_next_event(&self) -> bool {
        match &self.content {
            EntryContent::Perf { record, .. } => !record.is_second_part(),
            EntryContent::Typed { .. } => true,
            EntryContent::Gap(_) => false,
        }
    }
}
