//! The pass that counts what a page shows. It reads a capture once.

use super::activity::Activity;
use super::durations::Durations;
use super::durations::PercentileCurve;
use super::flame::FlameSide;
use eventring::reader::GapCause;
use eventring::tracing::{Span, SpanReplay, SpanStep};
use eventring_capture::recording::CaptureRecording;
use eventring_capture::recording::{EntryContent, RecordingEntry};
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::folded::{self, SpanFolder};
use eventring_export::outline::{Outline, OutlinePass};
use eventring_export::pass::{self, Pass};
use eventring_export::stacks::Stacks;
use eventring_export::summary::{SpanCounter, Summary, is_error};
use eventring_export::{ExportOptions, ExportSummary, View};
use std::io;

/// The number of spans whose durations are kept for charts, those with the largest total.
const CHARTED_SPANS: usize = 12;

/// The figures that a page shows about a capture.
pub(crate) struct CaptureFigures<'c> {
    pub(super) recording: CaptureRecording<'c>,
    /// The counts and durations of spans.
    pub(crate) summary: Summary,
    pub(super) outline: Outline,
    /// The durations of the first spans of the summary.
    pub(super) durations: Vec<Durations>,
    pub(super) activity: Activity,
    /// The number of events of each ring.
    pub(super) events_of_rings: Vec<u64>,
    /// The number of log records of the level ERROR.
    pub(super) errors: u64,
    pub(super) stacks: Stacks,
    view: View,
}

impl<'c> CaptureFigures<'c> {
    /// Reads a capture to its end.
    ///
    /// # Errors
    /// There is no perf ring, a perf ring has a schema of another version, or the pass would take more memory than any
    /// capture of this size from a real program needs.
    pub(crate) fn of(capture: &'c CaptureFile, options: ExportOptions) -> Result<Self, CaptureError> {
        let recording = CaptureRecording::new(capture)?;
        recording.expect_spans()?;
        let mut figures = FigurePass {
            spans: SpanCounter::new(&recording),
            outline: OutlinePass::new(&recording, options.view),
            stacks: SpanFolder::new(&recording, options.view, options.names),
            activity: Activity::default(),
            events_of_rings: vec![0; capture.rings().len()],
            errors: 0,
        };
        let end = pass::run(&recording, &mut figures)?;
        let times = figures.outline.end(&end);
        figures.stacks.end(&end);
        let end_nanos = end.end_nanos.clone();
        let take = |process: usize, span: Span| {
            figures.spans.add(process, &span, end_nanos[process]);
            figures.stacks.fold(process, &span, end_nanos[process]);
            figures.outline.take_remaining(process, span);
            Ok(())
        };
        let counts = end.finish(take).map_err(pass::write_error)?;
        let FigurePass { spans, outline, stacks, activity, events_of_rings, errors } = figures;
        let (summary, walls) = spans.finish(capture, &counts, CHARTED_SPANS);
        let outline = outline.finish(&recording, counts, times);
        let (durations, stacks) = (walls.into_iter().map(Durations::of).collect(), stacks.finish());
        Ok(Self {
            recording,
            summary,
            outline,
            durations,
            activity,
            events_of_rings,
            errors,
            stacks,
            view: options.view,
        })
    }

    /// Returns the counts of an export of the capture.
    pub(super) fn counts(&self) -> &ExportSummary {
        &self.outline.counts
    }

    /// Returns the time from the first event to the last one.
    pub(crate) fn length_nanos(&self) -> u64 {
        self.outline.last_nanos.saturating_sub(self.outline.first_nanos)
    }

    /// Returns the number of events that were captured.
    pub(crate) fn events(&self) -> u64 {
        self.events_of_rings.iter().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Returns the number of events that were lost for a cause, in one ring or in all of them.
    pub(super) fn lost_by(&self, cause: GapCause, ring: Option<u32>) -> u64 {
        let losses = self.outline.losses.iter().filter(|loss| ring.is_none_or(|ring| ring == loss.ring));
        losses.fold(0, |sum, loss| sum.saturating_add(loss.by_cause[cause as usize]))
    }

    /// Returns the names of the programs, in the order of the processes.
    pub(crate) fn programs(&self) -> Vec<&str> {
        folded::programs(&self.recording)
    }

    /// Returns the stacks as one side of a flame graph. Times and instructions are divided by `divisor`. If
    /// `has_programs` is true, each program is a frame.
    pub(crate) fn flame_side(&self, divisor: f64, has_programs: bool) -> FlameSide<'_> {
        let programs = if has_programs { self.programs() } else { Vec::new() };
        FlameSide { stacks: &self.stacks, programs, divisor }
    }

    /// Says what the time of a frame of the flame graph is.
    pub(crate) fn time_by_stack(&self) -> &'static str {
        match self.view {
            View::Thread | View::Both => "The time is busy time: while threads were in the spans.",
            View::Span => "The time is that for which the spans existed, also while they waited.",
        }
    }

    /// Returns the curve of the durations of a span, if it is one of those with the largest total.
    pub(crate) fn curve(&self, name: &str, target: &str) -> Option<&PercentileCurve> {
        let mut spans = self.summary.spans.iter().zip(&self.durations);
        let (_, durations) = spans.find(|(span, _)| span.name == name && span.target == target)?;
        Some(&durations.curve).filter(|curve| !curve.points.is_empty())
    }
}

struct FigurePass<'r> {
    spans: SpanCounter,
    outline: OutlinePass,
    stacks: SpanFolder<'r>,
    activity: Activity,
    events_of_rings: Vec<u64>,
    errors: u64,
}

impl Pass for FigurePass<'_> {
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, replay: &SpanReplay) -> io::Result<()> {
        self.spans.entry(entry, step, replay)?;
        self.outline.entry(entry, step, replay)?;
        self.stacks.entry(entry, step, replay)?;
        let nanos = match &entry.content {
            EntryContent::Perf { record, catalog, .. } => {
                self.errors += u64::from(is_error(record, catalog));
                record.epoch_nanos()
            }
            EntryContent::Typed { descriptor, .. } => descriptor.record_epoch_nanos,
            EntryContent::Gap { .. } => return Ok(()),
        };
        self.events_of_rings[entry.ring as usize] += 1;
        self.activity.add(nanos);
        Ok(())
    }

    fn closed(&mut self, process_index: usize, span: &Span, replay: &SpanReplay) -> io::Result<()> {
        self.spans.closed(process_index, span, replay)?;
        self.outline.closed(process_index, span, replay)?;
        self.stacks.closed(process_index, span, replay)
    }

    fn kept_bytes(&self) -> u64 {
        // A flame graph of the stacks takes twice as much again.
        let stacks = self.stacks.kept_bytes().saturating_mul(3);
        self.spans.kept_bytes().saturating_add(self.outline.kept_bytes()).saturating_add(stacks)
    }
}
