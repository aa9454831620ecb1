//! Decoded events of a perf ring.

use super::call_site::{CallSite, Thread};
use crate::schema::RecordError;
use crate::schema::perf::{Allocated, Cut, FieldValue, ThreadTime, flags};
use crate::tracing::span_id::SpanId;
use std::sync::Arc;

/// One event of a perf ring.
#[derive(Clone, PartialEq, Debug)]
pub struct PerfRecord {
    /// The index of the shard from which the event came.
    pub shard: u32,
    /// The seqno in that shard.
    pub seqno: u64,
    /// The time of the event, nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The thread that recorded the event.
    pub thread: Arc<Thread>,
    /// The number of instructions that the program had executed on the thread, without those of the recorder. `None` if
    /// the event is no enter, exit or log record, or if the instructions were not counted.
    pub instructions: Option<u64>,
    /// The content of the event.
    pub content: PerfContent,
}

/// The content of an event of a perf ring.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum PerfContent {
    /// The first event of a thread.
    ThreadStarted,
    /// The last event of a thread.
    ThreadEnded,
    /// A call site that recorded for the first time.
    CallSite(Arc<CallSite>),
    /// Creation of a span.
    SpanNew {
        /// The span.
        span: SpanId,
        /// The span that the new span is part of; `None` for a root.
        parent: Option<SpanId>,
        /// The call site of the span.
        call_site: Arc<CallSite>,
        /// The fields with which the span was created.
        fields: Fields,
        /// Bits, see [`flags`](crate::schema::perf::flags).
        flags: u16,
    },
    /// Further fields of a span, or new values of fields.
    SpanRecord {
        /// The span.
        span: SpanId,
        /// The call site of the span.
        call_site: Arc<CallSite>,
        /// The fields.
        fields: Fields,
    },
    /// Enter of a span by the thread.
    SpanEnter {
        /// The span.
        span: SpanId,
        /// The call site of the span.
        call_site: Arc<CallSite>,
    },
    /// Exit of the thread from a span.
    SpanExit {
        /// The span.
        span: SpanId,
        /// The call site of the span.
        call_site: Arc<CallSite>,
        /// Bits, see [`flags`](crate::schema::perf::flags).
        flags: u16,
    },
    /// Close of a span: its last handle is gone.
    SpanClose {
        /// The span.
        span: SpanId,
        /// The call site of the span.
        call_site: Arc<CallSite>,
    },
    /// Relation of a span that follows from another span.
    SpanFollowsFrom {
        /// The later span.
        span: SpanId,
        /// The earlier span.
        follows: SpanId,
    },
    /// A log record.
    Event {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The call site. For a record of the `log` crate, its target, module, file and line are those of the place
        /// where the program made the record.
        call_site: Arc<CallSite>,
        /// The fields. The text of the record is the field `message`.
        fields: Fields,
    },
    /// A sample of a counter.
    Counter {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The call site that names the counter.
        call_site: Arc<CallSite>,
        /// The sample: an integer or a float.
        value: FieldValue,
    },
    /// A mark in time.
    Marker {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The marker, by name.
        call_site: Arc<CallSite>,
        /// The text of the mark; `None` if the text was overwritten before it was read.
        text: Option<String>,
    },
    /// The thread has left its processor since its last event. The next [`Self::ThreadTime`] says for how long.
    ThreadSwitched {
        /// The span that the thread was in.
        span: Option<SpanId>,
    },
    /// What the thread has done since its last such event.
    ThreadTime {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The times and counts; `None` if they were overwritten before they were read.
        times: Option<ThreadTime>,
        /// Bits, see [`flags`](crate::schema::perf::flags).
        flags: u16,
    },
    /// What the thread has allocated and freed since its last such event.
    Allocated {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The counts; `None` if they were overwritten before they were read.
        allocated: Option<Allocated>,
    },
    /// An event that could not be recorded.
    NotRecorded {
        /// The span that the missing event was about, or the span that the thread was in.
        span: Option<SpanId>,
        /// The reason why the event was not recorded; `None` if the reason was overwritten, or if there was no room
        /// to record it.
        error: Option<RecordError>,
    },
    /// An event that could not be decoded: this version does not know its type, or the event is damaged.
    Unknown {
        /// The code of the event type.
        event_type: u16,
        /// The extension words.
        content_ext: [u64; 4],
    },
}

impl PerfContent {
    /// Returns true if the span closes: it is a close, or the exit of a scope.
    #[must_use]
    pub fn closes_span(&self) -> bool {
        match self {
            Self::SpanClose { .. } => true,
            Self::SpanExit { flags, .. } => flags & flags::CLOSED != 0,
            _ => false,
        }
    }

    /// Returns the span that the event is about. For a log record, a sample or a mark, returns the span that the thread
    /// was in. For an event that was not recorded, returns the span of [`Self::NotRecorded`]. Returns `None` if there
    /// is no span.
    #[must_use]
    pub fn span(&self) -> Option<SpanId> {
        match self {
            Self::SpanNew { span, .. }
            | Self::SpanRecord { span, .. }
            | Self::SpanEnter { span, .. }
            | Self::SpanExit { span, .. }
            | Self::SpanClose { span, .. }
            | Self::SpanFollowsFrom { span, .. } => Some(*span),
            Self::Event { span, .. }
            | Self::Counter { span, .. }
            | Self::Marker { span, .. }
            | Self::ThreadSwitched { span }
            | Self::ThreadTime { span, .. }
            | Self::Allocated { span, .. }
            | Self::NotRecorded { span, .. } => *span,
            Self::ThreadStarted | Self::ThreadEnded | Self::CallSite(_) | Self::Unknown { .. } => None,
        }
    }
}

/// The fields of a span or of a log record, in the order in which the program recorded them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fields {
    /// The fields that were read.
    pub values: Vec<Field>,
    /// The number of further fields, which did not fit the event.
    pub missing: u16,
    /// The reason why recorded fields may be missing.
    pub problem: Option<FieldsProblem>,
}

/// A reason why recorded fields are missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FieldsProblem {
    /// A payload that was overwritten before it was read.
    Expired,
    /// A damaged payload. The fields before the damage could be read. All later bytes of the payload are lost.
    Malformed,
}

/// A field and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// The name; `field N` if the call site is not known.
    pub name: Arc<str>,
    /// The index among the fields of the call site.
    pub index: u8,
    /// The value.
    pub value: FieldValue,
    /// The reason why the value was cut; `None` if the value is whole.
    pub cut: Option<Cut>,
}

impl Fields {
    /// Returns the last recorded value of the field with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        self.values.iter().rev().find(|field| &*field.name == name).map(|field| &field.value)
    }

    /// Returns true if no field is missing and no value was cut.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.problem.is_none() && self.values.iter().all(|field| field.cut.is_none())
    }

    /// Adds a field, or replaces its earlier value.
    pub(super) fn put(&mut self, field: Field) {
        match self.values.iter_mut().find(|known| known.index == field.index) {
            Some(known) => *known = field,
            None => self.values.push(field),
        }
    }

    /// Adds fields that were recorded later. If a field already has a value, the later value replaces it.
    pub fn update(&mut self, later: Fields) {
        later.values.into_iter().for_each(|field| self.put(field));
        self.missing = self.missing.saturating_add(later.missing);
        self.problem = self.problem.or(later.problem);
    }
}
