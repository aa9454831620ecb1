//! `RecorderLayer`: the ring as one layer among others.

use super::call_sites::CALL_SITES;
use super::recorder::{PerfCore, PerfRecorder};
use super::sink::{Sink, record_empty, record_with_fields};
use super::span_map::{MappedSpan, SpanMap};
use super::span_stack::next_owner;
use super::thread::{self, ThreadState};
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use tracing_core::dispatcher::{Dispatch, WeakDispatch, get_default};
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::{Interest, NoSubscriber, Subscriber};
use tracing_core::{Event, Metadata};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

/// A layer for any stack of tracing-subscriber layers over a `Registry` (or another subscriber with `LookupSpan`).
///
/// The layer records everything that it is shown and filters nothing: put an `EnvFilter` over the stack, or a filter on this layer alone
/// with `.with_filter(…)`. Only [`Self::try_from_env`] reads the environment variables, `EVENTRING_FILTER` among them. A program that
/// needs no other layer has the same for less with a [`RecorderSubscriber`](super::RecorderSubscriber).
///
/// A span that was created while the recorder was switched off is recorded from the next time it is entered, with the flag
/// [`ADOPTED`](crate::schema::perf::flags::ADOPTED) and without the fields that it was created with.
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
    owner: u32,
    /// The stack of layers that this layer is a part of.
    stack: OnceLock<WeakDispatch>,
}

impl RecorderLayer {
    /// Records to `recorder`.
    #[must_use]
    pub fn new(recorder: PerfRecorder) -> Self {
        Self::to(Sink::Own(recorder))
    }

    /// Records to the recorder that is installed in [`PERF`](super::PERF), as soon as there is one.
    #[must_use]
    pub fn global() -> Self {
        Self::to(Sink::Global)
    }

    fn to(sink: Sink) -> Self {
        Self { sink, spans: SpanMap::new(), owner: next_owner(), stack: OnceLock::new() }
    }

    /// Returns the recorder; `None` if none is installed in [`PERF`](super::PERF) yet.
    #[must_use]
    pub fn recorder(&self) -> Option<&PerfRecorder> {
        self.sink.recorder()
    }

    /// Gives a span an id and maps it; `None` if too many spans are open, or all ids have been used.
    #[inline(always)]
    fn add(&self, core: &PerfCore, thread: &ThreadState, id: &Id, call_site_id: u32) -> Option<MappedSpan> {
        if let Some(span_id) = thread.next_layer_span_id() {
            let span = MappedSpan { span_id, call_site_id };
            if self.spans.insert(id.into_u64(), span) {
                return Some(span);
            }
        }
        core.count_lost_span();
        None
    }

