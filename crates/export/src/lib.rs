//! Exports of captures to the formats of other tools, and summaries.
//!
//! - [`export`] writes a [`CaptureFile`] as a trace (Perfetto, Chrome), as folded stacks or as JSON lines.
//! - [`export_files`] writes a trace that is a directory (Common Trace Format).
//! - [`summarize`] counts the spans of a capture.
//!
//! All formats show the same spans with the same times in nanoseconds, because they use
//! [`SpanReplay`](eventring::tracing::SpanReplay) or its events.
//!
//! | file | idea |
//! |---|---|
//! | `formats/` | the formats, and the writer of each |
//! | `options` | the way in which an export shows a capture |
//! | `outline` | the first pass over a capture for a trace: which slices nest, and which slices have no end |
//! | `trace_builder/` | the second pass over a capture: tracks, slices, instants, counters |
//! | `slices/` | the slices of open spans, their rows, and the arrows between them |
//! | `stacks` | stacks of names, with their times |
//! | `kernel_sums` | sums of the kernel's data about threads, by stack |
//! | `rows/` | the content of recordings as rows with columns |
//! | `args` | fields and payloads as named values |
//! | `names` | the names under which spans are shown |
//! | `losses` | the times in which events were lost |
//! | `exec/` | execution events: the block of each event, and the rings with such events |
//! | `summary/` | counts and percentiles |
//! | `bits` | sets of numbers |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::exit, clippy::print_stderr, clippy::print_stdout))]

#[doc(hidden)]
pub mod args;
#[doc(hidden)]
pub mod bits;
#[doc(hidden)]
pub mod exec;
#[doc(hidden)]
pub mod formats;
mod kernel_sums;
#[doc(hidden)]
pub mod losses;
#[doc(hidden)]
pub mod names;
mod options;
#[doc(hidden)]
pub mod slices;
#[doc(hidden)]
pub use eventring_capture::numbers;
#[doc(hidden)]
pub mod outline;
#[doc(hidden)]
pub mod rows;
#[doc(hidden)]
pub mod stacks;
#[doc(hidden)]
pub mod summary;
#[doc(hidden)]
pub mod trace_builder;

pub use formats::files::ExportFiles;
pub use names::{Names, SharedNames, full_name};
pub use stacks::KernelNanos;
pub use summary::allocations::AllocationSummary;
pub use summary::programs::{ProgramState, ProgramSummary};
pub use summary::{
    EventSummary, InstructionSummary, SpanKernelTimes, SpanKind, SpanSummary, Summary, TimeSummary, summarize,
};

pub use eventring_capture::recording::ReplayCounts as ExportSummary;
use eventring_capture::recording::{CaptureRecording, write_error};
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
pub use formats::Format;
pub use options::{ExportOptions, View, Weight};
use outline::Outline;
use std::io::Write;

use formats::trace_writer::TraceWriter;
use trace_builder::draw;

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
        Format::Perfetto => write_trace(&recording, options, |first_nanos| {
            formats::perfetto::PerfettoWriter::new(out, capture, first_nanos)
        })?,
        Format::Chrome => {
            write_trace(&recording, options, |first_nanos| formats::chrome::ChromeWriter::new(out, first_nanos))?
        }
        Format::Folded => formats::folded::write(&recording, options, out)?,
        Format::Jsonl => formats::jsonl::write(&recording, out)?,
        Format::Ctf => return Err(wrong_output(format, "one output, expected a directory: call `export_files`")),
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
        Format::Ctf => formats::ctf::write(&recording, files),
        Format::Perfetto | Format::Chrome | Format::Folded | Format::Jsonl => {
            Err(wrong_output(format, "a directory, expected one output: call `export`"))
        }
    }
}

/// Returns the error that a format cannot be written to such an output.
fn wrong_output(format: Format, problem: &str) -> CaptureError {
    let message = format!("cannot write the format {format:?}: it was given {problem}");
    CaptureError::new(CaptureErrorKind::BadOptions, message)
}

/// Writes a trace with the writer that `make` makes of the time of the first event.
fn write_trace<W: TraceWriter>(
    recording: &CaptureRecording<'_>,
    options: ExportOptions,
    make: impl FnOnce(u64) -> W,
) -> Result<ExportSummary, CaptureError> {
    let outline = Outline::read(recording, options.view)?;
    draw(recording, &outline, options, &mut make(outline.counts.first_nanos))?;
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
