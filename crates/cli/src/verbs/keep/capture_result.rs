//! The progress and the result of a capture, for people and as JSON.

use crate::input::programs::program::Program;
use crate::input::ring::state::EndTimes;
use crate::output::is_stdout;
use crate::text::format::{bytes, counted, duration, events, grouped, were};
use crate::text::losses::{NEVER_OPENED, report_payload_losses, report_problem, report_table_losses, sum};
use crate::text::paint::{DIM, WARNING};
use eventring::reader::GapCause;
use eventring_capture::{CaptureProgress, CaptureSummary, EndReason, RingStats};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// Why a capture has ended with its program.
pub(crate) const PROGRAM_ENDED: &str = "the program has ended";

/// Says that a signal has ended the program.
pub(crate) fn killed(signal: i32) -> String {
    format!("the program was killed by signal {signal}")
}

/// Why a capture has ended that was to last for a time.
pub(crate) const TIME_OVER: &str = "the time was over";

pub(crate) fn progress_line(progress: &CaptureProgress) -> String {
    let lost = progress.lost.saturating_sub(progress.overwritten_before);
    let lost = if lost > 0 { format!(", {} lost", grouped(lost)) } else { String::new() };
    format!(
        "{}  {} from {}{lost}, {} written; Ctrl-C ends it",
        duration(progress.elapsed),
        events(progress.events),
        rings(progress.rings),
        bytes(progress.bytes)
    )
}

fn rings(count: usize) -> String {
    counted(count as u64, "ring", "rings")
}

/// Returns the reason for the end of a capture as JSON names it.
pub(crate) fn reason(reason: EndReason) -> &'static str {
    match reason {
        EndReason::WritersEnded => "writers_ended",
        EndReason::Duration => "duration",
        EndReason::Size => "size",
        EndReason::Interrupted => "interrupted",
        EndReason::Truncated => "truncated",
        EndReason::Unreadable => "unreadable",
        _ => "other",
    }
}

/// What JSON says of a capture.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Captured<'a> {
    files: Vec<Cow<'a, str>>,
    /// `writers_ended`, `now`, `duration`, `size`, `interrupted`, `truncated`, `unreadable`, `other`.
    pub(crate) reason: &'static str,
    elapsed_ns: u64,
    events: u64,
    /// Events in files that were removed.
    removed: u64,
    removed_files: u32,
    lost: u64,
    overwritten_before: u64,
    lost_by_cause: LostByCause,
    #[serde(rename = "given_up")]
    skipped: u64,
    /// What a filter or sample left out.
    filtered: u64,
    /// Events that were compressed less, because the capture fell behind.
    hurried_events: u64,
    bytes: u64,
    rings: Vec<CapturedRing<'a>>,
    /// Rings that were never made.
    missing: Vec<Cow<'a, str>>,
    /// True if a program has not closed its rings.
    died: bool,
    pub(crate) problems: Vec<Cow<'a, str>>,
}

/// Each seqno is counted once: `events`, `removed`, `lost`, `given_up` and `filtered` are together those from
/// `first_seqno` to `last_seqno`.
#[derive(Serialize, JsonSchema)]
struct CapturedRing<'a> {
    name: &'a str,
    first_seqno: u64,
    events: u64,
    removed: u64,
    lost: u64,
    last_seqno: u64,
    unread: u64,
    expired_payloads: u64,
    malformed_payloads: u64,
    /// Payloads that are larger than 64 MiB.
    omitted_payloads: u64,
    was_live: bool,
    lost_by_cause: LostByCause,
    #[serde(rename = "given_up")]
    skipped: u64,
    filtered: u64,
    table_losses: TableLosses,
    died: Option<bool>,
    #[serde(flatten)]
    end: EndTimes,
}

#[derive(Serialize, JsonSchema)]
struct LostByCause {
    overwritten_before: u64,
    overwritten: u64,
    never_committed: u64,
    never_opened: u64,
}

impl LostByCause {
    fn new(by: impl Fn(GapCause) -> u64) -> Self {
        Self {
            overwritten_before: by(GapCause::OverwrittenBefore),
            overwritten: by(GapCause::Overwritten),
            never_committed: by(GapCause::NeverCommitted),
            never_opened: by(GapCause::NeverOpened),
        }
    }
}

/// Entries that had no room in the tables of a ring.
#[derive(Serialize, JsonSchema)]
struct TableLosses {
    call_sites: u64,
    threads: u64,
    shards: u64,
    spans: u64,
}

impl<'a> Captured<'a> {
    /// Returns the document about a capture. `missing` holds the names of rings that were never made.
    pub(crate) fn new(summary: &'a CaptureSummary, missing: &'a [PathBuf]) -> Self {
        let stats = &summary.stats;
        let rings = summary.rings.iter().zip(&summary.first_seqnos).zip(&stats.rings);
        Self {
            files: summary.files.iter().map(|path| path.to_string_lossy()).collect(),
            reason: reason(summary.reason),
            elapsed_ns: summary.elapsed.as_nanos() as u64,
            events: stats.events(),
            removed: stats.removed(),
            removed_files: summary.removed_files,
            lost: stats.lost(),
            overwritten_before: stats.missing_by(GapCause::OverwrittenBefore),
            lost_by_cause: LostByCause::new(|cause| stats.missing_by(cause)),
            skipped: stats.skipped(),
            filtered: stats.filtered(),
            hurried_events: summary.lower_level_events,
            bytes: summary.bytes,
            rings: rings.map(|((name, first), ring)| CapturedRing::new(name, *first, ring)).collect(),
            missing: missing.iter().map(|path| path.to_string_lossy()).collect(),
            died: has_died(summary),
            problems: summary.problems.iter().map(Cow::from).collect(),
        }
    }
}

