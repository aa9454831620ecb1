//! A page about a capture, in one file that needs no network. The page has the counts of losses, a table of the spans,
//! and charts.
//!
//! | file | idea |
//! |---|---|
//! | `figures` | the figures that a page shows |
//! | `activity` | counts of events over the time |
//! | `block_bars` | blocks over the time |
//! | `block_figures`, `blocks` | the figures of blocks of execution events, and their section |
//! | `durations` | histograms of durations, and curves of percentiles |
//! | `header` | the captured rings, and the counts of losses |
//! | `tables` | tables of the spans and of the rings |
//! | `charts`, `percentiles` | charts as SVG |
//! | `flame` | flame graphs as SVG |
//! | `document` | the whole page |
//! | `html` | text in HTML, templates |

mod activity;
mod block_bars;
mod block_figures;
pub(crate) mod blocks;
mod charts;
pub(crate) mod document;
mod durations;
mod figures;
pub(crate) mod flame;
mod header;
pub(crate) mod percentiles;
pub(crate) mod tables;

use eventring_capture::recording::write_error;
use eventring_capture::{CaptureError, CaptureErrorKind, CaptureFile};
use eventring_export::{ExportOptions, ExportSummary};
pub(crate) use figures::CaptureFigures;
use std::io::Write;

/// Writes the page. `flame` names the spans whose flame graphs on and off the processor are shown; without a name they
/// are those with the largest total.
///
/// # Errors
/// Writing fails, the capture cannot be read, or it says nothing about the threads in the spans that `flame` names.
pub fn write(
    capture: &CaptureFile,
    options: ExportOptions,
    flame: Option<&str>,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    let figures = CaptureFigures::read(capture, options)?;
    if let Some(flame) = flame
        && !figures.has_kernel_of(flame)
    {
        let message = format!(
            "there are no samples and no switches of threads in spans {flame}; `eventring summary` shows which spans there \
             are, and `eventring profile` makes captures with samples"
        );
        return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
    }
    out.write_all(document::of_capture(&figures, flame).as_bytes()).map_err(write_error)?;
    out.flush().map_err(write_error)?;
    Ok(figures.counts().clone())
}

pub mod html;
#[cfg(test)]
mod tests;
