//! The only list of the formats to which captures are exported.

use crate::exit::Failure;
use crate::left_out;
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum as _};
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
use eventring_export::{ExportFiles, ExportOptions, ExportSummary};
use std::ffi::OsStr;
use std::io::Write;

/// A format of `export`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Format {
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
    /// Parquet files in a directory: a table of spans, of log records, of losses, of each type of typed events
    Parquet,
    /// OpenTelemetry's OTLP as JSON, a request a line: collectors and their back-ends
    OtlpJson,
}

/// A crate that writes formats. A crate of its own writes the format that it is named after.
enum Writer {
    Export(eventring_export::Format),
    Parquet,
    Otlp,
}

impl Format {
    /// Returns the crate that writes the format.
    fn writer(self) -> Writer {
        match self {
            Self::Perfetto => Writer::Export(eventring_export::Format::Perfetto),
            Self::Chrome => Writer::Export(eventring_export::Format::Chrome),
            Self::Folded => Writer::Export(eventring_export::Format::Folded),
            Self::Jsonl => Writer::Export(eventring_export::Format::Jsonl),
            Self::Ctf => Writer::Export(eventring_export::Format::Ctf),
            Self::Parquet => Writer::Parquet,
            Self::OtlpJson => Writer::Otlp,
        }
    }

    /// Returns an error if the program was built without this format.
    pub(crate) fn check_built(self) -> Result<(), Failure> {
        let (is_built, name, feature) = match self.writer() {
            Writer::Export(_) => return Ok(()),
            Writer::Parquet => (cfg!(feature = "parquet"), "the format `parquet`", "parquet"),
            Writer::Otlp => (cfg!(feature = "otlp"), "the format `otlp-json`", "otlp"),
        };
        if is_built { Ok(()) } else { Err(left_out::failure(name, feature)) }
    }

    /// Returns the usual end of a file name of this format, `.perfetto-trace` for example.
    pub(crate) fn file_extension(self) -> &'static str {
        match self.writer() {
            Writer::Export(format) => format.file_extension(),
            Writer::Parquet => ".parquet",
            Writer::Otlp => ".otlp.json",
        }
    }

    /// Returns true if the format is binary, and false if it is text.
    pub(crate) fn is_binary(self) -> bool {
        match self.writer() {
            Writer::Export(format) => format.is_binary(),
            Writer::Parquet => true,
            Writer::Otlp => false,
        }
    }

    /// Returns true if an export in this format is several files, which have a directory to themselves.
    pub(crate) fn is_directory(self) -> bool {
        match self.writer() {
            Writer::Export(format) => format.is_directory(),
            Writer::Parquet => true,
            Writer::Otlp => false,
        }
    }

    /// Returns true if an export in this format makes a file with this name, or may make one. So a directory that has
    /// other files is no export in this format. Only formats that are directories have such names.
    pub(crate) fn may_have_file(self, name: &str) -> bool {
        match self.writer() {
            Writer::Export(format) => format.may_have_file(name),
            #[cfg(feature = "parquet")]
            Writer::Parquet => eventring_parquet::may_have_file(name),
            #[cfg(not(feature = "parquet"))]
            Writer::Parquet => false,
            Writer::Otlp => false,
        }
    }

    /// Returns the name of a file that each export in this format has, and a text that such a file has and no file of
    /// another program. Only formats that are directories have them.
    pub(crate) fn mark(self) -> Option<(&'static str, &'static str)> {
        match self.writer() {
            Writer::Export(format) => format.mark(),
            #[cfg(feature = "parquet")]
            Writer::Parquet => Some(eventring_parquet::MARK),
            #[cfg(not(feature = "parquet"))]
            Writer::Parquet => None,
            Writer::Otlp => None,
        }
    }

    /// Returns true if an export in this format shows nothing but spans. Such an export needs a perf ring.
    pub(crate) fn has_only_spans(self) -> bool {
        match self.writer() {
            Writer::Export(format) => format.has_only_spans(),
            Writer::Parquet | Writer::Otlp => false,
        }
    }
}

/// Parses the name of a format. A format that is no more has an error that says what to use.
#[derive(Clone)]
pub(crate) struct FormatParser;

impl TypedValueParser for FormatParser {
    type Value = Format;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Format, clap::Error> {
        let instead = match value.to_str() {
            Some("html") => "there is no format html; `eventring report FILE` writes the page",
            Some("speedscope") => "there is no format speedscope; speedscope opens --format chrome and --format folded",
            _ => return EnumValueParser::new().parse_ref(command, arg, value),
        };
        Err(clap::Error::raw(ErrorKind::InvalidValue, format!("{instead}\n")).with_cmd(command))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Format::value_variants().iter().filter_map(Format::to_possible_value)))
    }
}

/// Writes a capture in a format that is one output.
///
/// # Errors
/// As [`eventring_export::export`].
pub(crate) fn export(
    capture: &CaptureFile,
    format: Format,
    options: impl Into<ExportOptions>,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    match format.writer() {
        Writer::Export(format) => eventring_export::export(capture, format, options, out),
        #[cfg(feature = "otlp")]
        Writer::Otlp => eventring_otlp::messages::write(capture, out),
        #[cfg(not(feature = "otlp"))]
        Writer::Otlp => Err(not_built(format)),
        Writer::Parquet => Err(wrong_output(format, "one output, expected a directory: call `export_files`")),
    }
}

/// Writes a capture in a format that is a directory.
///
/// # Errors
/// As [`eventring_export::export_files`].
pub(crate) fn export_files(
    capture: &CaptureFile,
    format: Format,
    files: &mut dyn ExportFiles,
) -> Result<ExportSummary, CaptureError> {
    match format.writer() {
        Writer::Export(format) => eventring_export::export_files(capture, format, files),
        #[cfg(feature = "parquet")]
        Writer::Parquet => eventring_parquet::write(capture, files),
        #[cfg(not(feature = "parquet"))]
        Writer::Parquet => Err(not_built(format)),
        Writer::Otlp => Err(wrong_output(format, "a directory, expected one output: call `export`")),
    }
}

/// Returns the error that a format cannot be written to such an output.
fn wrong_output(format: Format, problem: &str) -> CaptureError {
    let message = format!("cannot write the format {format:?}: it was given {problem}");
    CaptureError::new(CaptureErrorKind::BadOptions, message)
}

/// Returns the error that [`Format::check_built`] finds first.
#[cfg(not(all(feature = "parquet", feature = "otlp")))]
fn not_built(format: Format) -> CaptureError {
    let message = format!("cannot write the format {format:?}: this program was built without it");
    CaptureError::new(CaptureErrorKind::BadOptions, message)
}
