//! The fast path of spans and events with fields.

use super::{RecorderSubscriber, id_of};
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::span_slab::SPAN_SLAB;
use crate::tracing::record::encoding::{SmallEncoder, visit_fields};
use crate::tracing::record::events::record::record_log;
use crate::tracing::record::fields::encoded::EncodedFields;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::threads::thread::ThreadState;
use tracing_core::span::{Attributes, Id};
use tracing_core::{Event, Metadata};

/// Values that the fast path looks up before it visits the fields of a span or event.
pub(super) struct Prepared<'s> {
    pub(super) core: &'s PerfCore,
    pub(super) ring: &'s Recorder,
    pub(super) call_site_id: u32,
    /// Id of the innermost span of this subscriber that the thread is in. 0 if the thread is in no span of this
    /// subscriber.
    pub(super) current_id: u64,
    pub(super) epoch_nanos: u64,
}

/// The fast paths with fields. They use a buffer of 1 KiB on the stack. `new_span_with_fields` is not inlined, so
/// that a span without fields is created without this buffer.
impl RecorderSubscriber {
    /// Looks up what the fast path of an event with fields needs. Returns `None` and changes nothing if the event
    /// must take the slow path. The clock is read last, so that no lookup lies between the time of the event and the
    /// visit of its fields.
    #[inline(always)]
    pub(super) fn try_prepare(
        &self,
        thread: &ThreadState,
        metadata: &'static Metadata<'static>,
    ) -> Option<Prepared<'_>> {
        let (core, ring) = self.sink.try_ring_for_fields(thread)?;
        let call_site_id = CALL_SITES.known_id_of(metadata)?;
        let current_id = thread.span_stack.try_current(self.owner.get())?;
        let epoch_nanos = thread.try_now(ring)?;
        Some(Prepared { core, ring, call_site_id, current_id, epoch_nanos })
    }

    /// Creates a span with fields.
    #[inline(never)]
    pub(super) fn new_span_with_fields(&self, thread: &ThreadState, attributes: &Attributes<'_>) -> Id {
        let Some(prepared) = self.try_prepare(thread, attributes.metadata()) else {
            return self.new_span_slow(thread, attributes);
        };
        let Prepared { core, ring, call_site_id, current_id: parent, epoch_nanos } = prepared;
        let mut encoder = SmallEncoder::new(thread, &core.limits);
        let panicked = move |fields: EncodedFields<'_>| self.encoded_span(thread, attributes, fields);
        visit_fields(&mut encoder, |encoder| attributes.record(encoder), panicked);
        // The fields have been visited. `new_span_slow` would visit them again and run their `Debug` code again, which
        // may itself record events. So the code below does not call it. It uses the encoded fields, or a larger buffer
        // if they do not fit.
        if encoder.is_too_small() {
            return self.large_span(thread, attributes, epoch_nanos);
        }
        let fields = encoder.encoded(Some(epoch_nanos));
        let Some(span_id) = SPAN_SLAB.try_create::<false>(&thread.free_list, call_site_id) else {
            return self.encoded_span(thread, attributes, fields);
        };
        SPAN_SLAB.set_parent(span_id, parent);
        let ext = PerfExt { related: parent, ..PerfExt::of_span(span_id, call_site_id) };
        core.record_with_fields(ring, thread, PerfEvent::SpanNew, ext, fields);
        self.judge(span_id, call_site_id, fields.payload);
        id_of(span_id)
    }

    /// Records an event with its fields, which means nothing for the tables of the present.
    #[inline(always)]
    pub(super) fn event_with_fields(&self, thread: &ThreadState, event: &Event<'_>) {
        let Some(prepared) = self.try_prepare(thread, event.metadata()) else {
            return self.event_slow(thread, event);
        };
        let Prepared { core, ring, call_site_id, current_id: span_id, epoch_nanos } = prepared;
        let mut encoder = SmallEncoder::new(thread, &core.limits);
        encoder.set_log_call_site(call_site_id);
        visit_fields(
            &mut encoder,
            |encoder| event.record(encoder),
            move |fields| self.encoded_event(thread, event, fields),
        );
        if encoder.is_too_small() {
            return self.large_event(thread, event, epoch_nanos);
        }
        let fields = encoder.encoded(Some(epoch_nanos));
        record_log(ring, thread, PerfExt::of_span(span_id, call_site_id), fields);
    }
}
