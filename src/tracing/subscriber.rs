//! `RecorderSubscriber`: `tracing` straight into the ring.

use super::call_sites::CALL_SITES;
use super::fields::{EncodedFields, SmallEncoder, encode_large, visit_fields};
use super::filter::TargetFilter;
use super::filter_handle::FilterHandle;
use super::recorder::{PerfCore, PerfRecorder};
use super::sink::{Sink, record_empty, record_with_fields};
use super::span_slab::{Dropped, SPAN_SLAB};
use super::span_stack::next_owner;
use super::thread::{self, ThreadState};
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use std::num::NonZeroU64;
use std::sync::Arc;
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, LevelFilter, Metadata};

/// The id of all spans that are not recorded.
const UNRECORDED: u64 = u64::MAX;

/// A complete `tracing` subscriber that records everything its filter accepts, and does nothing else: for programs that need no other
/// layers. A span without fields costs less than with tracing-subscriber's `Registry` that does nothing (docs/COST.md has the figures).
///
/// It reads no environment variable: the program chooses the filter ([`Self::with_filter`]). [`init`](super::init) reads them.
///
/// It keeps 16 bytes of each open span, to know when the last handle is gone. Each thread knows its current span by itself, by
/// the same rules as `Registry`.
///
/// ```
/// use eventring::tracing::{PerfRecorder, RecorderSubscriber};
///
/// let recorder = PerfRecorder::builder().anonymous().build()?;
/// let subscriber = RecorderSubscriber::new(recorder).with_filter("info,my_crate=debug".parse()?);
/// let _guard = tracing::subscriber::set_default(subscriber);
/// tracing::info_span!("request", path = "/").in_scope(|| tracing::warn!("slow"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`init`](super::init) installs one for the whole process.
#[derive(Debug)]
pub struct RecorderSubscriber {
    sink: Sink,
    filter: FilterHandle,
    owner: u32,
}

impl RecorderSubscriber {
    /// Records everything to `recorder`.
    #[must_use]
    pub fn new(recorder: PerfRecorder) -> Self {
        Self::to(Sink::Own(recorder))
    }

    /// Records everything to the recorder that is installed in [`PERF`](super::PERF), as soon as there is one.
    #[must_use]
    pub fn global() -> Self {
        Self::to(Sink::Global)
    }

    fn to(sink: Sink) -> Self {
        Self { sink, filter: FilterHandle::new(TargetFilter::all()), owner: next_owner() }
    }

    /// Records only spans and events that `filter` accepts. Default: all of them.
    #[must_use]
    pub fn with_filter(self, filter: TargetFilter) -> Self {
        self.filter.replace(filter);
        self
    }

    /// Records only spans and events at `level` or more important levels.
    #[must_use]
    pub fn with_max_level(self, level: impl Into<LevelFilter>) -> Self {
        self.with_filter(TargetFilter::level(level))
    }

    /// Returns a handle that changes the filter later.
    #[must_use]
    pub fn filter_handle(&self) -> FilterHandle {
        self.filter.clone()
    }

    /// Returns the recorder; `None` if none is installed in [`PERF`](super::PERF) yet.
    #[must_use]
    pub fn recorder(&self) -> Option<&PerfRecorder> {
        self.sink.recorder()
    }

    /// Returns what the handles of the recorder share, if the recorder is switched on.
    #[inline(always)]
    fn recording(&self) -> Option<&Arc<PerfCore>> {
        self.sink.recording()
    }

    /// Returns the id of the span of this subscriber that the thread is in; 0 for none.
    #[inline(always)]
    fn current_id(&self, thread: &ThreadState) -> u64 {
        match thread.span_stack.try_current(self.owner) {
            Some(span_id) => span_id,
            None => thread.span_stack.current_of(self.owner),
        }
    }

    /// Returns the id of the parent of a new span, or of the span of an event, and the flag that says how the parent is known.
    #[inline(always)]
    fn parent_of(&self, thread: &ThreadState, is_contextual: bool, explicit: Option<&Id>) -> (u64, u16) {
        match explicit {
            _ if is_contextual => (self.current_id(thread), 0),
            Some(parent) => (recorded(parent).unwrap_or(0), flags::EXPLICIT_PARENT),
            None => (0, flags::EXPLICIT_ROOT),
        }
    }
}

