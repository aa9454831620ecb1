//! `eventring capture`.

pub(crate) mod filter;
mod triggers;

use crate::input::awaited::AwaitedRings;

use crate::args::amounts::{parse_bytes, parse_duration};
use crate::args::rotation::RotationArgs;
use crate::exit::{Exit, Failure};
use crate::input::advice;
use crate::input::programs::filter_overrides::Enabled;
use crate::input::programs::processes::{FollowedPrograms, ProcessArgs};
use crate::input::programs::program::Program;
use crate::input::reading::spinner;
use crate::input::saved::stdout_twice;
use crate::interrupt::Interrupt;
use crate::output;
use crate::output::json_line;
use crate::text::losses::{MissingEvents, report_problem};
use crate::text::paint::WARNING;
use crate::verbs::keep::capture::filter::{FilterArgs, report_filtered};
use crate::verbs::keep::capture_result;
use crate::verbs::keep::capture_result::Captured;
use eventring::reader::{ReaderError, ReaderErrorKind};
use eventring_capture::{
    CaptureError, CaptureErrorKind, CaptureOptions, CaptureProgress, CaptureSummary, EndReason, OutputKind,
    RotatedCapture, capture_rings, capture_rings_to,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use triggers::TriggerArgs;
pub(crate) use triggers::Watched;

/// Save what rings hold and go on to record, until programs end
///
/// All shards of a perf recorder are taken. Rings of dead programs are read to their end. Ctrl-C ends a capture in good
/// order.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Names or paths of rings, or patterns such as 'shop*'; several go into one file, in the order of time
    #[arg(value_name = "RING")]
    names: Vec<PathBuf>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Where to write; `-` for stdout [default: the first ring's name and `.evc`, in the current directory]. With
    /// --on, {span} and {time} in the name stand for the span or event and the time, and an `n` in braces for a number
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace files that exist
    #[arg(short, long)]
    force: bool,
    /// Stop after this time (10s, 2m, 1h30m), counted from the first ring on; also the longest wait for the first ring
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Save what has been recorded until now, and stop
    #[arg(long, conflicts_with = "duration")]
    now: bool,
    /// Leave out what has been recorded until now; rings that are made later are taken whole
    #[arg(long, conflicts_with = "now")]
    only_new: bool,
    /// Stop when the files have this size together (500k, 100M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_size: Option<u64>,
    #[command(flatten)]
    rotation: RotationArgs,
    /// Compression level of zstd, 1 to 22; 0 for none. A capture that falls behind compresses less for a while. Above
    /// 9, it loses events of a busy ring that lower levels do not lose
    #[arg(
        long, alias = "level", value_name = "LEVEL", default_value_t = CaptureOptions::DEFAULT_LEVEL,
        value_parser = clap::value_parser!(i32).range(0..=22),
    )]
    compression: i32,
    /// Print one JSON object about the capture
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
    /// Wait for rings that do not exist yet, until Ctrl-C or --duration; existing rings are read meanwhile
    #[arg(long, conflicts_with = "now")]
    wait: bool,
    /// Go on after the newest file of the rotation set FILE.0001.evc and so on, even if its capture was killed: nothing
    /// is written twice, and nothing that the rings still hold is left out
    #[arg(long, conflicts_with_all = ["force", "only_new"])]
    resume: bool,
    /// When all rings have ended, go on with the next ring of each name, in a new file of the rotation set
    #[arg(long, conflicts_with_all = ["now", "duration", "max_size"])]
    reopen: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    triggers: TriggerArgs,
    /// A program to start, with its arguments: all rings that it makes under these names are captured until the program
    /// ends; its exit code is ours. It runs with EVENTRING_KEEP=1, and its rings are removed afterwards, unless you
    /// have set this variable yourself. If the capture ends first, the program goes on. With --json or `-o -`, its
    /// output goes to stderr
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["now", "only_new", "reopen"])]
    command: Vec<OsString>,
}

