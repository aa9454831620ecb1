//! The fast paths of spans and events without fields.

use super::{RecorderSubscriber, id_of, recorded};
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::threads::thread::ThreadState;
use tracing_core::Event;
use tracing_core::span::{Attributes, Id};

/// The fast paths. Each handles only the common case. In every other case it returns `None` and changes nothing, and
/// the caller takes the slow path.
impl RecorderSubscriber {
    /// Creates a span that has no fields and whose parent is the current span.
    #[inline(always)]
    pub(super) fn try_new_span(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Option<Id> {
        let (core, ring) = self.sink.try_ring(thread)?;
        let call_site_id = CALL_SITES.known_id_of(attributes.metadata())?;
        let parent = thread.span_stack.try_current(self.owner.get())?;
        let span_id = SPAN_SLAB.try_create::<false>(&thread.free_list, call_site_id)?;
        SPAN_SLAB.set_parent(span_id, parent);
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span_id, call_site_id) };
        Some(id_of(core.record_empty(ring, thread, PerfEvent::SpanNew, ext)))
    }

    /// Enters a span.
    #[inline(always)]
    pub(super) fn try_enter(&self, thread: &ThreadState, span: &Id) -> Option<()> {
        let span_id = span.into_u64();
        let (core, ring) = self.sink.try_ring(thread)?;
        let call_site_id = SPAN_SLAB.try_call_site_id(span_id)?;
        thread.try_enter(span_id, span_id, call_site_id, self.owner.get())?;
        core.record_empty(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        Some(())
    }

    /// Exits the current span.
    #[inline(always)]
    pub(super) fn try_exit(&self, thread: &ThreadState, span: &Id) -> Option<()> {
        let span_id = span.into_u64();
        let (core, ring) = self.sink.try_ring(thread)?;
        let entry = thread.try_exit(span_id, self.owner.get())?;
        core.record_empty(ring, thread, PerfEvent::SpanExit, PerfExt::of_span(span_id, entry.call_site_id()));
        Some(())
    }

    /// Records an event that has no fields and names its span: the wake of a task, for example.
    #[inline(always)]
    pub(super) fn try_event_in(&self, thread: &ThreadState, event: &Event<'_>) -> Option<()> {
        let span_id = event.parent().filter(|_| event.metadata().fields().is_empty()).and_then(recorded)?;
        let (core, ring) = self.sink.try_ring(thread)?;
        let call_site_id = CALL_SITES.known_id_of(event.metadata())?;
        let ext = PerfExt { flags: flags::EXPLICIT_PARENT, ..PerfExt::of_span(span_id, call_site_id) };
        core.record_empty(ring, thread, PerfEvent::Event, ext);
        Some(())
    }

    /// Drops the only handle of a span, which closes the span, and returns `Some(true)`. The caller returns the `true`
    /// to `tracing`, as a sign that the span is closed.
    #[inline(always)]
    pub(super) fn try_close_last(&self, thread: &ThreadState, span_id: u64) -> Option<bool> {
        let (core, ring) = self.sink.try_ring(thread)?;
        if !ring.core.is_surely_original_process() {
            return None;
        }
        let ended = || core.show_end(span_id);
        let call_site_id = SPAN_SLAB.try_drop_only_handle(&thread.free_list, span_id, ended)?;
        core.record_empty(ring, thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
        Some(true)
    }
}
