//! The record of a thread: the trace and the span that it is in.
//!
//! Profilers read the record only while the thread is stopped. So they see the thread's stores in program order, and
//! compiler fences suffice.

use super::{IDS, thread_pointer};
use crate::span_slab::{SPAN_SLAB, TraceKey};
use crate::tracing::SpanId;
use crate::tracing::context::{ProcessIds, TraceId};
use std::cell::Cell;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering, compiler_fence};

/// The record, in the layout of the proposal: 28 bytes without attributes.
#[repr(C)]
pub(super) struct ThreadRecord {
    /// The id of the trace, as two big-endian words.
    trace_id: [AtomicU64; 2],
    /// The id of the span, big-endian.
    span_id: AtomicU64,
    /// 1 if the record is whole and the thread is in a span.
    valid: AtomicU8,
    /// The flags of `traceparent`.
    flags: AtomicU8,
    /// The bytes of attributes that follow: none.
    attribute_bytes: AtomicU16,
}

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

impl ThreadRecord {
    const fn new() -> Self {
        Self {
            trace_id: [AtomicU64::new(0), AtomicU64::new(0)],
            span_id: AtomicU64::new(0),
            valid: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            attribute_bytes: AtomicU16::new(0),
        }
    }

    fn set_trace(&self, trace_id: TraceId, flags: u8) {
        let trace_id = trace_id.get();
        self.trace_id[0].store(((trace_id >> 64) as u64).to_be(), Ordering::Relaxed);
        self.trace_id[1].store((trace_id as u64).to_be(), Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_record_lies_as_the_proposal_says() {
        let offsets = [
            offset_of!(ThreadRecord, trace_id),
            offset_of!(ThreadRecord, span_id),
            offset_of!(ThreadRecord, valid),
            offset_of!(ThreadRecord, flags),
            offset_of!(ThreadRecord, attribute_bytes),
        ];
        assert_eq!(offsets, [0, 16, 24, 25, 26]);
    }
}
