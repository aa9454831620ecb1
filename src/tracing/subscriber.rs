//! `RecorderSubscriber`: `tracing` straight into the ring.

use super::call_sites::CALL_SITES;
use super::entered::next_owner;
use super::filter::TargetFilter;
use super::recorder::{PerfCore, PerfRecorder};
use super::span_cells::{Dropped, SPAN_CELLS};
use super::target::{OnPanic, Target};
use super::thread::{self, ThreadState};
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use std::sync::{Arc, RwLock};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, LevelFilter, Metadata};

/// The id of all spans that are not recorded.
const UNRECORDED: u64 = u64::MAX;

/// A complete `tracing` subscriber that records everything its filter accepts, and nothing else: for programs that need no other
/// layers. It costs less than tracing-subscriber's `Registry` that does nothing.
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

/// Changes the filter of a [`RecorderSubscriber`] while the program runs.
#[derive(Clone, Debug)]
pub struct FilterHandle(Arc<RwLock<TargetFilter>>);

impl FilterHandle {
    /// The filter now.
    #[must_use]
    pub fn get(&self) -> TargetFilter {
        self.0.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Replaces the filter. Spans that are open stay recorded.
    pub fn set(&self, filter: TargetFilter) {
        *self.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = filter;
        tracing_core::callsite::rebuild_interest_cache();
    }

    fn accepts(&self, metadata: &Metadata<'_>) -> bool {
        // Who changes it holds the lock for an instant only, and then all call sites are asked again. (In a forked child it
        // could be held for ever.)
        self.0.try_read().map_or(true, |filter| filter.accepts_metadata(metadata))
    }
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
        let filter = FilterHandle(Arc::new(RwLock::new(TargetFilter::all())));
        Self { target, filter, owner: next_owner() }
    }

    /// Records only what `filter` accepts. Default: everything.
    #[must_use]
    pub fn with_filter(self, filter: TargetFilter) -> Self {
        *self.filter.0.write().unwrap_or_else(std::sync::PoisonError::into_inner) = filter;
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
        thread.entered.current(self.owner).map_or(0, |entered| entered.span_id)
    }
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
            Some(_) => self.filter.0.try_read().ok().map(|filter| filter.max_level()),
            None => Some(LevelFilter::OFF),
        }
    }

    #[inline]
    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let Some(core) = self.recording() else { return Id::from_u64(UNRECORDED) };
        thread::with(|thread| {
            let call_site_id = core.call_site_id(attributes.metadata());
            let (parent, origin) = if attributes.is_contextual() {
                (self.current_id(thread), 0)
            } else {
                match attributes.parent() {
                    Some(parent) => (recorded(parent).unwrap_or(0), flags::EXPLICIT_PARENT),
                    None => (0, flags::EXPLICIT_ROOT),
                }
            };
            let Some(span_id) = SPAN_CELLS.create(&thread.free_cells, call_site_id) else {
                core.count_lost_span();
                return Id::from_u64(UNRECORDED);
            };
            let ext = PerfExt { related: parent, flags: origin, ..PerfExt::of_span(span_id, call_site_id) };
            // If a value panics, nobody gets the id: the span ends here.
            let closed = OnPanic(|| {
                self.try_close(Id::from_u64(span_id));
            });
            core.record_fields(thread, PerfEvent::SpanNew, ext, !attributes.fields().is_empty(), |visitor| {
                attributes.record(visitor)
            });
            closed.disarm();
            Id::from_u64(span_id)
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let (Some(core), Some(span_id)) = (self.recording(), recorded(span)) else { return };
        let ext = PerfExt::of_span(span_id, SPAN_CELLS.call_site_id(span_id));
        thread::with(|thread| {
            core.record_fields(thread, PerfEvent::SpanRecord, ext, true, |visitor| values.record(visitor));
        });
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        let (Some(span_id), Some(follows)) = (recorded(span), recorded(follows)) else { return };
        let ext = PerfExt { related: follows, ..PerfExt::of_span(span_id, SPAN_CELLS.call_site_id(span_id)) };
        thread::with(|thread| self.target.record(thread, PerfEvent::SpanFollowsFrom, ext));
    }

    #[inline]
    fn event(&self, event: &Event<'_>) {
        let Some(core) = self.recording() else { return };
        thread::with(|thread| {
            let call_site_id = core.call_site_id(event.metadata());
            let (span_id, origin) = if event.is_contextual() {
                (self.current_id(thread), 0)
            } else {
                match event.parent() {
                    Some(parent) => (recorded(parent).unwrap_or(0), flags::EXPLICIT_PARENT),
                    None => (0, flags::EXPLICIT_ROOT),
                }
            };
            let ext = PerfExt { flags: origin, ..PerfExt::of_span(span_id, call_site_id) };
            core.record_fields(thread, PerfEvent::Event, ext, true, |visitor| event.record(visitor));
        });
    }

    #[inline]
    fn enter(&self, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        thread::with(|thread| {
            let call_site_id = SPAN_CELLS.call_site_id(span_id);
            thread.enter(span_id, span_id, call_site_id, self.owner);
            self.target.record(thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        });
    }

    #[inline]
    fn exit(&self, span: &Id) {
        let Some(span_id) = recorded(span) else { return };
        thread::with(|thread| {
            let entered = thread.exit(span_id, self.owner);
            let call_site_id =
                entered.map_or_else(|| SPAN_CELLS.call_site_id(span_id), |entered| entered.call_site_id());
            self.target.record(thread, PerfEvent::SpanExit, PerfExt::of_span(span_id, call_site_id));
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
        let Some(span_id) = recorded(&span) else { return false };
        thread::with(|thread| match SPAN_CELLS.drop_handle(&thread.free_cells, span_id) {
            Dropped::Last(call_site_id) => {
                self.target.record(thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
                true
            }
            Dropped::Open | Dropped::Unknown => false,
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
