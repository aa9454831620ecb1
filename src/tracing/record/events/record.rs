//! The recording of an event of the calling thread.

use crate::recorder::{Recorded, Recorder};
use crate::schema::perf::{PerfEvent, PerfExt, flags};
use crate::tracing::record::encoding;
use crate::tracing::record::events::present::may_mean;
use crate::tracing::record::fields::encoded::{EncodedFields, MessageText};
use crate::tracing::record::fields::redact::{Redactable, Redacting};
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::threads::thread::{self, ThreadState};
use std::sync::Arc;
use tracing_core::Metadata;
use tracing_core::field::Visit;

impl PerfCore {
    /// Encodes the fields that `visit` passes to the visitor, calls `then` with the encoded fields, and returns what
    /// `then` returns. If the formatting of a value panics, `then` is called with the fields encoded until then, and
    /// the panic continues.
    ///
    /// `log_call_site_id` is the call site of a log record, whose message may be a constant text; `NO_CALL_SITE` for
    /// any other event.
    ///
    /// The event goes to `ring`, and gets the time at which this call begins. The events of a thread must be in the
    /// order of time. So everything that may record another event must be done before this call: registering a new call
    /// site, adopting a span, assigning a ring to the thread.
    #[inline(always)]
    pub(in crate::tracing::record) fn encode_fields<R>(
        &self,
        thread: &ThreadState,
        ring: &Recorder,
        log_call_site_id: u32,
        visit: impl Fn(&mut dyn Visit),
        then: impl Fn(EncodedFields<'_>) -> R,
    ) -> R {
        let epoch_nanos = self.measured_now(thread, ring);
        if self.redacted.is_empty() {
            encoding::encode(thread, (&self.limits, log_call_site_id), epoch_nanos, |encoder| visit(encoder), then)
        } else {
            let redacted = &self.redacted;
            let visit = |encoder: &mut dyn Redactable| visit(&mut Redacting { encoder, redacted });
            encoding::encode(thread, (&self.limits, log_call_site_id), epoch_nanos, visit, then)
        }
    }

    /// Records an event of the calling thread in the thread's ring. Adds the thread's id to the extension words
    /// `ext`.
    #[inline(always)]
    pub(in crate::tracing::record) fn record(
        self: &Arc<Self>,
        thread: &ThreadState,
        event: PerfEvent,
        ext: PerfExt,
        payload: &[u8],
    ) -> u64 {
        let [span_id, related, ids, counts] = ext.to_words();
        let Some(ring) = thread.ring_of(self) else { return 0 };
        self.measure(thread, ring);
        let words = [span_id, related, ids | thread.id_word(), counts];
        let recorded = ring.core.record(event as u16, words, payload);
        // Of a span that the thread is in twice, only the first enter and the last exit change anything.
        let is_twice = match event {
            PerfEvent::SpanEnter => thread.span_stack.count(span_id) > 1,
            // The end of a scope changes nothing more, and the stack may be deep.
            PerfEvent::SpanExit if ext.flags & flags::CLOSED == 0 => thread.span_stack.count(span_id) > 0,
            _ => false,
        };
        if !is_twice && recorded.seqno != 0 {
            self.show(ring, event, &PerfExt::from_words(words), recorded, payload);
        }
        recorded.seqno
    }

    /// Records an event of a span, without payload. The caller has checked that recording is switched on. Returns the
    /// id of the span, so that a caller that needs it keeps nothing during a call of the slow path.
    #[inline(always)]
    pub(in crate::tracing::record) fn record_empty(
        &self,
        ring: &Recorder,
        thread: &ThreadState,
        event: PerfEvent,
        ext: PerfExt,
    ) -> u64 {
        let [span_id, related, ids, flags_and_counts] = ext.to_words();
        let words = [span_id, related, ids | thread.id_word(), flags_and_counts];
        let [_, _, ids, _] = words;
        // Times and allocations change hands only where a thread enters or leaves a span.
        let changes_hands = match event {
            PerfEvent::SpanNew => ext.flags & flags::ENTERED != 0,
            PerfEvent::SpanClose => false,
            _ => true,
        };
        let has_nothing_to_report = || !changes_hands || thread.has_nothing_to_report();
        match ring.core.try_record_empty(has_nothing_to_report, event as u16, span_id, related, ids, flags_and_counts) {
            Some(recorded) => self.show(ring, event, &PerfExt::from_words(words), recorded, &[]),
            None => return self.record_empty_slow(ring, event, span_id, related, ids, flags_and_counts),
        }
        span_id
    }

    #[cold]
    #[inline(never)]
    fn record_empty_slow(
        &self,
        ring: &Recorder,
        event: PerfEvent,
        span_id: u64,
        related: u64,
        ids: u64,
        flags_and_counts: u64,
    ) -> u64 {
        thread::with(|thread| self.measure(thread, ring));
        let recorded = ring.core.record_empty_slow(event as u16, span_id, related, ids, flags_and_counts);
        if recorded.seqno != 0 {
            let ext = PerfExt::from_words([span_id, related, ids, flags_and_counts]);
            self.show(ring, event, &ext, recorded, &[]);
        }
        span_id
    }

    /// Changes the tables of the present as a log record says that has been recorded, if it says anything.
    pub(in crate::tracing::record) fn show_log(
        &self,
        (ring, thread): (&Recorder, &ThreadState),
        metadata: &Metadata<'_>,
        ext: PerfExt,
        recorded: Recorded,
        payload: &[u8],
    ) {
        if may_mean(metadata) && recorded.seqno != 0 {
            let ext = PerfExt { thread_id: (thread.id_word() >> 32) as u32, ..ext };
            self.show(ring, PerfEvent::Event, &ext, recorded, payload);
            self.show_meaning(metadata, ext.span_id, recorded.epoch_nanos, payload);
        }
    }

    /// Records an event with its fields.
    #[inline(always)]
    pub(in crate::tracing::record) fn record_with_fields(
        &self,
        ring: &Recorder,
        thread: &ThreadState,
        event: PerfEvent,
        ext: PerfExt,
        fields: EncodedFields<'_>,
    ) {
        // Otherwise the fields have taken the time, and the thread has looked then.
        if fields.epoch_nanos.is_none() {
            self.measure(thread, ring);
        }
        let [span_id, related, ids, flags_and_counts] = ext.to_words();
        let (ids, flags_and_counts) = (ids | thread.id_word(), flags_and_counts | fields.flags_and_counts);
        let recorded = record_fields(ring, event, [span_id, related, ids, flags_and_counts], fields);
        if recorded.seqno != 0 {
            let ext = PerfExt::from_words([span_id, related, ids, flags_and_counts]);
            self.show(ring, event, &ext, recorded, fields.payload);
        }
    }
}

/// Records a log record. `ext` has the id of its call site. If the record may mean something for the tables of the
/// present, call [`PerfCore::show_log`] then.
#[inline(always)]
pub(in crate::tracing::record) fn record_log(
    ring: &Recorder,
    thread: &ThreadState,
    ext: PerfExt,
    fields: EncodedFields<'_>,
) -> Recorded {
    let id = ext.call_site_id;
    let texts = match fields.message {
        MessageText::Other => None,
        MessageText::Expected | MessageText::OnePiece(_) => CALL_SITES.texts(id),
    };
    let call_site_id = texts.map_or(id, |texts| texts.call_site_id(id, fields.message));
    let recorded = record_event(ring, thread, PerfExt { call_site_id, ..ext }, fields);
    if let Some(texts) = texts {
        texts.learn(id, fields.message);
    }
    recorded
}

/// Records an event of the calling thread with its fields.
#[inline(always)]
pub(in crate::tracing::record) fn record_event(
    ring: &Recorder,
    thread: &ThreadState,
    ext: PerfExt,
    fields: EncodedFields<'_>,
) -> Recorded {
    let [span_id, related, ids, flags_and_counts] = ext.to_words();
    let words = [span_id, related, ids | thread.id_word(), flags_and_counts | fields.flags_and_counts];
    record_fields(ring, PerfEvent::Event, words, fields)
}

#[inline(always)]
fn record_fields(ring: &Recorder, event: PerfEvent, words: [u64; 4], fields: EncodedFields<'_>) -> Recorded {
    match fields.epoch_nanos {
        Some(epoch_nanos) => ring.core.record_stamped(epoch_nanos, event as u16, words, fields.payload),
        None => {
            let [span_id, related, ids, flags_and_counts] = words;
            record_now(ring, event as u16, span_id, related, ids, flags_and_counts, fields.payload)
        }
    }
}

/// Records an event with the time of this call. The extension words are four separate arguments: the compiler passes
/// them in registers, but would put an array into memory.
#[inline(never)]
fn record_now(
    ring: &Recorder,
    event_type: u16,
    span_id: u64,
    related: u64,
    ids: u64,
    flags_and_counts: u64,
    payload: &[u8],
) -> Recorded {
    ring.core.record(event_type, [span_id, related, ids, flags_and_counts], payload)
}
