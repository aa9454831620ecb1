//! The trait by which the replay reads a record, decoded or raw. The replay decodes only those parts of a raw record
//! that it keeps.

use crate::schema::perf::{Allocated, FieldValue, PerfEvent, ThreadTime, flags};
use crate::tracing::read::call_site::{CallSite, Thread};
use crate::tracing::read::catalog::Catalog;
use crate::tracing::read::raw::RawRecord;
use crate::tracing::read::record::{Fields, PerfContent, PerfRecord};
use crate::tracing::span_id::SpanId;
use crate::tracing::trace_context::field_names::{PARENT_INDEX, STATE_INDEX};
use crate::tracing::trace_context::recorded;
use crate::tracing::trace_context::remote::RemoteContext;
use std::sync::Arc;

/// A record of a span, or another record that shows that a span exists.
pub(super) trait SpanRecord {
    /// Returns the shard and the number of the thread that recorded.
    fn place(&self) -> (u32, u32);
    fn epoch_nanos(&self) -> u64;
    fn event(&self) -> Option<PerfEvent>;
    fn span(&self) -> Option<SpanId>;
    /// Returns the parent of a new span, or the span that a span follows from.
    fn related(&self) -> Option<SpanId>;
    /// Returns the number of instructions that the program had executed on the thread at an enter or exit.
    fn instructions(&self) -> Option<u64>;
    fn flags(&self) -> u16;
    /// Returns what a THREAD_TIME says, and whether it tells queue from sleep.
    fn thread_time(&self) -> Option<(ThreadTime, bool)>;
    /// Returns what an ALLOCATED says.
    fn allocated(&self) -> Option<Allocated>;
    fn thread(&self) -> Arc<Thread>;
    /// Returns true if the thread is known to record all its times.
    fn measures_times(&self) -> bool;
    /// Returns the call site. It may be one whose description is not known.
    fn call_site(&self) -> Option<Arc<CallSite>>;
    /// Returns the call site if its description is known.
    fn known_call_site(&self) -> Option<Arc<CallSite>>;
    fn fields(&self) -> Fields;
    /// Returns the context of a remote caller, if the record stores one.
    fn caller(&self) -> Option<RemoteContext>;
    /// Returns the fields undecoded, if the record is raw.
    fn raw_fields(&self) -> Option<&RawRecord<'_>>;
}

/// A raw record, and the names for its ids.
pub(super) struct NamedRecord<'r> {
    pub(super) record: &'r RawRecord<'r>,
    pub(super) catalog: &'r Catalog,
}

impl SpanRecord for NamedRecord<'_> {
    #[inline]
    fn place(&self) -> (u32, u32) {
        (self.record.shard, self.record.ext.thread_id)
    }

    #[inline]
    fn epoch_nanos(&self) -> u64 {
        self.record.epoch_nanos()
    }

    #[inline]
    fn event(&self) -> Option<PerfEvent> {
        self.record.event
    }

    #[inline]
    fn span(&self) -> Option<SpanId> {
        self.record.span()
    }

    #[inline]
    fn related(&self) -> Option<SpanId> {
        self.record.related()
    }

    #[inline]
    fn instructions(&self) -> Option<u64> {
        self.record.instructions()
    }

    #[inline]
    fn flags(&self) -> u16 {
        self.record.ext.flags
    }

    fn thread_time(&self) -> Option<(ThreadTime, bool)> {
        self.record.thread_time()
    }

    fn allocated(&self) -> Option<Allocated> {
        self.record.allocated()
    }

    fn measures_times(&self) -> bool {
        self.catalog.known_thread(self.record.ext.thread_id).is_some_and(|thread| thread.measures_times)
    }

    fn thread(&self) -> Arc<Thread> {
        self.catalog.thread(self.record.ext.thread_id)
    }

    fn call_site(&self) -> Option<Arc<CallSite>> {
        Some(self.catalog.call_site(self.record.ext.call_site_id))
    }

    fn known_call_site(&self) -> Option<Arc<CallSite>> {
        self.catalog.known_call_site(self.record.ext.call_site_id).cloned()
    }

    fn fields(&self) -> Fields {
        self.call_site().map(|call_site| self.record.fields(&call_site)).unwrap_or_default()
    }

    #[inline]
    fn caller(&self) -> Option<RemoteContext> {
        let payload = self.record.payload.valid()?;
        let names =
            || self.catalog.known_call_site(self.record.ext.call_site_id).map_or(0, |site| site.field_names.len());
        recorded::of_payload(payload, names)
    }

    fn raw_fields(&self) -> Option<&RawRecord<'_>> {
        Some(self.record)
    }
}

