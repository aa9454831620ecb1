//! The record of a thread: the trace and the span that it is in.
//!
//! Profilers read the record only while the thread is stopped. So they see the thread's stores in program order, and
//! compiler fences suffice.

use crate::span_slab::TraceId;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};

/// The record, in the layout of the proposal: 28 bytes without attributes.
#[repr(C)]
pub(super) struct ThreadRecord {
    /// The id of the trace, as two big-endian words.
    trace_id: [AtomicU64; 2],
    /// The id of the span, big-endian.
    pub(super) span_id: AtomicU64,
    /// 1 if the record is whole and the thread is in a span.
    pub(super) valid: AtomicU8,
    /// The flags of `traceparent`.
    flags: AtomicU8,
    /// The bytes of attributes that follow: none.
    attribute_bytes: AtomicU16,
}

impl ThreadRecord {
    pub(super) const fn new() -> Self {
        Self {
            trace_id: [AtomicU64::new(0), AtomicU64::new(0)],
            span_id: AtomicU64::new(0),
            valid: AtomicU8::new(0),
            flags: AtomicU8::new(0),
            attribute_bytes: AtomicU16::new(0),
        }
    }

    pub(super) fn set_trace(&self, trace_id: TraceId, flags: u8) {
        let trace_id = trace_id.get();
        self.trace_id[0].store(((trace_id >> 64) as u64).to_be(), Ordering::Relaxed);
        self.trace_id[1].store((trace_id as u64).to_be(), Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
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