    /// Records a span that exists but is not mapped yet, after those of its ancestors that are not mapped either.
    #[cold]
    fn adopt<'a, S>(&self, core: &Arc<PerfCore>, thread: &ThreadState, span: SpanRef<'a, S>) -> Option<MappedSpan>
    where
        S: LookupSpan<'a> + 'a,
    {
        let mut unknown = Vec::new();
        let mut known = None;
        for ancestor in span.scope() {
            known = self.spans.get(ancestor.id().into_u64());
            if known.is_some() {
                break;
            }
            unknown.push(ancestor);
        }
        for span in unknown.into_iter().rev() {
            let added = self.add(core, thread, &span.id(), core.call_site_id(span.metadata()))?;
            let ext = PerfExt {
                related: known.map_or(0, |parent| parent.span_id),
                flags: flags::ADOPTED,
                ..PerfExt::of_span(added.span_id, added.call_site_id)
            };
            core.record(thread, PerfEvent::SpanNew, ext, &[]);
            known = Some(added);
        }
        known
    }

    /// Returns the id of the parent of a new span, or of the span of an event, and the flag that says how the parent is known. `explicit` is
    /// the parent that the program has named, if it has.
    #[inline(always)]
    fn parent_of<'a, S>(
        &self,
        core: &Arc<PerfCore>,
        thread: &ThreadState,
        context: &'a Context<'_, S>,
        explicit: Option<Option<&Id>>,
        ask: impl FnOnce() -> Option<SpanRef<'a, S>>,
    ) -> (u64, u16)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        match explicit {
            None => (self.current_or(core, thread, context, ask), 0),
            Some(None) => (0, flags::EXPLICIT_ROOT),
            Some(Some(parent)) => {
                let known = self.spans.get(parent.into_u64()).map(|parent| parent.span_id);
                (known.unwrap_or_else(|| self.ask(core, thread, ask)), flags::EXPLICIT_PARENT)
            }
        }
    }

    /// Returns the id of the thread's current span, if its span stack has it; otherwise of the span that `ask` finds in the registry.
    #[inline(always)]
    fn current_or<'a, S>(
        &self,
        core: &Arc<PerfCore>,
        thread: &ThreadState,
        context: &'a Context<'_, S>,
        ask: impl FnOnce() -> Option<SpanRef<'a, S>>,
    ) -> u64
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let current = context.current_span();
        let Some(id) = current.id() else { return 0 };
        match thread.span_stack.current_and_recorded(self.owner) {
            Some(entry) if entry.local_id == id.into_u64() => entry.span_id,
            // The current span is filtered out for this layer, or it was entered while recording was switched off.
            _ => self.ask(core, thread, ask),
        }
    }

    /// Returns the id of the span that `ask` finds in the registry; 0 for none.
    #[cold]
    fn ask<'a, S>(
        &self,
        core: &Arc<PerfCore>,
        thread: &ThreadState,
        ask: impl FnOnce() -> Option<SpanRef<'a, S>>,
    ) -> u64
    where
        S: LookupSpan<'a> + 'a,
    {
        let found = ask().and_then(|span| {
            let known = self.spans.get(span.id().into_u64());
            known.or_else(|| self.adopt(core, thread, span))
        });
        found.map_or(0, |span| span.span_id)
    }
}

/// The slow paths. Each of them handles every case, from the beginning.
impl RecorderLayer {
    #[cold]
    #[inline(never)]
    fn enter_slow<S>(&self, thread: &ThreadState, id: &Id, context: &Context<'_, S>)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let core = self.sink.recording();
        let known = self.spans.get(id.into_u64());
        let adopt = || self.adopt(core?, thread, context.span(id)?);
        let Some(span) = known.or_else(adopt) else { return };
        thread.enter(span.span_id, id.into_u64(), span.call_site_id, self.owner, core.is_some());
        if let Some(core) = core {
            core.record(thread, PerfEvent::SpanEnter, PerfExt::of_span(span.span_id, span.call_site_id), &[]);
        }
    }

    #[cold]
    #[inline(never)]
    fn exit_slow(&self, thread: &ThreadState, local_id: u64) {
        let entry = thread.exit(local_id, self.owner);
        let known = entry.map(|entry| MappedSpan { span_id: entry.span_id, call_site_id: entry.call_site_id() });
        let Some(span) = known.or_else(|| self.spans.get(local_id)) else { return };
        self.sink.record_exit(thread, entry, PerfExt::of_span(span.span_id, span.call_site_id));
    }

