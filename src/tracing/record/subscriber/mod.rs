//! `RecorderSubscriber`: a subscriber that records directly to the ring, without tracing-subscriber's `Registry`.

mod fast;
mod slow;
mod with_fields;

use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::filter::filter::TargetFilter;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::record::events::present::may_mean;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sinks::answer::{self, Answer};
use crate::tracing::record::sinks::deciders;
use crate::tracing::record::sinks::owner::Owner;
use crate::tracing::record::sinks::sink::{Parent, Sink};
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE};
use crate::tracing::record::spans::open_spans::{self, SpanOwner, SpanSource};
use crate::tracing::record::threads::thread::{self, ThreadState};
use std::num::NonZeroU64;
use std::sync::Arc;
use tracing_core::dispatcher::Dispatch;
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, LevelFilter, Metadata};

/// Id that the subscriber gives to every span that it does not record. All these spans share the id.
const UNRECORDED: u64 = u64::MAX;

/// A complete `tracing` subscriber, which records everything that its filter accepts, and does nothing else. It is for
/// programs that need no other layers. A span without fields costs less than with tracing-subscriber's `Registry`
/// alone, without any layer (docs/COST.md has the figures).
///
/// A `RecorderSubscriber` reads no environment variables: the program sets the filter with [`Self::with_filter`]. To
/// read the variables, use [`init`](fn@crate::tracing::init).
///
/// For each open span the subscriber keeps 16 bytes. They include the number of handles of the span, which shows when
/// the last handle is dropped. For each thread the subscriber keeps a stack of the spans that the thread is in. The
/// stack follows the same rules as in a `Registry`. A span closes when its last handle is dropped, even if it has open
/// children, and a closed span is nobody's current span.
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
/// [`init`](fn@crate::tracing::init) installs a `RecorderSubscriber` for the whole process.
#[derive(Debug)]
pub struct RecorderSubscriber {
    sink: Sink,
    filter: FilterHandle,
    owner: Owner,
}

impl RecorderSubscriber {
    /// Creates a subscriber that records everything to `recorder`.
    #[must_use]
    pub fn new(recorder: PerfRecorder) -> Self {
        Self::to(Sink::Own(recorder))
    }

    /// Creates a subscriber that records everything to the recorder in [`PERF`](crate::tracing::PERF). Until a recorder
    /// is installed there, the subscriber records nothing.
    #[must_use]
    pub fn global() -> Self {
        Self::to(Sink::Global)
    }

    fn to(sink: Sink) -> Self {
        let filter = FilterHandle::new(TargetFilter::all());
        filter.add_source(SpanSource { recorder: sink.own(), spans: SpanOwner::Subscriber });
        let owner = Owner::new(sink.is_of_perf());
        Self { sink, filter, owner }
    }

    /// Makes the subscriber record only the spans and events that `filter` accepts. Without this call it records all
    /// of them.
    #[must_use]
    pub fn with_filter(self, filter: TargetFilter) -> Self {
        self.filter.replace(filter);
        self
    }

    /// Makes the subscriber record only spans and events whose level is `level` or more important.
    #[must_use]
    pub fn with_max_level(self, level: impl Into<LevelFilter>) -> Self {
        self.with_filter(TargetFilter::level(level))
    }

    /// Returns a handle that changes the filter while the program runs, and takes filter overrides.
    #[must_use]
    pub fn filter_handle(&self) -> FilterHandle {
        self.filter.clone()
    }

    /// Returns the subscriber's recorder. Returns `None` if the subscriber records to [`PERF`](crate::tracing::PERF)
    /// and no recorder is installed there.
    #[must_use]
    pub fn recorder(&self) -> Option<&PerfRecorder> {
        self.sink.recorder()
    }

    pub(in crate::tracing::record) fn filter(&self) -> &FilterHandle {
        &self.filter
    }

    /// Returns where the subscriber records to.
    pub(in crate::tracing::record) fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Returns the state of the recorder if there is a recorder and it is switched on, and `None` otherwise.
    #[inline(always)]
    fn recording(&self) -> Option<&Arc<PerfCore>> {
        self.sink.recording()
    }

    /// Judges a span by values of its fields that have just been recorded, if there are conditions on values.
    #[inline(always)]
    fn judge(&self, span_id: u64, call_site_id: u32, payload: &[u8]) {
        if self.filter.judges_values() {
            open_spans::judge(&self.filter, span_id, call_site_id, payload);
        }
    }

