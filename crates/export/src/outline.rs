//! The first pass over a capture for a trace. It finds whether each slice nests (lies within the slices around it), and
//! whether its end was lost. The second pass needs these facts at the slice's start, but they are certain only at its
//! end.
//!
//! The pass keeps at most one bit for each span slice or span, and a list of those that do not nest or have no end.

use super::bits::BitSet;
use super::losses::{Loss, LossCollector};
use super::options::View;
use crate::exec::states::{ExecStates, StatePass};
use crate::slices::flows::{FlowFinder, Flows};
use crate::slices::joins::Joins;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{
    CallSite, Catalog, IdMap, RawRecord, Span, SpanId, SpanReplay, SpanStep, TakenSlice, Thread, ThreadKey,
};
use eventring_capture::CaptureError;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayCounts, ReplayNeeds, ReplayParts,
    ReplayState, SpanOver, replay_capture,
};
use eventring_profile::by_span::{
    CodeStacks, Did, KernelNames, KernelPart, KernelRing, KernelWanted, Said, ThreadOwners,
};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

/// The facts that the second pass needs from the beginning on.
pub struct Outline {
    /// The processes, in the order of [`CaptureRecording::processes`].
    pub(super) processes: Vec<ProcessOutline>,
    pub losses: Vec<Loss>,
    pub counts: ReplayCounts,
    /// The last time at which each process is known to have lived.
    pub(super) end_nanos: Vec<u64>,
    /// What became of the blocks of execution events.
    pub(super) states: ExecStates,
    /// What must be known before what the kernel says is drawn; `None` if it says nothing.
    pub(super) kernel: Option<KernelOutline>,
}

/// What must be known before what the kernel says is drawn.
pub(super) struct KernelOutline {
    /// What the part knows at the end.
    names: Arc<KernelNames>,
    /// The threads of the programs, in the order of their first spans.
    begun: Vec<BegunThread>,
    known: HashSet<ThreadKey>,
    /// The indices in `begun` of the threads by what the system numbers them, and in which turn. Filled at the end.
    by_turn: HashMap<(u32, usize), usize>,
    /// The threads of which the kernel says what they did, as the system numbers them.
    with_states: HashSet<u32>,
}

/// A thread of a program that has been in a span.
struct BegunThread {
    os_thread_id: u32,
    nanos: u64,
    process: u32,
    key: ThreadKey,
    described: Arc<Thread>,
}

impl KernelOutline {
    fn new(recording: &CaptureRecording<'_>) -> Option<Self> {
        KernelRing::are_in(recording.rings()).then(|| Self {
            names: Arc::default(),
            begun: Vec::new(),
            known: HashSet::new(),
            by_turn: HashMap::new(),
            with_states: HashSet::new(),
        })
    }

    /// Takes what the kernel has said.
    fn said(&mut self, part: &KernelPart) {
        let shares = part.said().iter().filter_map(|said| match said {
            Said::Share(share) => Some(share),
            Said::Sample(_) => None,
        });
        self.with_states.extend(shares.filter(|share| share.did() != Did::Unknown).map(|share| share.thread_id));
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, now_nanos: u64) {
        let (EntryContent::Perf { catalog, .. }, SpanStep::SliceBegun(slice)) = (&entry.content, step) else { return };
        if !self.known.insert(slice.thread) {
            return;
        }
        let described = catalog.thread(slice.thread.thread_id);
        if let Some(os_thread_id) = described.os_thread_id {
            let (process, key) = (entry.process, slice.thread);
            self.begun.push(BegunThread { os_thread_id, nanos: now_nanos, process, key, described });
        }
    }

    /// Finds the threads of the programs among those of the system.
    fn finish(&mut self) {
        for (index, thread) in self.begun.iter().enumerate() {
            let turn = self.names.owners.turn(thread.os_thread_id, thread.nanos);
            self.by_turn.entry((thread.os_thread_id, turn)).or_insert(index);
        }
    }

    /// Returns the threads, as the system numbers them.
    pub(super) fn owners(&self) -> &ThreadOwners {
        &self.names.owners
    }

