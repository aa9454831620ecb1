//! Folded stacks. Each line has the names of a stack of spans, and a self time in nanoseconds:
//! `program;request;query 1234`. A `Weight` can replace the time, for example a count of instructions.

use crate::kernel_sums::KernelSums;
use crate::names::{Names, SharedNames};
use crate::options::{ExportOptions, View};
use crate::stacks::{StackId, StackSums, Stacks};
use eventring::reader::{Gap, GapCause};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{IdMap, SpanId, SpanReplay, SpanStep, ThreadKey, TimeSpent};
use eventring_capture::CaptureError;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayCounts, ReplayNeeds, ReplayParts,
    ReplayState, SpanOver, replay_capture, write_error,
};
use eventring_profile::by_span::{KernelNames, KernelPart, KernelRing, KernelWanted};
use std::io::{self, Write};
use std::sync::Arc;

/// Writes the stacks, sorted, with their times or instructions. In span view, the self time of a span is the time in
/// which it existed and none of its children did. In thread view, it is the time in which the span was the innermost
/// span of a thread. An open span lasts until the last sign of life of its program.
pub(crate) fn write(
    recording: &CaptureRecording<'_>,
    ExportOptions { view, names, weight }: ExportOptions,
    out: &mut dyn Write,
) -> Result<ReplayCounts, CaptureError> {
    let mut folder = SpanFolder::new(recording, view, names);
    if weight.is_of_kernel() {
        folder = folder.with_kernel(recording, true);
    }
    let counts = replay_capture(recording, &mut folder)?;
    let lines = folder.finish().lines(&programs(recording), weight);
    lines.iter().try_for_each(|(stack, weight)| writeln!(out, "{stack} {weight}")).map_err(write_error)?;
    Ok(counts)
}

/// Returns the names of the programs, in the order of the processes.
pub fn programs<'r>(recording: &'r CaptureRecording<'_>) -> Vec<&'r str> {
    recording.rings().programs().iter().map(|program| program.name.as_str()).collect()
}

/// The number of spans whose stacks are found at one time, each the parent of the one before. (In a damaged file, a
/// span can be its own ancestor.)
const PARENTS_MAX: u32 = 16;

/// Sums times and instructions by stack.
pub struct SpanFolder {
    view: View,
    stacks: Stacks,
    processes: Vec<FoldedProcess>,
    /// What the kernel says; `None` if nobody asks for it, or if it says nothing.
    kernel: Option<KernelSums>,
    kernel_names: Option<Arc<KernelNames>>,
    /// The processes, as the system numbers them.
    process_ids: Vec<u32>,
}

/// The spans of one process that are not over.
#[derive(Default)]
struct FoldedProcess {
    spans: IdMap<SpanId, FoldedSpan>,
    threads: IdMap<ThreadKey, Innermost>,
}

#[derive(Clone, Copy, Default)]
struct FoldedSpan {
    /// The stack of the span. `None` until the span's creation is seen.
    stack: Option<StackId>,
    /// The time in which the span was the innermost span of a thread.
    nanos: u64,
    /// What threads did in this time, as far as it was measured.
    measured: TimeSpent,
}

/// The innermost span of a thread.
#[derive(Default)]
struct Innermost {
    /// `None` if the thread is in no span, or if it entered its innermost span before a loss.
    span: Option<SpanId>,
    since_nanos: u64,
    /// The id of the first slice that began after the last loss. Earlier slices do not count, because their exits may
    /// be lost.
    first_counted: u64,
}