/// Everything that the fast path of an event with fields needs before it visits the fields.
struct Prepared<'s> {
    core: &'s PerfCore,
    ring: &'s Recorder,
    call_site_id: u32,
    /// The span of this subscriber that the thread is in; 0 for none.
    current_id: u64,
    epoch_nanos: u64,
}

/// The fast path of spans with fields. It is kept out of line: it needs a 1 KiB stack buffer, which spans without fields do not pay for.
impl RecorderSubscriber {
    /// Prepares an event with fields; `None`, and nothing has changed, if the slow path has to do it. The clock is read last.
    #[inline(always)]
    fn try_prepare(&self, thread: &ThreadState, metadata: &'static Metadata<'static>) -> Option<Prepared<'_>> {
        let (core, ring) = self.sink.try_ring_for_fields(thread)?;
        let call_site_id = CALL_SITES.known_id_of(metadata)?;
        let current_id = thread.span_stack.try_current(self.owner)?;
        let epoch_nanos = ring.core.now_at_once()?;
        Some(Prepared { core, ring, call_site_id, current_id, epoch_nanos })
    }

    /// Creates a span with fields.
    #[inline(never)]
    fn new_span_with_fields(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let Some(prepared) = self.try_prepare(thread, attributes.metadata()) else {
            return self.new_span_slow(thread, attributes);
        };
        let Prepared { core, ring, call_site_id, current_id: parent, epoch_nanos } = prepared;
        let mut encoder = SmallEncoder::new(thread, &core.limits);
        let panicked = move |fields: EncodedFields<'_>| self.encoded_span(thread, attributes, fields);
        visit_fields(&mut encoder, |encoder| attributes.record(encoder), panicked);
        // From here on the span is recorded with these fields, and `new_span_slow` is no way out: it would format the values again, and a
        // value may record events while it is formatted.
        if encoder.is_too_small() {
            return self.large_span(thread, attributes, epoch_nanos);
        }
        let fields = encoder.encoded(Some(epoch_nanos));
        let Some(span_id) = SPAN_SLAB.try_create(&thread.free_list, call_site_id) else {
            return self.encoded_span(thread, attributes, fields);
        };
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span_id, call_site_id) };
        record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
        id_of(span_id)
    }
}

/// The slow paths. Each of them handles every case, from the beginning.
impl RecorderSubscriber {
    #[inline(never)]
    fn new_span_slow(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        if attributes.fields().is_empty() {
            return self.encoded_span(thread, attributes, EncodedFields::NONE);
        }
        // A new call site, and a thread that moves to another ring, record events: so both come before the time is taken.
        core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let visit = |visitor: &mut dyn Visit| attributes.record(visitor);
        core.encode_fields(thread, ring, visit, |fields| self.encoded_span(thread, attributes, fields))
    }

