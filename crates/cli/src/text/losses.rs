//! Problems and losses of rings and captures, as all verbs report them.

use crate::text::format::{counted, events, grouped, were};
use crate::text::paint::{DIM, ERROR, WARNING};
use crate::text::table::shortened_name;
use eventring::reader::GapCause;
use eventring_capture::{CaptureFile, CaptureStats, RingStats};
use eventring_export::{ExportSummary, Summary};
use std::path::Path;

/// The events that a capture does not have.
#[derive(Clone, Copy, Default)]
pub(crate) struct MissingEvents {
    /// Those that were lost since it began.
    pub(crate) lost: u64,
    /// Those that had been overwritten before: the past, of which nobody expects more than the rings hold.
    pub(crate) overwritten_before: u64,
    /// Those that it has, without their payload.
    pub(crate) payloads: u64,
}

impl MissingEvents {
    pub(crate) fn of_capture(stats: &CaptureStats) -> Self {
        let (lost, payloads) = (stats.lost_since(), stats.lost_payloads());
        Self { lost, overwritten_before: stats.missing_by(GapCause::OverwrittenBefore), payloads }
    }

    /// Returns true if it is a loss to `--strict`.
    pub(crate) fn is_loss(self) -> bool {
        self.lost.saturating_add(self.payloads) > 0
    }

    /// Says what is missing, with the text `more` behind it. Returns `None` if no event is missing.
    pub(crate) fn in_words(self, more: &str) -> Option<String> {
        let Self { lost, overwritten_before: before, .. } = self;
        let before_in_words =
            |and: &str| format!("{}{and} had been overwritten before the capture began", grouped(before));
        let were_lost = || counted(lost, "event was lost", "events were lost");
        match (lost, before) {
            (0, 0) => None,
            (0, _) => Some(format!("{DIM}no event was lost, {}{more}{DIM:#}", before_in_words(""))),
            (_, 0) => Some(format!("{WARNING}{}{more}{WARNING:#}", were_lost())),
            _ => Some(format!("{WARNING}{}, {}{more}{WARNING:#}", were_lost(), before_in_words(" more"))),
        }
    }

    /// Warns on stderr that the numbers of a capture are too small. What was overwritten before is no reason to warn.
    pub(crate) fn warn_of_numbers(self, capture: &Path) {
        let (more, warning) = match self.lost {
            0 => ("", String::new()),
            _ => (", so the numbers are too small", format!("{WARNING}warning:{WARNING:#} ")),
        };
        if let Some(words) = self.in_words(more) {
            say!("{warning}{}: {words}", capture.display());
        }
    }
}

impl From<&ExportSummary> for MissingEvents {
    fn from(counts: &ExportSummary) -> Self {
        let (lost, payloads) = (counts.lost_since(), counts.lost_payloads());
        Self { lost, overwritten_before: counts.overwritten_before, payloads }
    }
}

impl From<&Summary> for MissingEvents {
    fn from(summary: &Summary) -> Self {
        let (lost, payloads) = (summary.lost_since(), summary.lost_payloads);
        Self { lost, overwritten_before: summary.overwritten_before, payloads }
    }
}

/// Prints a problem on stderr: as an error if it decides the exit code, and otherwise as a warning.
pub(crate) fn report_problem(is_error: bool, problem: &str) {
    say!("{}", problem_line(is_error, problem));
}

/// Returns the line that [`report_problem`] prints.
pub(crate) fn problem_line(is_error: bool, problem: &str) -> String {
    let (style, kind) = if is_error { (ERROR, "error:") } else { (WARNING, "warning:") };
    format!("{style}{kind}{style:#} {}", crate::text::secrets::without_secrets(problem))
}

