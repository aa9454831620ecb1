//! The losses that could hide a hit, and the events that were left out or removed on purpose.

use crate::text::format::{TimeFormat, events};
use eventring_capture::{CaptureFile, CaptureStats, RingLoss, RingStats};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The losses of all files, and what they leave out on purpose.
#[derive(Default)]
pub(super) struct Gaps {
    gaps: Vec<Gap>,
    /// For each rotated capture, by its name without a number, what was in files that it has removed.
    removed: BTreeMap<PathBuf, Gap>,
}

/// Losses of a ring with one cause, between two times.
#[derive(Serialize, JsonSchema)]
pub(super) struct Gap {
    file: String,
    /// The name of the ring; null for the missing end of a file, for a whole file, and for removed files.
    ring: Option<String>,
    /// A cause of a loss; or `payload`, `truncated`, `removed`, `unreadable`.
    cause: &'static str,
    /// Null if nobody has counted.
    #[serde(rename = "events")]
    count: Option<u64>,
    /// Null: from the beginning.
    #[serde(rename = "from_ns")]
    from_nanos: Option<u64>,
    /// Null: to the end.
    #[serde(rename = "to_ns")]
    to_nanos: Option<u64>,
}

impl Gaps {
    /// Adds the losses of a file. Those of a ring that touch each other become one.
    pub(super) fn add(&mut self, file: &str, capture: &CaptureFile, mut losses: Vec<RingLoss>) {
        losses.sort_unstable_by_key(|loss| (loss.ring, loss.cause, loss.from_nanos));
        let mut joined: Vec<RingLoss> = Vec::new();
        for loss in losses {
            match joined.last_mut() {
                Some(last)
                    if (last.ring, last.cause) == (loss.ring, loss.cause) && loss.from_nanos <= last.to_nanos =>
                {
                    last.count = last.count.saturating_add(loss.count);
                    last.to_nanos = last.to_nanos.max(loss.to_nanos);
                }
                _ => joined.push(loss),
            }
        }
        self.gaps.extend(joined.into_iter().map(|loss| Gap {
            file: file.to_owned(),
            ring: capture.rings().get(loss.ring as usize).map(|ring| ring.name.clone()),
            cause: loss.cause,
            count: Some(loss.count),
            from_nanos: from(loss.from_nanos),
            to_nanos: to(loss.to_nanos),
        }));
        if capture.is_truncated() {
            let from_nanos = capture.last_nanos().and_then(from);
            let (file, cause) = (file.to_owned(), "truncated");
            self.gaps.push(Gap { file, ring: None, cause, count: None, from_nanos, to_nanos: None });
        }
    }

    /// Adds what a file lacks on purpose: what its filter left out, and what was in removed files before it. That may
    /// have been at any time of the file, or before it; only what may lie in the window counts.
    pub(super) fn add_left_out(&mut self, file: &Path, capture: &CaptureFile, (begin, end): (u64, u64)) {
        let name = file.display().to_string();
        let (begun, stats) = (capture.started_epoch_nanos(), capture.end().map(|end| &end.stats));
        let from_nanos = if capture.part() > 1 { begun } else { 0 };
        let to_nanos = capture.end().map_or(u64::MAX, |end| end.ended_epoch_nanos);
        for (index, ring) in capture.rings().iter().enumerate().filter(|_| from_nanos <= end && begin <= to_nanos) {
            let count = stats.and_then(|stats| stats.rings.get(index)).map(RingStats::filtered);
            if count.is_some_and(|count| count > 0) || count.is_none() && !ring.filter.is_empty() {
                let (file, ring, cause) = (name.clone(), Some(ring.name.clone()), "filtered");
                let (from_nanos, to_nanos) = (from(from_nanos), to(to_nanos));
                self.gaps.push(Gap { file, ring, cause, count, from_nanos, to_nanos });
            }
        }
        if capture.part() > 0 {
            // The first file shows when the removed ones had ended, and the last one knows of most of them.
            let (cause, to_nanos) = ("removed", to(begun));
            let first = Gap { file: name, ring: None, cause, count: None, from_nanos: None, to_nanos };
            let gap = self.removed.entry(file.with_extension("").with_extension("")).or_insert(first);
            if gap.to_nanos.is_none_or(|to_nanos| begin <= to_nanos) {
                gap.count = gap.count.max(stats.map(CaptureStats::removed));
            }
        }
    }

    /// Ends the list. What no file knows of was not removed.
    pub(super) fn finish(&mut self) {
        let removed = std::mem::take(&mut self.removed).into_values();
        self.gaps.extend(removed.filter(|gap| gap.count > Some(0)));
    }

    /// Adds a file that could not be read.
    pub(super) fn add_unreadable(&mut self, file: &str) {
        let (file, cause) = (file.to_owned(), "unreadable");
        self.gaps.push(Gap { file, ring: None, cause, count: None, from_nanos: None, to_nanos: None });
    }

    pub(super) fn all(&self) -> &[Gap] {
        &self.gaps
    }

    /// Returns a line for each gap.
    pub(super) fn in_words(&self, clock: &TimeFormat) -> Vec<String> {
        let time =
            |nanos: Option<u64>, unknown: &str| nanos.map_or_else(|| unknown.to_owned(), |nanos| clock.time(nanos));
        let line = |gap: &Gap| {
            let what = match (gap.count, gap.cause) {
                (None, "unreadable") => "all events".to_owned(),
                (None, "filtered") => "what its filter left out".to_owned(),
                (None, _) => "what follows its end".to_owned(),
                (Some(count), "removed") => format!("{} of files before it", events(count)),
                (Some(count), "payload") => format!("the payloads of {}", events(count)),
                (Some(count), _) => events(count),
            };
            let ring = gap.ring.as_ref().map_or_else(String::new, |ring| format!(" of {ring}"));
            let (from, to) = (time(gap.from_nanos, "the beginning"), time(gap.to_nanos, "the end"));
            let cause = gap.cause.replace('_', " ");
            format!("{}: {what}{ring} ({cause}), from {from} to {to}", gap.file)
        };
        self.gaps.iter().map(line).collect()
    }
}

/// Returns a time from which on something was lost; `None` for the beginning.
fn from(nanos: u64) -> Option<u64> {
    Some(nanos).filter(|nanos| *nanos > 0)
}

/// Returns a time until which something was lost; `None` for the end.
fn to(nanos: u64) -> Option<u64> {
    Some(nanos).filter(|nanos| *nanos < u64::MAX)
}