    /// Creates a span whose fields need a larger buffer.
    #[cold]
    #[inline(never)]
    fn large_span(&self, thread: &ThreadState, attributes: &Attributes<'_>, epoch_nanos: u64) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        encode_large(
            thread,
            &core.limits,
            Some(epoch_nanos),
            |encoder| attributes.record(encoder),
            |fields| self.encoded_span(thread, attributes, fields),
        )
    }

    /// Creates a span whose fields are encoded.
    #[inline(never)]
    fn encoded_span(&self, thread: &ThreadState, attributes: &Attributes<'_>, fields: EncodedFields<'_>) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        let call_site_id = core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let (parent, origin) = self.parent_of(thread, attributes.is_contextual(), attributes.parent());
        thread.register_end();
        let Some(span_id) = SPAN_SLAB.create(&thread.free_list, call_site_id) else {
            core.count_lost_span();
            return id_of(UNRECORDED);
        };
        let ext = PerfExt { related: parent, flags: origin, ..PerfExt::of_span(span_id, call_site_id) };
        record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
        let id = id_of(span_id);
        if fields.has_panicked {
            // Formatting a field has panicked: the span is recorded as closed, and the program gets no id.
            self.try_close(id.clone());
        }
        id
    }

    #[inline(never)]
    fn event_slow(&self, thread: &ThreadState, event: &Event<'_>) {
        let Some(core) = self.recording() else { return };
        // A new call site, and a thread that moves to another ring, record events: so both come before the time is taken.
        core.call_site_id(event.metadata());
        let Some(ring) = thread.ring_of(core) else { return };
        let visit = |visitor: &mut dyn Visit| event.record(visitor);
        core.encode_fields(thread, ring, visit, |fields| self.encoded_event(thread, event, fields));
    }

    /// Records an event whose fields need a larger buffer.
    #[cold]
    #[inline(never)]
    fn large_event(&self, thread: &ThreadState, event: &Event<'_>, epoch_nanos: u64) {
        let Some(core) = self.recording() else { return };
        let then = |fields: EncodedFields<'_>| self.encoded_event(thread, event, fields);
        encode_large(thread, &core.limits, Some(epoch_nanos), |encoder| event.record(encoder), then);
    }

    /// Records an event whose fields are encoded.
    #[inline(never)]
    fn encoded_event(&self, thread: &ThreadState, event: &Event<'_>, fields: EncodedFields<'_>) {
        let Some(core) = self.recording() else { return };
        let Some(ring) = thread.ring_of(core) else { return };
        let (span_id, origin) = self.parent_of(thread, event.is_contextual(), event.parent());
        let ext = PerfExt { flags: origin, ..PerfExt::of_span(span_id, core.call_site_id(event.metadata())) };
        record_with_fields(ring, thread, PerfEvent::Event, ext, fields);
    }

    #[cold]
    #[inline(never)]
    fn enter_slow(&self, thread: &ThreadState, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        let call_site_id = SPAN_SLAB.call_site_id(span_id);
        let core = self.recording();
        thread.enter(span_id, span_id, call_site_id, self.owner, core.is_some());
        if let Some(core) = core {
            core.record(thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id), &[]);
        }
    }

    #[cold]
    #[inline(never)]
    fn exit_slow(&self, thread: &ThreadState, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        let entry = thread.exit(span_id, self.owner);
        let call_site_id = entry.map_or_else(|| SPAN_SLAB.call_site_id(span_id), |entry| entry.call_site_id());
        self.sink.record_exit(thread, entry, PerfExt::of_span(span_id, call_site_id));
    }

    #[inline(never)]
    fn close_slow(&self, thread: &ThreadState, span_id: u64) -> bool {
        thread.register_end();
        match SPAN_SLAB.drop_handle(&thread.free_list, span_id) {
            Dropped::Last(call_site_id) => {
                self.sink.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
                true
            }
            Dropped::Open | Dropped::Unknown => false,
        }
    }
}

// The rest of a fast path whose event the ring could not record on its own fast path. These functions return the answer of the fast path,
// so that it need not keep anything on the stack over the call.

#[cold]
#[inline(never)]
fn record_new_span_slow(ring: &Recorder, span_id: u64, parent: u64, ids: u64) -> Id {
    ring.core.record_empty_otherwise(PerfEvent::SpanNew as u16, span_id, parent, ids, 0);
    id_of(span_id)
}

#[cold]
#[inline(never)]
fn record_close_slow(ring: &Recorder, span_id: u64, ids: u64) -> bool {
    ring.core.record_empty_otherwise(PerfEvent::SpanClose as u16, span_id, 0, ids, 0);
    true
}

/// Returns the id as `tracing` has it. (`Id::from_u64` is a call.)
#[inline(always)]
fn id_of(span_id: u64) -> Id {
    Id::from_non_zero_u64(NonZeroU64::new(span_id).unwrap_or(NonZeroU64::MAX))
}

/// Returns the id of a recorded span; `None` if the span is not recorded.
#[inline(always)]
fn recorded(id: &Id) -> Option<u64> {
    Some(id.into_u64()).filter(|id| *id != UNRECORDED)
}

