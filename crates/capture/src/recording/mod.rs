//! The decoded events of a recording. A recording is a capture, or rings.
//!
//! One engine ([`RecordingReplay`]) replays the spans of a recording and calls a consumer ([`ReplayConsumer`]) with
//! each entry (an event or a loss). Exports, summaries, tables, OTLP messages and the live engine are such consumers.
//!
//! | file | idea |
//! |---|---|
//! | `of_capture`, `of_rings` | the entries of a capture, and of live rings |
//! | `replay`, `replay_capture` | the engine, and a capture that it gives to a consumer |
//! | `consumer` | the interface of its consumers |
//! | `parts` | what a replay follows in addition to spans, and its state |
//! | `counts` | the counts of a replay |
//! | `tables` | the rings, and the names of call sites and threads |
//! | `rings` | the rings of a recording: their names, programs, recorders, schemas |
//! | `present` | tables of the present, as records |
//! | `tabled` | the open spans in tables of the present, also a million of them are read in little time |
//! | `looks` | the content of tables of the present while a capture was made |
//! | `descriptions` | facts about call sites and threads |
//! | `memory_limit` | the limit on the memory that an export takes |
//! | `select`, `find` | selecting a part of a capture, and finding the spans and events that fulfil conditions |
//! | `now` | the selection of live events, by what the replay knows when an event is read |
//! | `self_times` | the time in which a span existed and none of its children did |

mod consumer;
mod counts;
mod descriptions;
pub(crate) mod find;
mod looks;
mod memory_limit;
pub(crate) mod now;
mod of_capture;
mod of_rings;
mod parts;
mod present;
mod replay;
mod replay_capture;
mod rings;
mod select;
mod self_times;
mod tabled;
mod tables;

pub use crate::read::payloads::PayloadLosses;
pub use consumer::{OverSpan, ReplayConsumer, SpanOver, SpanParts};
pub use counts::ReplayCounts;
pub use descriptions::PerDescription;
pub use of_capture::{CaptureEntries, CaptureRecording};
pub use of_rings::RingEntries;
pub use parts::{ReplayPart, ReplayParts, ReplayState};
#[doc(hidden)]
pub use present::PresentRecord;
pub use replay::{CHECK_BYTES, RecordingReplay, ReplayBounds, is_certainly_open, write_error};
pub use replay_capture::replay_capture;
#[doc(hidden)]
pub use replay_capture::replay_presents;
pub use rings::{NewRing, RecordedProgram, RecordedRings, RingOrigin, ShardOrigin};
#[doc(hidden)]
pub use tabled::{TabledSpan, TabledSpans, both};
pub use tables::RecordingTables;

use crate::condition::{SeenContent, TypedContent};
use eventring::reader::{Descriptor, Gap, PayloadRead};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, PerfRecord, RawRecord, ThreadKey};

/// The largest number of open spans of a process that a search or a selection remembers.
const SPANS_MAX: usize = 1 << 20;

/// One event or loss of a recording.
pub struct RecordingEntry<'e> {
    /// All that is known of the rings at this entry.
    pub tables: &'e RecordingTables,
    /// The index of the ring in the recording.
    pub ring: u32,
    /// The process that wrote the ring.
    pub process: u32,
    /// The index of the process in [`RecordedRings::processes`].
    pub process_index: usize,
    /// The event or loss itself.
    pub content: EntryContent<'e>,
    /// Of a loss in a selection, the time of the event after it, in nanoseconds since the epoch, if it is known: that
    /// event may not be selected.
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
