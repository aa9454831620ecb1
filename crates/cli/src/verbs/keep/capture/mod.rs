//! `eventring capture`.

mod args;
mod begin;
pub(crate) mod filter;
mod trigger_args;
mod triggers;

pub(crate) use args::Args;
pub(crate) use triggers::Watched;

use crate::exit::{Exit, Failure};
use crate::input::awaited::AwaitedRings;
use crate::input::programs::program::Program;
use crate::input::reading::spinner;
use crate::input::saved::stdout_twice;
use crate::interrupt::Interrupt;
use crate::output;
use crate::output::json_line;
use crate::text::losses::{MissingEvents, report_problem};
use crate::verbs::keep::capture_result;
use crate::verbs::keep::capture_result::Captured;
use begin::{begin, enable};
use eventring_capture::{
    CaptureError, CaptureErrorKind, CaptureOptions, CaptureProgress, CaptureSummary, EndReason, OutputKind,
    RotatedCapture, capture_rings, capture_rings_to,
};
use filter::report_filtered;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::Path;

/// What `capture --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CaptureAnswer<'a> {
    #[serde(flatten)]
    capture: Captured<'a>,
    /// The signal that has killed the program after `--`.
    signal: Option<i32>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    if !args.triggers.conditions.is_empty() {
        if args.filter.is_any() {
            let message = "a file of --on holds all that was recorded around the event: leave the options of \
                           selection and --sample out, and select from the file with those of `export`";
            return Exit::Usage.fail(message);
        }
        return triggers::run(args);
    }
    args.filter.check()?;
    let mut options = args.options()?;
    args.process.check_directive()?;
    let (names, programs) = args.process.followed(&args.names, args.wait, args.duration)?;
    let output = args.output(if names.is_empty() { &args.names } else { &names });
    // The output is checked first, so that its errors are reported before this function waits for rings or starts a
    // program.
    let target = match output::is_stdout(&output) {
        true if args.goes_on() => {
            return Exit::Usage.fail("a capture goes on with its files, and cannot with stdout; name a file");
        }
        true => None,
        false => Some(args.target(&output)?),
    };
    if target.is_none() && args.json {
        return Err(stdout_twice().into());
    }
    if target.is_none() && io::stdout().is_terminal() {
        return Exit::Usage.fail("a capture is not for a terminal; send it into a file or a pipe");
    }
    output::try_to_write(&output, target.as_ref())?;
    let interrupt = Interrupt::listen()?;
    let (rings, is_at_once) = begin(args, &names, programs, args.json || target.is_none(), &interrupt)?;
    // If no ring existed at the first search, all rings were made later. Then all their events are new: `--only-new`
    // leaves out nothing, and what they have overwritten is lost.
    options = options.only_new(args.only_new && is_at_once).awaited(!is_at_once);
    args.filter.check_types(&rings)?;
    args.filter.check_fields(&rings, args.now)?;
    let enabled = enable(args, &rings)?;
    let rings = RefCell::new(rings);
    if target.is_none() {
        rings.borrow().read_files().check_stream(io::stdout(), "stdout")?;
    }
    let summary = copy(args, &options, &output, target, &rings, &interrupt)?;
    let mut rings = rings.into_inner();
    let is_of_now = args.now && summary.reason == EndReason::Duration;
    if args.json {
        let missing = rings.missing();
        let mut capture = Captured::new(&summary, &missing);
        if is_of_now {
            capture.reason = "now";
        }
        let signal = rings.program.as_mut().and_then(Program::signal);
        json_line(&CaptureAnswer { capture, signal })?;
    } else {
        let instead = is_of_now.then_some("what was recorded until now");
        capture_result::print(&summary, instead, rings.program.as_mut(), &output);
        report_filtered(summary.stats.events(), summary.stats.filtered());
    }
    capture_result::lost_pages(&summary).for_each(|problem| report_problem(true, &problem));
    args.filter.report_unseen(&rings);
    rings.say_late_rings();
    let code = rings.program.as_mut().and_then(Program::exit_code);
    let failure = rings.failure("the others were captured");
    if code.is_some() {
        rings.remove_what_stayed_for_us();
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    match code {
        _ if !summary.lost_pages.is_empty() => Ok(Exit::from_lost_pages(summary.lost_pages[0].1)),
        _ if args.strict && MissingEvents::of_capture(&summary.stats).is_loss() => Ok(Exit::Lost),
        // `eventring` exits with the exit code of the program that it has started, as a shell does.
        Some(code) if code != 0 => std::process::exit(code),
        _ => match enabled {
            Ok(_) => Ok(Exit::Done),
            Err(error) => Exit::from_error(&error)
                .fail(format!("{} was captured, and nothing was switched on (--enable): {error}", output.display())),
        },
    }
}

