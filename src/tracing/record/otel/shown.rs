//! What each thread shows.

use super::thread_pointer;
use super::thread_record::ThreadRecord;
use crate::span_slab::{SPAN_SLAB, TraceKey};
use crate::tracing::span_id::SpanId;
use crate::tracing::trace_context::ids::ProcessIds;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{Ordering, compiler_fence};

/// What makes the ids that threads show; empty until they are shown.
pub(in crate::tracing::record) static IDS: OnceLock<ProcessIds> = OnceLock::new();

/// What a thread shows.
struct Shown {
    record: ThreadRecord,
    /// The trace in the record. A thread mostly enters spans of the trace that it was in, so the id and the flags of
    /// the trace mostly stay as they are.
    trace: Cell<TraceKey>,
    /// True when the symbol points to the record.
    is_pointed_to: Cell<bool>,
}

thread_local! {
    // This thread-local has no destructor, so it can be used until the thread's last instruction.
    static SHOWN: Shown = const {
        Shown { record: ThreadRecord::new(), trace: Cell::new(TraceKey::NONE), is_pointed_to: Cell::new(false) }
    };
}

/// The flag of a trace that is recorded.
const SAMPLED: u8 = 1;

impl Shown {
    /// Within one trace only the span's id changes. That is one store, so readers see the old span or the new one.
    #[inline(always)]
    fn show(&self, ids: &ProcessIds, span_id: u64) {
        match SpanId::new(span_id).and_then(|span| Some((span, SPAN_SLAB.trace_key(span_id)?))) {
            Some((span, trace)) if trace == self.trace.get() || self.change_trace(ids, span_id, trace) => {
                self.record.span_id.store(ids.span_id(span, trace.is_remote()).to_be(), Ordering::Relaxed);
                compiler_fence(Ordering::SeqCst);
                self.record.valid.store(1, Ordering::Relaxed);
            }
            _ => self.record.valid.store(0, Ordering::Relaxed),
        }
    }

    /// Puts the trace of a span, which has this key, into the record. Returns false if the span was closed or its trace
    /// changed meanwhile.
    #[inline(never)]
    fn change_trace(&self, ids: &ProcessIds, span_id: u64, trace: TraceKey) -> bool {
        self.record.valid.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.trace.set(TraceKey::NONE);
        let Some((root, remote)) = SPAN_SLAB.try_trace_of(span_id, trace) else { return false };
        let Some(root) = SpanId::new(root) else { return false };
        self.record.set_trace(ids.trace_of(root, remote), remote.map_or(SAMPLED, |remote| remote.flags));
        if !self.is_pointed_to.replace(true) {
            thread_pointer::set(&self.record);
        }
        self.trace.set(trace);
        true
    }
}

/// Shows the span that the thread is in from now on; 0 means none.
#[inline(always)]
pub(in crate::tracing::record) fn show_span(span_id: u64) {
    if let Some(ids) = IDS.get() {
        SHOWN.with(|shown| shown.show(ids, span_id));
    }
}
