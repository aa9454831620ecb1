//! `eventring export`.

use crate::exit::{Exit, Failure};
use crate::input::saved::{Saved, output_stem, stdout_twice};
use crate::output;
use crate::output::formats::{Format, FormatParser, export, export_files};
use crate::output::{directory, json_line};
use crate::text::format::counted;
use crate::text::losses::MissingEvents;
use crate::verbs::saved_args::SavedArgs;
use clap::ValueEnum as _;
use eventring::internal::CountedWriter;
use eventring_capture::{CaptureError, CaptureFile, ReadFiles};
use eventring_export::{ExportOptions, ExportSummary, Names, View, Weight};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};

/// Turn a capture, or what a ring holds, into a trace or tables
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    saved: SavedArgs,
    /// Format of the output
    #[arg(short = 't', long, value_name = "FORMAT", default_value = "perfetto", value_parser = FormatParser)]
    format: Format,
    /// Tracks of the trace: threads with their slices, spans from creation to close, or both, with counters
    #[arg(long, value_name = "VIEW", default_value = "thread")]
    view: View,
    /// Names of spans in traces and stacks: the name, or the target and the name
    #[arg(long = "names", value_name = "NAMES", default_value = "name")]
    span_names: Names,
    /// Numbers of folded stacks: times in nanoseconds, also how threads spent them, as they have measured it, or
    /// instructions, if they were counted; of captures of `eventring profile` also what threads did in the spans, with
    /// the stacks of the program
    #[arg(long, value_name = "WEIGHT", default_value = "time")]
    weight: Weight,
    /// Where to write; `-` for stdout; a directory for ctf and parquet [default: the input's name with the extension
    /// of the format; folded and jsonl: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists, or the directory of an earlier export
    #[arg(short, long)]
    force: bool,
    /// Print one JSON object about the export
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
}

impl Args {
    fn output(&self) -> PathBuf {
        if let Some(output) = &self.output {
            return output.clone();
        }
        let is_usually_piped = match self.format {
            Format::Folded | Format::Jsonl => true,
            Format::Perfetto | Format::Chrome | Format::Ctf | Format::Parquet | Format::OtlpJson => false,
        };
        if is_usually_piped || self.saved.names.is_empty() {
            return PathBuf::from("-");
        }
        let mut name = output_stem(&self.saved.names).into_os_string();
        name.push(self.format.file_extension());
        PathBuf::from(name)
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.format.check_built()?;
    let output = args.output();
    let is_stdout = output::is_stdout(&output);
    if is_stdout && args.json {
        return Err(stdout_twice().into());
    }
    // A format of several files has no stdout at all, and `run_to_directory` says so.
    if is_stdout && args.format.is_binary() && !args.format.is_directory() && io::stdout().is_terminal() {
        return Exit::Usage.fail("this format is not for a terminal; send it into a file or a pipe");
    }
    if args.weight != Weight::Time && args.format != Format::Folded {
        let message =
            "--weight is the number behind each stack of --format folded; name that format, or leave --weight out";
        return Exit::Usage.fail(message);
    }
    if args.format.is_directory() {
        return run_to_directory(args, &output);
    }
    let target = if is_stdout { None } else { Some(output::look(&output, args.force)?) };
    let saved = args.saved.open(args.format.has_only_spans(), args.json, args.strict, |_, _| ())?;
    let write_to = |out: &mut dyn io::Write, cannot_write: &dyn Fn(&io::Error) -> Failure| {
        let mut out = CountedWriter::new(BufWriter::new(out));
        let written = write(args, &saved.capture, &mut out);
        saved.reading.end();
        let summary = written.map_err(|error| match error.io_error() {
            Some(io) => cannot_write(io).into(),
            None => anyhow::Error::new(error),
        })?;
        if let Err(failure) = check_counted(args, out.bytes()) {
            return Err(match saved.report(&args.saved.names, &summary.problems, &summary.payload_losses) {
                Exit::Done => failure.into(),
                damaged => damaged.failure(format!("{failure}; the capture is not whole, as said above")).into(),
            });
        }
        Ok(summary)
    };
    let summary = match target {
        None => {
            saved.read.check_stream(io::stdout(), "stdout")?;
            write_to(&mut io::stdout().lock(), &|error| Failure::io("cannot write to stdout", error))?
        }
        Some(target) => output::write_whole((&output, target), args.force, &saved.read, |mut file| {
            write_to(&mut file, &|error| Failure::writing(&output, error))
        })?,
    };
    conclude(args, &output, &saved, &summary)
}

/// Exports in a format that is a directory.
fn run_to_directory(args: &Args, output: &Path) -> anyhow::Result<Exit> {
    if output::is_stdout(output) {
        let message = "this format has several files, and stdout takes only one; name a directory with --output";
        return Exit::Usage.fail(message);
    }
    directory::look(output, args.format, args.force, &ReadFiles::default())?;
    let saved = args.saved.open(args.format.has_only_spans(), args.json, args.strict, |_, _| ())?;
    let write = |directory: &mut directory::OutputDirectory<'_>| {
        let written = export_files(&saved.capture, args.format, directory);
        saved.reading.end();
        written.map_err(|error| match error.io_error() {
            Some(io) => Failure::writing(output, io).into(),
            None => anyhow::Error::new(error),
        })
    };
    let summary = directory::write_whole(output, args.format, args.force, &saved.read, write)?;
    conclude(args, output, &saved, &summary)
}

