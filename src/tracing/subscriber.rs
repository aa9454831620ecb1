//! `RecorderSubscriber`: `tracing` straight into the ring.

use super::call_sites::CALL_SITES;
use super::entered::next_owner;
use super::fields::{EncodedFields, SmallEncoder, encode_large, look};
use super::filter::TargetFilter;
use super::filter_handle::FilterHandle;
use super::recorder::{PerfCore, PerfRecorder};
use super::span_cells::{Dropped, SPAN_CELLS};
use super::target::{Target, record_at_once, record_with};
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

/// A complete `tracing` subscriber that records everything its filter accepts, and nothing else: for programs that need no other
/// layers. A span without fields costs less than with tracing-subscriber's `Registry` that does nothing (docs/COST.md has the figures).
///
/// It asks no environment variable: which filter it has, the program says ([`Self::with_filter`]); [`init`](super::init) asks.
///
/// Of a span it keeps 16 bytes, to know when its last handle is gone. What the current span is, each thread knows by itself, by
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
    target: Target,
    filter: FilterHandle,
    owner: u32,
}

impl RecorderSubscriber {
    /// Records everything to `recorder`.
    #[must_use]
    pub fn new(recorder: PerfRecorder) -> Self {
        Self::to(Target::Own(recorder))
    }

    /// Records everything to the recorder that is installed in [`PERF`](super::PERF), from when there is one.
    #[must_use]
    pub fn global() -> Self {
        Self::to(Target::Global)
    }

    fn to(target: Target) -> Self {
        Self { target, filter: FilterHandle::new(TargetFilter::all()), owner: next_owner() }
    }

    /// Records only what `filter` accepts. Default: everything.
    #[must_use]
    pub fn with_filter(self, filter: TargetFilter) -> Self {
        self.filter.replace(filter);
        self
    }

    /// Records only what is at `level` or more important.
    #[must_use]
    pub fn with_max_level(self, level: impl Into<LevelFilter>) -> Self {
        self.with_filter(TargetFilter::level(level))
    }

    /// To change the filter later.
    #[must_use]
    pub fn filter_handle(&self) -> FilterHandle {
        self.filter.clone()
    }

    /// The recorder; `None` if none is installed in [`PERF`](super::PERF) yet.
    #[must_use]
    pub fn recorder(&self) -> Option<&PerfRecorder> {
        self.target.recorder()
    }

    /// What is shared of the recorder, if it is switched on.
    #[inline(always)]
    fn recording(&self) -> Option<&Arc<PerfCore>> {
        self.target.recording()
    }

    /// The span of this subscriber that the thread is in; 0 for none.
    #[inline(always)]
    fn current_id(&self, thread: &ThreadState) -> u64 {
        match thread.entered.current_at_once(self.owner) {
            Some(span_id) => span_id,
            None => thread.entered.current_of(self.owner),
        }
    }

    /// The parent of a new span, or the span of an event, and how that is known.
    #[inline(always)]
    fn parent_of(&self, thread: &ThreadState, is_contextual: bool, explicit: Option<&Id>) -> (u64, u16) {
        match explicit {
            _ if is_contextual => (self.current_id(thread), 0),
            Some(parent) => (recorded(parent).unwrap_or(0), flags::EXPLICIT_PARENT),
            None => (0, flags::EXPLICIT_ROOT),
        }
    }
}

/// What is known before the fields of an event or a new span are looked at, in the ordinary case.
struct BeforeFields<'s> {
    core: &'s PerfCore,
    ring: &'s Recorder,
    call_site_id: u32,
    /// The span of this subscriber that the thread is in; 0 for none.
    current_id: u64,
    epoch_nanos: u64,
}