impl Args {
    fn options(&self) -> anyhow::Result<CaptureOptions> {
        let options =
            CaptureOptions::new().compression_level(self.compression).only_new(self.only_new).overwrite(self.force);
        let options = options.rotation(self.rotation.options()?).filter(self.filter.filter());
        let duration = self.now.then_some(Duration::ZERO).or(self.duration);
        let options = duration.into_iter().fold(options, CaptureOptions::duration);
        Ok(self.max_size.into_iter().fold(options, CaptureOptions::max_bytes))
    }

    /// Checks whether `output` can be written, and returns its kind. A rotated capture does not write to `output`
    /// itself but makes files with numbered names. Only the first of these names is checked here. The others are
    /// checked when their files are made.
    fn target(&self, output: &Path) -> anyhow::Result<OutputKind> {
        match self.resume {
            // The files of the rotation set are there, and are checked when the capture goes on after them.
            true => Ok(OutputKind::File),
            false if self.rotation.rotates() || self.reopen => output::look_at_row(output, self.force),
            false => output::look(output, self.force),
        }
    }

    /// Returns true if the capture goes on after an earlier one, or with later rings.
    fn goes_on(&self) -> bool {
        self.resume || self.reopen
    }

    fn output(&self, names: &[PathBuf]) -> PathBuf {
        self.output.clone().unwrap_or_else(|| {
            let first = names.first().and_then(|name| name.file_name()).unwrap_or("ring".as_ref());
            let mut name = first.to_os_string();
            name.push(".evc");
            PathBuf::from(name)
        })
    }
}

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

/// Starts the program, if the command line names one, and finds the rings. Returns true with them if there was a ring
/// at the first search. With `spares_stdout`, the program's output goes to stderr.
fn begin(
    args: &Args,
    names: &[PathBuf],
    programs: FollowedPrograms,
    spares_stdout: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<(AwaitedRings, bool)> {
    AwaitedRings::check_names(names).map_err(with_advice_to_wait)?;
    let program = match args.command.as_slice() {
        [] => None,
        command => Some(Program::start(command, spares_stdout)?),
    };
    let mut rings = AwaitedRings::new(names, program, programs);
    if args.reopen {
        ProcessArgs::check_lasting(names)?;
        rings.reopens = true;
    }
    if !args.wait && rings.program.is_none() {
        rings.open_all().map_err(with_advice_to_wait)?;
        return Ok((rings, true));
    }
    match rings.wait_for_first(args.duration, interrupt) {
        Ok(is_at_once) => Ok((rings, is_at_once)),
        Err(error) => {
            rings.remove_what_stayed_for_us();
            Err(error)
        }
    }
}

/// Switches on what `--enable` names. If that fails in a program that was started for this capture, the capture goes
/// on, and the inner error is for its end.
fn enable(args: &Args, rings: &AwaitedRings) -> anyhow::Result<anyhow::Result<Option<Enabled>>> {
    match args.process.enable(rings.names()) {
        // The program runs already. What it records without the filter override is captured.
        Err(error) if rings.program.is_some() => {
            say!("{WARNING}warning:{WARNING:#} nothing was switched on, the capture goes on: {error}");
            Ok(Err(error))
        }
        enabled => enabled.map(Ok),
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

fn with_advice_to_wait(error: ReaderError) -> anyhow::Error {
    match error.kind() {
        // A ring of this name may still be made, so the message advises to wait for it. This advice is left out for a
        // name with sizes (`name:15:24`), because no ring ever has such a name.
        ReaderErrorKind::NotFound if error.path().and_then(advice::instead_of_a_name).is_none() => {
            let why = error.path().map(advice::why_gone).unwrap_or_default();
            Exit::NotFound.failure(format!("{error}, or have the capture wait for it (--wait){why}")).into()
        }
        _ => error.into(),
    }
}

fn of_output(error: CaptureError) -> anyhow::Error {
    if error.kind() == CaptureErrorKind::Exists { output::failure(error) } else { error.into() }
}