/// Prints on stderr how many events of each ring have no payload, because it was overwritten, is damaged or was too
/// large.
pub(crate) fn report_payload_losses<'n>(rings: impl Iterator<Item = (&'n str, [u64; 3])> + Clone) {
    for (kind, (one, many, what)) in [
        ("event has lost its", "events have lost their", "which was overwritten before it could be copied"),
        ("event names a", "events name a", "which the ring cannot have and which is left out"),
        ("event has a", "events have a", "which is too large (more than 64 MiB, or half of a batch) and left out"),
    ]
    .into_iter()
    .enumerate()
    {
        let counts = rings.clone().map(|(name, counts)| (name, counts[kind])).filter(|(_, count)| *count > 0);
        let by_ring: Vec<String> =
            counts.clone().map(|(name, count)| format!("{} in {name}", grouped(count))).collect();
        let remedy = [": larger rings hold more", ": the ring is damaged", ""][kind];
        if !by_ring.is_empty() {
            let count = counted(counts.map(|(_, count)| count).fold(0, u64::saturating_add), one, many);
            say!("{WARNING}{count} payload, {what} ({}){remedy}{WARNING:#}", by_ring.join(", "));
        }
    }
}

/// Prints on stderr the losses of the perf recorders: the numbers of call sites, threads, shards and spans for which
/// there was no room.
pub(crate) fn report_table_losses(stats: &CaptureStats) {
    for (kind, what) in TABLE_LOSSES.iter().enumerate() {
        let count = sum(stats, |ring| ring.table_losses[kind]);
        if count > 0 {
            let [one, many] = what;
            say!("{WARNING}{}{WARNING:#}", counted(count, one, many));
        }
    }
}

/// Says on stderr how many events were in files that a rotated capture has removed.
pub(crate) fn report_removed(count: u64) {
    if count > 0 {
        say!("{DIM}{}{DIM:#}", removed_in_words(count));
    }
}

/// Returns the words for events of files that a rotated capture has removed.
pub(crate) fn removed_in_words(count: u64) -> String {
    format!("{} more {} captured in files that were removed", events(count), were(count))
}

/// Says on stderr that a capture holds a part of what was recorded, because a filter has left out the rest.
pub(crate) fn report_filter(name: &Path, capture: &CaptureFile) {
    let filters: Vec<&str> = capture.filters().into_iter().collect();
    let left_out = match capture.end().map(|end| end.stats.filtered()) {
        // The filter has kept everything, or there is none.
        Some(0) => return,
        Some(count) => format!("{} {} left out", events(count), were(count)),
        None if filters.is_empty() => return,
        None => "nobody has counted what was left out".to_owned(),
    };
    let by = if filters.is_empty() { String::new() } else { format!(" ({})", shortened_name(&filters.join("; "))) };
    say!("{DIM}{}: the capture was filtered{by}: {left_out}{DIM:#}", name.display());
}

/// Prints on stderr how many of the lost events were in rings that are not there.
pub(crate) fn report_never_opened(stats: &CaptureStats) {
    let count = stats.missing_by(GapCause::NeverOpened);
    if count > 0 {
        say!("{WARNING}{} {} {NEVER_OPENED}{WARNING:#}", events(count), were(count));
    }
}

/// The words for events of shards that were not there when the capture looked for them.
pub(crate) const NEVER_OPENED: &str = "in shards that could not be opened";

/// The losses that perf recorders count in their tables: in words.
pub(crate) const TABLE_LOSSES: [[&str; 2]; 4] = [
    [
        "call site found no room in the table: if its events are overwritten, it has a number and no name",
        "call sites found no room in the table: if their events are overwritten, they have a number and no name",
    ],
    [
        "thread found no room in the table: if its events are overwritten, it has a number and no name",
        "threads found no room in the table: if their events are overwritten, they have a number and no name",
    ],
    ["shard could not be made: threads shared the others", "shards could not be made: threads shared the others"],
    ["span was not recorded because too many were open", "spans were not recorded because too many were open"],
];

/// Sums a count over all rings.
pub(crate) fn sum(stats: &CaptureStats, count: impl Fn(&RingStats) -> u64) -> u64 {
    stats.rings.iter().map(count).fold(0, u64::saturating_add)
}
