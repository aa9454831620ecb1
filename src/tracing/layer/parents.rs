//! The search of a layer for the parents of spans and the spans of events.

use super::RecorderLayer;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::tracing::core::PerfCore;
use crate::tracing::sink::Parent;
use crate::tracing::span_map::MappedSpan;
use crate::tracing::thread::ThreadState;
use std::sync::Arc;
use tracing_core::span::Id;
use tracing_core::subscriber::Subscriber;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

impl RecorderLayer {
    /// Gives a span an id and adds it to the map. Returns `None` if too many spans are open, or if all ids have been
    /// used.
    #[inline(always)]
    pub(super) fn add(&self, core: &PerfCore, thread: &ThreadState, id: &Id, call_site_id: u32) -> Option<MappedSpan> {
        if let Some(span_id) = thread.next_layer_span_id() {
            let span = MappedSpan { span_id, call_site_id };
            if self.spans.insert(id.into_u64(), span) {
                return Some(span);
            }
        }
        core.count_lost_span();
        None
    }

    /// Adds an open span that is not in the map yet to the map, and records it. (For example, the span was created
    /// while recording was switched off.) Ancestors of the span that are not in the map are added and recorded before
    /// it.
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

    /// Returns the parent of a new span, or the span of an event. `explicit` is `None` if the current span is meant,
    /// `Some(None)` if the program has asked for a root, and otherwise the parent that the program has named.
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

    /// Returns the id of the thread's current span, from the span stack if the span is there. Otherwise returns the id
    /// of the span that `ask` finds in the registry.
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
            _ => self.ask_registry(core, thread, ask),
        }
    }

    /// Returns the id of the span that `ask` finds in the registry, or 0 if `ask` finds no span.
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
