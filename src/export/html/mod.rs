//! A page about a capture, in one file that needs no network: the loss account, a table of the spans, charts, and
//! speedscope with the profile.
//!
//! | file | idea |
//! |---|---|
//! | `figures` | the pass that counts what the charts show |
//! | `profile` | the profile that speedscope shows, cut to what a browser can take |
//! | `frame` | speedscope with its profile, as a document inside the page |
//! | `charts` | charts as SVG |
//! | `tables` | tables of the spans and of the rings |
//! | `page` | the page around them |
//! | `text` | text in HTML, templates |

mod charts;
mod figures;
mod frame;
mod page;
mod profile;
mod tables;
mod text;

use super::outline::Outline;
use super::recording::CaptureRecording;
use super::summary::summarize;
use super::{ExportOptions, ExportSummary, pass};
use crate::capture::CaptureError;
use figures::Figures;
use page::CapturePage;
use profile::EmbeddedProfile;
use std::io::Write;

/// Writes the page.
pub(super) fn write(
    recording: &CaptureRecording<'_>,
    options: ExportOptions,
    out: &mut dyn Write,
) -> Result<ExportSummary, CaptureError> {
    let summary = summarize(recording.capture)?;
    let outline = Outline::of(recording, options.view)?;
    let figures = Figures::of(recording, &outline, &summary)?;
    let profile = EmbeddedProfile::of(recording, &outline, options)?;
    let page = CapturePage { recording, summary: &summary, outline: &outline, figures: &figures, profile: &profile };
    out.write_all(page.html().as_bytes()).map_err(pass::write_error)?;
    Ok(outline.counts)
}

#[cfg(test)]
mod tests;
