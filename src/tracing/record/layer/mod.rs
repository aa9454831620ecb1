//! `RecorderLayer`: records as one layer in a stack of tracing-subscriber layers.

mod filtered;
mod judge_open;
mod parents;
mod slow;

use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::filter::filter_handle::FilterHandle;
use crate::tracing::record::events::record::record_log;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sinks::answer::{self, Answer};
use crate::tracing::record::sinks::deciders;
use crate::tracing::record::sinks::owner::Owner;
use crate::tracing::record::sinks::sink::Sink;
use crate::tracing::record::sites::call_sites::{CALL_SITES, NO_CALL_SITE};
use crate::tracing::record::spans::map::{MappedSpan, SpanMap};
use crate::tracing::record::spans::open_spans::{SpanOwner, SpanSource};
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::thread::{self, ThreadState};
use std::sync::OnceLock;
use tracing_core::dispatcher::{Dispatch, WeakDispatch};
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, Subscriber};
use tracing_core::{Event, Metadata};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// A layer that records spans and events. It is for a stack of tracing-subscriber layers over a `Registry` (or over
/// another subscriber with `LookupSpan`).
///
/// The layer records every span and event that reaches it, and filters nothing itself. To filter, put an `EnvFilter`
/// over the whole stack, or a filter on this layer alone with [`Self::filtered`] or `.with_filter(…)`. Environment
/// variables such as `EVENTRING_FILTER` have an effect only if the layer comes from [`Self::try_from_env`].
///
/// A program that needs no other layer can use a [`RecorderSubscriber`](crate::tracing::RecorderSubscriber), which
/// records the same at lower cost.
///
/// If a span was created while the recorder was switched off, the layer records it from its next use on, for example
/// from its next enter. Such a span has the flag [`ADOPTED`](crate::schema::perf::flags::ADOPTED), and the fields
/// that it was created with are missing. Until its next enter, scopes and log macros of this crate go to the span
/// around it, and inside of a scope all records go to the scope.
///
/// ```
/// use eventring::tracing::{PerfRecorder, RecorderLayer};
/// use tracing_subscriber::prelude::*;
///
/// let recorder = PerfRecorder::builder().anonymous().build()?;
/// let layer = RecorderLayer::new(recorder).with_filter(tracing_subscriber::filter::LevelFilter::INFO);
/// let subscriber = tracing_subscriber::registry().with(layer).with(tracing_subscriber::fmt::layer());
/// let _guard = tracing::subscriber::set_default(subscriber);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecorderLayer {
    sink: Sink,
    spans: SpanMap,
    owner: Owner,
    /// The stack of layers that this layer is a part of.
    stack: OnceLock<WeakDispatch>,
    /// The filter that follows the spans of this layer, if there is one.
    filter: Option<FilterHandle>,
}

/// Description of a new span, as `tracing` gives it to a layer.
struct NewSpan<'a, S> {
    attributes: &'a Attributes<'a>,
    id: &'a Id,
    context: &'a Context<'a, S>,
}

impl RecorderLayer {
    /// Creates a layer that records to `recorder`.
    #[must_use]
    pub fn new(recorder: PerfRecorder) -> Self {
        Self::to(Sink::Own(recorder))
    }

    /// Creates a layer that records to the recorder in [`PERF`](crate::tracing::PERF). Until a recorder is installed
    /// there, the layer records nothing.
    #[must_use]
    pub fn global() -> Self {
        Self::to(Sink::Global)
    }

    /// Returns where the layer records to.
    pub(in crate::tracing::record) fn sink(&self) -> &Sink {
        &self.sink
    }

    fn to(sink: Sink) -> Self {
        let owner = Owner::new(sink.is_of_perf());
        Self { sink, spans: SpanMap::new(), owner, stack: OnceLock::new(), filter: None }
    }