impl ReplayConsumer for SpanFolder {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { self_times: self.view == View::Span, remaining: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        if let Some(kernel) = &self.kernel {
            KernelPart::ask(KernelWanted { spans: true, code: kernel.has_code }, parts);
        }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let replay = &state.replays[entry.process_index];
        let process = &mut self.processes[entry.process_index];
        if let (Some(kernel), Some(part)) = (&mut self.kernel, state.part::<KernelPart>()) {
            part.said().iter().for_each(|said| kernel.add(said, &mut self.stacks));
        }
        let record = match &entry.content {
            EntryContent::Perf { record, .. } => record,
            // The cause `NeverCommitted` means that the thread never finished recording the lost event. The thread did
            // not leave its spans after that, so their time goes on.
            EntryContent::Gap(Gap { cause, .. }) if *cause != GapCause::NeverCommitted => {
                let shard = state.tables.rings.losing_shard(entry.ring, *cause);
                process.forget(shard, replay);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if record.event == Some(PerfEvent::SpanNew)
            && let Some(span) = record.span().and_then(|span| replay.get(span))
        {
            // If no record has named the parent yet, the next records may name it. So the stack is found later.
            process.spans.entry(span.id).or_default();
            if span.parent.is_none_or(|parent| replay.get(parent).is_some()) {
                process.stack_of(&mut self.stacks, entry.process_index, span.id, replay, PARENTS_MAX);
            }
        }
        // Each slice has its times when it ends.
        let ended = match step {
            SpanStep::SliceEnded(taken) => std::slice::from_ref(taken),
            SpanStep::Closed { cut, .. } => cut,
            SpanStep::None | SpanStep::Updated(_) | SpanStep::SliceBegun(_) => &[],
        };
        for taken in ended.iter().filter(|taken| taken.own_times.is_measured()) {
            let folded = process.spans.entry(taken.slice.span).or_default();
            folded.measured = folded.measured.plus(taken.own_times);
        }
        if self.view == View::Span {
            return Ok(());
        }
        // The creation of the span may be lost.
        if let SpanStep::SliceBegun(slice) = step {
            process.spans.entry(slice.span).or_default();
        }
        let nanos = record.epoch_nanos();
        step.each_changed_thread(|thread| process.change(thread, replay, nanos));
        Ok(())
    }

    fn span(&mut self, process_index: usize, over: &OverSpan<'_>, state: ReplayState<'_>) -> io::Result<()> {
        let (process, span) = (&mut self.processes[process_index], over.span);
        // At the end, all stacks were found.
        if let (SpanOver::Closed, Some(FoldedSpan { stack: None, .. })) = (over.over, process.spans.get(&span.id)) {
            let replay = &state.replays[process_index];
            let outer = span.parent;
            let outer =
                outer.and_then(|outer| process.stack_of(&mut self.stacks, process_index, outer, replay, PARENTS_MAX));
            let stack = self.stacks.stack_of(process_index, outer, span);
            process.spans.entry(span.id).or_default().stack = Some(stack);
        }
        self.fold(process_index, over);
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        for (process_index, (process, replay)) in self.processes.iter_mut().zip(state.replays).enumerate() {
            process.count_all(end_nanos[process_index]);
            process.find_stacks(&mut self.stacks, process_index, replay);
        }
        if let (Some(kernel), Some(part)) = (&mut self.kernel, state.part::<KernelPart>()) {
            part.said().iter().for_each(|said| kernel.add(said, &mut self.stacks));
            self.kernel_names = part.names();
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        let of_processes = self.processes.iter().map(FoldedProcess::kept_bytes).fold(0, u64::saturating_add);
        let of_kernel = self.kernel.as_ref().map_or(0, KernelSums::kept_bytes);
        of_processes.saturating_add(self.stacks.kept_bytes()).saturating_add(of_kernel)
    }
}

impl SpanFolder {
    pub fn new(recording: &CaptureRecording<'_>, view: View, names: Names) -> Self {
        let processes = recording.processes().iter().map(|_| FoldedProcess::default()).collect();
        let process_ids = recording.rings().programs().iter().map(|program| program.pid).collect();
        Self { view, stacks: Stacks::new(names), processes, kernel: None, kernel_names: None, process_ids }
    }

    /// Also sums what the kernel says, if the recording has it; with `has_code`, by the stacks of the program.
    #[must_use]
    pub fn with_kernel(self, recording: &CaptureRecording<'_>, has_code: bool) -> Self {
        Self { kernel: KernelRing::are_in(recording.rings()).then(|| KernelSums::new(has_code)), ..self }
    }

    /// Returns true if the kernel has its say.
    pub(crate) fn has_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Returns the stacks. Names that spans of several targets share have their targets.
    pub fn finish(mut self) -> Stacks {
        if let (Some(kernel), Some(names)) = (self.kernel, self.kernel_names) {
            kernel.add_to(&mut self.stacks, &self.process_ids, &names);
        }
        let shared = SharedNames::from_names(self.stacks.names_and_targets());
        self.stacks.name_frames(&shared);
        self.stacks
    }

    /// Adds the times and the instructions of a span to its stack, and forgets the span.
    fn fold(&mut self, process_index: usize, OverSpan { span, self_nanos, .. }: &OverSpan<'_>) {
        let folded = self.processes[process_index].spans.remove(&span.id).unwrap_or_default();
        let nanos = match self.view {
            View::Span => self_nanos.unwrap_or(0),
            View::Thread | View::Both => folded.nanos,
        };
        let instructions = span.instructions.map_or(0, |instructions| instructions.own);
        let sums = StackSums { nanos, instructions, measured: folded.measured, ..StackSums::default() };
        if sums != StackSums::default() {
            let stack = folded.stack.unwrap_or_else(|| self.stacks.stack_of(process_index, None, span));
            self.stacks.add(stack, sums);
        }
    }
}

impl FoldedProcess {
    /// Returns the stack of a span. Finds it if it is not known yet: it lies in the stack of the span's parent. Returns
    /// `None` if no record has named the span.
    fn stack_of(
        &mut self,
        stacks: &mut Stacks,
        process_index: usize,
        span: SpanId,
        replay: &SpanReplay,
        parents_max: u32,
    ) -> Option<StackId> {
        if let Some(FoldedSpan { stack: Some(stack), .. }) = self.spans.get(&span) {
            return Some(*stack);
        }
        let replayed = replay.get(span)?;
        let parents_max = parents_max.checked_sub(1)?;
        let outer = replayed.parent.filter(|parent| *parent != span);
        let outer = outer.and_then(|outer| self.stack_of(stacks, process_index, outer, replay, parents_max));
        let stack = stacks.stack_of(process_index, outer, replayed);
        self.spans.entry(span).or_default().stack = Some(stack);
        Some(stack)
    }

    /// Finds the stacks of all spans.
    fn find_stacks(&mut self, stacks: &mut Stacks, process_index: usize, replay: &SpanReplay) {
        let mut spans: Vec<SpanId> = self.spans.keys().copied().collect();
        // The order of the stacks is that of the spans.
        spans.sort_unstable();
        for span in spans {
            self.stack_of(stacks, process_index, span, replay, PARENTS_MAX);
        }
    }

    /// Adds the time until `nanos` to the span that was the thread's innermost one until now. Then looks up the span
    /// that is the innermost one from now on, and returns it.
    fn change(&mut self, thread: ThreadKey, replay: &SpanReplay, nanos: u64) {
        let innermost = self.threads.entry(thread).or_default();
        innermost.count(nanos, &mut self.spans);
        let slice = replay.stack(thread).last().filter(|slice| slice.id >= innermost.first_counted);
        innermost.span = slice.map(|slice| slice.span);
        innermost.since_nanos = nanos;
    }

    /// Stops counting the time of each thread that may have recorded some of the lost events. The thread may have left
    /// its spans meanwhile. `shard` names the perf ring that lost the events; it is `None` if another kind of ring lost
    /// them.
    fn forget(&mut self, shard: Option<(u32, u32)>, replay: &SpanReplay) {
        for (thread, innermost) in &mut self.threads {
            if replay.losses().concerns(shard, *thread) {
                innermost.span = None;
                innermost.first_counted = replay.slices_begun();
            }
        }
    }

    /// Adds the time until the end of the recording to each thread's innermost span.
    fn count_all(&mut self, last_nanos: u64) {
        for innermost in self.threads.values() {
            innermost.count(last_nanos, &mut self.spans);
        }
    }

    fn kept_bytes(&self) -> u64 {
        const SPAN_BYTES: u64 = 2 * size_of::<(SpanId, FoldedSpan)>() as u64;
        const THREAD_BYTES: u64 = 2 * size_of::<(ThreadKey, Innermost)>() as u64;
        let spans = (self.spans.len() as u64).saturating_mul(SPAN_BYTES);
        let threads = (self.threads.len() as u64).saturating_mul(THREAD_BYTES);
        spans.saturating_add(threads)
    }
}

impl Innermost {
    fn count(&self, until_nanos: u64, spans: &mut IdMap<SpanId, FoldedSpan>) {
        if let Some(span) = self.span.and_then(|span| spans.get_mut(&span)) {
            span.nanos = span.nanos.saturating_add(until_nanos.saturating_sub(self.since_nanos));
        }
    }
}