    /// Returns the thread of a program that has had a number of the system in this turn, and its process.
    pub(super) fn thread(&self, os_thread_id: u32, turn: usize) -> Option<(u32, ThreadKey, &Thread)> {
        let thread = &self.begun[*self.by_turn.get(&(os_thread_id, turn))?];
        Some((thread.process, thread.key, &thread.described))
    }

    /// Returns true if the kernel says what this thread did, as the system numbers it.
    pub(super) fn has_states(&self, os_thread_id: u32) -> bool {
        self.with_states.contains(&os_thread_id)
    }

    /// Returns the stacks of the program.
    pub(super) fn code(&self) -> Option<&CodeStacks> {
        self.names.code.as_ref()
    }
}

/// The facts about one process. Span slices have the ids and spans the numbers that a replay gives them.
#[derive(Default)]
pub(super) struct ProcessOutline {
    /// The span slices that overlap other slices of their thread without nesting.
    pub(super) overlapping: BitSet,
    /// The spans that have a parent and do not nest in it.
    pub(super) outside_parent: BitSet,
    /// The span slices whose thread was still in the span at the end of the recording.
    pub(super) open_slices: HashSet<u64>,
    /// The span slices whose end may have been lost, each with the last time at which its thread is known to have been
    /// in the span.
    pub(super) lost_slices: IdMap<u64, u64>,
    /// The spans whose first record is not their creation.
    pub(super) starts: IdMap<u64, SpanStart>,
    /// The spans without a close.
    pub(super) ends: IdMap<u64, SpanEnd>,
    /// The span slices that end with the close of their span, because their exit never came.
    pub(super) missing_exits: BitSet,
    pub(super) flows: Flows,
}

/// The beginning of a span whose first record is not its creation.
#[derive(Default)]
pub(super) struct SpanStart {
    pub(super) nanos: u64,
    /// False if the record of the creation was lost.
    pub(super) is_known: bool,
    pub(super) call_site: Option<Arc<CallSite>>,
}

/// The end of a span without a close.
pub(super) struct SpanEnd {
    /// The last time at which the span is known to have existed, if its close may have been lost. `None` if the span
    /// was open when the recording ended.
    pub(super) lost_nanos: Option<u64>,
    /// The time that threads were in the span, if it is known.
    pub(super) busy_nanos: Option<u64>,
}

impl Outline {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// The export would take more memory than any capture of this size from a real program needs.
    pub(super) fn read(recording: &CaptureRecording<'_>, view: View) -> Result<Self, CaptureError> {
        let mut finder = OutlinePass::new(recording, view).with_kernel(recording);
        let counts = replay_capture(recording, &mut finder)?;
        Ok(finder.finish(recording, counts))
    }
}

/// The pass that finds the outline.
pub struct OutlinePass {
    view: View,
    processes: Vec<ProcessPass>,
    losses: LossCollector,
    /// The spans of each process that had not ended long before the end of the pass.
    remaining: Vec<Vec<Span>>,
    end_nanos: Vec<u64>,
    states: StatePass,
    kernel: Option<KernelOutline>,
    joins: Joins,
}

impl OutlinePass {
    pub fn new(recording: &CaptureRecording<'_>, view: View) -> Self {
        let processes = recording.processes().iter().map(|_| ProcessPass::new(view)).collect();
        let losses = LossCollector::new(recording.capture.rings().len());
        let remaining = recording.processes().iter().map(|_| Vec::new()).collect();
        let states = StatePass::new(recording);
        let (end_nanos, joins) = (Vec::new(), Joins::default());
        Self { view, processes, losses, remaining, end_nanos, states, kernel: None, joins }
    }

    /// Also notes what must be known before what the kernel says is drawn.
    #[must_use]
    fn with_kernel(self, recording: &CaptureRecording<'_>) -> Self {
        Self { kernel: KernelOutline::new(recording), ..self }
    }

