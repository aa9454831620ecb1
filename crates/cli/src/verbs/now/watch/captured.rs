//! Showing the events of a capture, or of rings without a writer.

use super::rings::Rings;
use super::start::StartOption;
use super::summary::WatchSummary;
use super::{Args, WatchOutput, follow};
use crate::exit::Exit;
use crate::input::saved;
use crate::interrupt::Interrupt;
use crate::text::perf::is_description;
use crate::text::silence::Silence;
use eventring::reader::Reader;
use eventring_capture::{EventSelection, Selection};
use std::path::PathBuf;
use std::time::Instant;

/// Returns true if a selection from these rings needs more than each event, and all that it needs has been recorded: no
/// program writes the rings any more. Such rings are read like a file, so that a span is tested with all that is known
/// of it.
pub(super) fn has_all_of(args: &Args, rings: &[PathBuf]) -> bool {
    let events = EventSelection { types: Vec::new(), ..args.select.events().selection() };
    let is_from_time = args.from.as_ref().is_some_and(|from| from.in_rings().is_err());
    let is_part = !events.is_all() || is_from_time || args.window.used_of_captures().is_some();
    let is_from_oldest = args.from.as_ref().is_none_or(|from| from.in_capture().is_ok());
    let is_of_file = is_part && is_from_oldest && args.last.is_none() && !args.reopen && args.expect.is_empty();
    let is_over = |ring: &PathBuf| {
        let opened = Reader::options().header_only().open(ring);
        opened.is_ok_and(|ring| !ring.state().may_be_written())
    };
    is_of_file && rings.iter().all(is_over)
}

/// Shows the events of captures, or of rings without a writer.
pub(super) fn run(args: &Args, names: &[PathBuf], interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let of_rings = [(args.last.is_some(), "--last"), (args.reopen, "--reopen"), (!args.expect.is_empty(), "--expect")];
    if let Some((_, option)) = of_rings.into_iter().find(|(is_used, _)| *is_used) {
        let message = format!("{option} has a meaning for rings only, and a capture is named; leave it out");
        return Exit::Usage.fail(message);
    }
    let mut saved = saved::open(names, false)?;
    let from = args.from.as_ref().map(StartOption::in_capture).transpose()?.flatten();
    let events = args.select.events();
    let chosen = args.window.selection(from, events.selection(), &saved.capture, args.utc);
    let selects = EventSelection { types: Vec::new(), ..events.selection() } != EventSelection::default();
    saved.select(names, &chosen, &events, args.strict)?;
    let mut rings = Rings::of_capture(&saved.capture);
    if !saved::has_capture(names) {
        rings.label_as(names);
    }
    let mut selection =
        args.select.on(&rings).map_err(|error| saved.or_hidden(names, &chosen, args.strict, error.into()))?;
    let mut part = args.limit.part(0);
    let mut printer = args.printer(&rings, &mut part)?;
    let mut summary = WatchSummary::new(Instant::now(), false);
    let mut output = WatchOutput {
        selection: &mut selection,
        // A watch of rings shows none either if events are selected by what they are about.
        is_hidden: if selects { is_description } else { args.hidden() },
        printer: printer.as_mut(),
        summary: &mut summary,
    };
    follow(&mut rings, &mut output, args.count(), interrupt, &mut Silence::new(true))?;
    printer.flush(&rings)?;
    drop(printer);
    summary.untested(rings.untested());
    args.end(part, summary.is_complete())?;
    let is_whole = !summary.is_complete() && rings.problems().is_empty() && saved.capture.problems().is_empty();
    // In a part of the rings, or of the time, only what is read is known.
    if let Some(end) = saved.capture.end().filter(|_| is_whole && chosen.rings_and_window() == Selection::new()) {
        summary.selected_of(end.stats.events());
    }
    if !args.quiet {
        summary.print(&rings);
        selection.report_unknown_blocks();
    }
    let problems: Vec<String> = saved.capture.problems().iter().chain(rings.problems()).cloned().collect();
    Ok(saved.report(names, &problems, &[]).or_if(args.strict && summary.lost() > 0, Exit::Lost))
}
