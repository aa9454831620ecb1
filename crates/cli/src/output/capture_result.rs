//! The progress and the result of a capture, for people and as JSON.

use crate::input::program::Program;
use crate::input::state::add_end;
use crate::output::is_stdout;
use crate::text::format::{bytes, counted, duration, events, grouped, one_line, were};
use crate::text::losses::{
    NEVER_OPENED, TABLE_LOSSES, report_payload_losses, report_problem, report_table_losses, sum,
};
use crate::text::paint::{DIM, WARNING};
use eventring::reader::GapCause;
use eventring_capture::{CaptureProgress, CaptureSummary, EndReason};
use serde_json::json;
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

/// Returns the JSON object about a capture. `missing` holds the names of rings that were never made.
pub(crate) fn object(summary: &CaptureSummary, missing: &[PathBuf]) -> serde_json::Value {
    let by_cause = |by: &dyn Fn(GapCause) -> u64| -> serde_json::Map<String, serde_json::Value> {
        let losses = GapCause::OF_RINGS.into_iter().filter(|cause| cause.is_loss());
        losses.map(|cause| (cause.name().to_owned(), json!(by(cause)))).collect()
    };
    let rings: Vec<serde_json::Value> = summary
        .rings
        .iter()
        .zip(&summary.first_seqnos)
        .zip(&summary.stats.rings)
        .map(|((name, first_seqno), ring)| {
            let mut object = json!({
                "name": name, "first_seqno": first_seqno, "events": ring.events, "removed": ring.removed, "lost": ring.lost(), "last_seqno": ring.last_seqno,
                "unread": ring.unread, "expired_payloads": ring.expired_payloads,
                "malformed_payloads": ring.malformed_payloads, "omitted_payloads": ring.omitted_payloads, "was_live": ring.was_live,
                "lost_by_cause": by_cause(&|cause| ring.missing_by(cause)), "given_up": ring.given_up(),
                "filtered": ring.filtered(),
                "table_losses": table_losses(ring.table_losses), "died": ring.end.map(|end| end.has_died),
            });
            add_end(&mut object, ring.end);
            object
        })
        .collect();
    let names = |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>();
    json!({
        "files": names(&summary.files), "reason": reason(summary.reason),
        "elapsed_ns": summary.elapsed.as_nanos() as u64, "events": summary.stats.events(),
        "removed": summary.stats.removed(), "removed_files": summary.removed_files, "lost": summary.stats.lost(),
        "overwritten_before": summary.stats.missing_by(GapCause::OverwrittenBefore),
        "lost_by_cause": by_cause(&|cause| summary.stats.missing_by(cause)), "given_up": summary.stats.given_up(),
        "filtered": summary.stats.filtered(), "hurried_events": summary.lower_level_events, "bytes": summary.bytes,
        "rings": rings, "missing": names(missing), "died": has_died(summary), "problems": summary.problems,
    })
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

fn table_losses(losses: [u64; 4]) -> serde_json::Value {
    let named = TABLE_LOSSES.iter().zip(losses).map(|((name, _), count)| ((*name).to_owned(), json!(count)));
    serde_json::Value::Object(named.collect())
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
    let to = one_line(&to);
    let mut program = program;
    let writers_ended = writers_ended(summary, program.as_deref_mut());
    anstream::eprintln!(
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
        anstream::eprintln!("{DIM}{} more {} in {in_files} that {are} removed{DIM:#}", events(removed), were(removed));
    }
    if summary.lower_level_events > 0 {
        anstream::eprintln!(
            "{DIM}{} {} compressed less than --compression says, to be copied before being overwritten{DIM:#}",
            events(summary.lower_level_events),
            were(summary.lower_level_events)
        );
    }
    let left_out = sum(&summary.stats, |ring| ring.unread);
    if summary.reason == EndReason::Size && left_out > 0 {
        let were = were(left_out);
        anstream::eprintln!(
            "{WARNING}{} more {were} in the rings and did not fit the size{WARNING:#}",
            events(left_out)
        );
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
            anstream::eprintln!("{style}{} {verb} {what}{style:#}", events(count));
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
