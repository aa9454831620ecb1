//! Observations: what the engine reports to its caller, such as closed spans, log records and losses.
//!
//! The parts of an observation borrow from the event that was read. Names, fields and payloads are decoded on demand.

use crate::state::open::span_name;
use crate::state::task_phase::TaskPhase;
use eventring::internal::decode_event;
use eventring::reader::{Descriptor, Gap, PayloadRead, RingEnd};
use eventring::schema::perf::CallSiteLevel;
use eventring::schema::{ExtWords, Value};
use eventring::tracing::{CallSite, Catalog, RawRecord, Span, SpanId, Thread, is_log_record};
use eventring_capture::condition::{LiveFields, TypedContent};
use eventring_capture::recording::{RecordedProgram, RecordedRings};
use std::borrow::Cow;
use std::sync::Arc;

/// Something that the engine saw.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A span that was closed. It comes 5 ms after the close, because other threads may have recorded something in the
    /// span at the same time.
    SpanClosed(ClosedSpan<'a>),
    /// A log record.
    LogRecord(SeenRecord<'a>),
    /// A typed event.
    TypedEvent(SeenEvent<'a>),
    /// A mark in time.
    Marker(SeenMark<'a>),
    /// A loss of events.
    Lost(SeenLoss<'a>),
    /// The end of what a task did: of a poll, of a wait for a worker, or of a wait to be woken. It comes only with
    /// [`LiveOptions::with_tasks`](super::LiveOptions::with_tasks).
    TaskPhaseEnded(TaskPhase<'a>),
    /// The end of a program. All of its events were seen before.
    ProgramEnded(ProgramEnd<'a>),
    /// A tick. Ticks come some ten times a second, also while nothing happens. Conditions on what is open and on rates
    /// are asked here ([`LiveState`](super::LiveState)).
    Tick,
}

/// A span that was closed.
#[derive(Clone, Copy)]
pub struct ClosedSpan<'a> {
    pub(super) span: &'a Span,
    pub(super) self_nanos: Option<u64>,
    pub(super) program: &'a RecordedProgram,
    /// The index of the program's process in the recording.
    pub(super) process_index: usize,
}

impl<'a> ClosedSpan<'a> {
    /// Returns the span, with its times, its parent and its call site. It has no slices, and its `fields` are empty:
    /// [`Self::fields`] returns them.
    #[must_use]
    pub fn span(&self) -> &'a Span {
        self.span
    }

    /// Returns the name; `span N` if it is not known, where N is the id.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        span_name(self.span)
    }

    /// Returns the call site, if it is known.
    #[must_use]
    pub fn call_site(&self) -> Option<&'a CallSite> {
        self.span.call_site.as_deref()
    }

    /// Returns the target; empty if it is not known.
    #[must_use]
    pub fn target(&self) -> &'a str {
        self.call_site().map_or("", |call_site| &call_site.target)
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> CallSiteLevel {
        self.call_site().map_or(CallSiteLevel::None, |call_site| call_site.level)
    }

    /// Returns the time from creation to close in nanoseconds. If the span was opened before the window, this is the
    /// time since it was first seen: it has lasted longer. [`Span::created`] is then `None`.
    #[must_use]
    pub fn wall_nanos(&self) -> u64 {
        let closed = self.span.closed.as_ref().map_or(self.span.last_seen_epoch_nanos, |closed| closed.epoch_nanos);
        closed.saturating_sub(self.span.start_epoch_nanos())
    }

    /// Returns the time in which the span existed and none of its children did, in nanoseconds. Returns `None` if the
    /// beginning of the span was not seen, and if self times are left out
    /// ([`LiveOptions::without_self_times`](super::LiveOptions::without_self_times)).
    #[must_use]
    pub fn self_nanos(&self) -> Option<u64> {
        self.self_nanos
    }

    /// Returns how long threads were in the span, in nanoseconds. The times of several threads are added.
    #[must_use]
    pub fn busy_nanos(&self) -> u64 {
        self.span.counted_busy_nanos()
    }

    /// Returns the time of the close in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.span.closed.as_ref().map_or(self.span.last_seen_epoch_nanos, |closed| closed.epoch_nanos)
    }

    /// Returns the thread that closed the span.
    #[must_use]
    pub fn thread(&self) -> Option<&'a Thread> {
        self.span.closed.as_ref().map(|closed| &*closed.thread)
    }

    /// Returns the fields.
    #[must_use]
    pub fn fields(&self) -> LiveFields<'a> {
        LiveFields::new(self.span.raw_fields(), self.call_site())
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'a RecordedProgram {
        self.program
    }

    /// Returns the index of the program among those of the recording.
    #[must_use]
    pub fn program_index(&self) -> usize {
        self.process_index
    }
}