impl Subscriber for RecorderSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let Some(recorder) = self.recorder().filter(|recorder| recorder.is_enabled()) else {
            // `tracing` asks again for all call sites when this changes.
            return Interest::never();
        };
        if !self.filter.accepts(metadata) {
            return Interest::never();
        }
        if recorder.belongs_to_this_process() {
            CALL_SITES.id_of(metadata);
        }
        Interest::always()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.recording().is_some() && self.filter.accepts(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        match self.recording() {
            Some(_) => Some(self.filter.max_level()),
            None => Some(LevelFilter::OFF),
        }
    }

    #[inline]
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        thread::with(|thread| {
            if !attributes.is_contextual() {
                return self.new_span_slow(thread, attributes);
            }
            if !attributes.fields().is_empty() {
                return self.new_span_with_fields(thread, attributes);
            }
            let Some(ring) = self.sink.try_ring(thread) else {
                return self.new_span_slow(thread, attributes);
            };
            let Some(call_site_id) = CALL_SITES.known_id_of(attributes.metadata()) else {
                return self.new_span_slow(thread, attributes);
            };
            let Some(parent) = thread.span_stack.try_current(self.owner) else {
                return self.new_span_slow(thread, attributes);
            };
            let Some(span_id) = SPAN_SLAB.try_create(&thread.free_list, call_site_id) else {
                return self.new_span_slow(thread, attributes);
            };
            let ids = u64::from(call_site_id) | thread.id_word();
            match ring.core.record_empty_at_once(PerfEvent::SpanNew as u16, span_id, parent, ids, 0) {
                Some(_) => id_of(span_id),
                None => record_new_span_slow(ring, span_id, parent, ids),
            }
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let (Some(core), Some(span_id)) = (self.recording(), recorded(span)) else { return };
        let ext = PerfExt::of_span(span_id, SPAN_SLAB.call_site_id(span_id));
        thread::with(|thread| {
            let Some(ring) = thread.ring_of(core) else { return };
            let visit = |visitor: &mut dyn Visit| values.record(visitor);
            core.encode_fields(thread, ring, visit, |fields| {
                record_with_fields(ring, thread, PerfEvent::SpanRecord, ext, fields);
            });
        });
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let (Some(span_id), Some(follows)) = (recorded(span), recorded(follows)) else { return };
        let ext = PerfExt { related: follows, ..PerfExt::of_span(span_id, SPAN_SLAB.call_site_id(span_id)) };
        thread::with(|thread| self.sink.record(thread, PerfEvent::SpanFollowsFrom, ext));
    }

    #[inline]
    fn event(&self, event: &Event<'_>) {
        thread::with(|thread| {
            if !event.is_contextual() {
                return self.event_slow(thread, event);
            }
            let Some(prepared) = self.try_prepare(thread, event.metadata()) else {
                return self.event_slow(thread, event);
            };
            let Prepared { core, ring, call_site_id, current_id: span_id, epoch_nanos } = prepared;
            let mut encoder = SmallEncoder::new(thread, &core.limits);
            visit_fields(
                &mut encoder,
                |encoder| event.record(encoder),
                move |fields| self.encoded_event(thread, event, fields),
            );
            if encoder.is_too_small() {
                return self.large_event(thread, event, epoch_nanos);
            }
            let ext = PerfExt::of_span(span_id, call_site_id);
            record_with_fields(ring, thread, PerfEvent::Event, ext, encoder.encoded(Some(epoch_nanos)));
        });
    }

    #[inline]
    fn enter(&self, span: &Id) {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else { return self.enter_slow(thread, span) };
            let Some(call_site_id) = SPAN_SLAB.try_call_site_id(span_id) else {
                return self.enter_slow(thread, span);
            };
            if !thread.try_enter(span_id, span_id, call_site_id, self.owner) {
                return self.enter_slow(thread, span);
            }
            record_empty(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        });
    }

    #[inline]
    fn exit(&self, span: &Id) {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else { return self.exit_slow(thread, span) };
            let Some(entry) = thread.try_exit(span_id, self.owner) else {
                return self.exit_slow(thread, span);
            };
            record_empty(ring, thread, PerfEvent::SpanExit, PerfExt::of_span(span_id, entry.call_site_id()));
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(span_id) = recorded(span) {
            SPAN_SLAB.add_handle(span_id);
        }
        span.clone()
    }

    #[inline]
    fn try_close(&self, span: Id) -> bool {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else { return self.close_slow(thread, span_id) };
            let Some(call_site_id) = SPAN_SLAB.try_drop_only_handle(&thread.free_list, span_id) else {
                return self.close_slow(thread, span_id);
            };
            let ids = u64::from(call_site_id) | thread.id_word();
            match ring.core.record_empty_at_once(PerfEvent::SpanClose as u16, span_id, 0, ids, 0) {
                Some(_) => true,
                None => record_close_slow(ring, span_id, ids),
            }
        })
    }

    fn current_span(&self) -> Current {
        thread::with(|thread| {
            let Some(entry) = thread.span_stack.current(self.owner) else { return Current::none() };
            let metadata = CALL_SITES.metadata(SPAN_SLAB.call_site_id(entry.span_id));
            metadata.map_or_else(Current::none, |metadata| Current::new(Id::from_u64(entry.span_id), metadata))
        })
    }
}
