//! Other people's formats, and summaries, from captures.
//!
//! [`export`] writes a [`CaptureFile`] as a picture (Perfetto, Chrome), folded stacks or JSON lines; [`summarize`] counts its
//! spans. All of them see the same spans with the same nanoseconds.
//!
//! | file | idea |
//! |---|---|
//! | `recording` | the events of a capture, decoded |
//! | `kept` | how much of them is kept in memory |
//! | `timeline` | first look: when each span began and ended, how long threads were in it |
//! | `stays` | which stay in a span something lies in |
//! | `lanes` | slices that do not nest, apart |
//! | `losses` | when events were lost |
//! | `payloads` | which events are without their payload |
//! | `picture` | second look: tracks, slices, instants, counters |
//! | `drawn` | what has not ended in a picture |
//! | `sink` | what a picture is drawn on |
//! | `args` | fields and payloads as named values |
//! | `perfetto/`, `chrome` | pictures as files |
//! | `folded`, `jsonl` | stacks, lines |
//! | `summary` | counts and percentiles |

mod args;
mod chrome;
mod drawn;
mod folded;
mod jsonl;
mod kept;
mod lanes;
mod losses;
mod payloads;
mod perfetto;
mod picture;
mod recording;
mod sink;
mod stays;
mod summary;
mod timeline;

pub use payloads::PayloadLosses;
pub use summary::{SpanSummary, Summary, summarize};

use crate::capture::{CaptureError, CaptureErrorKind, CaptureFile};
use picture::draw;
use recording::Recording;
use std::io::Write;
use timeline::Timeline;

/// What [`export`] writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Format {
    /// A Perfetto trace (protobuf), for ui.perfetto.dev and trace_processor.
    Perfetto,
    /// The JSON of Chrome's trace viewer, which many tools read.
    Chrome,
    /// A line for each stack of spans with its self time in nanoseconds, for flame graphs.
    Folded,
    /// A JSON object a line: spans, log records, execution events, counters, losses.
    Jsonl,
}

/// From which side a picture shows spans. Chosen after recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum View {
    /// What each thread did: a slice for each stay of a thread in a span.
    #[default]
    Thread,
    /// How long each span lasted, from creation to close, whichever threads worked on it: the true time of async spans.
    Span,
}

/// What was exported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ExportSummary {
    /// Spans of which anything was seen.
    pub spans: u64,
    /// Of these, spans that were open at the end.
    pub open_spans: u64,
    /// Of these, spans whose end was not seen and may have been lost: they may have been open at the end, or not.
    pub lost_ends: u64,
    /// Stays of threads in spans.
    pub slices: u64,
    /// Log records.
    pub events: u64,
    /// Events of other rings than perf rings.
    pub exec_events: u64,
    /// Samples of counters.
    pub counters: u64,
    /// Markers.
    pub markers: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Events that have lost their payload, and with it the fields of spans and log records: by ring, without those that have lost none.
    pub payload_losses: Vec<PayloadLosses>,
    /// What was wrong with the capture, a line each: the rest was exported.
    pub problems: Vec<String>,
}

impl ExportSummary {
    /// Events of all rings that have lost their payload.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        payloads::count(&self.payload_losses)
    }
}

/// Writes a capture in another format.
///
/// It is read twice; memory is that of some hundred bytes for each span, and no more than 384 MiB and 192 times the bytes of the file: what would take more is no
/// program's capture, and refused.
///
/// # Errors
/// The capture is so damaged; writing fails ([`CaptureError::io_error`]), a perf ring has a schema of another version, or stacks are asked for and there
/// is no perf ring.
pub fn export(
    capture: &CaptureFile,
    format: Format,
    view: View,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    let recording = Recording::new(capture)?;
    if format == Format::Folded {
        recording.expect_spans()?;
    }
    let timeline = Timeline::of(&recording)?;
    let mut summary = timeline.counts.clone();
    let written = match format {
        Format::Perfetto => draw(&recording, &timeline, view, &mut perfetto::PerfettoSink::new(out, capture)),
        Format::Chrome => draw(&recording, &timeline, view, &mut chrome::ChromeSink::new(out, timeline.first_nanos)),
        Format::Folded => folded::write(&recording, &timeline, view, out),
        Format::Jsonl => jsonl::write(&recording, &timeline, out),
    };
    written.and_then(|()| out.flush()).map_err(|error| CaptureError::io_writing("write the export", error))?;
    summary.problems.extend_from_slice(capture.problems());
    Ok(summary)
}

/// That a capture holds no spans.
fn no_spans(capture: &CaptureFile) -> CaptureError {
    let rings: Vec<String> = capture
        .rings()
        .iter()
        .map(|ring| match ring.content_name.as_str() {
            "" => format!("{} (content type {})", ring.name, ring.content_type),
            name => format!("{} ({name})", ring.name),
        })
        .collect();
    let message = format!(
        "there are no spans in {}, expected a PERF ring, content type 3: record spans with eventring's tracing subscriber",
        if rings.is_empty() { "a capture without rings".into() } else { rings.join(", ") }
    );
    CaptureError::new(CaptureErrorKind::NoSpans, message)
}

#[cfg(test)]
mod bombs;
#[cfg(test)]
mod tests;