/// A log record.
#[derive(Clone, Copy)]
pub struct SeenRecord<'a> {
    /// The index of the ring.
    pub(super) ring: u32,
    pub(super) record: &'a RawRecord<'a>,
    pub(super) call_site: Option<&'a Arc<CallSite>>,
    /// The call sites and threads of its recorder.
    pub(super) catalog: &'a Catalog,
    pub(super) span: Option<&'a Span>,
    pub(super) program: &'a RecordedProgram,
}

impl<'a> SeenRecord<'a> {
    /// Returns the index of its ring, and its seqno there.
    #[must_use]
    pub fn place(&self) -> (u32, u64) {
        (self.ring, self.record.descriptor.seqno)
    }

    /// Returns the call site, if it is known. All records of the `log` crate of one level share one call site.
    #[must_use]
    pub fn call_site(&self) -> Option<&'a CallSite> {
        self.call_site.map(|call_site| &**call_site)
    }

    /// Returns the level.
    #[must_use]
    pub fn level(&self) -> CallSiteLevel {
        self.call_site().map_or(CallSiteLevel::None, |call_site| call_site.level)
    }

    /// Returns the target; empty if it is not known. For a record of the `log` crate, this is the target that the
    /// program gave.
    #[must_use]
    pub fn target(&self) -> &'a str {
        let Some(call_site) = self.call_site() else { return "" };
        let of_log = if is_log_record(call_site) { self.fields().text("log.target") } else { None };
        match of_log {
            Some(Cow::Borrowed(target)) => target,
            _ => &call_site.target,
        }
    }

    /// Returns the fields. The text of the record is the field `message`.
    #[must_use]
    pub fn fields(&self) -> LiveFields<'a> {
        LiveFields::new(self.record.payload.valid().unwrap_or_default(), self.call_site())
    }

    /// Returns true if it had fields, and they were lost with its payload.
    #[must_use]
    pub fn has_lost_fields(&self) -> bool {
        self.record.payload.valid().is_none() && self.record.ext.field_count > 0
    }

    /// Returns the text; empty if there is none.
    #[must_use]
    pub fn message(&self) -> Cow<'a, str> {
        self.fields().text("message").unwrap_or_default()
    }

    /// Returns the id of the span that the thread was in.
    #[must_use]
    pub fn span_id(&self) -> Option<SpanId> {
        self.record.span()
    }

    /// Returns the span that the thread was in, if the engine knows it. Its `fields` are empty.
    #[must_use]
    pub fn span(&self) -> Option<&'a Span> {
        self.span
    }

    /// Returns the fields of the span that the thread was in.
    #[must_use]
    pub fn span_fields(&self) -> Option<LiveFields<'a>> {
        self.span.map(|span| LiveFields::new(span.raw_fields(), span.call_site.as_deref()))
    }

    /// Returns the time in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.record.epoch_nanos()
    }

    /// Returns the thread.
    #[must_use]
    pub fn thread(&self) -> Arc<Thread> {
        self.catalog.thread(self.record.ext.thread_id)
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'a RecordedProgram {
        self.program
    }
}

/// A mark in time.
#[derive(Clone, Copy)]
pub struct SeenMark<'a> {
    /// The index of the ring.
    pub(super) ring: u32,
    pub(super) record: &'a RawRecord<'a>,
    /// The call sites and threads of its recorder.
    pub(super) catalog: &'a Catalog,
    pub(super) call_site: Option<&'a Arc<CallSite>>,
    pub(super) span: Option<&'a Span>,
    pub(super) program: &'a RecordedProgram,
}

impl<'a> SeenMark<'a> {
    /// Returns the index of its ring, and its seqno there.
    #[must_use]
    pub fn place(&self) -> (u32, u64) {
        (self.ring, self.record.descriptor.seqno)
    }