/// What would make the stack's frame of every span large.
impl RecorderSubscriber {
    /// `None` if the case is not ordinary; then nothing has changed. The time is taken last.
    #[inline(always)]
    fn before_fields_at_once(
        &self,
        thread: &ThreadState,
        metadata: &'static Metadata<'static>,
    ) -> Option<BeforeFields<'_>> {
        let (core, ring) = self.target.ring_for_fields_at_once(thread)?;
        let call_site_id = CALL_SITES.known_id_of(metadata)?;
        let current_id = thread.entered.current_at_once(self.owner)?;
        let epoch_nanos = ring.core.now_at_once()?;
        Some(BeforeFields { core, ring, call_site_id, current_id, epoch_nanos })
    }

    /// A new span with fields, in the ordinary case.
    #[inline(never)]
    fn new_span_with_fields(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let Some(before) = self.before_fields_at_once(thread, attributes.metadata()) else {
            return self.new_span_otherwise(thread, attributes);
        };
        let BeforeFields { core, ring, call_site_id, current_id: parent, epoch_nanos } = before;
        let mut encoder = SmallEncoder::new(thread, &core.limits);
        let panicked = move |fields: EncodedFields<'_>| self.encoded_span(thread, attributes, fields);
        look(&mut encoder, |encoder| attributes.record(encoder), panicked);
        // From here on nothing begins anew: values may have been formatted, and have recorded.
        if encoder.is_too_small() {
            return self.large_span(thread, attributes, epoch_nanos);
        }
        let fields = encoder.encoded(Some(epoch_nanos));
        let Some(span_id) = SPAN_CELLS.create_at_once(&thread.free_cells, call_site_id) else {
            return self.encoded_span(thread, attributes, fields);
        };
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span_id, call_site_id) };
        record_with(ring, thread, PerfEvent::SpanNew, ext, fields);
        id_of(span_id)
    }
}

/// The rest of what a subscriber does: what is not the ordinary case, which begins anew here.
impl RecorderSubscriber {
    #[inline(never)]
    fn new_span_otherwise(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        if attributes.fields().is_empty() {
            return self.encoded_span(thread, attributes, EncodedFields::NONE);
        }
        // A new call site and a thread that moves to another ring record, too: before the time is taken.
        core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let visit = |visitor: &mut dyn Visit| attributes.record(visitor);
        core.encode_fields(thread, ring, visit, |fields| self.encoded_span(thread, attributes, fields))
    }

    /// A new span whose fields need the large buffer.
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

    /// A new span whose fields are encoded.
    #[inline(never)]
    fn encoded_span(&self, thread: &ThreadState, attributes: &Attributes<'_>, fields: EncodedFields<'_>) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        let call_site_id = core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let (parent, origin) = self.parent_of(thread, attributes.is_contextual(), attributes.parent());
        thread.gives_back_at_its_end();
        let Some(span_id) = SPAN_CELLS.create(&thread.free_cells, call_site_id) else {
            core.count_lost_span();
            return id_of(UNRECORDED);
        };
        let ext = PerfExt { related: parent, flags: origin, ..PerfExt::of_span(span_id, call_site_id) };
        record_with(ring, thread, PerfEvent::SpanNew, ext, fields);
        let id = id_of(span_id);
        if fields.has_panicked {
            // A value did, while it was formatted; nobody gets the id: the span ends here.
            self.try_close(id.clone());
        }
        id
    }

    #[inline(never)]
    fn event_otherwise(&self, thread: &ThreadState, event: &Event<'_>) {
        let Some(core) = self.recording() else { return };
        // A new call site and a thread that moves to another ring record, too: before the time is taken.
        core.call_site_id(event.metadata());
        let Some(ring) = thread.ring_of(core) else { return };
        let visit = |visitor: &mut dyn Visit| event.record(visitor);
        core.encode_fields(thread, ring, visit, |fields| self.encoded_event(thread, event, fields));
    }

    /// An event whose fields need the large buffer.
    #[cold]
    #[inline(never)]
    fn large_event(&self, thread: &ThreadState, event: &Event<'_>, epoch_nanos: u64) {
        let Some(core) = self.recording() else { return };
        let then = |fields: EncodedFields<'_>| self.encoded_event(thread, event, fields);
        encode_large(thread, &core.limits, Some(epoch_nanos), |encoder| event.record(encoder), then);
    }

    /// An event whose fields are encoded.
    #[inline(never)]
    fn encoded_event(&self, thread: &ThreadState, event: &Event<'_>, fields: EncodedFields<'_>) {
        let Some(core) = self.recording() else { return };
        let Some(ring) = thread.ring_of(core) else { return };
        let (span_id, origin) = self.parent_of(thread, event.is_contextual(), event.parent());
        let ext = PerfExt { flags: origin, ..PerfExt::of_span(span_id, core.call_site_id(event.metadata())) };
        record_with(ring, thread, PerfEvent::Event, ext, fields);
    }

    #[cold]
    #[inline(never)]
    fn enter_otherwise(&self, thread: &ThreadState, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        let call_site_id = SPAN_CELLS.call_site_id(span_id);
        let core = self.recording();
        thread.enter(span_id, span_id, call_site_id, self.owner, core.is_some());
        if let Some(core) = core {
            core.record(thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id), &[]);
        }
    }

    #[cold]
    #[inline(never)]
    fn exit_otherwise(&self, thread: &ThreadState, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        let exited = thread.exit(span_id, self.owner);
        let call_site_id = exited.map_or_else(|| SPAN_CELLS.call_site_id(span_id), |exited| exited.call_site_id());
        self.target.record_exit(thread, exited, PerfExt::of_span(span_id, call_site_id));
    }

    #[inline(never)]
    fn close_otherwise(&self, thread: &ThreadState, span_id: u64) -> bool {
        thread.gives_back_at_its_end();
        match SPAN_CELLS.drop_handle(&thread.free_cells, span_id) {
            Dropped::Last(call_site_id) => {
                self.target.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
                true
            }
            Dropped::Open | Dropped::Unknown => false,
        }
    }
}