impl SpanRecord for PerfRecord {
    fn place(&self) -> (u32, u32) {
        (self.shard, self.thread.id)
    }

    fn epoch_nanos(&self) -> u64 {
        self.epoch_nanos
    }

    fn event(&self) -> Option<PerfEvent> {
        Some(match &self.content {
            PerfContent::ThreadStarted => PerfEvent::ThreadStarted,
            PerfContent::ThreadEnded => PerfEvent::ThreadEnded,
            PerfContent::CallSite(_) => PerfEvent::CallSite,
            PerfContent::SpanNew { .. } => PerfEvent::SpanNew,
            PerfContent::SpanRecord { .. } => PerfEvent::SpanRecord,
            PerfContent::SpanEnter { .. } => PerfEvent::SpanEnter,
            PerfContent::SpanExit { .. } => PerfEvent::SpanExit,
            PerfContent::SpanClose { .. } => PerfEvent::SpanClose,
            PerfContent::SpanFollowsFrom { .. } => PerfEvent::SpanFollowsFrom,
            PerfContent::Event { .. } => PerfEvent::Event,
            PerfContent::Counter { .. } => PerfEvent::Counter,
            PerfContent::Marker { .. } => PerfEvent::Marker,
            PerfContent::ThreadSwitched { .. } => PerfEvent::ThreadSwitched,
            PerfContent::Allocated { .. } => PerfEvent::Allocated,
            PerfContent::ThreadTime { .. } => PerfEvent::ThreadTime,
            PerfContent::NotRecorded { .. } => PerfEvent::RecordError,
            PerfContent::Unknown { .. } => return None,
        })
    }

    fn span(&self) -> Option<SpanId> {
        self.content.span()
    }

    fn related(&self) -> Option<SpanId> {
        match &self.content {
            PerfContent::SpanNew { parent, .. } => *parent,
            PerfContent::SpanFollowsFrom { follows, .. } => Some(*follows),
            _ => None,
        }
    }

    fn instructions(&self) -> Option<u64> {
        self.instructions
    }

    fn flags(&self) -> u16 {
        match &self.content {
            PerfContent::SpanNew { flags, .. } | PerfContent::SpanExit { flags, .. } => *flags,
            _ => 0,
        }
    }

    fn thread_time(&self) -> Option<(ThreadTime, bool)> {
        match &self.content {
            PerfContent::ThreadTime { times, flags, .. } => Some(((*times)?, flags & flags::NO_QUEUE == 0)),
            _ => None,
        }
    }

    fn allocated(&self) -> Option<Allocated> {
        match &self.content {
            PerfContent::Allocated { allocated, .. } => *allocated,
            _ => None,
        }
    }

    fn thread(&self) -> Arc<Thread> {
        self.thread.clone()
    }

    fn measures_times(&self) -> bool {
        self.thread.measures_times
    }

    fn call_site(&self) -> Option<Arc<CallSite>> {
        match &self.content {
            PerfContent::SpanNew { call_site, .. }
            | PerfContent::SpanRecord { call_site, .. }
            | PerfContent::SpanEnter { call_site, .. }
            | PerfContent::SpanExit { call_site, .. }
            | PerfContent::SpanClose { call_site, .. } => Some(call_site.clone()),
            _ => None,
        }
    }

    fn known_call_site(&self) -> Option<Arc<CallSite>> {
        self.call_site().filter(|call_site| call_site.is_known)
    }

    fn fields(&self) -> Fields {
        match &self.content {
            PerfContent::SpanNew { fields, .. } | PerfContent::SpanRecord { fields, .. } => fields.clone(),
            _ => Fields::default(),
        }
    }

    fn caller(&self) -> Option<RemoteContext> {
        match &self.content {
            PerfContent::SpanRecord { call_site, fields, .. } => caller_of(fields, call_site.field_names.len()),
            _ => None,
        }
    }

    fn raw_fields(&self) -> Option<&RawRecord<'_>> {
        None
    }
}

/// Reads the context in decoded fields.
fn caller_of(fields: &Fields, names: usize) -> Option<RemoteContext> {
    let text = |index: u8| match fields.values.iter().find(|field| field.index == index) {
        Some(field) if field.cut.is_none() => match &field.value {
            FieldValue::Str(text) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    };
    if names > usize::from(PARENT_INDEX) {
        return None;
    }
    RemoteContext::parse(text(PARENT_INDEX)?, text(STATE_INDEX))
}
