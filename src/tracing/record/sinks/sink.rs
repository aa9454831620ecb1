//! The sink of a subscriber or layer: the recorder to which it records.

use crate::recorder::Recorder;
use crate::schema::perf::{PerfEvent, PerfExt};
use crate::tracing::record::perf_recorder::global::PERF;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::stack::SpanEntry;
use crate::tracing::record::threads::thread::ThreadState;
use std::sync::{Arc, Weak};

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
