//! The slow paths of `RecorderSubscriber`.

use super::{RecorderSubscriber, UNRECORDED, id_of, recorded};
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::{Dropped, SPAN_SLAB};
use crate::tracing::record::encoding::encode_large;
use crate::tracing::record::events::record::record_log;
use crate::tracing::record::fields::encoded::EncodedFields;
use crate::tracing::record::sites::call_sites::NO_CALL_SITE;
use crate::tracing::record::spans::scope_end;
use crate::tracing::record::threads::end_of_thread;
use crate::tracing::record::threads::thread::ThreadState;
use tracing_core::Event;
use tracing_core::field::Visit;
use tracing_core::span::{Attributes, Id};
use tracing_core::subscriber::Subscriber as _;

/// The slow paths. Each slow path handles every case of its call, as if no fast path had been tried.
impl RecorderSubscriber {
    #[inline(never)]
    pub(super) fn new_span_slow(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let _paused = thread.pause_count();
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        if attributes.fields().is_empty() {
            return self.encoded_span(thread, attributes, EncodedFields::NONE);
        }
        // The next two calls come before `encode_fields`, because they may record other events, and `encode_fields`
        // takes the time of this event. The first call records the call site if it is new. The second call records the
        // start of the thread if the thread has no ring yet.
        core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let visit = |visitor: &mut dyn Visit| attributes.record(visitor);
        core.encode_fields(thread, ring, NO_CALL_SITE, visit, |fields| self.encoded_span(thread, attributes, fields))
    }

    /// Creates a span whose fields need a larger buffer.
    #[cold]
    #[inline(never)]
    pub(super) fn large_span(&self, thread: &ThreadState, attributes: &Attributes<'_>, epoch_nanos: u64) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        encode_large(
            thread,
            (&core.limits, NO_CALL_SITE),
            Some(epoch_nanos),
            |encoder| attributes.record(encoder),
            |fields| self.encoded_span(thread, attributes, fields),
        )
    }

    /// Creates a span whose fields are encoded.
    #[inline(never)]
    pub(super) fn encoded_span(
        &self,
        thread: &ThreadState,
        attributes: &Attributes<'_>,
        fields: EncodedFields<'_>,
    ) -> Id {
        let Some(core) = self.recording() else { return id_of(UNRECORDED) };
        let call_site_id = core.call_site_id(attributes.metadata());
        let Some(ring) = thread.ring_of(core) else { return id_of(UNRECORDED) };
        let parent = self.parent_of(thread, attributes.is_contextual(), attributes.parent());
        end_of_thread::register();
        let Some(span_id) = SPAN_SLAB.create::<false>(&thread.free_list, call_site_id) else {
            core.count_lost_span();
            return id_of(UNRECORDED);
        };
        SPAN_SLAB.set_parent(span_id, parent.span_id);
        let ext = PerfExt { related: parent.span_id, flags: parent.flags, ..PerfExt::of_span(span_id, call_site_id) };
        core.record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
        self.judge(span_id, call_site_id, fields.payload);
        let id = id_of(span_id);
        if fields.has_panicked {
            // The `Debug` code of a field has panicked, and the panic continues. So the program never gets the id of
            // the span, and the span is closed here.
            self.try_close(id.clone());
        }
        id
    }

    #[inline(never)]
    pub(super) fn event_slow(&self, thread: &ThreadState, event: &Event<'_>) {
        let _paused = thread.pause_count();
        let Some(core) = self.recording() else { return };
        // The next two calls come before `encode_fields`, because they may record other events, and `encode_fields`
        // takes the time of this event. The first call records the call site if it is new. The second call records the
        // start of the thread if the thread has no ring yet.
        let call_site_id = core.call_site_id(event.metadata());
        let Some(ring) = thread.ring_of(core) else { return };
        let visit = |visitor: &mut dyn Visit| event.record(visitor);
        core.encode_fields(thread, ring, call_site_id, visit, |fields| self.encoded_event(thread, event, fields));
    }

    /// Records an event whose fields need a larger buffer.
    #[cold]
    #[inline(never)]
    pub(super) fn large_event(&self, thread: &ThreadState, event: &Event<'_>, epoch_nanos: u64) {
        let Some(core) = self.recording() else { return };
        let then = |fields: EncodedFields<'_>| self.encoded_event(thread, event, fields);
        encode_large(thread, (&core.limits, NO_CALL_SITE), Some(epoch_nanos), |encoder| event.record(encoder), then);
    }

    /// Records an event whose fields are encoded.
    #[inline(never)]
    pub(super) fn encoded_event(&self, thread: &ThreadState, event: &Event<'_>, fields: EncodedFields<'_>) {
        let Some(core) = self.recording() else { return };
        let Some(ring) = thread.ring_of(core) else { return };
        let parent = self.parent_of(thread, event.is_contextual(), event.parent());
        let call_site_id = core.call_site_id(event.metadata());
        let (related, flags) = (thread.instructions(), parent.flags);
        let ext = PerfExt { related, flags, ..PerfExt::of_span(parent.span_id, call_site_id) };
        let recorded = record_log(ring, thread, ext, fields);
        core.show_log((ring, thread), event.metadata(), ext, recorded, fields.payload);
    }

    #[cold]
    #[inline(never)]
    pub(super) fn enter_slow(&self, thread: &ThreadState, span: &Id) {
        let _paused = thread.pause_count();
        let Some(span_id) = recorded(span) else { return };
        let call_site_id = SPAN_SLAB.call_site_id(span_id);
        let core = self.recording();
        thread.enter(span_id, span_id, call_site_id, self.owner.get(), core.is_some());
        if let Some(core) = core {
            let ext = PerfExt { related: thread.instructions(), ..PerfExt::of_span(span_id, call_site_id) };
            core.record(thread, PerfEvent::SpanEnter, ext, &[]);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn exit_slow(&self, thread: &ThreadState, span: &Id) {
        let _paused = thread.pause_count();
        let Some(span_id) = recorded(span) else { return };
        scope_end::end_above(thread, span_id, self.owner.get());
        let entry = thread.exit(span_id, self.owner.get());
        let call_site_id = entry.map_or_else(|| SPAN_SLAB.call_site_id(span_id), |entry| entry.call_site_id());
        self.sink.record_exit(thread, entry, PerfExt::of_span(span_id, call_site_id));
    }

    #[inline(never)]
    pub(super) fn close_slow(&self, thread: &ThreadState, span_id: u64) -> bool {
        let _paused = thread.pause_count();
        end_of_thread::register();
        match SPAN_SLAB.drop_handle_and(&thread.free_list, span_id, || self.sink.show_end(span_id)) {
            Dropped::Last(call_site_id) => {
                self.sink.record_end(thread, PerfEvent::SpanClose, PerfExt::of_span(span_id, call_site_id));
                true
            }
            Dropped::Open | Dropped::Unknown => false,
        }
    }
}
