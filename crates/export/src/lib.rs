//! Exports of captures to the formats of other tools, and summaries.
//!
//! [`export`] writes a [`CaptureFile`] as a trace (Perfetto, Chrome), as folded stacks or as JSON lines.
//! [`export_files`] writes a trace that is a directory (Common Trace Format). [`summarize`] counts the spans of a
//! capture. All formats show the same spans with the same nanoseconds, because all of them use
//! [`SpanReplay`](eventring::tracing::SpanReplay), or the events that it reads.
//!
//! | file | idea |
//! |---|---|
//! | `ring_blocks` | the block of each event of an execution ring |
//! | `outline` | the first pass over a capture for a trace: which slices nest, and which ends are missing |
//! | `bits` | sets of numbers |
//! | `stacks` | stacks of names, with their times |
//! | `rows/` | the content of recordings as rows with columns |
//! | `json`, `json_rows` | JSON text, and rows as JSON |
//! | `track_rows` | rows for slices that overlap without nesting |
//! | `flows`, `joins` | the arrows between slices of one process, and of several processes |
//! | `names` | the names under which spans are shown |
//! | `losses` | the times in which events were lost |
//! | `trace_builder/` | the second pass over a capture: tracks, slices, instants, counters |
//! | `trace_writer` | the interface of trace formats |
//! | `args` | fields and payloads as named values |
//! | `perfetto/`, `chrome` | traces as files |
//! | `line_slices` | the slices of open spans, in little memory |
//! | `folded`, `jsonl` | stacks, lines |
//! | `kernel_sums` | sums of the kernel's data about threads, by stack |
//! | `files` | the interface for the files of a format that is a directory |
//! | `ctf/` | traces of the Common Trace Format |
//! | `summary` | counts and percentiles |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::exit, clippy::print_stderr, clippy::print_stdout))]

#[doc(hidden)]
pub mod args;
#[doc(hidden)]
pub mod bits;
#[doc(hidden)]
pub mod chrome;
#[doc(hidden)]
pub mod ctf;
#[doc(hidden)]
pub mod exec_rings;
mod exec_states;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod flows;
#[doc(hidden)]
pub mod folded;
mod joins;
#[doc(hidden)]
pub mod json;
mod json_rows;
#[doc(hidden)]
pub mod jsonl;
mod kernel_sums;
#[doc(hidden)]
pub mod line_slices;
#[doc(hidden)]
pub mod losses;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub use eventring_capture::numbers;
#[doc(hidden)]
pub mod outline;
#[doc(hidden)]
pub mod perfetto;
mod programs;
#[doc(hidden)]
pub mod ring_blocks;
#[doc(hidden)]
pub mod rows;
#[doc(hidden)]
pub mod stacks;
#[doc(hidden)]
pub mod summary;
#[doc(hidden)]
pub mod trace_builder;
#[doc(hidden)]
pub mod trace_writer;
#[doc(hidden)]
pub mod track_rows;
mod typed_counts;

pub use files::ExportFiles;
pub use names::{Names, SharedNames, full_name};
pub use programs::{ProgramState, ProgramSummary};
pub use stacks::KernelNanos;
pub use summary::{EventSummary, InstructionSummary, SpanKernelTimes, SpanKind, SpanSummary, Summary, summarize};

pub use eventring_capture::recording::ReplayCounts as ExportSummary;
use eventring_capture::recording::{CaptureRecording, write_error};
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
use outline::Outline;
use std::io::Write;

use trace_builder::draw;

// The command line takes the names of formats and views, and their help texts, from these two types.

/// A format that [`export`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// Perfetto trace: ui.perfetto.dev, trace_processor
    Perfetto,
    /// Chrome's trace JSON: chrome://tracing, the Firefox Profiler, speedscope
    Chrome,
    /// Folded stacks with self times in nanoseconds: inferno, flamegraph.pl, speedscope
    Folded,
    /// A JSON object a line: spans, log records, typed events, counters, losses
    Jsonl,
    /// A Common Trace Format 1.8 trace, which is a directory: babeltrace2, Trace Compass
    Ctf,
}

impl Format {
    /// Returns the usual end of a file name of this format, `.perfetto-trace` for example.
    #[must_use]
    pub fn file_extension(self) -> &'static str {
        match self {
            Self::Perfetto => ".perfetto-trace",
            Self::Chrome => ".chrome.json",
            Self::Folded => ".folded",
            Self::Jsonl => ".jsonl",
            Self::Ctf => ".ctf",
        }
    }

    /// Returns true if the format is binary, and false if it is text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        match self {
            Self::Perfetto | Self::Ctf => true,
            Self::Chrome | Self::Folded | Self::Jsonl => false,
        }
    }

    /// Returns true if an export in this format is several files, which have a directory to themselves.
    /// [`export_files`] writes them, and [`export`] writes all other formats.
    #[must_use]
    pub fn is_directory(self) -> bool {
        matches!(self, Self::Ctf)
    }

    /// Returns true if an export in this format makes a file with this name, or may make one. So a directory that has
    /// other files is no export in this format. Only formats that are directories have such names.
    #[must_use]
    pub fn may_have_file(self, name: &str) -> bool {
        self == Self::Ctf && ctf::may_have_file(name)
    }

    /// Returns the name of a file that each export in this format has, and a text that such a file has and no file of
    /// another program. Only formats that are directories have them.
    #[must_use]
    pub fn mark(self) -> Option<(&'static str, &'static str)> {
        (self == Self::Ctf).then_some(ctf::MARK)
    }

    /// Returns true if an export in this format shows nothing but spans. Such an export needs a perf ring.
    #[must_use]
    pub fn has_only_spans(self) -> bool {
        self == Self::Folded
    }
}