    pub fn finish(mut self, recording: &CaptureRecording<'_>, counts: ReplayCounts) -> Outline {
        for (process, spans) in self.processes.iter_mut().zip(&self.remaining) {
            process.end_spans(spans, self.view);
        }
        let mut flows = 0;
        let finished = |process: ProcessPass| {
            let finished = process.finish(flows);
            flows += finished.flows.count();
            finished
        };
        let mut processes: Vec<ProcessOutline> = self.processes.into_iter().map(finished).collect();
        let mut of_processes: Vec<_> = processes.iter_mut().map(|process| &mut process.flows).collect();
        self.joins.finish(&mut of_processes, flows);
        let losses = self.losses.finish(recording, counts.first_nanos, counts.last_nanos);
        let (mut kernel, states) = (self.kernel, self.states.finish());
        if let Some(kernel) = &mut kernel {
            kernel.finish();
        }
        Outline { processes, losses, counts, end_nanos: self.end_nanos, states, kernel }
    }
}

struct ProcessPass {
    outline: ProcessOutline,
    flows: FlowFinder,
    spans_seen: u64,
}

impl ReplayConsumer for OutlinePass {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        if self.kernel.is_some() {
            KernelPart::ask(KernelWanted { code: true, ..KernelWanted::default() }, parts);
        }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        if let Some(kernel) = &mut self.kernel {
            kernel.entry(entry, step, state.now_nanos);
            state.part::<KernelPart>().into_iter().for_each(|part| kernel.said(part));
        }
        match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                self.losses.event(entry.ring, record.epoch_nanos());
                let process = entry.process_index;
                let thread = ThreadKey { recorder: *recorder, thread_id: record.ext.thread_id };
                self.processes[process].record(record, (catalog, thread), step, &state.replays[process]);
                if let Some(called) = self.processes[process].flows.take_called() {
                    self.joins.add((process, called), state, |process| &self.processes[process].flows);
                }
            }
            EntryContent::Typed { descriptor, .. } => {
                self.losses.event(entry.ring, descriptor.record_epoch_nanos);
                self.states.event(entry);
            }
            EntryContent::Gap(gap) => self.losses.gap(entry.ring, *gap),
        }
        Ok(())
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        match over.over {
            SpanOver::Remaining => self.remaining[process].push(over.span.clone()),
            _ => self.processes[process].closed(over.span, &state.replays[process], self.view),
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        for ((process, replay), end_nanos) in self.processes.iter_mut().zip(state.replays).zip(end_nanos) {
            process.end_slices(replay, *end_nanos);
        }
        self.end_nanos = end_nanos.to_vec();
        if let (Some(kernel), Some(part)) = (&mut self.kernel, state.part::<KernelPart>()) {
            kernel.names = part.names().unwrap_or_default();
            kernel.said(part);
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        let of_processes = self.processes.iter().map(ProcessPass::kept_bytes).fold(0, u64::saturating_add);
        let of_kernel = self.kernel.as_ref().map_or(0, |kernel| kernel.begun.len() as u64 * 256);
        let more = [self.losses.kept_bytes(), self.states.kept_bytes(), self.joins.kept_bytes(), of_kernel];
        more.into_iter().fold(of_processes, u64::saturating_add)
    }
}

impl ProcessPass {
    fn new(view: View) -> Self {
        Self { outline: ProcessOutline::default(), flows: FlowFinder::new(view), spans_seen: 0 }
    }

    fn record(&mut self, record: &RawRecord<'_>, of: (&Catalog, ThreadKey), step: &SpanStep, replay: &SpanReplay) {
        if replay.spans_seen() != self.spans_seen {
            self.spans_seen = replay.spans_seen();
            if record.event != Some(PerfEvent::SpanNew) {
                self.outline.starts.insert(self.spans_seen, SpanStart::default());
            }
        }
        match step {
            SpanStep::SliceEnded(taken) => self.take_slice(taken),
            SpanStep::Closed { cut, .. } => cut.iter().for_each(|taken| self.take_slice(taken)),
            _ => {}
        }
        self.flows.record(record, of, step, replay);
    }

