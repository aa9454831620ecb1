//! Showing the events of a capture.

use super::rings::Rings;
use super::start::StartOption;
use super::summary::{self, WatchSummary};
use super::{Args, WatchOutput};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupt;
use crate::saved;
use eventring::reader::Gap;
use eventring_capture::CapturedContent;
use std::time::Instant;

/// Shows the events of captures.
pub(super) fn run(args: &Args, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let of_rings = [(args.last.is_some(), "--last"), (args.reopen, "--reopen"), (!args.expect.is_empty(), "--expect")];
    if let Some((_, option)) = of_rings.into_iter().find(|(is_used, _)| *is_used) {
        let message = format!("{option} has a meaning for rings only, and a capture is named; leave it out");
        return Err(Failure::new(Exit::Usage, message).into());
    }
    let mut saved = saved::open(&args.names, false)?;
    let from = args.from.as_ref().map(StartOption::in_capture).transpose()?.flatten();
    let spans: Vec<String> = args.select.span_name().into_iter().cloned().collect();
    let part = args.selection.selection(from, &spans, &saved.capture, args.utc);
    saved.select(&args.names, &part)?;
    let rings = Rings::of_capture(&saved.capture);
    let mut selection = args.select.on(&rings)?;
    let mut printer = args.printer(&rings);
    let mut summary = WatchSummary::new(Instant::now(), false);
    let mut output = WatchOutput {
        selection: &mut selection,
        hides_descriptions: args.hides_descriptions(),
        printer: printer.as_mut(),
        summary: &mut summary,
    };
    let mut events = saved.capture.events();
    loop {
        if args.count.is_some_and(|count| output.summary.shown() >= count) {
            output.summary.complete("as many as asked for");
            break;
        }
        if interrupt.came() {
            output.summary.complete(summary::STOPPED);
            break;
        }
        let Some(record) = events.next() else { break };
        let ring = rings.get(record.ring as usize);
        match record.content {
            CapturedContent::Gap { first_seqno, count, cause } => {
                output.gap(ring, Gap { first_seqno, count, cause })?
            }
            CapturedContent::Event { descriptor, payload } => {
                if output.selection.accepts(ring, &descriptor, || payload.as_read()) {
                    output.event(ring, &descriptor, payload.as_read())?;
                } else {
                    output.summary.not_selected();
                }
            }
        }
    }
    printer.flush(&rings)?;
    if !args.quiet {
        summary.print(&rings);
    }
    let problems: Vec<String> = saved.capture.problems().iter().chain(events.problems()).cloned().collect();
    match saved.report(&args.names, &problems, &[]) {
        Exit::Done if args.strict && summary.lost() > 0 => Ok(Exit::Lost),
        exit => Ok(exit),
    }
}
