//! `eventring core`.

mod elf;
mod images;

use crate::exit::{Exit, Failure};
use crate::interrupt::RemovedBySignal;
use crate::output;
use crate::output::json_line;
use crate::text::format::{bytes, counted, one_line};
use crate::text::losses::report_problem;
use crate::verbs::keep::capture_result;
use crate::verbs::keep::capture_result::Captured;
use crate::verbs::now::open;
use crate::verbs::now::open::OpenArgs;
use elf::CoreFile;
use eventring::reader::Reader;
use eventring_capture::{CaptureFile, CaptureOptions, NextRing, OutputEntry, OutputKind, ReadFiles, capture_rings};
use eventring_live::{Live, LiveOptions};
use images::Images;
use schemars::JsonSchema;
use serde::Serialize;
use signal_hook::low_level::signal_name;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// What helps if a ring is not in the core file.
const REMEDY: &str = "start the program with EVENTRING_CORE=1, or build its recorder with `in_core_files(true)`";

/// Take the rings out of a core file, and show what was open
///
/// The rings become a capture. Shown are the spans that were open at the crash.
#[derive(clap::Args)]
pub(crate) struct CoreArgs {
    /// The core file of a program that has recorded
    #[arg(value_name = "CORE")]
    core: PathBuf,
    /// The capture to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What `core --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Taken<'a> {
    #[serde(flatten)]
    capture: Captured<'a>,
    crash: CrashRow<'a>,
    /// The number of spans that were open.
    open_spans: usize,
    /// Paths of rings.
    not_in_core: Vec<&'a String>,
    /// True if the end of the core file is missing.
    cut: bool,
}

#[derive(Serialize, JsonSchema)]
struct CrashRow<'a> {
    pid: u32,
    program: &'a str,
    /// Null if the program ran on.
    signal: Option<i32>,
    signal_name: Option<&'static str>,
    thread: Option<u32>,
    thread_name: Option<&'a str>,
    threads: usize,
}

pub(crate) fn run(args: &CoreArgs) -> anyhow::Result<Exit> {
    let core = CoreFile::open(&args.core)?;
    if output::is_stdout(&args.output) || !matches!(look(args, &core)?, OutputKind::File) {
        let message = "a capture of a core file goes into a file, and not into a pipe or a device; name a file";
        return Exit::Usage.fail(message);
    }
    // The images of rings need room as the capture does.
    let place = args.output.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(".".as_ref());
    let removed = RemovedBySignal::listen()?;
    let directory = removed.make(|| tempfile::TempDir::with_prefix_in(".eventring-core-", place));
    let directory = directory.map_err(|error| Failure::writing(place, &error))?;
    let mut images = images::write(&core, directory.path())?;
    let readers = open_all(&core, &mut images);
    if readers.is_empty() {
        return Err(nothing_found(args, &core, &images).into());
    }
    images.shorten().map_err(|error| Failure::writing(directory.path(), &error))?;
    let options = CaptureOptions::new().duration(Duration::ZERO).overwrite(args.force);
    let mut rings = readers.into_iter();
    let mut next_ring = || rings.next().map_or(NextRing::NoMore, NextRing::Ring);
    let summary = capture_rings(&mut next_ring, &args.output, &options, &mut |_| ControlFlow::Continue(()))?;
    let capture = CaptureFile::open(&args.output)?;
    let crash = Crash::new(&core, &capture);
    if args.json {
        let live = Live::of_capture(&capture, None, &LiveOptions::new().windows([]).without_self_times())?;
        let mut capture = Captured::new(&summary, &[]);
        capture.problems.extend(images.problems.iter().map(Cow::from));
        let taken = Taken {
            capture,
            crash: crash.row(),
            open_spans: live.state().open_spans().to_vec().len(),
            not_in_core: images.not_in_core.iter().chain(&images.cut_off).collect(),
            cut: core.cut_bytes > 0,
        };
        json_line(&taken)?;
    } else {
        say!("{}", crash.in_words());
        capture_result::print(&summary, Some("what the core file holds"), None, &args.output);
        open::run(&OpenArgs::of_capture(args.output.clone()))?;
    }
    images.problems.iter().for_each(|problem| report_problem(false, problem));
    let say_missing = |path: &String| report_problem(false, &format!("{path} is not in the core file: {REMEDY}"));
    images.not_in_core.iter().for_each(say_missing);
    if core.cut_bytes == 0 {
        return Ok(Exit::Done);
    }
    report_problem(false, &cut_in_words(&core, &images));
    Ok(Exit::Truncated)
}