    /// Returns the name of the marker; empty if it is not known.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.call_site.map_or("", |call_site| &call_site.name)
    }

    /// Returns the text of the mark; `None` if it was overwritten, or is no UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&'a str> {
        std::str::from_utf8(self.record.payload.valid()?).ok()
    }

    /// Returns the span that the thread was in, if the engine knows it. Its `fields` are empty.
    #[must_use]
    pub fn span(&self) -> Option<&'a Span> {
        self.span
    }

    /// Returns the time in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.record.epoch_nanos()
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'a RecordedProgram {
        self.program
    }
}

/// A typed event.
#[derive(Clone, Copy)]
pub struct SeenEvent<'a> {
    pub(super) rings: &'a RecordedRings,
    /// The index of the ring.
    pub(super) ring: u32,
    pub(super) descriptor: &'a Descriptor,
    pub(super) payload: PayloadRead<'a>,
    pub(super) span: Option<&'a Span>,
    pub(super) program: &'a RecordedProgram,
}

impl<'a> SeenEvent<'a> {
    /// Returns the index of its ring, and its seqno there.
    #[must_use]
    pub fn place(&self) -> (u32, u64) {
        (self.ring, self.descriptor.seqno)
    }

    /// Returns the name of the ring.
    #[must_use]
    pub fn ring_name(&self) -> &'a str {
        self.rings.name(self.ring)
    }

    /// Returns the event.
    #[must_use]
    pub fn descriptor(&self) -> &'a Descriptor {
        self.descriptor
    }

    /// Returns the name of the event's type; `event N` if the schema is not known, where N is the code.
    #[must_use]
    pub fn name(&self) -> Cow<'a, str> {
        self.rings.event_name(self.ring, self.descriptor.event_type)
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> PayloadRead<'a> {
        self.payload
    }

    /// Decodes the payload. Returns `None` if the payload was overwritten or is damaged.
    #[must_use]
    pub fn decode(&self) -> Option<Value<'a>> {
        let payload = self.payload.valid()?;
        Some(decode_event(self.rings.model(self.ring), self.descriptor.event_type, payload))
    }

    pub(super) fn content(&self) -> TypedContent<'a> {
        let model = self.rings.model(self.ring);
        TypedContent { descriptor: self.descriptor, payload: self.payload, model, words: self.ext_words() }
    }

    /// Returns the names of the extension words.
    #[must_use]
    pub fn ext_words(&self) -> &'a ExtWords {
        self.rings.words(self.ring)
    }

    /// Returns the value of the extension word with this name or key
    /// ([`ExtWord::key`](eventring::schema::ExtWord::key)). Returns `None` if there is no such word, or if it has no
    /// value.
    #[must_use]
    pub fn word(&self, name: &str) -> Option<u64> {
        self.ext_words().value_of(name, self.descriptor.content_ext)
    }

    /// Returns the span in which the event was recorded, if the engine knows it. Its `fields` are empty.
    #[must_use]
    pub fn span(&self) -> Option<&'a Span> {
        self.span
    }

    /// Returns the time in nanoseconds since the epoch.
    #[must_use]
    pub fn epoch_nanos(&self) -> u64 {
        self.descriptor.record_epoch_nanos
    }

    /// Returns the program.
    #[must_use]
    pub fn program(&self) -> &'a RecordedProgram {
        self.program
    }
}

/// A loss of events.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SeenLoss<'a> {
    /// The name of the ring that has lost them.
    pub ring_name: &'a str,
    /// The missing events.
    pub gap: Gap,
    /// The time that the stream has reached, in nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The program.
    pub program: &'a RecordedProgram,
}

/// The end of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramEnd<'a> {
    /// The program.
    pub program: &'a RecordedProgram,
    /// True if the program died: it did not close its rings.
    pub has_died: bool,
    /// The last time at which the program certainly lived, in nanoseconds since the epoch. What was seen of the program
    /// before is not later.
    pub epoch_nanos: u64,
    /// The times between which the program ended; `None` if they are not known.
    pub bounds: Option<RingEnd>,
}

macro_rules! debug_by_name_and_time {
    ($($observation:ident),*) => {
        $(impl std::fmt::Debug for $observation<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let program = self.program();
                f.debug_struct(stringify!($observation)).field("at", &self.epoch_nanos()).field("program", program).finish_non_exhaustive()
            }
        })*
    };
}

debug_by_name_and_time!(ClosedSpan, SeenRecord, SeenMark, SeenEvent);
