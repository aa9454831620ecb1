//! What a perf ring's events say, decoded into owned values.

use super::catalog::{CallSite, Thread};
use crate::schema::RecordError;
use crate::schema::perf::{Cut, FieldValue};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Names a span of one recording process: never used twice there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpanId(NonZeroU64);

impl SpanId {
    /// The span with that number; `None` for 0, which stands for no span.
    #[must_use]
    pub const fn new(id: u64) -> Option<Self> {
        match NonZeroU64::new(id) {
            Some(id) => Some(Self(id)),
            None => None,
        }
    }

    /// The number, as in the ring.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One event of a perf ring.
#[derive(Clone, PartialEq, Debug)]
pub struct PerfRecord {
    /// Index of the shard it came from.
    pub shard: u32,
    /// Its sequence number in that shard.
    pub seqno: u64,
    /// When it was recorded, nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The thread that recorded it.
    pub thread: Arc<Thread>,
    /// What happened.
    pub content: PerfContent,
}

/// What happened.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum PerfContent {
    /// The thread records for the first time.
    ThreadStarted,
    /// The thread ends.
    ThreadEnded,
    /// A call site was met for the first time.
    CallSite(Arc<CallSite>),
    /// A span was created.
    SpanNew {
        /// The span.
        span: SpanId,
        /// The span it is part of; `None` for a root.
        parent: Option<SpanId>,
        /// Where.
        call_site: Arc<CallSite>,
        /// The fields that it was created with.
        fields: Fields,
        /// See [`flags`](crate::schema::perf::flags).
        flags: u16,
    },
    /// A span got further fields, or new values of fields.
    SpanRecord {
        /// The span.
        span: SpanId,
        /// Where the span was created.
        call_site: Arc<CallSite>,
        /// The fields.
        fields: Fields,
    },
    /// The thread entered a span.
    SpanEnter {
        /// The span.
        span: SpanId,
        /// Where the span was created.
        call_site: Arc<CallSite>,
    },
    /// The thread exited a span.
    SpanExit {
        /// The span.
        span: SpanId,
        /// Where the span was created.
        call_site: Arc<CallSite>,
    },
    /// A span's last handle is gone.
    SpanClose {
        /// The span.
        span: SpanId,
        /// Where the span was created.
        call_site: Arc<CallSite>,
    },
    /// A span follows from another.
    SpanFollowsFrom {
        /// The later span.
        span: SpanId,
        /// The earlier one.
        follows: SpanId,
    },
    /// A log record.
    Event {
        /// The span it lies in.
        span: Option<SpanId>,
        /// Where. Of a record of the `log` crate this has the target, module, file and line that the record names.
        call_site: Arc<CallSite>,
        /// Its fields; the text of the record is the one named `message`.
        fields: Fields,
    },
    /// A sample of a counter.
    Counter {
        /// The span that the thread was in.
        span: Option<SpanId>,
        /// The counter, by name.
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
        /// Its text; `None` if that was overwritten before it was read.
        text: Option<String>,
    },
    /// An event that could not be recorded.
    NotRecorded {
        /// The span that the event was about, or lay in.
        span: Option<SpanId>,
        /// Why; `None` if that was overwritten, or there was no memory to record it.
        error: Option<RecordError>,
    },
    /// An event that this version does not know, or a damaged one.
    Unknown {
        /// Its code.
        event_type: u16,
        /// Its content extension.
        content_ext: [u64; 4],
    },
}

impl PerfContent {
    /// The span that this is about, or lies in.
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
            | Self::NotRecorded { span, .. } => *span,
            Self::ThreadStarted | Self::ThreadEnded | Self::CallSite(_) | Self::Unknown { .. } => None,
        }
    }
}

/// The fields of a span or a log record, in the order in which they were recorded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fields {
    /// The fields that are there.
    pub values: Vec<Field>,
    /// How many more there were that did not fit.
    pub missing: u16,
    /// Why there may be fewer than were recorded.
    pub problem: Option<FieldsProblem>,
}

/// Why recorded fields are not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FieldsProblem {
    /// They were overwritten before they were read.
    Expired,
    /// The payload is damaged: what follows the last field that could be read is lost.
    Malformed,
}

/// A field and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// Its name; `field N` if the call site is not known.
    pub name: Arc<str>,
    /// Its index among the call site's fields.
    pub index: u8,
    /// Its value.
    pub value: FieldValue,
    /// If it is not the whole value: why.
    pub cut: Option<Cut>,
}

impl Fields {
    /// The last value recorded for the field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&FieldValue> {
        self.values.iter().rev().find(|field| &*field.name == name).map(|field| &field.value)
    }

    /// Whether every recorded field is there with its whole value.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.problem.is_none() && self.values.iter().all(|field| field.cut.is_none())
    }

    /// Adds fields that were recorded later: a field that was there already gets its new value.
    pub fn update(&mut self, later: Fields) {
        for field in later.values {
            match self.values.iter_mut().find(|known| known.index == field.index) {
                Some(known) => *known = field,
                None => self.values.push(field),
            }
        }
        self.missing = self.missing.saturating_add(later.missing);
        self.problem = self.problem.or(later.problem);
    }
}