/// Reports a finished export, and returns the exit code.
fn conclude(args: &Args, output: &Path, saved: &Saved, summary: &ExportSummary) -> anyhow::Result<Exit> {
    report(args, output, summary, saved.is_cut)?;
    let exit = saved.report(&args.saved.names, &summary.problems, &summary.payload_losses);
    Ok(exit.or_if(args.strict && MissingEvents::from(summary).is_loss(), Exit::Lost))
}

/// Checks that stacks of a weight that was counted are not empty: a flame graph of nothing is no result.
fn check_counted(args: &Args, bytes: u64) -> Result<(), Failure> {
    let (found, with) = match args.weight {
        _ if bytes > 0 => return Ok(()),
        Weight::Time => return Ok(()),
        Weight::Instructions => {
            ("no instructions were counted, expected those of at least one span", "eventring icount")
        }
        Weight::Cpu => {
            ("there are no samples and no measured times, expected at least one", "eventring profile --stacks")
        }
        Weight::Queue | Weight::Sleep => {
            let message = "no thread in a span has measured such a time, expected at least one; record without \
                           EVENTRING_THREAD_TIME=off, or use `eventring profile --sched --stacks` and --weight runnable or blocked";
            return Exit::Failed.fail(message);
        }
        Weight::Blocked | Weight::Runnable => {
            ("there is no such time, expected switches of at least one thread", "eventring profile --sched --stacks")
        }
    };
    let weight = args.weight.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    Exit::Failed.fail(format!("{found}; make the capture with `{with}`, or leave out --weight {weight}"))
}

fn write(args: &Args, capture: &CaptureFile, out: &mut dyn io::Write) -> Result<ExportSummary, CaptureError> {
    export(capture, args.format, ExportOptions::from(args.view).names(args.span_names).weight(args.weight), out)
}

/// What `export --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Exported<'a> {
    file: Cow<'a, str>,
    #[serde(flatten)]
    counts: &'a ExportSummary,
    lost_payloads: u64,
    problems: &'a [String],
}

fn report(args: &Args, output: &Path, summary: &ExportSummary, is_cut: bool) -> anyhow::Result<()> {
    if args.json {
        let (file, problems) = (output.to_string_lossy(), &*summary.problems);
        let exported = Exported { file, counts: summary, lost_payloads: summary.lost_payloads(), problems };
        return Ok(json_line(&exported)?);
    }
    let mut parts = vec![counted(summary.spans, "span", "spans")];
    // A trace of threads has a slice for each time that a thread was in a span, as for each poll of a future.
    if summary.slices != summary.spans {
        parts.push(format!("entered {}", counted(summary.slices, "time", "times")));
    }
    let open = if is_cut { "still open, or their end is not selected" } else { "still open" };
    let counts = [
        (summary.open_spans, open, open),
        (summary.lost_ends, "whose end may be lost", "whose end may be lost"),
        (summary.events, "log record", "log records"),
        (summary.typed_events, "typed event", "typed events"),
        (summary.counters, "sample", "samples"),
        (summary.markers, "marker", "markers"),
    ];
    let counts = counts.iter().filter(|(count, ..)| *count > 0);
    parts.extend(counts.map(|(count, one, many)| counted(*count, one, many)));
    let to = if output::is_stdout(output) { "stdout".into() } else { output.to_string_lossy() };
    say!("{} written to {to}", parts.join(", "));
    if let Some(words) = MissingEvents::from(summary).in_words("; the trace shows where") {
        say!("{words}");
    }
    Ok(())
}
