//! The pass that counts what the charts and the tables of a page show.

use super::super::outline::Outline;
use super::super::pass::{self, Pass};
use super::super::recording::CaptureRecording;
use super::super::summary::Summary;
use crate::capture::CaptureError;
use crate::recording::{EntryContent, RecordingEntry};
use crate::schema::perf::{CallSiteLevel, PerfEvent};
use crate::tracing::{Span, SpanReplay, SpanStep};
use std::collections::HashMap;
use std::io;

/// The number of parts into which the time of the recording is divided.
pub(super) const TIMES: usize = 160;
/// The number of spans whose durations have a histogram.
pub(super) const HISTOGRAMS: usize = 6;
/// The number of parts into which an octave of durations is divided.
const PARTS: u32 = 4;

/// Counts for the charts and tables of a page.
pub(super) struct Figures {
    /// The number of events in each part of the time.
    pub(super) events: Vec<u64>,
    /// The number of events of each ring.
    pub(super) events_of_rings: Vec<u64>,
    /// The log records of the level ERROR in spans of each name, in the order of the summary.
    pub(super) errors: Vec<u64>,
    /// The number of log records of the level ERROR.
    pub(super) all_errors: u64,
    /// The histograms of the first spans of the summary.
    pub(super) histograms: Vec<Histogram>,
}

/// The number of durations in each part of a logarithmic scale.
#[derive(Default)]
pub(super) struct Histogram {
    pub(super) counts: Vec<u64>,
}

impl Histogram {
    fn add(&mut self, nanos: u64) {
        let index = (f64::from(PARTS) * (nanos.max(1) as f64).log2()) as usize;
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Returns the shortest duration of a part.
    pub(super) fn begin(index: usize) -> f64 {
        (index as f64 / f64::from(PARTS)).exp2()
    }

    /// Returns the part in which a duration lies, with decimals.
    pub(super) fn place(nanos: u64) -> f64 {
        f64::from(PARTS) * (nanos.max(1) as f64).log2()
    }
}

impl Figures {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// The pass would take more memory than any capture of this size from a real program needs.
    pub(super) fn of(
        recording: &CaptureRecording<'_>,
        outline: &Outline,
        summary: &Summary,
    ) -> Result<Self, CaptureError> {
        let names = summary.spans.iter().enumerate();
        let names = names.map(|(index, span)| ((span.name.clone(), span.target.clone()), index)).collect();
        let figures = Self {
            events: vec![0; TIMES],
            events_of_rings: vec![0; recording.capture.rings().len()],
            errors: vec![0; summary.spans.len()],
            all_errors: 0,
            histograms: (0..HISTOGRAMS.min(summary.spans.len())).map(|_| Histogram::default()).collect(),
        };
        let (first_nanos, last_nanos) = (outline.first_nanos, outline.last_nanos);
        let mut counter = FigureCounter { figures, names, first_nanos, last_nanos };
        let end = pass::run(recording, &mut counter)?;
        let take = |_: usize, span: Span| {
            counter.duration(&span);
            Ok(())
        };
        end.finish(take).map_err(pass::write_error)?;
        Ok(counter.figures)
    }
}

struct FigureCounter {
    figures: Figures,
    /// The index in the summary of each name and target.
    names: HashMap<(String, String), usize>,
    first_nanos: u64,
    last_nanos: u64,
}

impl FigureCounter {
    fn index_of(&self, span: &Span) -> Option<usize> {
        let target = span.call_site.as_ref().map(|call_site| call_site.target.clone()).unwrap_or_default();
        self.names.get(&(span.name(), target)).copied()
    }

    fn duration(&mut self, span: &Span) {
        let Some(nanos) = span.wall_nanos() else { return };
        if let Some(histogram) = self.index_of(span).and_then(|index| self.figures.histograms.get_mut(index)) {
            histogram.add(nanos);
        }
    }
}

impl Pass for FigureCounter {
    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, replay: &SpanReplay) -> io::Result<()> {
        let nanos = match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                let is_error = record.event == Some(PerfEvent::Event)
                    && catalog.call_site(record.ext.call_site_id).level == CallSiteLevel::Error;
                if is_error {
                    self.figures.all_errors += 1;
                    let span = record.span().and_then(|span| replay.get(span));
                    if let Some(index) = span.and_then(|span| self.index_of(span)) {
                        self.figures.errors[index] += 1;
                    }
                }
                record.epoch_nanos()
            }
            EntryContent::Typed { descriptor, .. } => descriptor.record_epoch_nanos,
            EntryContent::Gap { .. } => return Ok(()),
        };
        self.figures.events_of_rings[entry.ring as usize] += 1;
        let length = u128::from(self.last_nanos.saturating_sub(self.first_nanos)) + 1;
        let since = u128::from(nanos.clamp(self.first_nanos, self.last_nanos.max(self.first_nanos)) - self.first_nanos);
        self.figures.events[(since * TIMES as u128 / length) as usize] += 1;
        Ok(())
    }

    fn closed(&mut self, _: usize, span: &Span, _: &SpanReplay) -> io::Result<()> {
        self.duration(span);
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        // The names and the figures are as many as the summary has, and that has passed its own check.
        self.names.len() as u64 * 512
    }
}
