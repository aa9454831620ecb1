//! The sink of a subscriber or layer: the recorder to which it records.

use crate::recorder::{Recorded, Recorder};
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::tracing::record::fields::redact::Redacting;
use crate::tracing::record::fields::{self, EncodedFields, MessageText, Redactable};
use crate::tracing::record::perf_recorder::core::PerfCore;
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::sites::call_sites::CALL_SITES;
use crate::tracing::record::spans::present::may_mean;
use crate::tracing::record::spans::stack::SpanEntry;
use crate::tracing::record::threads::thread::ThreadState;
use std::sync::{Arc, Weak};
use tracing_core::Metadata;
use tracing_core::field::Visit;

/// Sink of a subscriber or layer.
#[derive(Debug)]
pub(in crate::tracing::record) enum Sink {
    /// Recorder that is installed in [`PERF`].
    Global,
    /// Recorder that belongs to the subscriber or layer.
    Own(PerfRecorder),
}

/// The parent of a new span, or the span of an event.
pub(in crate::tracing::record) struct Parent {
    /// Id of the span, or 0 if there is no parent or no span.
    pub(in crate::tracing::record) span_id: u64,
    /// The flag [`EXPLICIT_PARENT`](crate::schema::perf::flags::EXPLICIT_PARENT) if the program has named the parent,
    /// or `EXPLICIT_ROOT` if the program has asked for a root. 0 if the current span is the parent.
    pub(in crate::tracing::record) flags: u16,
}

impl Sink {
    /// Returns the recorder, if there is one.
    #[inline(always)]
    pub(in crate::tracing::record) fn recorder(&self) -> Option<&PerfRecorder> {
        match self {
            Self::Own(recorder) => Some(recorder),
            Self::Global => PERF.installed(),
        }
    }

    /// Returns the recorder that belongs to the subscriber or layer, or `None` if the recorder is the one in [`PERF`].
    pub(in crate::tracing::record) fn own(&self) -> Option<Weak<PerfCore>> {
        match self {
            Self::Own(recorder) => Some(Arc::downgrade(&recorder.core)),
            Self::Global => None,
        }
    }

    /// Returns true if this is the recorder in [`PERF`].
    pub(in crate::tracing::record) fn is_of_perf(&self) -> bool {
        match self {
            Self::Global => true,
            Self::Own(recorder) => PERF.installed().is_some_and(|perf| Arc::ptr_eq(&perf.core, &recorder.core)),
        }
    }

    /// Returns the state of the recorder if there is a recorder and it is switched on, and `None` otherwise.
    #[inline(always)]
    pub(in crate::tracing::record) fn recording(&self) -> Option<&Arc<PerfCore>> {
        self.recorder().map(|recorder| &recorder.core).filter(|core| core.is_enabled())
    }

    /// Returns the recorder's state and the thread's ring, if the recorder is switched on and the thread's last event
    /// went to this recorder. Otherwise returns `None`, and the caller takes the slow path.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_ring<'s>(
        &'s self,
        thread: &ThreadState,
    ) -> Option<(&'s PerfCore, &'s Recorder)> {
        let core = &self.recorder()?.core;
        Some((core, thread.try_ring(core)?))
    }

    /// Returns the recorder's state and the thread's ring, for an event with fields. Returns `None` where
    /// [`Self::try_ring`] does, and also if the recorder redacts fields: only the slow path can leave values out.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_ring_for_fields<'s>(
        &'s self,
        thread: &ThreadState,
    ) -> Option<(&'s PerfCore, &'s Recorder)> {
        self.try_ring(thread).filter(|(core, _)| core.redacted.is_empty())
    }

    /// Records an event without payload.
    #[inline(always)]
    pub(in crate::tracing::record) fn record(&self, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
        if let Some(core) = self.recording() {
            core.record(thread, event, ext, &[]);
        }
    }

    /// Records an exit or a close of a span, even while recording is switched off. Without the event, a reader would
    /// show the span as open for ever. Record an exit only if the enter was recorded, and a close only if the creation
    /// was recorded.
    pub(in crate::tracing::record) fn record_end(&self, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
        if let Some(recorder) = self.recorder() {
            recorder.core.record(thread, event, ext, &[]);
        }
    }

    /// Ends a span in the tables of the present, before another span may have its cell.
    pub(in crate::tracing::record) fn show_end(&self, span_id: u64) {
        self.recorder().into_iter().for_each(|recorder| recorder.core.show_end_slow(span_id));
    }

    /// Records that a thread exits a span. `entry` is the entry that the exit removed from the span stack; `None` if
    /// there was no entry. If the enter was recorded, the exit is recorded even while recording is switched off.
    pub(in crate::tracing::record) fn record_exit(&self, thread: &ThreadState, entry: Option<SpanEntry>, ext: PerfExt) {
        let ext = PerfExt { related: thread.instructions(), ..ext };
        if entry.is_some_and(|entry| entry.is_recorded()) {
            self.record_end(thread, PerfEvent::SpanExit, ext);
        } else {
            self.record(thread, PerfEvent::SpanExit, ext);
        }
    }
}

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
        let epoch_nanos = ring.core.try_now();
        if self.redacted.is_empty() {
            fields::encode(thread, (&self.limits, log_call_site_id), epoch_nanos, |encoder| visit(encoder), then)
        } else {
            let redacted = &self.redacted;
            let visit = |encoder: &mut dyn Redactable| visit(&mut Redacting { encoder, redacted });
            fields::encode(thread, (&self.limits, log_call_site_id), epoch_nanos, visit, then)
        }
    }
}

/// Recording in a thread's ring of this recorder.
impl PerfCore {
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
        match ring.core.try_record_empty(event as u16, span_id, related, ids, flags_and_counts) {
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
