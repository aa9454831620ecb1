//! Where a subscriber or layer records to.

use super::entered::EnteredSpan;
use super::fields::{self, EncodedFields, Redactable};
use super::global::PERF;
use super::recorder::{PerfCore, PerfRecorder};
use super::redact::Redacting;
use super::thread::ThreadState;
use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt};
use std::sync::Arc;
use tracing_core::field::Visit;

/// See the [module](self).
#[derive(Debug)]
pub(super) enum Target {
    /// To what is installed in [`PERF`].
    Global,
    /// To a recorder of its own.
    Own(PerfRecorder),
}

impl Target {
    /// The recorder, if there is one.
    #[inline(always)]
    pub(super) fn recorder(&self) -> Option<&PerfRecorder> {
        match self {
            Self::Own(recorder) => Some(recorder),
            Self::Global => PERF.installed(),
        }
    }

    /// What is shared of the recorder, if it is switched on.
    #[inline(always)]
    pub(super) fn recording(&self) -> Option<&Arc<PerfCore>> {
        self.recorder().map(|recorder| &recorder.core).filter(|core| core.is_enabled())
    }

    /// The ring in which the thread records, if it is the one in which it recorded last, and the recorder is switched on.
    #[inline(always)]
    pub(super) fn ring_at_once<'t>(&'t self, thread: &ThreadState) -> Option<&'t Recorder> {
        thread.ring_at_once(&self.recorder()?.core)
    }

    /// The same for an event with fields, if none are redacted: with the recorder.
    #[inline(always)]
    pub(super) fn ring_for_fields_at_once<'t>(&'t self, thread: &ThreadState) -> Option<(&'t PerfCore, &'t Recorder)> {
        let core = &self.recorder()?.core;
        let ring = thread.ring_at_once(core)?;
        core.redacted.is_empty().then_some((core, ring))
    }

    /// Records an event without payload.
    #[inline(always)]
    pub(super) fn record(&self, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
        if let Some(core) = self.recording() {
            core.record(thread, event, ext, &[]);
        }
    }

    /// Records the end of something whose beginning was recorded, also while recording is switched off: it would be without an end for ever.
    pub(super) fn record_end(&self, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
        if let Some(recorder) = self.recorder() {
            recorder.core.record(thread, event, ext, &[]);
        }
    }

    /// Records that a thread exits a span, which it had `entered`, if that is known. While recording is switched off, only if the entering
    /// was recorded.
    pub(super) fn record_exit(&self, thread: &ThreadState, entered: Option<EnteredSpan>, ext: PerfExt) {
        if entered.is_some_and(|entered| entered.is_recorded()) {
            self.record_end(thread, PerfEvent::SpanExit, ext);
        } else {
            self.record(thread, PerfEvent::SpanExit, ext);
        }
    }
}

/// Records what happens to a span, without payload, in a ring that is switched on.
#[inline(always)]
pub(super) fn record_at_once(ring: &Recorder, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
    let [span_id, related, ids, said] = ext.to_words();
    let ids = ids | thread.id_word();
    if ring.core.record_empty_at_once(event as u16, span_id, related, ids, said).is_none() {
        ring.core.record_empty_otherwise(event as u16, span_id, related, ids, said);
    }
}

impl PerfCore {
    /// Encodes the fields that `visit` shows, hands them to `then` and gives its answer. If a value panics, `then` gets the fields up to
    /// it, and the panic goes on. The event, which goes to `ring`, gets the time at which this begins: what may record (a new call site, a
    /// span that is adopted, a thread that moves to another ring) is to be done before.
    #[inline(always)]
    pub(super) fn encode_fields<R>(
        &self,
        thread: &ThreadState,
        ring: &Recorder,
        visit: impl Fn(&mut dyn Visit),
        then: impl Fn(EncodedFields<'_>) -> R,
    ) -> R {
        let epoch_nanos = ring.core.now_at_once();
        if self.redacted.is_empty() {
            fields::encode(thread, &self.limits, epoch_nanos, |encoder| visit(encoder), then)
        } else {
            let redacted = &self.redacted;
            let visit = |encoder: &mut dyn Redactable| visit(&mut Redacting { encoder, redacted });
            fields::encode(thread, &self.limits, epoch_nanos, visit, then)
        }
    }
}

/// Records an event with its fields.
#[inline(always)]
pub(super) fn record_with(
    ring: &Recorder,
    thread: &ThreadState,
    event: PerfEvent,
    ext: PerfExt,
    fields: EncodedFields<'_>,
) {
    let [span_id, related, ids, said] = ext.to_words();
    let (ids, said) = (ids | thread.id_word(), said | fields.said);
    match fields.epoch_nanos {
        Some(epoch_nanos) => {
            ring.core.record_stamped(epoch_nanos, event as u16, [span_id, related, ids, said], fields.payload);
        }
        None => record_now(ring, event as u16, span_id, related, ids, said, fields.payload),
    }
}

/// Records an event whose time is not known yet. (Words one by one: an array would be put into memory.)
#[inline(never)]
fn record_now(ring: &Recorder, event_type: u16, span_id: u64, related: u64, ids: u64, said: u64, payload: &[u8]) {
    ring.core.record(event_type, [span_id, related, ids, said], payload);
}
