//! The figures that a page shows. A capture is read once for all of them.

use super::activity::Activity;
use super::block_figures::BlockFigures;
use super::durations::{Durations, PercentileCurve};
use super::flame::FlameSide;
use eventring::reader::GapCause;
use eventring::tracing::SpanStep;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayParts, ReplayState,
    replay_capture,
};
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::formats::folded;
use eventring_export::formats::folded::SpanFolder;
use eventring_export::outline::{Outline, OutlinePass};
use eventring_export::stacks::Stacks;
use eventring_export::summary::{SpanCounter, Summary, is_error};
use eventring_export::{ExportOptions, ExportSummary, SharedNames, View, Weight, full_name};
use std::io;

/// The number of spans whose durations are kept for charts, those with the largest total.
const CHARTED_SPANS: usize = 12;

/// What threads do in spans, on and off the processor.
pub(super) const KERNEL_WEIGHTS: [Weight; 3] = [Weight::Cpu, Weight::Blocked, Weight::Runnable];

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
    pub(crate) blocks: BlockFigures,
    view: View,
}

impl<'c> CaptureFigures<'c> {
    /// Reads a capture to its end.
    ///
    /// # Errors
    /// All rings are perf rings with a schema of another version, or it would take more memory than any capture of
    /// this size from a real program needs.
    pub(crate) fn read(capture: &'c CaptureFile, options: ExportOptions) -> Result<Self, CaptureError> {
        let recording = CaptureRecording::new(capture)?;
        let mut figures = FigurePass {
            spans: SpanCounter::default(),
            outline: OutlinePass::new(&recording, options.view),
            stacks: SpanFolder::new(&recording, options.view, options.names).with_kernel(&recording, true),
            activity: Activity::default(),
            events_of_rings: vec![0; capture.rings().len()],
            errors: 0,
            blocks: BlockFigures::new(&recording),
        };
        let counts = replay_capture(&recording, &mut figures)?;
        let FigurePass { spans, outline, stacks, activity, events_of_rings, errors, mut blocks } = figures;
        blocks.end();
        let (mut summary, wall_times) = spans.finish(capture, &counts, CHARTED_SPANS);
        let outline = outline.finish(&recording, counts);
        let (durations, stacks) = (wall_times.into_iter().map(Durations::new).collect(), stacks.finish());
        summary.add_kernel(&stacks);
        let view = options.view;
        Ok(Self { recording, summary, outline, durations, activity, events_of_rings, errors, stacks, blocks, view })
    }

    /// Returns the counts of an export of the capture.
    pub(super) fn counts(&self) -> &ExportSummary {
        &self.outline.counts
    }

    /// Returns the time from the first event to the last one.
    pub(crate) fn length_nanos(&self) -> u64 {
        self.outline.counts.last_nanos.saturating_sub(self.outline.counts.first_nanos)
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

    /// Returns true if the kernel says something about the threads in spans of this name, or target and name.
    pub(super) fn has_kernel_of(&self, span: &str) -> bool {
        KERNEL_WEIGHTS.iter().any(|weight| self.stacks.of_span(span).all().any(|stack| stack.sums.get(*weight) > 0))
    }

    /// Returns the target and name of the spans with the largest total about whose threads the kernel says something.
    pub(super) fn slowest_with_kernel(&self) -> Option<String> {
        let names = self.summary.spans.iter().map(|span| full_name(&span.name, &span.target));
        names.take(CHARTED_SPANS).find(|name| self.has_kernel_of(name))
    }

    /// Returns the names of the flame graph's frames, with their targets.
    pub(crate) fn frame_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.stacks.names_and_targets()
    }

    /// Gives the names in `shared` their targets in the flame graph.
    pub(crate) fn name_frames(&mut self, shared: &SharedNames) {
        self.stacks.name_frames(shared);
    }

    /// Returns the names of spans that several targets share.
    pub(super) fn shared_names(&self) -> SharedNames {
        SharedNames::from_names(self.summary.spans.iter().map(|span| (span.name.as_str(), span.target.as_str())))
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

struct FigurePass {
    spans: SpanCounter,
    outline: OutlinePass,
    stacks: SpanFolder,
    activity: Activity,
    events_of_rings: Vec<u64>,
    errors: u64,
    blocks: BlockFigures,
}

impl ReplayConsumer for FigurePass {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { self_times: true, remaining: true, ..ReplayNeeds::default() }
    }

    fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        self.blocks.seqnos(entry);
    }

    fn follow(&self, parts: &mut ReplayParts) {
        self.stacks.follow(parts);
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        self.blocks.entry(entry);
        self.spans.entry(entry, step, state)?;
        self.outline.entry(entry, step, state)?;
        self.stacks.entry(entry, step, state)?;
        if let EntryContent::Perf { record, catalog, .. } = &entry.content {
            self.errors += u64::from(is_error(record, catalog));
        }
        if let Some(nanos) = entry.epoch_nanos().filter(|_| entry.is_next_event()) {
            self.events_of_rings[entry.ring as usize] += 1;
            self.activity.add(nanos);
        }
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        self.spans.span(process, over, state)?;
        self.outline.span(process, over, state)?;
        self.stacks.span(process, over, state)
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        self.outline.end(state, end_nanos)?;
        self.stacks.end(state, end_nanos)
    }

    fn kept_bytes(&self) -> u64 {
        // A flame graph of the stacks takes twice as much again.
        let stacks = self.stacks.kept_bytes().saturating_mul(3);
        let blocks = self.blocks.kept_bytes();
        self.spans.kept_bytes().saturating_add(self.outline.kept_bytes()).saturating_add(stacks).saturating_add(blocks)
    }
}