/// Checks whether the capture can be written. The core file is never replaced.
fn look(args: &CoreArgs, core: &CoreFile) -> anyhow::Result<OutputKind> {
    let mut read = ReadFiles::default();
    read.add_file(&core.file);
    let look = OutputEntry::open(&args.output).and_then(|entry| entry.look(args.force, &read));
    look.map_err(output::failure)
}

/// Opens the images. Those that are none are left out, with a problem for each.
fn open_all(core: &CoreFile, images: &mut Images) -> Vec<Reader> {
    // A program that did not crash has gone on.
    let options = match core.notes.signal {
        0 => Reader::options(),
        _ => Reader::options().copied_by(core.written_epoch_nanos),
    };
    let mut readers = Vec::new();
    for path in &images.rings {
        match options.open(path) {
            Ok(reader) => readers.push(reader),
            Err(error) => images.problems.push(format!("a ring is left out: {error}")),
        }
    }
    readers
}

/// Says that the core file was cut, and what it has lost.
fn cut_in_words(core: &CoreFile, images: &Images) -> String {
    let rings = match images.cut_off.as_slice() {
        [] => String::new(),
        paths => format!(", and with it {}", paths.join(", ")),
    };
    let missing = bytes(core.cut_bytes);
    format!(
        "the core file is cut: {missing} of memory are missing at its end{rings}; see `ulimit -c`, and free disk space"
    )
}

fn nothing_found(args: &CoreArgs, core: &CoreFile, images: &Images) -> Failure {
    let shown = args.core.display();
    if core.cut_bytes > 0 {
        let message = format!("{shown} holds no ring: {}", cut_in_words(core, images));
        return Exit::Truncated.failure(message);
    }
    let why = match (images.not_in_core.as_slice(), images.problems.as_slice()) {
        ([], []) => {
            format!("the program ({}) has mapped none, or memory that is shared was left out", core.notes.program)
        }
        ([], problems) => problems.join("; "),
        (paths, _) => {
            format!("{} {} left out of it: {REMEDY}", paths.join(", "), if paths.len() == 1 { "was" } else { "were" })
        }
    };
    Exit::NotFound.failure(format!("{shown} holds no ring: {why}"))
}

/// How the program ended.
struct Crash<'a> {
    core: &'a CoreFile,
    /// The name of the thread that crashed, if it has recorded.
    thread_name: Option<String>,
}

impl<'a> Crash<'a> {
    fn new(core: &'a CoreFile, capture: &CaptureFile) -> Self {
        let crashed = core.notes.threads.first().copied();
        let name = |ring: u32| {
            let catalog = capture.catalog(ring);
            // The number of a thread that has ended may have been given to another one: the last one crashed.
            catalog.threads().filter(|thread| thread.os_thread_id == crashed).last()?.name.clone()
        };
        let perf = capture.rings().iter().zip(0..).filter(|(ring, _)| ring.is_perf());
        let thread_name = crashed.and_then(|_| perf.map(|(_, index)| index).find_map(name));
        Self { core, thread_name }
    }

    fn in_words(&self) -> String {
        let notes = &self.core.notes;
        let ended = match notes.signal {
            0 => "the core file was made while the program ran".to_owned(),
            signal => format!("killed by signal {signal} ({})", signal_name(signal).unwrap_or("unknown")),
        };
        let name = self.thread_name.as_deref().map(|name| format!(" ({})", one_line(name))).unwrap_or_default();
        let thread = notes.threads.first().map(|id| format!(" in thread {id}{name}")).unwrap_or_default();
        let threads = counted(notes.threads.len() as u64, "thread", "threads");
        format!("{} (process {}, {threads}): {ended}{thread}", notes.program, notes.pid)
    }

    fn row(&self) -> CrashRow<'_> {
        let notes = &self.core.notes;
        CrashRow {
            pid: notes.pid,
            program: &notes.program,
            signal: Some(notes.signal).filter(|signal| *signal != 0),
            signal_name: signal_name(notes.signal),
            thread: notes.threads.first().copied(),
            thread_name: self.thread_name.as_deref(),
            threads: notes.threads.len(),
        }
    }
}