    /// Notes the stack of layers that this layer is a part of. `tracing` calls this for each dispatcher that is made
    /// from the stack. The first dispatcher is kept. Any of them would do, because the layer needs it only to reach the
    /// stack.
    fn use_stack(&self, stack: &Dispatch) {
        if answer::note_sink(&self.sink, &self.owner) {
            deciders::set(self.filter.as_ref(), stack);
        }
        if self.stack.set(stack.downgrade()).is_ok()
            && let Some(filter) = &self.filter
        {
            let spans = SpanOwner::Layer(stack.downgrade(), self.owner.get());
            filter.add_source(SpanSource { recorder: self.sink.own(), spans });
            filter.add_dispatch(stack);
        }
    }

    /// Returns the layer's recorder. Returns `None` if the layer records to [`PERF`](crate::tracing::PERF) and no
    /// recorder is installed there.
    #[must_use]
    pub fn recorder(&self) -> Option<&PerfRecorder> {
        self.sink.recorder()
    }
}

/// The fast paths. Each handles only the common case. In every other case it returns `None` and changes nothing, and
/// the caller takes the slow path.
impl RecorderLayer {
    /// Creates a span whose parent is the current span.
    #[inline(always)]
    fn try_new_span<S: Subscriber + for<'l> LookupSpan<'l>>(
        &self,
        thread: &ThreadState,
        new: &NewSpan<'_, S>,
    ) -> Option<()> {
        if !new.attributes.is_contextual() {
            return None;
        }
        let (core, ring) = self.sink.try_ring_for_fields(thread)?;
        let call_site_id = CALL_SITES.known_id_of(new.attributes.metadata())?;
        let parent = self.try_current(thread, new.context)?;
        let span_id = SPAN_SLAB.try_create::<true>(&thread.free_list, call_site_id)?;
        if !self.spans.insert(new.id.into_u64(), MappedSpan { span_id, call_site_id }) {
            SPAN_SLAB.drop_handle(&thread.free_list, span_id);
            return None;
        }
        SPAN_SLAB.set_parent(span_id, parent);
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span_id, call_site_id) };
        self.record_new(core, ring, thread, new, ext);
        Some(())
    }

    #[inline(always)]
    fn try_enter(&self, thread: &ThreadState, local_id: u64) -> Option<()> {
        let (core, ring) = self.sink.try_ring(thread)?;
        let MappedSpan { span_id, call_site_id } = self.spans.get(local_id)?;
        thread.try_enter(span_id, local_id, call_site_id, self.owner.get())?;
        core.record_empty(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        Some(())
    }

    #[inline(always)]
    fn try_exit(&self, thread: &ThreadState, local_id: u64) -> Option<()> {
        let (core, ring) = self.sink.try_ring(thread)?;
        let entry = thread.try_exit(local_id, self.owner.get())?;
        core.record_empty(ring, thread, PerfEvent::SpanExit, PerfExt::of_span(entry.span_id, entry.call_site_id()));
        Some(())
    }

    /// Records the creation of a span that is in the map.
    #[inline(always)]
    fn record_new<S: Subscriber + for<'l> LookupSpan<'l>>(
        &self,
        core: &PerfCore,
        ring: &Recorder,
        thread: &ThreadState,
        new: &NewSpan<'_, S>,
        ext: PerfExt,
    ) {
        if new.attributes.fields().is_empty() {
            core.record_empty(ring, thread, PerfEvent::SpanNew, ext);
            return;
        }
        let visit = |visitor: &mut dyn Visit| new.attributes.record(visitor);
        core.encode_fields(thread, ring, NO_CALL_SITE, visit, |fields| {
            core.record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
            self.judge(MappedSpan { span_id: ext.span_id, call_site_id: ext.call_site_id }, fields.payload);
            if fields.has_panicked {
                self.close_unborn(thread, new.attributes, new.id, new.context);
            }
        });
    }
}

impl Drop for RecorderLayer {
    /// Frees the cells of the spans that are still open, for example after `reload` has put another layer in the place
    /// of this one.
    fn drop(&mut self) {
        thread::with(|thread| {
            end_of_thread::register();
            self.spans.for_each_open(|span| {
                let ended = || self.sink.show_end(span.span_id);
                SPAN_SLAB.drop_handle_and(&thread.free_list, span.span_id, ended);
            });
        });
    }
}