impl<'a> CapturedRing<'a> {
    fn new(name: &'a str, first_seqno: u64, ring: &RingStats) -> Self {
        let [call_sites, threads, shards, spans] = ring.table_losses;
        Self {
            name,
            first_seqno,
            events: ring.events,
            removed: ring.removed,
            lost: ring.lost(),
            last_seqno: ring.last_seqno,
            unread: ring.unread,
            expired_payloads: ring.expired_payloads,
            malformed_payloads: ring.malformed_payloads,
            omitted_payloads: ring.omitted_payloads,
            was_live: ring.was_live,
            lost_by_cause: LostByCause::new(|cause| ring.missing_by(cause)),
            skipped: ring.skipped(),
            filtered: ring.filtered(),
            table_losses: TableLosses { call_sites, threads, shards, spans },
            died: ring.end.map(|end| end.has_died),
            end: ring.end.into(),
        }
    }
}

/// Returns true if a program died: it has not closed its rings.
fn has_died(summary: &CaptureSummary) -> bool {
    summary.stats.rings.iter().any(|ring| ring.end.is_some_and(|end| end.has_died))
}

/// Says how the writers of all rings have ended.
fn writers_ended(summary: &CaptureSummary, program: Option<&mut Program>) -> String {
    let died = "died: it was killed, or it ended without closing its rings";
    match (program.map(Program::signal), has_died(summary)) {
        (Some(Some(signal)), _) => killed(signal),
        (Some(None), true) => format!("the program has ended; a process of it {died}"),
        (Some(None), false) => PROGRAM_ENDED.to_owned(),
        (None, true) if summary.rings.len() == 1 => format!("the program {died}"),
        (None, true) => format!("the rings have ended; a program {died}"),
        (None, false) if summary.rings.len() == 1 => "the ring has ended".to_owned(),
        (None, false) => "the rings have ended".to_owned(),
    }
}

/// Prints the result for people, on stderr. `instead` says why the capture has ended, if its caller knows better.
pub(crate) fn print(summary: &CaptureSummary, instead: Option<&str>, program: Option<&mut Program>, output: &Path) {
    let to = match summary.files.as_slice() {
        [] if is_stdout(output) => "stdout".into(),
        // A capture into a pipe or a device has no files in its summary, so the name of the output is shown.
        [] => output.to_string_lossy().into_owned(),
        [file] => file.to_string_lossy().into_owned(),
        [first, .., last] => format!("{} files, {} to {}", summary.files.len(), first.display(), last.display()),
    };

    let mut program = program;
    let writers_ended = writers_ended(summary, program.as_deref_mut());
    say!(
        "{} from {} in {} written to {to}{DIM} ({}){DIM:#}",
        events(summary.stats.events()),
        rings(summary.rings.len()),
        bytes(summary.bytes),
        instead.unwrap_or(match summary.reason {
            EndReason::WritersEnded => &writers_ended,
            EndReason::Interrupted if program.is_some_and(Program::is_long_gone) =>
                "the program has ended; another process still writes its rings",
            EndReason::Duration => TIME_OVER,
            EndReason::Size => "the size was reached",
            EndReason::Truncated => "the file of a ring was truncated",
            EndReason::Unreadable => "the file of a ring could not be read",
            _ => "interrupted",
        })
    );
    if summary.removed_files > 0 {
        let removed = summary.stats.removed();
        let files = u64::from(summary.removed_files);
        let (in_files, are) = (counted(files, "file", "files"), were(files));
        say!("{DIM}{} more {} in {in_files} that {are} removed{DIM:#}", events(removed), were(removed));
    }
    if summary.lower_level_events > 0 {
        say!(
            "{DIM}{} {} compressed less than --compression says, to be copied before being overwritten{DIM:#}",
            events(summary.lower_level_events),
            were(summary.lower_level_events)
        );
    }
    let left_out = sum(&summary.stats, |ring| ring.unread);
    if summary.reason == EndReason::Size && left_out > 0 {
        let were = were(left_out);
        say!("{WARNING}{} more {were} in the rings and did not fit the size{WARNING:#}", events(left_out));
    }
    for (cause, what) in [
        (GapCause::OverwrittenBefore, "overwritten before the capture began: larger rings hold more"),
        (GapCause::Overwritten, "overwritten before being copied: larger rings, or a lower --compression, lose less"),
        (GapCause::NeverCommitted, "never committed by the program"),
        (GapCause::NeverOpened, NEVER_OPENED),
    ] {
        let count = summary.stats.missing_by(cause);
        // The past is no loss of this capture.
        let (style, verb) =
            if cause == GapCause::OverwrittenBefore { (DIM, "had been") } else { (WARNING, were(count)) };
        if count > 0 {
            say!("{style}{} {verb} {what}{style:#}", events(count));
        }
    }
    let rings = summary.rings.iter().zip(&summary.stats.rings);
    report_payload_losses(
        rings.map(|(name, ring)| {
            (name.as_str(), [ring.expired_payloads, ring.malformed_payloads, ring.omitted_payloads])
        }),
    );
    report_table_losses(&summary.stats);
    let lost_pages: Vec<String> = lost_pages(summary).collect();
    for problem in summary.problems.iter().filter(|problem| !lost_pages.contains(problem)) {
        report_problem(false, problem);
    }
}

pub(crate) fn lost_pages(summary: &CaptureSummary) -> impl Iterator<Item = String> {
    summary.lost_pages.iter().map(|(name, lost)| format!("{name}: {}", lost.advice()))
}
