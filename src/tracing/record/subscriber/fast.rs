//! The fast paths of spans and events without fields.

use super::{RecorderSubscriber, id_of, recorded};
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::call_sites::CALL_SITES;
use crate::tracing::record::sink::record_empty;
use crate::tracing::record::thread::ThreadState;
use tracing_core::Event;
use tracing_core::span::{Attributes, Id};

/// The fast paths. Each handles only the common case. In every other case it returns `None` and changes nothing, and
/// the caller takes the slow path.
impl RecorderSubscriber {
    /// Creates a span that has no fields and whose parent is the current span.
    #[inline(always)]
    pub(super) fn try_new_span(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Option<Id> {
        let ring = self.sink.try_ring(thread)?;
        let call_site_id = CALL_SITES.known_id_of(attributes.metadata())?;
        let parent = thread.span_stack.try_current(self.owner.get())?;
        let span_id = SPAN_SLAB.try_create::<false>(&thread.free_list, call_site_id)?;
        SPAN_SLAB.set_parent(span_id, parent);
        let ids = u64::from(call_site_id) | thread.id_word();
        match ring.core.try_record_empty(PerfEvent::SpanNew as u16, span_id, parent, ids, 0) {
            Some(_) => Some(id_of(span_id)),
            None => Some(record_new_span_slow(ring, span_id, parent, ids)),
        }
    }

    /// Enters a span.
    #[inline(always)]
    pub(super) fn try_enter(&self, thread: &ThreadState, span: &Id) -> Option<()> {
        let span_id = span.into_u64();
        let ring = self.sink.try_ring(thread)?;
        let call_site_id = SPAN_SLAB.try_call_site_id(span_id)?;
        thread.try_enter(span_id, span_id, call_site_id, self.owner.get())?;
        record_empty(ring, thread, PerfEvent::SpanEnter, PerfExt::of_span(span_id, call_site_id));
        Some(())
    }

    /// Exits the current span.
    #[inline(always)]
    pub(super) fn try_exit(&self, thread: &ThreadState, span: &Id) -> Option<()> {
        let span_id = span.into_u64();
        let ring = self.sink.try_ring(thread)?;
        let entry = thread.try_exit(span_id, self.owner.get())?;
        record_empty(ring, thread, PerfEvent::SpanExit, PerfExt::of_span(span_id, entry.call_site_id()));
        Some(())
    }

    /// Records an event that has no fields and names its span: the wake of a task, for example.
    #[inline(always)]
    pub(super) fn try_event_in(&self, thread: &ThreadState, event: &Event<'_>) -> Option<()> {
        let span_id = event.parent().filter(|_| event.metadata().fields().is_empty()).and_then(recorded)?;
        let ring = self.sink.try_ring(thread)?;
        let call_site_id = CALL_SITES.known_id_of(event.metadata())?;
        let ext = PerfExt { flags: flags::EXPLICIT_PARENT, ..PerfExt::of_span(span_id, call_site_id) };
        record_empty(ring, thread, PerfEvent::Event, ext);
        Some(())
    }

    /// Drops the only handle of a span, which closes the span, and returns `Some(true)`. The caller returns the `true`
    /// to `tracing`, as a sign that the span is closed.
    #[inline(always)]
    pub(super) fn try_close_last(&self, thread: &ThreadState, span_id: u64) -> Option<bool> {
        let ring = self.sink.try_ring(thread)?;
        let call_site_id = SPAN_SLAB.try_drop_only_handle(&thread.free_list, span_id)?;
        let ids = u64::from(call_site_id) | thread.id_word();
        match ring.core.try_record_empty(PerfEvent::SpanClose as u16, span_id, 0, ids, 0) {
            Some(_) => Some(true),
            None => Some(record_close_slow(ring, span_id, ids)),
        }
    }
}

// The fast paths above call the two functions below if the ring's own fast path cannot record the event. Each function
// returns the result of the fast path that calls it. So the call is the last step of the fast path, and the fast path
// keeps nothing on the stack.

#[cold]
#[inline(never)]
fn record_new_span_slow(ring: &Recorder, span_id: u64, parent: u64, ids: u64) -> Id {
    ring.core.record_empty_slow(PerfEvent::SpanNew as u16, span_id, parent, ids, 0);
    id_of(span_id)
}

#[cold]
#[inline(never)]
fn record_close_slow(ring: &Recorder, span_id: u64, ids: u64) -> bool {
    ring.core.record_empty_slow(PerfEvent::SpanClose as u16, span_id, 0, ids, 0);
    true
}
