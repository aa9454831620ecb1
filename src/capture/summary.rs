//! What a capture tells, while it runs and at its end.

use super::stats::{CaptureStats, EndReason};
use crate::reader::{LostPages, Reader};
use std::path::PathBuf;
use std::time::Duration;

/// What there is to capture besides what [`capture_rings`](super::capture_rings) reads already.
#[derive(Debug)]
pub enum NextRing {
    /// This ring, from now on.
    Ring(Reader),
    /// Nothing for now. More rings may come: until then the capture does not end because the writers of the others have ended.
    NotYet,
    /// Nothing any more.
    NoMore,
}

/// How far a capture is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureProgress {
    /// Time since its begin.
    pub elapsed: Duration,
    /// Rings read.
    pub rings: usize,
    /// Events taken, those in files that were removed again, too.
    pub events: u64,
    /// Events lost. Of a shard that could not be opened this is not known before the end.
    pub lost: u64,
    /// Bytes written, of files that were removed again, too.
    pub bytes: u64,
    /// Files begun.
    pub files: u32,
}

/// What a capture has done.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CaptureSummary {
    /// Why it ended.
    pub reason: EndReason,
    /// How long it took.
    pub elapsed: Duration,
    /// The rings' names, in the order of the stats.
    pub rings: Vec<String>,
    /// What became of each ring's events: in the files, removed with files, or lost.
    pub stats: CaptureStats,
    /// Bytes of the files.
    pub bytes: u64,
    /// How many files were removed again, see [`CaptureOptions::keep_files`](super::CaptureOptions::keep_files).
    pub removed_files: u32,
    /// Bytes of these.
    pub removed_bytes: u64,
    /// The files, without those that were removed again; empty for [`capture_to`](super::capture_to).
    pub files: Vec<PathBuf>,
    /// What went wrong without ending the capture: shards that could not be opened, files that were truncated.
    pub problems: Vec<String>,
    /// Rings of whose files pages could not be read, mostly because somebody truncated them: what was there is missing, uncounted.
    pub lost_pages: Vec<(String, LostPages)>,
}
