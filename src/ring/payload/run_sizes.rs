//! The sizes of the runs of payload cursors.
//!
//! If a payload cursor leaves a part of its run of chunks unused, this part is lost until the next pass through the
//! buffer. Three rules keep the loss small:
//! - A cursor's first run is one chunk, or two for large payloads. Later runs grow with the bytes that the thread
//!   records.
//! - The payload cursors that record hold at most a sixteenth of the buffer together. Very many cursors hold more: at
//!   least one chunk each.
//! - A payload that is large compared with a run gets chunks of its own if this loses fewer bytes.

use crate::layout::Geometry;

/// Smallest number of payloads that fit into a run of the usual size. If the next payload does not fit into the rest of
/// the run, that rest is lost. It is at most about the run's size divided by this number. (Models use tiny runs, of two
/// payloads.)
pub(in crate::ring) const PAYLOADS_MIN: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 4 };

/// Limits for the sizes of a ring's runs.
#[derive(Clone, Copy)]
pub(in crate::ring) struct RunSizes {
    pub(in crate::ring) chunk_bytes: u64,
    /// Length of the longest run.
    pub(in crate::ring) run_bytes_max: u64,
    /// Number of bytes that the runs of all payload cursors together should have. (With large payloads, the runs have
    /// up to twice as many bytes.) This number is a quarter of the bytes that may be allocated before a run is no
    /// longer near. So threads that record in turn can use up their runs.
    pub(in crate::ring) all_runs_bytes: u64,
}

impl RunSizes {
    /// Returns the limits for a ring of these sizes.
    pub(in crate::ring) fn new(geometry: &Geometry) -> Self {
        Self {
            chunk_bytes: geometry.chunk_bytes(),
            run_bytes_max: geometry.run_bytes_max(),
            all_runs_bytes: geometry.payload_buf_bytes() / 32,
        }
    }

    /// Returns the size in bytes that a run of chunks should have, for a cursor that wants `wanted` bytes. `cursors`
    /// is the number of payload cursors that record at present.
    pub(in crate::ring) fn goal_bytes(&self, wanted: u64, cursors: u64) -> u64 {
        let share = (self.all_runs_bytes / cursors).min(self.run_bytes_max / 2);
        wanted.min(share).max(self.chunk_bytes)
    }

    /// Returns the size of a run of chunks for payloads of `rounded` bytes: about `goal` bytes, and a multiple of the
    /// chunk size. Returns `None` if the payload should get chunks of its own, because fewer bytes are lost then.
    pub(in crate::ring) fn run_bytes(&self, goal: u64, rounded: u64) -> Option<u64> {
        let whole_chunks = |bytes: u64| bytes / self.chunk_bytes * self.chunk_bytes;
        if rounded.saturating_mul(PAYLOADS_MIN) <= goal {
            return Some(whole_chunks(goal));
        }
        let alone = rounded.checked_next_multiple_of(self.chunk_bytes)?;
        if (alone - rounded).saturating_mul(PAYLOADS_MIN) <= rounded && rounded > self.chunk_bytes {
            return None;
        }
        let count = whole_chunks(2 * goal).min(self.run_bytes_max) / rounded;
        (count > 1).then(|| (count * rounded).next_multiple_of(self.chunk_bytes))
    }
}