/// The tracks of a trace: threads, spans, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum View {
    /// A track for each thread, with its span slices
    #[default]
    Thread,
    /// A slice for each span from creation to close, whichever threads worked on it
    Span,
    /// Both, as two groups of tracks in one trace, with counters of events and of open spans; stacks are those of
    /// threads
    Both,
}

impl View {
    fn has_threads(self) -> bool {
        matches!(self, Self::Thread | Self::Both)
    }

    fn has_spans(self) -> bool {
        matches!(self, Self::Span | Self::Both)
    }
}

/// The number behind each line of folded stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Weight {
    /// The self time in nanoseconds
    #[default]
    Time,
    /// The instructions that the program executed while a thread was in the span, and in no span inside it
    Instructions,
    /// The time in nanoseconds that threads ran, as samples say, with the program's stacks
    Cpu,
    /// The time in nanoseconds that threads waited in the kernel, with the stacks at which they left their processors
    Blocked,
    /// The time in nanoseconds that threads could have run and others did, with the same stacks
    Runnable,
}

impl Weight {
    /// Returns true if the numbers are those of the kernel, and the stacks go on with those of the program.
    #[must_use]
    pub fn is_of_kernel(self) -> bool {
        matches!(self, Self::Cpu | Self::Blocked | Self::Runnable)
    }
}

/// The way in which an export shows a capture. A [`View`] alone is options, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// The tracks of a trace.
    pub view: View,
    /// The names of spans in traces and stacks.
    pub names: Names,
    /// The numbers of folded stacks.
    pub weight: Weight,
}

impl ExportOptions {
    /// Sets the names of spans in traces and stacks.
    #[must_use]
    pub fn names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Sets the numbers of folded stacks.
    #[must_use]
    pub fn weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

impl From<View> for ExportOptions {
    fn from(view: View) -> Self {
        Self { view, ..Self::default() }
    }
}

/// Writes a capture in another format.
///
/// A capture is read once for lines and folded stacks, and twice for a trace. In memory are the spans that are open, a
/// few milliseconds of the capture, and for a trace a bit for each span slice. An export takes at most 1 GiB plus 192
/// bytes for each byte of the file. A capture that would take more is refused, because no program records such a
/// capture.
///
/// # Errors
/// The capture would take too much memory, writing fails ([`CaptureError::io_error`]), a perf ring has a schema of
/// another version, the format has only spans and there is no perf ring, or the format is a directory.
pub fn export(
    capture: &CaptureFile,
    format: Format,
    options: impl Into<ExportOptions>,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    let options = options.into();
    let recording = CaptureRecording::new(capture)?;
    if format.has_only_spans() {
        capture.expect_spans()?;
    }
    let summary = match format {
        Format::Perfetto | Format::Chrome => write_trace(&recording, format, options, out)?,
        Format::Folded => folded::write(&recording, options, out)?,
        Format::Jsonl => jsonl::write(&recording, out)?,
        _ => return Err(wrong_output(format, "one output, expected a directory: call `export_files`")),
    };
    out.flush().map_err(write_error)?;
    Ok(summary)
}

/// Writes a capture in a format that is a directory. It takes no more memory than [`export`]. It reads the capture once
/// for the Common Trace Format, and twice for Parquet.
///
/// # Errors
/// As [`export`], but the format must be a directory.
pub fn export_files(
    capture: &CaptureFile,
    format: Format,
    files: &mut dyn ExportFiles,
) -> Result<ExportSummary, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    match format {
        Format::Ctf => ctf::write(&recording, files),
        _ => Err(wrong_output(format, "a directory, expected one output: call `export`")),
    }
}

/// Returns the error that a format cannot be written to such an output.
fn wrong_output(format: Format, problem: &str) -> CaptureError {
    let message = format!("cannot write the format {format:?}: it was given {problem}");
    CaptureError::new(CaptureErrorKind::BadOptions, message)
}

fn write_trace(
    recording: &CaptureRecording<'_>,
    format: Format,
    options: ExportOptions,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    let outline = Outline::read(recording, options.view)?;
    let (capture, first_nanos) = (recording.capture, outline.counts.first_nanos);
    match format {
        Format::Chrome => draw(recording, &outline, options, &mut chrome::ChromeWriter::new(out, first_nanos))?,
        _ => draw(recording, &outline, options, &mut perfetto::PerfettoWriter::new(out, capture, first_nanos))?,
    }
    Ok(outline.counts)
}

#[cfg(any(test, feature = "fixtures"))]
#[doc(hidden)]
#[allow(missing_docs, reason = "for tests of other formats")]
pub mod any_capture;
#[cfg(test)]
mod tests;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
