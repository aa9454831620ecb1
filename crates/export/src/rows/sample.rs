//! The other records of perf rings: samples of counters, marks, events that could not be recorded, unknown events.

use super::row;
use eventring::schema::perf::{FieldValue, PerfEvent};
use eventring::tracing::{PerfContent, RawRecord, SpanId, Thread};
use std::borrow::Cow;
use std::sync::Arc;

row! {
    /// A record of a perf ring that is no log record and not about a span.
    pub struct SampleRow<'a> {
        /// The number of its process in the recording.
        process: u32 => U32,
        /// When it was recorded, in nanoseconds since the epoch.
        time_ns: u64 => Amount,
        /// The thread that recorded it.
        thread: Option<&'a Arc<Thread>> => Thread,
        /// The span that the thread was in.
        span: Option<u64> => U64,
        /// The name of the counter or the mark.
        name: Option<Cow<'a, str>> => Text [IfAny],
        /// The sample of a counter.
        value: Option<Cow<'a, FieldValue>> => Number [IfAny],
        /// The text of a mark.
        text: Option<Cow<'a, str>> => Text [IfAny],
        /// Why an event was not recorded.
        why: Option<Cow<'a, str>> => Text [Only],
        /// The code of an unknown event.
        code: Option<u32> => U32 [Only],
    }
}

/// The kinds of such records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleKind {
    /// A sample of a counter.
    Counter,
    /// A mark.
    Marker,
    /// What stands for an event that could not be recorded.
    NotRecorded,
    /// An event of a newer schema, or a damaged one.
    Unknown,
}

impl SampleKind {
    /// All kinds, in the order of their tables.
    pub const ALL: [Self; 4] = [Self::Counter, Self::Marker, Self::NotRecorded, Self::Unknown];

    /// Returns the kind of a record. Returns `None` for log records and records of spans.
    #[must_use]
    pub fn from_event(event: Option<PerfEvent>) -> Option<Self> {
        match event {
            Some(PerfEvent::Counter) => Some(Self::Counter),
            Some(PerfEvent::Marker) => Some(Self::Marker),
            Some(PerfEvent::RecordError) => Some(Self::NotRecorded),
            None => Some(Self::Unknown),
            Some(_) => None,
        }
    }

    /// Returns the name of the table, and of the lines.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Counter => ("counters", "counter"),
            Self::Marker => ("markers", "marker"),
            Self::NotRecorded => ("not_recorded", "not_recorded"),
            Self::Unknown => ("unknown", "unknown"),
        }
    }
}

impl<'a> SampleRow<'a> {
    /// Makes the row of such a record.
    #[must_use]
    pub fn new(process: u32, record: &RawRecord<'_>, thread: &'a Arc<Thread>, content: &'a PerfContent) -> Self {
        let row = Self {
            process,
            time_ns: record.epoch_nanos(),
            thread: Some(thread),
            span: content.span().map(SpanId::get),
            ..Self::default()
        };
        match content {
            PerfContent::Counter { call_site, value, .. } => {
                Self { name: Some((&call_site.name).into()), value: Some(Cow::Borrowed(value)), ..row }
            }
            PerfContent::Marker { call_site, text, .. } => {
                Self { name: Some((&call_site.name).into()), text: text.as_deref().map(Cow::Borrowed), ..row }
            }
            PerfContent::NotRecorded { error, .. } => {
                Self { why: error.as_ref().map(|error| format!("{error:?}").into()), ..row }
            }
            _ => Self { code: Some(record.descriptor.event_type.into()), ..row },
        }
    }

    /// Returns the row as tables have it, which have the same columns for all kinds: `value` is also the code, and
    /// `text` also the reason, or the text of the sample.
    #[must_use]
    pub fn in_table(self) -> Self {
        let of_value = || self.value.as_ref().map(|value| value.to_string().into());
        let text = self.text.clone().or_else(|| self.why.clone()).or_else(of_value);
        let value = self.value.or(self.code.map(|code| Cow::Owned(FieldValue::U64(code.into()))));
        Self { text, value, ..self }
    }
}
