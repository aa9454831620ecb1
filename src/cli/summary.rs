//! `eventring summary`.

use super::exit::Exit;
use super::format::{events, grouped, one_line};
use super::paint::{BOLD, DIM, WARNING};
use super::saved::{Saved, SavedArgs};
pub(super) use eventring::__internals::numbers::time;
use eventring::capture::EndReason;
use eventring::export::{SpanSummary, Summary, summarize};
use std::io::{self, Write};

/// Count the spans of a capture, or those that a ring holds now: their number and their durations
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    saved: SavedArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost, or their payloads
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let saved = args.saved.open(true, args.json)?;
    let summary = summarize(&saved.capture);
    saved.reading.end();
    let summary = summary?;
    let mut out = anstream::stdout();
    if args.json {
        writeln!(out, "{}", summary.to_json())?;
    } else {
        table(&mut out, &summary, &saved)?;
    }
    out.flush()?;
    match saved.report(&args.saved.names, &summary.problems, &summary.payload_losses) {
        Exit::Done if args.strict && summary.lost.saturating_add(summary.lost_payloads()) > 0 => Ok(Exit::Lost),
        exit => Ok(exit),
    }
}

const HEADS: [&str; 11] = ["span", "count", "total", "self", "busy", "idle", "p50", "p90", "p99", "max", ""];

fn table(out: &mut impl Write, summary: &Summary, saved: &Saved) -> io::Result<()> {
    // `part` is the number that the first opened file has in its rotated capture, counted from 1. It is 0 if the
    // capture is not rotated.
    let part = saved.capture.part();
    let beginning = match (saved.is_part, part > 1, summary.lost > 0) {
        (true, ..) => "is not selected",
        (false, false, _) => "was lost",
        (false, true, false) => "is in an earlier file",
        (false, true, true) => "was lost or is in an earlier file",
    };
    let end_reason = saved.capture.end().map(|end| end.reason);
    let open = match (saved.is_part, end_reason) {
        (true, _) => "open, or their end is not selected",
        // The rings have no common end in this file.
        (false, Some(EndReason::Rotated | EndReason::Size) | None) => "open, or closed after the end of this file",
        (false, Some(_)) => "open",
    };
    let rows: Vec<[String; 11]> = summary.spans.iter().map(|span| row(span, beginning, open)).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEADS[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    write!(out, "{BOLD}{:<1$}{BOLD:#}", HEADS[0], widths[0])?;
    for (head, width) in HEADS.iter().zip(&widths).skip(1).take(9) {
        write!(out, "  {BOLD}{head:>width$}{BOLD:#}")?;
    }
    writeln!(out)?;
    for row in &rows {
        write!(out, "{:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1).take(9) {
            write!(out, "  {cell:>width$}")?;
        }
        match row[10].as_str() {
            "" => writeln!(out)?,
            more => writeln!(out, "  {DIM}{more}{DIM:#}")?,
        }
    }
    if rows.is_empty() {
        writeln!(out, "{DIM}no spans{DIM:#}")?;
    }
    if summary.lost > 0 {
        writeln!(out, "{WARNING}{} were lost{WARNING:#}", events(summary.lost))?;
    }
    if summary.removed > 0 {
        writeln!(out, "{DIM}{} more were captured in files that --keep has removed{DIM:#}", events(summary.removed))?;
    }
    if part > 1 {
        writeln!(out, "{DIM}what is in the files before number {part} of this capture is not counted{DIM:#}")?;
    }
    Ok(())
}

/// Returns the cells of a row. `beginning` says what may have become of beginnings that were not seen, and `open` of
/// spans without a close.
fn row(span: &SpanSummary, beginning: &str, open: &str) -> [String; 11] {
    let name = match span.target.as_str() {
        "" => span.name.clone(),
        target => format!("{target}::{}", span.name),
    };
    let mut more = Vec::new();
    if span.open > 0 {
        more.push(format!("+ {} {open}", grouped(span.open)));
    }
    if span.end_lost > 0 {
        more.push(format!("+ {} whose end may be lost", grouped(span.end_lost)));
    }
    // Without a closed span, no duration is known. Then the cells of durations show `open` if there are open spans,
    // and otherwise a dash.
    let nothing = if span.open > 0 { "open" } else { "–" };
    let time = |nanos| if span.count > 0 { time(nanos) } else { nothing.to_owned() };
    if span.incomplete > 0 {
        more.push(format!("+ {} whose beginning {beginning}", grouped(span.incomplete)));
    }
    [
        one_line(&name),
        grouped(span.count),
        time(span.total_nanos),
        time(span.self_nanos),
        time(span.busy_nanos),
        time(span.idle_nanos),
        time(span.p50_nanos),
        time(span.p90_nanos),
        time(span.p99_nanos),
        time(span.max_nanos),
        more.join(", "),
    ]
}