    fn take_slice(&mut self, taken: &TakenSlice) {
        if !taken.nests {
            self.outline.overlapping.insert(taken.slice.id);
        }
    }

    fn closed(&mut self, span: &Span, replay: &SpanReplay, view: View) {
        self.end(span);
        if let (true, Some(parent)) = (view.has_spans(), span.parent) {
            // A parent that is not in the replay any more was closed before.
            let parent = replay.get(parent).map(SpanInterval::from_span);
            self.nest(span, parent);
        }
    }

    /// Notes what is known of the beginning of a span, and which of its slices have no exit. Forgets the span.
    fn end(&mut self, span: &Span) {
        self.flows.forget(span);
        span.missing_exits().iter().for_each(|taken| self.outline.missing_exits.insert(taken.slice.id));
        if let Some(start) = self.outline.starts.get_mut(&span.number) {
            start.nanos = span.start_epoch_nanos();
            start.is_known = span.created.is_some();
            start.call_site = span.call_site.clone();
        }
    }

    fn nest(&mut self, span: &Span, parent: Option<SpanInterval>) {
        if !parent.is_some_and(|parent| SpanInterval::from_span(span).lies_in(&parent)) {
            self.outline.outside_parent.insert(span.number);
        }
    }

    fn end_slices(&mut self, replay: &SpanReplay, end_nanos: u64) {
        for slice in replay.open_slices() {
            if replay.may_have_ended(slice, end_nanos) {
                self.outline.lost_slices.insert(slice.id, slice.last_seen_epoch_nanos);
            } else {
                self.outline.open_slices.insert(slice.id);
            }
        }
    }

    /// Takes the spans that have no close, and those that were closed last.
    fn end_spans(&mut self, spans: &[Span], view: View) {
        let by_id: IdMap<SpanId, SpanInterval> =
            spans.iter().map(|span| (span.id, SpanInterval::from_span(span))).collect();
        for span in spans {
            self.end(span);
            if span.is_open() {
                let lost_nanos = span.is_end_lost.then_some(span.last_seen_epoch_nanos.max(span.start_epoch_nanos()));
                let busy_nanos = span.known_busy_nanos();
                self.outline.ends.insert(span.number, SpanEnd { lost_nanos, busy_nanos });
            }
            if let (true, Some(parent)) = (view.has_spans(), span.parent) {
                self.nest(span, by_id.get(&parent).copied());
            }
        }
    }

    fn finish(self, flows_before: u64) -> ProcessOutline {
        ProcessOutline { flows: self.flows.finish(flows_before), ..self.outline }
    }

    fn kept_bytes(&self) -> u64 {
        let outline = &self.outline;
        let bits = [&outline.overlapping, &outline.outside_parent, &outline.missing_exits].map(BitSet::kept_bytes);
        let bits = bits.into_iter().fold(0, u64::saturating_add);
        (outline.starts.len() as u64 * 128).saturating_add(bits).saturating_add(self.flows.kept_bytes())
    }
}

/// The time from which and until which a span is drawn.
#[derive(Clone, Copy)]
struct SpanInterval {
    start_nanos: u64,
    /// `None` if the span has not ended.
    end_nanos: Option<u64>,
}

impl SpanInterval {
    fn from_span(span: &Span) -> Self {
        let start_nanos = span.start_epoch_nanos();
        let closed = span.closed.as_ref().map(|closed| closed.epoch_nanos);
        let end_nanos = closed.or(span.is_end_lost.then_some(span.last_seen_epoch_nanos));
        Self { start_nanos, end_nanos: end_nanos.map(|end| end.max(start_nanos)) }
    }

    /// Returns true if the span begins after `outer` begins, and ends before `outer` ends. Spans with equal times do
    /// not nest, because viewers may order equal times in either way.
    fn lies_in(&self, outer: &Self) -> bool {
        let ends_before = match (self.end_nanos, outer.end_nanos) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(end), Some(outer)) => end < outer,
        };
        self.start_nanos > outer.start_nanos && ends_before
    }
}