// What is left to do when an event could not be recorded at once; with the caller's answer, so that it need not keep anything
// over the call.

#[cold]
#[inline(never)]
fn new_span_late(ring: &Recorder, span_id: u64, parent: u64, ids: u64) -> Id {
    ring.core.record_empty_otherwise(PerfEvent::SpanNew as u16, span_id, parent, ids, 0);
    id_of(span_id)
}

#[cold]
#[inline(never)]
fn close_late(ring: &Recorder, span_id: u64, ids: u64) -> bool {
    ring.core.record_empty_otherwise(PerfEvent::SpanClose as u16, span_id, 0, ids, 0);
    true
}

/// The id as `tracing` has it. (`Id::from_u64` is a call.)
#[inline(always)]
fn id_of(span_id: u64) -> Id {
    Id::from_non_zero_u64(NonZeroU64::new(span_id).unwrap_or(NonZeroU64::MAX))
}

/// The id of a recorded span; `None` for one that is not.
#[inline(always)]
fn recorded(id: &Id) -> Option<u64> {
    Some(id.into_u64()).filter(|id| *id != UNRECORDED)
}

impl Subscriber for RecorderSubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let Some(recorder) = self.recorder().filter(|recorder| recorder.is_enabled()) else {
            // All call sites are asked again when this changes.
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
                return self.new_span_otherwise(thread, attributes);
            }
            if !attributes.fields().is_empty() {
                return self.new_span_with_fields(thread, attributes);
            }
            let Some(ring) = self.target.ring_at_once(thread) else {
                return self.new_span_otherwise(thread, attributes);
            };
            let Some(call_site_id) = CALL_SITES.known_id_of(attributes.metadata()) else {
                return self.new_span_otherwise(thread, attributes);
            };
            let Some(parent) = thread.entered.current_at_once(self.owner) else {
                return self.new_span_otherwise(thread, attributes);
            };
            let Some(span_id) = SPAN_CELLS.create_at_once(&thread.free_cells, call_site_id) else {
                return self.new_span_otherwise(thread, attributes);
            };
            let ids = u64::from(call_site_id) | thread.id_word();
            match ring.core.record_empty_at_once(PerfEvent::SpanNew as u16, span_id, parent, ids, 0) {
                Some(_) => id_of(span_id),
                None => new_span_late(ring, span_id, parent, ids),
            }
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let (Some(core), Some(span_id)) = (self.recording(), recorded(span)) else { return };
        let ext = PerfExt::of_span(span_id, SPAN_CELLS.call_site_id(span_id));
        thread::with(|thread| {
            let Some(ring) = thread.ring_of(core) else { return };
            let visit = |visitor: &mut dyn Visit| values.record(visitor);
            core.encode_fields(thread, ring, visit, |fields| {
                record_with(ring, thread, PerfEvent::SpanRecord, ext, fields);
            });
        });
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let (Some(span_id), Some(follows)) = (recorded(span), recorded(follows)) else { return };
        let ext = PerfExt { related: follows, ..PerfExt::of_span(span_id, SPAN_CELLS.call_site_id(span_id)) };
        thread::with(|thread| self.target.record(thread, PerfEvent::SpanFollowsFrom, ext));
    }

    #[inline]
    fn event(&self, event: &Event<'_>) {
        thread::with(|thread| {
            if !event.is_contextual() {
                return self.event_otherwise(thread, event);
            }
            let Some(before) = self.before_fields_at_once(thread, event.metadata()) else {
                return self.event_otherwise(thread, event);
            };
            let BeforeFields { core, ring, call_site_id, current_id: span_id, epoch_nanos } = before;
            let mut encoder = SmallEncoder::new(thread, &core.limits);
            look(
                &mut encoder,
                |encoder| event.record(encoder),
                move |fields| self.encoded_event(thread, event, fields),
            );
            if encoder.is_too_small() {
                return self.large_event(thread, event, epoch_nanos);
            }
            let ext = PerfExt::of_span(span_id, call_site_id);
            record_with(ring, thread, PerfEvent::Event, ext, encoder.encoded(Some(epoch_nanos)));
        });
    }

    #[inline]
    fn enter(&self, span: &Id) {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.target.ring_at_once(thread) else { return self.enter_otherwise(thread, span) };
            let Some(call_site_id) = SPAN_CELLS.call_site_id_at_once(span_id) else {
                return self.enter_otherwise(thread, span);
            };
            if !thread.enter_at_once(span_id, span_id, call_site_id, self.owner) {
                return self.enter_otherwise(thread, span);
            }
            record_at_once(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        });
    }

    #[inline]
    fn exit(&self, span: &Id) {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.target.ring_at_once(thread) else { return self.exit_otherwise(thread, span) };
            let Some(exited) = thread.exit_at_once(span_id, self.owner) else {
                return self.exit_otherwise(thread, span);
            };
            record_at_once(ring, thread, PerfEvent::SpanExit, PerfExt::of_span(span_id, exited.call_site_id()));
        });
    }

    fn clone_span(&self, span: &Id) -> Id {
        if let Some(span_id) = recorded(span) {
            SPAN_CELLS.add_handle(span_id);
        }
        span.clone()
    }

    #[inline]
    fn try_close(&self, span: Id) -> bool {
        thread::with(|thread| {
            let span_id = span.into_u64();
            let Some(ring) = self.target.ring_at_once(thread) else { return self.close_otherwise(thread, span_id) };
            let Some(call_site_id) = SPAN_CELLS.drop_only_handle_at_once(&thread.free_cells, span_id) else {
                return self.close_otherwise(thread, span_id);
            };
            let ids = u64::from(call_site_id) | thread.id_word();
            match ring.core.record_empty_at_once(PerfEvent::SpanClose as u16, span_id, 0, ids, 0) {
                Some(_) => true,
                None => close_late(ring, span_id, ids),
            }
        })
    }

    fn current_span(&self) -> Current {
        thread::with(|thread| {
            let Some(entered) = thread.entered.current(self.owner) else { return Current::none() };
            let metadata = CALL_SITES.metadata(SPAN_CELLS.call_site_id(entered.span_id));
            metadata.map_or_else(Current::none, |metadata| Current::new(Id::from_u64(entered.span_id), metadata))
        })
    }
}