    #[cold]
    #[inline(never)]
    fn close_slow(&self, thread: &ThreadState, local_id: u64) {
        // The span is removed also while recording is switched off, because the registry will use its id again.
        let Some(span) = self.spans.remove(local_id) else { return };
        self.sink.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span.span_id, span.call_site_id));
    }

    /// Closes a new span of which formatting a field has just panicked: the program gets no id. The `Registry` closes it, too, because the
    /// span holds its parent open.
    #[cold]
    #[inline(never)]
    fn close_unborn<S>(&self, thread: &ThreadState, attributes: &Attributes<'_>, id: &Id, context: &Context<'_, S>)
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        // `None` means that the layer was put into its stack later, by `reload`.
        let Some(stack) = self.stack.get().and_then(WeakDispatch::upgrade) else {
            return self.close_slow(thread, id.into_u64());
        };
        let parent = match attributes.parent() {
            None if attributes.is_contextual() => context.current_span().id().cloned(),
            explicit => explicit.cloned(),
        };
        // The `Registry` closes the parent by way of the thread's current subscriber. There is none while a scoped subscriber is being
        // called.
        let is_parent_kept = get_default(|current| current.is::<NoSubscriber>());
        for id in [Some(id.clone()), parent.filter(|_| is_parent_kept)].into_iter().flatten() {
            // This calls other layers in the middle of a panic: another panic would end the program.
            let _ = catch_unwind(AssertUnwindSafe(|| stack.try_close(id)));
        }
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
    fn on_register_dispatch(&self, stack: &Dispatch) {
        // If there are several dispatchers for one stack, any of them will do.
        let _ = self.stack.set(stack.downgrade());
    }

    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.recorder().is_some_and(PerfRecorder::belongs_to_this_process) {
            CALL_SITES.id_of(metadata);
        }
        Interest::always()
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(core) = self.sink.recording() else { return };
        thread::with(|thread| {
            let call_site_id = core.call_site_id(attributes.metadata());
            let ask = || context.span(id)?.parent();
            let explicit = (!attributes.is_contextual()).then(|| attributes.parent());
            let (parent, origin) = self.parent_of(core, thread, &context, explicit, ask);
            let Some(span) = self.add(core, thread, id, call_site_id) else { return };
            let Some(ring) = thread.ring_of(core) else { return };
            let ext = PerfExt { related: parent, flags: origin, ..PerfExt::of_span(span.span_id, call_site_id) };
            if attributes.fields().is_empty() {
                return record_empty(ring, thread, PerfEvent::SpanNew, ext);
            }
            let visit = |visitor: &mut dyn Visit| attributes.record(visitor);
            core.encode_fields(thread, ring, visit, |fields| {
                record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
                if fields.has_panicked {
                    self.close_unborn(thread, attributes, id, &context);
                }
            });
        });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(core) = self.sink.recording() else { return };
        thread::with(|thread| {
            let known = self.spans.get(id.into_u64());
            let Some(span) = known.or_else(|| self.adopt(core, thread, context.span(id)?)) else { return };
            let ext = PerfExt::of_span(span.span_id, span.call_site_id);
            let Some(ring) = thread.ring_of(core) else { return };
            let visit = |visitor: &mut dyn Visit| values.record(visitor);
            core.encode_fields(thread, ring, visit, |fields| {
                record_with_fields(ring, thread, PerfEvent::SpanRecord, ext, fields);
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
            let call_site_id = core.call_site_id(event.metadata());
            let ask = || context.event_span(event);
            let explicit = (!event.is_contextual()).then(|| event.parent());
            let (span_id, origin) = self.parent_of(core, thread, &context, explicit, ask);
            let Some(ring) = thread.ring_of(core) else { return };
            let ext = PerfExt { flags: origin, ..PerfExt::of_span(span_id, call_site_id) };
            let visit = |visitor: &mut dyn Visit| event.record(visitor);
            core.encode_fields(thread, ring, visit, |fields| {
                record_with_fields(ring, thread, PerfEvent::Event, ext, fields);
            });
        });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        thread::with(|thread| {
            let local_id = id.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else {
                return self.enter_slow(thread, id, &context);
            };
            let Some(span) = self.spans.get(local_id) else { return self.enter_slow(thread, id, &context) };
            if !thread.try_enter(span.span_id, local_id, span.call_site_id, self.owner) {
                return self.enter_slow(thread, id, &context);
            }
            record_empty(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span.span_id, span.call_site_id));
        });
    }

    fn on_exit(&self, id: &Id, _: Context<'_, S>) {
        thread::with(|thread| {
            let local_id = id.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else { return self.exit_slow(thread, local_id) };
            let Some(entry) = thread.try_exit(local_id, self.owner) else {
                return self.exit_slow(thread, local_id);
            };
            let ext = PerfExt::of_span(entry.span_id, entry.call_site_id());
            record_empty(ring, thread, PerfEvent::SpanExit, ext);
        });
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        thread::with(|thread| {
            let local_id = id.into_u64();
            let Some(ring) = self.sink.try_ring(thread) else { return self.close_slow(thread, local_id) };
            let Some(span) = self.spans.remove(local_id) else { return };
            record_empty(ring, thread, PerfEvent::SpanClose, PerfExt::of_span(span.span_id, span.call_site_id));
        });
    }
}