    /// Returns the id of the innermost span of this subscriber that the thread is in. Returns 0 if the thread is in
    /// no span of this subscriber.
    #[inline(always)]
    fn current_id(&self, thread: &ThreadState) -> u64 {
        match thread.span_stack.try_current(self.owner.get()) {
            Some(span_id) => span_id,
            None => thread.span_stack.current_of(self.owner.get()),
        }
    }

    /// Returns the parent of a new span, or the span of an event.
    #[inline(always)]
    fn parent_of(&self, thread: &ThreadState, is_contextual: bool, explicit: Option<&Id>) -> Parent {
        match explicit {
            _ if is_contextual => Parent { span_id: self.current_id(thread), flags: 0 },
            Some(parent) => Parent { span_id: recorded(parent).unwrap_or(0), flags: flags::EXPLICIT_PARENT },
            None => Parent { span_id: 0, flags: flags::EXPLICIT_ROOT },
        }
    }
}

/// Returns the id as `tracing`'s type. (`Id::from_u64` would do the same, but is a function call.)
#[inline(always)]
fn id_of(span_id: u64) -> Id {
    Id::from_non_zero_u64(NonZeroU64::new(span_id).unwrap_or(NonZeroU64::MAX))
}

/// Returns the number of a span id, or `None` if it is the id of a span that is not recorded.
#[inline(always)]
fn recorded(id: &Id) -> Option<u64> {
    Some(id.into_u64()).filter(|id| *id != UNRECORDED)
}

impl Subscriber for RecorderSubscriber {
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        if answer::note_sink(&self.sink, &self.owner) {
            deciders::set(Some(&self.filter), dispatch);
        }
        self.filter.add_dispatch(dispatch);
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let Some(recorder) = self.recorder().filter(|recorder| recorder.is_enabled()) else {
            // There is no recorder, or it is switched off. When this changes, `tracing` asks again for all call
            // sites.
            answer::note(&self.sink, &self.owner, metadata, Answer::from_interest(&Interest::never()));
            return Interest::never();
        };
        let interest = self.filter.interest(metadata);
        answer::note(&self.sink, &self.owner, metadata, Answer::from_interest(&interest));
        if !interest.is_never() && recorder.belongs_to_this_process() {
            thread::with(|thread| {
                let _paused = thread.pause_count();
                CALL_SITES.id_of(metadata);
            });
        }
        interest
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let Some(core) = self.recording() else { return false };
        open_spans::accepts(&self.filter, self.owner.get(), metadata, || core.belongs_to_this_process())
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
            match self.try_new_span(thread, attributes) {
                Some(id) => id,
                None => self.new_span_slow(thread, attributes),
            }
        })
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let (Some(core), Some(span_id)) = (self.recording(), recorded(span)) else { return };
        let ext = PerfExt::of_span(span_id, SPAN_SLAB.call_site_id(span_id));
        thread::with(|thread| {
            let _paused = thread.pause_count();
            let Some(ring) = thread.ring_of(core) else { return };
            let visit = |visitor: &mut dyn Visit| values.record(visitor);
            core.encode_fields(thread, ring, NO_CALL_SITE, visit, |fields| {
                core.record_with_fields(ring, thread, PerfEvent::SpanRecord, ext, fields);
                self.judge(span_id, ext.call_site_id, fields.payload);
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
            if event.is_contextual() && !may_mean(event.metadata()) {
                return self.event_with_fields(thread, event);
            }
            if event.is_contextual() || self.try_event_in(thread, event).is_none() {
                self.event_slow(thread, event);
            }
        });
    }

    #[inline]
    fn enter(&self, span: &Id) {
        thread::with(|thread| {
            if self.try_enter(thread, span).is_none() {
                self.enter_slow(thread, span);
            }
        });
    }

    #[inline]
    fn exit(&self, span: &Id) {
        thread::with(|thread| {
            if self.try_exit(thread, span).is_none() {
                self.exit_slow(thread, span);
            }
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
            match self.try_close_last(thread, span_id) {
                Some(is_closed) => is_closed,
                None => self.close_slow(thread, span_id),
            }
        })
    }

    fn current_span(&self) -> Current {
        thread::with(|thread| {
            // A scope is its thread's alone, so no handle of it is given away.
            let Some(entry) = thread.span_stack.current_but_scopes(self.owner.get()) else { return Current::none() };
            let metadata = CALL_SITES.metadata(SPAN_SLAB.call_site_id(entry.span_id));
            metadata.map_or_else(Current::none, |metadata| Current::new(Id::from_u64(entry.span_id), metadata))
        })
    }
}
