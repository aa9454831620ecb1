//! The limit on the memory that an export takes, so that a small file cannot fill the memory.
//!
//! In a capture that a program has recorded, each event takes a few bytes even after compression, because at least the
//! times differ. But a file in which all events are alike can decompress to ten thousand times its size. So this module
//! estimates how many bytes an export keeps in memory for the events that it has read. The export refuses the capture
//! if the estimate exceeds what a real capture of that file size could need. (The estimate is a little too high.)

use super::recording::{EntryContent, RecordingEntry};
use crate::capture::{CaptureError, CaptureErrorKind};
use crate::schema::perf::FieldValue;
use crate::tracing::{Fields, PerfContent, PerfRecord, SpanId};
use std::collections::{HashMap, HashSet};

/// The number of bytes that an export may hold in memory for any capture, even the smallest.
const BYTES_FREE: u64 = 128 << 20;
/// The number of bytes that an export may keep for each byte of the capture's file, in addition to [`BYTES_FREE`].
/// Real captures need 5 to 30.
const BYTES_PER_BYTE: u64 = 64;

const SPAN_BYTES: u64 = 512;
const SLICE_BYTES: u64 = 96;
const FIELD_BYTES: u64 = 128;
const THREAD_BYTES: u64 = 512;
/// The estimated size in bytes of what is kept for a small record, such as a loss, or the link from a span to the span
/// that it follows.
const EVENT_BYTES: u64 = 128;

/// The estimate of the bytes that an export keeps for the events that it has read so far, and the limit of this
/// estimate.
pub(super) struct Kept {
    bytes: u64,
    bytes_max: u64,
    /// The estimated size in bytes of each open span's fields. It is subtracted again when the span is closed.
    open: HashMap<(u32, SpanId), u64>,
    threads: HashSet<(u32, u32)>,
}

impl Kept {
    /// Makes an estimate of 0 for a capture of this size.
    pub(super) fn new(file_bytes: u64) -> Self {
        let bytes_max = file_bytes.saturating_mul(BYTES_PER_BYTE).saturating_add(BYTES_FREE);
        Self { bytes: 0, bytes_max, open: HashMap::new(), threads: HashSet::new() }
    }

    /// Adds the size of a record that describes a call site or a thread. The names in its payload stay in memory.
    pub(super) fn learn(&mut self, payload_bytes: usize) {
        // The factor is 16, because every name is kept as a separate string, even a name of one byte.
        self.bytes = self.bytes.saturating_add(SPAN_BYTES).saturating_add(16 * payload_bytes as u64);
    }

    /// Adds what the export keeps of this entry.
    pub(super) fn count(&mut self, entry: &RecordingEntry) {
        match &entry.content {
            EntryContent::Perf { recorder, record } => self.record(entry.process, *recorder, record),
            EntryContent::Gap { .. } => self.bytes = self.bytes.saturating_add(EVENT_BYTES),
            EntryContent::Typed { .. } => {}
        }
    }

    fn record(&mut self, process: u32, recorder: u32, record: &PerfRecord) {
        if self.threads.insert((recorder, record.thread.id)) {
            self.bytes = self.bytes.saturating_add(THREAD_BYTES);
        }
        let (span, more) = match &record.content {
            PerfContent::SpanNew { span, fields, .. } | PerfContent::SpanRecord { span, fields, .. } => {
                (*span, bytes_of(fields))
            }
            PerfContent::SpanEnter { span, .. } => {
                self.bytes = self.bytes.saturating_add(SLICE_BYTES);
                (*span, 0)
            }
            PerfContent::SpanFollowsFrom { span, .. } => (*span, EVENT_BYTES),
            PerfContent::SpanExit { span, .. } => (*span, 0),
            PerfContent::SpanClose { span, .. } => {
                let kept = self.open.remove(&(process, *span)).unwrap_or(0);
                self.bytes = self.bytes.saturating_sub(kept);
                if kept == 0 {
                    self.bytes = self.bytes.saturating_add(SPAN_BYTES);
                }
                return;
            }
            // Other records, such as log records, are written to the output immediately. Only their names may stay in
            // memory.
            _ => {
                self.bytes = self.bytes.saturating_add(SLICE_BYTES);
                return;
            }
        };
        let kept = self.open.entry((process, span)).or_insert_with(|| {
            self.bytes = self.bytes.saturating_add(SPAN_BYTES);
            0
        });
        *kept = kept.saturating_add(more.max(1));
        self.bytes = self.bytes.saturating_add(more.max(1));
    }

    /// Checks the estimate against the limit of the capture.
    ///
    /// # Errors
    /// The estimate exceeds the limit.
    pub(super) fn check(&self) -> Result<(), CaptureError> {
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let message = format!(
            "the spans, threads and names of the capture would take more memory than the {} MiB that a file of its size can need: the file is damaged; \
             capture the rings again",
            self.bytes_max >> 20
        );
        Err(CaptureError::new(CaptureErrorKind::Damaged, message))
    }
}

fn bytes_of(fields: &Fields) -> u64 {
    let of_value = |value: &FieldValue| match value {
        FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) => text.len(),
        FieldValue::Bytes(bytes) | FieldValue::Unknown { bytes, .. } => bytes.len(),
        _ => 0,
    };
    let of_values = fields.values.iter().map(|field| FIELD_BYTES + of_value(&field.value) as u64);
    of_values.fold(EVENT_BYTES, u64::saturating_add)
}
