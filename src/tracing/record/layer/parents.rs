//! The search of a layer for two kinds of spans: the parent of a new span, and the span in which an event happens.

use super::RecorderLayer;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sinks::sink::Parent;
use crate::tracing::record::spans::map::MappedSpan;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::thread::ThreadState;
use std::sync::Arc;
use tracing_core::span::Id;
use tracing_core::subscriber::Subscriber;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

impl RecorderLayer {
    /// Gives a new span an id for the ring, and adds the span to the layer's map. Returns `None` if too many spans
    /// are open; then the span is counted as lost.
    #[inline(always)]
    pub(super) fn add(&self, core: &PerfCore, thread: &ThreadState, id: &Id, call_site_id: u32) -> Option<MappedSpan> {
        let created = SPAN_SLAB.try_create::<true>(&thread.free_list, call_site_id).or_else(|| {
            // A list with cells was filled after this call.
            end_of_thread::register();
            SPAN_SLAB.create::<true>(&thread.free_list, call_site_id)
        });
        if let Some(span_id) = created {
            let span = MappedSpan { span_id, call_site_id };
            if self.spans.insert(id.into_u64(), span) {
                return Some(span);
            }
            SPAN_SLAB.drop_handle(&thread.free_list, span_id);
        }
        core.count_lost_span();
        None
    }

    /// Adds an open span to the layer's map and records its creation now. This is for a span that the layer has not
    /// recorded, for example because recording was switched off when the program created it. Ancestors that are not
    /// in the map either are added and recorded first.
    #[cold]
    pub(super) fn adopt<'a, S>(
        &self,
        core: &Arc<PerfCore>,
        thread: &ThreadState,
        span: SpanRef<'a, S>,
    ) -> Option<MappedSpan>
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
            let parent = known.map_or(0, |parent| parent.span_id);
            SPAN_SLAB.set_parent(added.span_id, parent);
            let ext = PerfExt {
                related: parent,
                flags: flags::ADOPTED,
                ..PerfExt::of_span(added.span_id, added.call_site_id)
            };
            core.record(thread, PerfEvent::SpanNew, ext, &[]);
            known = Some(added);
        }
        known
    }

    /// Returns the parent of a new span, or the span in which an event happens. `explicit` is what the program has
    /// written: `None` means nothing, so the current span is the parent. `Some(None)` means a root. `Some(Some(id))`
    /// means the span with this id.
    #[inline(always)]
    pub(super) fn parent_of<'a, S>(
        &self,
        core: &Arc<PerfCore>,
        thread: &ThreadState,
        context: &'a Context<'_, S>,
        explicit: Option<Option<&Id>>,
        ask: impl FnOnce() -> Option<SpanRef<'a, S>>,
    ) -> Parent
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        match explicit {
            None => Parent { span_id: self.current_or(core, thread, context, ask), flags: 0 },
            Some(None) => Parent { span_id: 0, flags: flags::EXPLICIT_ROOT },
            Some(Some(parent)) => {
                let known = self.spans.get(parent.into_u64()).map(|parent| parent.span_id);
                let span_id = known.unwrap_or_else(|| self.ask_registry(core, thread, ask));
                Parent { span_id, flags: flags::EXPLICIT_PARENT }
            }
        }
    }

    /// Returns the id of the thread's current span, or 0 if the thread has none. Returns `None` if the registry's
    /// current span is not the innermost span whose enter this layer has recorded. Either a filter hides the current
    /// span from this layer, or the thread entered it while recording was switched off. Only the registry knows the
    /// nearest span that this layer may see.
    #[inline(always)]
    pub(super) fn try_current<S>(&self, thread: &ThreadState, context: &Context<'_, S>) -> Option<u64>
    where
        S: Subscriber + for<'l> LookupSpan<'l>,
    {
        let current = context.current_span();
        let entry = thread.span_stack.current_and_recorded(self.owner.get());
        match (current.id(), entry) {
            // The registry knows nothing of scopes. They end before the thread exits the span around them.
            (_, Some(entry)) if entry.is_scope() => Some(entry.span_id),
            (None, _) => Some(0),
            (Some(id), Some(entry)) => (entry.local_id == id.into_u64()).then_some(entry.span_id),
            (Some(_), None) => None,
        }
    }

    /// Returns the id of the thread's current span, or 0 if the thread has none. In the common case, the innermost
    /// recorded span on the thread's span stack is also the current span of the registry. Otherwise `ask` finds in the
    /// registry the innermost span that this layer may see.
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
        match self.try_current(thread, context) {
            Some(span_id) => span_id,
            None => self.ask_registry(core, thread, ask),
        }
    }

    /// Returns the id of the span that `ask` finds in the registry. If the layer has not recorded this span yet, it
    /// is recorded now. Returns 0 if `ask` finds no span.
    #[cold]
    fn ask_registry<'a, S>(
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