/// Captures, with a line of progress on a terminal.
fn copy(
    args: &Args,
    options: &CaptureOptions,
    output: &Path,
    target: Option<OutputKind>,
    rings: &RefCell<AwaitedRings>,
    interrupt: &Interrupt,
) -> anyhow::Result<CaptureSummary> {
    let bar = spinner();
    let is_asked_to_end = Cell::new(false);
    let writes_to_stdout = target.is_none();
    let mut progress = |progress: &CaptureProgress| {
        bar.set_message(capture_result::progress_line(progress));
        bar.tick();
        let mut rings = rings.borrow_mut();
        bar.suspend(|| {
            rings.say_what_is_awaited();
            if args.reopen {
                rings.say_what_has_failed();
            }
        });
        let is_unread = writes_to_stdout && output::check_reader().is_err();
        let has_ended = is_unread || rings.program.as_mut().is_some_and(Program::is_long_gone);
        is_asked_to_end.set(is_asked_to_end.get() || interrupt.came() || has_ended);
        if is_asked_to_end.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut next_ring = || rings.borrow_mut().next();
    let to_stream = |summary: Result<CaptureSummary, CaptureError>, place: &Path| {
        bar.finish_and_clear();
        summary.map_err(|error| match error.kind() {
            CaptureErrorKind::Ring => anyhow::Error::new(error),
            // The error does not name the output, so the message begins with the output's name.
            _ => Failure::about(place.display(), error).into(),
        })
    };
    match target {
        None => to_stream(capture_rings_to(&mut next_ring, io::stdout(), options, &mut progress), "stdout".as_ref()),
        Some(OutputKind::Stream(file)) => {
            to_stream(capture_rings_to(&mut next_ring, file, options, &mut progress), output)
        }
        Some(OutputKind::File) if args.goes_on() => {
            let row = if args.resume {
                RotatedCapture::resume(output, options)
            } else {
                Ok(RotatedCapture::new(output, options))
            };
            let captured = row.and_then(|mut row| {
                loop {
                    row.capture(&mut next_ring, &mut progress)?;
                    let mut removed = Ok(());
                    let mut meanwhile = || {
                        removed = row.remove_now_and_then();
                        removed.is_ok()
                    };
                    // The rings may have ended just when a signal came.
                    let goes_on =
                        !is_asked_to_end.get() && rings.borrow_mut().wait_for_successors(interrupt, &mut meanwhile);
                    removed?;
                    if !goes_on {
                        return Ok(row.finish().unwrap_or_else(|| unreachable!("there was a capture")));
                    }
                }
            });
            bar.finish_and_clear();
            captured.map_err(of_output)
        }
        Some(OutputKind::File) => {
            let summary = capture_rings(&mut next_ring, output, options, &mut progress);
            bar.finish_and_clear();
            summary.map_err(of_output)
        }
    }
}

fn of_output(error: CaptureError) -> anyhow::Error {
    if error.kind() == CaptureErrorKind::Exists { output::failure(error) } else { error.into() }
}
