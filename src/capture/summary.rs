//! The progress of a capture, and its result.

use super::end::EndReason;
use super::stats::CaptureStats;
use crate::reader::{LostPages, Reader};
use std::path::PathBuf;
use std::time::Duration;

/// The answer when [`capture_rings`](super::capture_rings) asks for another ring.
#[derive(Debug)]
pub enum NextRing {
    /// A ring to capture from now on.
    Ring(Reader),
    /// No ring for now. More rings may come, so the capture does not end when all writers have ended. It can end for
    /// this reason only after [`Self::NoMore`].
    NotYet,
    /// No ring, now or later.
    NoMore,
}

/// The progress of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureProgress {
    /// Time since its start.
    pub elapsed: Duration,
    /// Number of rings.
    pub rings: usize,
    /// Events taken, including those in files that were removed again.
    pub events: u64,
    /// Events lost. Events of a shard that could not be opened are counted at the end.
    pub lost: u64,
    /// Bytes written, including files that were removed again.
    pub bytes: u64,
    /// Files begun.
    pub files: u32,
}

/// The result of a capture.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureSummary {
    /// The reason why the capture ended.
    pub reason: EndReason,
    /// The duration of the capture.
    pub elapsed: Duration,
    /// The names of the rings, in the order of `stats`.
    pub rings: Vec<String>,
    /// Counts of each ring's events: in the files, removed with files, or lost.
    pub stats: CaptureStats,
    /// Bytes of the files that are left.
    pub bytes: u64,
    /// Number of files that were removed again, see [`CaptureOptions::keep_files`](super::CaptureOptions::keep_files).
    pub removed_files: u32,
    /// Bytes of the removed files.
    pub removed_bytes: u64,
    /// The files that are left, without the files that were removed again. The list is empty after
    /// [`capture_to`](super::capture_to).
    pub files: Vec<PathBuf>,
    /// Failures that did not end the capture: shards that could not be opened, files that were truncated.
    pub problems: Vec<String>,
    /// Rings whose files had pages that could not be read, mostly because they were truncated. The events in these
    /// pages are missing, and their number is not known.
    pub lost_pages: Vec<(String, LostPages)>,
}
