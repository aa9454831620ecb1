//! The progress of a capture, and its result.

use crate::format::end::EndReason;
use crate::format::stats::CaptureStats;
use eventring::reader::{LostPages, Reader};
use std::path::PathBuf;
use std::time::Duration;

/// The answer of the caller's function when [`capture_rings`](crate::capture_rings) asks it for another ring.
#[derive(Debug)]
pub enum NextRing {
    /// A ring to capture from now on.
    Ring(Reader),
    /// No ring for now, but more rings may come. Until the answer is [`Self::NoMore`], the capture goes on even if all
    /// writers have ended.
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
    /// The number of events taken, including those in files that the capture has removed.
    pub events: u64,
    /// The number of events that are missing. The events of a shard that could not be opened are added only at the end.
    pub lost: u64,
    /// The number of events among `lost` that had been overwritten before the capture began.
    pub overwritten_before: u64,
    /// Bytes written, including files that the capture has removed.
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
    /// The first seqno of each ring that the capture accounts for, in the order of `stats`. It is greater than 1 if the
    /// capture left out the events that the ring held at the start.
    pub first_seqnos: Vec<u64>,
    /// The counts of each ring's events: in the files, removed with files, or lost.
    pub stats: CaptureStats,
    /// The number of events that were compressed at a lower level than the requested one, because the capture would
    /// have lost events otherwise. Events in removed files are counted, too.
    pub lower_level_events: u64,
    /// Bytes of the files that are left.
    pub bytes: u64,
    /// The number of files that the capture has removed, see
    /// [`CaptureOptions::keep_files`](crate::CaptureOptions::keep_files).
    pub removed_files: u32,
    /// Bytes of the removed files.
    pub removed_bytes: u64,
    /// The paths of the files that the capture has written and not removed. The list is empty after
    /// [`capture_to`](crate::capture_to) and [`capture_rings_to`](crate::capture_rings_to).
    pub files: Vec<PathBuf>,
    /// The counts and the size of each of these files, if files are ever removed.
    pub(crate) of_files: Vec<(CaptureStats, u64)>,
    /// Failures that did not end the capture, for example shards that could not be opened, or rings with truncated
    /// files.
    pub problems: Vec<String>,
    /// The names of rings with pages that could not be read, each with the reason. In most cases the ring's file was
    /// truncated. The events in these pages are missing, and their number is not known.
    pub lost_pages: Vec<(String, LostPages)>,
}

impl CaptureSummary {
    /// Adds what a capture has found that was taken after this one, into the same files.
    pub(crate) fn append(&mut self, later: Self) {
        self.reason = later.reason;
        self.elapsed = self.elapsed.saturating_add(later.elapsed);
        self.rings.extend(later.rings);
        self.first_seqnos.extend(later.first_seqnos);
        self.stats.rings.extend(later.stats.rings);
        self.lower_level_events = self.lower_level_events.saturating_add(later.lower_level_events);
        self.bytes = self.bytes.saturating_add(later.bytes);
        self.removed_files = self.removed_files.saturating_add(later.removed_files);
        self.removed_bytes = self.removed_bytes.saturating_add(later.removed_bytes);
        self.files.extend(later.files);
        self.problems.extend(later.problems);
        self.lost_pages.extend(later.lost_pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::stats::RingStats;

    fn summary(reason: EndReason, numbers: &[u64]) -> CaptureSummary {
        let sum: u64 = numbers.iter().sum();
        let each = |name: &str| numbers.iter().map(|number| format!("{name} {number}")).collect::<Vec<_>>();
        CaptureSummary {
            reason,
            elapsed: Duration::from_secs(sum),
            rings: each("ring"),
            first_seqnos: numbers.to_vec(),
            stats: CaptureStats { rings: vec![RingStats::default(); numbers.len()] },
            lower_level_events: 2 * sum,
            bytes: 3 * sum,
            removed_files: 4 * sum as u32,
            removed_bytes: 5 * sum,
            files: each("file").into_iter().map(PathBuf::from).collect(),
            of_files: Vec::new(),
            problems: each("problem"),
            lost_pages: Vec::new(),
        }
    }

    #[test]
    fn what_a_later_capture_has_found_is_added() {
        let mut all = summary(EndReason::WritersEnded, &[1]);
        all.append(summary(EndReason::Interrupted, &[10]));
        assert_eq!(all, summary(EndReason::Interrupted, &[1, 10]));
    }
}