impl std::fmt::Debug for RecorderLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecorderLayer").field("sink", &self.sink).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for RecorderLayer
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    // A layer in an `Option` or a `Vec` is told this, but not `on_register_dispatch`. The stack may never come into
    // use.
    fn on_layer(&mut self, _: &mut S) {
        answer::note_sink(&self.sink, &self.owner);
    }

    fn on_register_dispatch(&self, stack: &Dispatch) {
        self.use_stack(stack);
    }

    fn enabled(&self, _: &Metadata<'_>, _: Context<'_, S>) -> bool {
        deciders::note_reached(&self.sink);
        true
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        let of_filter = self.filter.as_ref().map(|filter| Answer::from_interest(&filter.interest(metadata)));
        answer::note(&self.sink, &self.owner, metadata, of_filter.unwrap_or(Answer::OfStack));
        if self.recorder().is_some_and(PerfRecorder::belongs_to_this_process) {
            self.find_stack();
            thread::with(|thread| {
                let _paused = thread.pause_count();
                CALL_SITES.id_of(metadata);
            });
        }
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let new = NewSpan { attributes, id, context: &context };
        thread::with(|thread| {
            if self.try_new_span(thread, &new).is_none() {
                self.new_span_slow(thread, &new);
            }
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(core) = self.sink.recording() else { return };
        thread::with(|thread| {
            let _paused = thread.pause_count();
            let known = self.spans.get(id.into_u64());
            let Some(span) = known.or_else(|| self.adopt(core, thread, context.span(id)?)) else { return };
            let ext = PerfExt::of_span(span.span_id, span.call_site_id);
            let Some(ring) = thread.ring_of(core) else { return };
            let visit = |visitor: &mut dyn Visit| values.record(visitor);
            core.encode_fields(thread, ring, NO_CALL_SITE, visit, |fields| {
                core.record_with_fields(ring, thread, PerfEvent::SpanRecord, ext, fields);
                self.judge(span, fields.payload);
            });
        });
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _: Context<'_, S>) {
        let spans = self.spans.get(id.into_u64()).zip(self.spans.get(follows.into_u64()));
        let Some((span, follows)) = spans else { return };
        let ext = PerfExt { related: follows.span_id, ..PerfExt::of_span(span.span_id, span.call_site_id) };
        thread::with(|thread| self.sink.record(thread, PerfEvent::SpanFollowsFrom, ext));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(core) = self.sink.recording() else { return };
        thread::with(|thread| {
            let _paused = thread.pause_count();
            let call_site_id = core.call_site_id(event.metadata());
            let ask = || context.event_span(event);
            let explicit = (!event.is_contextual()).then(|| event.parent());
            let parent = self.parent_of(core, thread, &context, explicit, ask);
            let Some(ring) = thread.ring_of(core) else { return };
            let (related, flags) = (thread.instructions(), parent.flags);
            let ext = PerfExt { related, flags, ..PerfExt::of_span(parent.span_id, call_site_id) };
            let visit = |visitor: &mut dyn Visit| event.record(visitor);
            core.encode_fields(thread, ring, call_site_id, visit, |fields| {
                let recorded = record_log(ring, thread, ext, fields);
                core.show_log((ring, thread), event.metadata(), ext, recorded, fields.payload);
            });
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        thread::with(|thread| {
            if self.try_enter(thread, id.into_u64()).is_none() {
                self.enter_slow(thread, id, &context);
            }
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        thread::with(|thread| {
            if self.try_exit(thread, id.into_u64()).is_none() {
                self.exit_slow(thread, id.into_u64());
            }
        });
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        thread::with(|thread| {
            // The span is removed from the map even while recording is switched off, because the registry will give its
            // id to another span later.
            let Some(MappedSpan { span_id, call_site_id }) = self.spans.remove(id.into_u64()) else { return };
            let is_closed = self.sink.try_ring(thread).is_some_and(|(core, ring)| {
                if !ring.core.is_surely_original_process() {
                    return false;
                }
                let ended = || core.show_end(span_id);
                let is_closed = SPAN_SLAB.try_close_of_layer(&thread.free_list, span_id, ended);
                if is_closed {
                    core.record_empty(ring, thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
                }
                is_closed
            });
            if !is_closed {
                self.close_slow(thread, span_id);
            }
        });
    }
}
