//! The limit on the memory that an export takes. Without this limit, a small file could fill the memory.
//!
//! An export keeps the open spans, a few milliseconds of the stream, and its results in memory. Even a small file can
//! have very many open spans, because it can decompress to ten thousand times its size.
//!
//! So each pass over a capture estimates the bytes that it keeps. If the estimate exceeds a limit, the export ends with
//! an error. The limit grows with the file. Real captures need less.
//!
//! The limit is at least 384 MiB. A thread that records a span each 30 ns may make a small file, but the 5 milliseconds
//! that an export keeps have some 160,000 of its spans.

use crate::error::{CaptureError, CaptureErrorKind};

/// The number of bytes that an export may hold in memory for any capture, even the smallest.
const BYTES_FREE: u64 = 384 << 20;
/// The number of bytes that an export may keep for each byte of the capture's file, in addition to [`BYTES_FREE`].
/// Real captures need less than one.
const BYTES_PER_BYTE: u64 = 64;

/// The estimated size in bytes of what is kept for a call site or thread, in addition to its names.
const DESCRIPTION_BYTES: u64 = 512;

/// The estimated number of bytes that are kept for call sites and threads, and the limit for all that is kept.
pub(super) struct MemoryLimit {
    bytes: u64,
    bytes_max: u64,
}

impl MemoryLimit {
    /// Makes an estimate of 0 for a capture of this size.
    pub(super) fn new(file_bytes: u64) -> Self {
        Self { bytes: 0, bytes_max: file_bytes.saturating_mul(BYTES_PER_BYTE).saturating_add(BYTES_FREE) }
    }

    /// Adds the size of a record that describes a call site or a thread. The names in its payload stay in memory.
    pub(super) fn learn(&mut self, payload_bytes: usize) {
        // The factor is 16, because every name is kept as a separate string, even a name of one byte.
        self.bytes = self.bytes.saturating_add(DESCRIPTION_BYTES).saturating_add(16 * payload_bytes as u64);
    }

    /// Checks the estimate against the limit of the capture. `more_bytes` is the size of everything else that is kept.
    ///
    /// # Errors
    /// The estimate exceeds the limit.
    pub(super) fn check(&self, more_bytes: u64) -> Result<(), CaptureError> {
        if self.bytes.saturating_add(more_bytes) <= self.bytes_max {
            return Ok(());
        }
        let message = format!(
            "the spans, threads and names of the capture would take more memory than the {} MiB that files of its size may take: the file is damaged, \
             or very many spans were open at a time; capture the rings again, or fewer spans (--where, --max-level)",
            self.bytes_max >> 20
        );
        Err(CaptureError::new(CaptureErrorKind::Damaged, message))
    }
}
