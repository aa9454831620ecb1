//! `eventring report`.

use crate::exit::{Exit, Failure};
use crate::input::measured::captures;
use crate::input::saved::{Saved, output_stem, stdout_twice};
use crate::output;
use crate::output::json_line;
use crate::text::format::{counted, grouped};
use crate::text::losses::MissingEvents;
use crate::verbs::questions::diff::parse_rate;
use crate::verbs::saved_args::PartArgs;
use eventring::files::CONTENT_TYPE_EXEC;
use eventring::reader::Reader;
use eventring_capture::recording::PayloadLosses;
use eventring_capture::{CaptureError, ReadFiles};
use eventring_export::{ExportOptions, Names, View};
use eventring_report::changes::{Basis, ComparisonReport, ReportSide};
use eventring_report::page;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Write a page about a capture, or what differs between two
///
/// A browser opens it without a network.
#[derive(clap::Args)]
pub(crate) struct ReportArgs {
    /// One capture, or two, A and B. The files of a rotated capture are one capture. A ring is what it holds now
    #[arg(value_name = "CAPTURE", required = true)]
    names: Vec<PathBuf>,
    /// The files of capture B, if A or B is rotated and both have several
    #[arg(long, value_name = "CAPTURE", num_args = 1..)]
    with: Vec<PathBuf>,
    #[command(flatten)]
    part: PartArgs,
    /// Stacks of flame graphs: those of threads, or those of spans from creation to close
    #[arg(long, value_name = "VIEW", default_value = "thread")]
    view: View,
    /// Names of spans in flame graphs: the name, or the target and the name
    #[arg(long = "names", value_name = "NAMES", default_value = "name")]
    span_names: Names,
    /// Name of the spans, or target and name, whose flame graphs on and off the processor are shown, for a capture of
    /// `eventring profile` [default: those that took most time]
    #[arg(long, value_name = "SPAN")]
    flame: Option<String>,
    /// For two captures: show times and instructions for a call of this span, or for a `second`, and not for a call of
    /// each span itself
    #[arg(long, value_name = "SPAN")]
    per: Option<String>,
    /// For two captures: the rate of false alarms, as in `diff`
    #[arg(long, value_name = "RATE", default_value = "0.01", value_parser = parse_rate)]
    alpha: f64,
    /// Where to write; `-` for stdout [default: the names of the captures with .report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(short, long)]
    force: bool,
    /// Print one JSON object about the report
    #[arg(long)]
    json: bool,
    /// Exit with code 16 if events were lost, or their payloads; what was overwritten before is no loss
    #[arg(long)]
    strict: bool,
}

/// A page, and the facts about the captures that it shows.
struct ReportPage {
    html: Vec<u8>,
    captures: Vec<ReadCapture>,
}

/// The facts about a capture that was read for a page.
struct ReadCapture {
    missing: MissingEvents,
    /// Events that the filter of the capture has left out.
    filtered: u64,
    problems: Vec<String>,
    payload_losses: Vec<PayloadLosses>,
}

/// What `report --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Reported<'a> {
    file: Cow<'a, str>,
    bytes: usize,
    captures: Vec<ReportedCapture<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct ReportedCapture<'a> {
    files: Vec<Cow<'a, str>>,
    lost: u64,
    overwritten_before: u64,
    filtered: u64,
    lost_payloads: u64,
    problems: &'a [String],
}

pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<Exit> {
    let sides = args.sides()?;
    if args.per.is_some() && sides.len() < 2 {
        return Exit::Usage.fail("--per is for two captures, found one; name a second capture, or leave out --per");
    }
    if args.flame.is_some() && sides.len() > 1 {
        return Exit::Usage.fail("--flame is for one capture, found two; name one capture, or leave out --flame");
    }
    let output = args.output(&sides);
    let is_stdout = output::is_stdout(&output);
    if is_stdout && args.json {
        return Err(stdout_twice().into());
    }
    let target = if is_stdout { None } else { Some(output::look(&output, args.force)?) };
    let mut read = ReadFiles::default();
    let mut opened = Vec::new();
    for names in &sides {
        let needs_spans = sides.len() > 1 && !has_blocks(names);
        let saved = args.part.open(names, needs_spans, args.json, args.strict, |_, _| ());
        let saved = saved.map_err(|error| if sides.len() > 1 { on_side(&names[0], error) } else { error })?;
        read.add_capture(&saved.capture);
        opened.push(saved);
    }
    let made = match &opened[..] {
        [saved] => one(args, saved),
        [a, b] => two(args, [&sides[0][0], &sides[1][0]], [a, b]),
        _ => unreachable!("there are one or two sides"),
    };
    opened.iter().for_each(|saved| saved.reading.end());
    let made = made?;
    match target {
        None => {
            let cannot = |error: io::Error| Failure::io("cannot write to stdout", &error);
            opened.iter().try_for_each(|saved| saved.read.check_stream(io::stdout(), "stdout"))?;
            io::stdout().lock().write_all(&made.html).map_err(cannot)?;
        }
        Some(target) => output::write_whole((&output, target), args.force, &read, |mut file| {
            file.write_all(&made.html).map_err(|error| Failure::writing(&output, &error).into())
        })?,
    }
    tell(args, &output, &sides, &made)?;
    let exits = made.captures.iter().zip(&opened).zip(&sides).map(|((capture, saved), names)| {
        let exit = saved.report(names, &capture.problems, &capture.payload_losses);
        exit.or_if(args.strict && capture.missing.is_loss(), Exit::Lost)
    });
    // All captures have their messages, and the first problem is the exit code.
    let exits: Vec<Exit> = exits.collect();
    Ok(exits.into_iter().find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
}

impl ReportArgs {
    /// Returns the names of the files of each capture.
    fn sides(&self) -> anyhow::Result<Vec<Vec<PathBuf>>> {
        let mut sides = captures(&self.names);
        let with = captures(&self.with);
        let (found, expected) = match (sides.len(), with.len()) {
            (1 | 2, 0) | (1, 1) => {
                sides.extend(with);
                return Ok(sides);
            }
            (found, 0) => (found, "one, or two to compare; name the files of a rotated B after --with"),
            (found, with) => (found + with, "one before --with and one after it"),
        };
        let found = counted(found as u64, "capture is", "captures are");
        Exit::Usage.fail(format!("{found} given, expected {expected}"))
    }

    fn output(&self, sides: &[Vec<PathBuf>]) -> PathBuf {
        if let Some(output) = &self.output {
            return output.clone();
        }
        let mut name = output_stem(&sides[0]).into_os_string();
        if let Some(second) = sides.get(1) {
            name.push("-");
            name.push(output_stem(second).file_name().unwrap_or_default());
        }
        name.push(".report.html");
        PathBuf::from(name)
    }

    fn options(&self) -> ExportOptions {
        ExportOptions::from(self.view).names(self.span_names)
    }
}

/// Returns true if one of these is a ring of execution events, which has blocks in place of spans.
fn has_blocks(names: &[PathBuf]) -> bool {
    let is_exec = |ring: Reader| ring.info().content_type == CONTENT_TYPE_EXEC;
    names.iter().any(|name| name.is_file() && Reader::open(name).is_ok_and(is_exec))
}

/// Puts the name of one of two captures before an error, unless the error has it.
fn on_side(name: &Path, error: anyhow::Error) -> anyhow::Error {
    let (name, message) = (name.display().to_string(), error.to_string());
    if message.contains(&name) { error } else { Failure::about(name, error).into() }
}

/// Makes the page about one capture.
fn one(args: &ReportArgs, saved: &Saved) -> anyhow::Result<ReportPage> {
    let mut html = Vec::new();
    let summary = page::write(&saved.capture, args.options(), args.flame.as_deref(), &mut html)?;
    let capture = ReadCapture {
        missing: MissingEvents::from(&summary),
        filtered: summary.filtered,
        problems: summary.problems,
        payload_losses: summary.payload_losses,
    };
    Ok(ReportPage { html, captures: vec![capture] })
}

/// Makes the page about two captures.
fn two(args: &ReportArgs, paths: [&Path; 2], [a, b]: [&Saved; 2]) -> anyhow::Result<ReportPage> {
    // The names of the files say enough if they differ.
    let files = paths.map(|path| path.file_name().unwrap_or(path.as_os_str()));
    let names = if files[0] == files[1] { paths.map(Path::as_os_str) } else { files };
    let [name_a, name_b] = names.map(|name| name.to_string_lossy().into_owned());
    let read = |name: &Path, saved: &Saved, figures: Result<_, CaptureError>| {
        saved.reading.end();
        figures.map_err(|error| on_side(name, error.into()))
    };
    let options = args.options();
    let sides = [
        read(paths[0], a, ReportSide::read(name_a, &a.capture, options))?,
        read(paths[1], b, ReportSide::read(name_b, &b.capture, options))?,
    ];
    let captures = sides.each_ref().map(|side| {
        let summary = side.summary();
        ReadCapture {
            missing: MissingEvents::from(summary),
            filtered: summary.filtered,
            problems: summary.problems.clone(),
            payload_losses: summary.payload_losses.clone(),
        }
    });
    let basis = match args.per.as_deref() {
        None => Basis::OwnCall,
        Some("second") => Basis::Second,
        Some(span) => Basis::Call(span.to_owned()),
    };
    let report = ComparisonReport::new(sides, args.alpha, basis);
    let report = report.map_err(|error| Exit::Usage.failure(format!("--per: {error}")))?;
    Ok(ReportPage { html: report.html().into_bytes(), captures: captures.into() })
}

/// Says where the page is, and what the captures have lost.
fn tell<'a>(args: &ReportArgs, output: &Path, sides: &'a [Vec<PathBuf>], page: &'a ReportPage) -> anyhow::Result<()> {
    if args.json {
        let of_capture = |(capture, names): (&'a ReadCapture, &'a Vec<PathBuf>)| {
            let MissingEvents { lost, overwritten_before, payloads } = capture.missing;
            ReportedCapture {
                files: names.iter().map(|name| name.to_string_lossy()).collect(),
                lost: lost.saturating_add(overwritten_before),
                overwritten_before,
                filtered: capture.filtered,
                lost_payloads: payloads,
                problems: &capture.problems,
            }
        };
        let captures = page.captures.iter().zip(sides).map(of_capture).collect();
        let reported = Reported { file: output.to_string_lossy(), bytes: page.html.len(), captures };
        return Ok(json_line(&reported)?);
    }
    let to = if output::is_stdout(output) { "stdout".into() } else { output.to_string_lossy() };
    say!("a page of {} bytes written to {to}", grouped(page.html.len() as u64));
    for (capture, names) in page.captures.iter().zip(sides) {
        capture.missing.warn_of_numbers(&names[0]);
    }
    Ok(())
}
