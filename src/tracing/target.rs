//! Where a subscriber or layer records to.

use super::fields;
use super::recorder::{PerfCore, PerfRecorder};
use super::redact::encode_redacted;
use super::slot::PERF;
use super::thread::ThreadState;
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

    /// Records an event without payload.
    #[inline(always)]
    pub(super) fn record(&self, thread: &ThreadState, event: PerfEvent, ext: PerfExt) {
        if let Some(core) = self.recording() {
            core.record(thread, event, ext, &[]);
        }
    }
}

/// Does something as a panic goes by.
pub(super) struct OnPanic<F: Fn()>(pub(super) F);

impl<F: Fn()> OnPanic<F> {
    /// There was none.
    #[inline(always)]
    pub(super) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<F: Fn()> Drop for OnPanic<F> {
    #[cold]
    fn drop(&mut self) {
        (self.0)();
    }
}

impl PerfCore {
    /// Records an event with the fields that `visit` shows, if its call site `has_fields`.
    #[inline(always)]
    pub(super) fn record_fields(
        self: &Arc<Self>,
        thread: &ThreadState,
        event: PerfEvent,
        ext: PerfExt,
        has_fields: bool,
        visit: impl Fn(&mut dyn Visit),
    ) {
        let [span_id, related, ids, said] = ext.to_words();
        if !has_fields {
            self.record_words(thread, event, [span_id, related, ids, said], &[]);
            return;
        }
        let then = |payload: &[u8], counts| {
            self.record_words(thread, event, [span_id, related, ids, said | counts], payload);
        };
        if self.redacted.is_empty() {
            fields::encode(thread, &self.limits, visit, then);
        } else {
            encode_redacted(thread, &self.limits, &self.redacted, visit, then);
        }
    }
}
