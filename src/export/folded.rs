//! Folded stacks. Each line has the names of a stack of spans, and a self time in nanoseconds: `program;request;query
//! 1234`.

use super::recording::{CaptureRecording, EntryContent};
use super::timeline::Timeline;
use super::{ExportOptions, Names, View};
use crate::reader::GapCause;
use crate::tracing::{SpanChange, SpanReplay, ThreadKey};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// The largest number of spans in a stack. From a deeper stack, only the innermost spans are written.
const DEPTH_MAX: usize = 256;

/// Writes the stacks, sorted. In span view, the self time of a span is the time in which it existed and none of its
/// children did. In thread view, it is the time in which the span was the innermost span of a thread. An open span
/// lasts until the end of the recording.
pub(super) fn write(
    recording: &CaptureRecording<'_>,
    timeline: &Timeline,
    ExportOptions { view, names }: ExportOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let self_nanos = match view {
        View::Span => timeline.spans.iter().map(|span| span.self_nanos.unwrap_or(0)).collect(),
        View::Thread => innermost_times(recording, timeline),
    };
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (index, nanos) in self_nanos.into_iter().enumerate().filter(|(_, nanos)| *nanos > 0) {
        let sum = stacks.entry(stack(recording, timeline, names, index)).or_default();
        *sum = sum.saturating_add(nanos);
    }
    stacks.iter().try_for_each(|(stack, nanos)| writeln!(out, "{stack} {nanos}"))
}

/// Returns, for each span, how long it was the innermost span of a thread.
fn innermost_times(recording: &CaptureRecording<'_>, timeline: &Timeline) -> Vec<u64> {
    let mut times = InnermostTimes { timeline, nanos: vec![0; timeline.spans.len()], threads: HashMap::new() };
    let mut replays: HashMap<u32, SpanReplay> = HashMap::new();
    for entry in recording.entries() {
        let process = entry.process;
        let replay = replays.entry(process).or_insert_with(|| SpanReplay::new().without_fields().without_slices());
        match &entry.content {
            EntryContent::Perf { recorder, record } => {
                match replay.push(*recorder, record) {
                    SpanChange::SliceBegun(slice) | SpanChange::SliceEnded(slice) => {
                        times.change(process, slice.thread, replay, record.epoch_nanos);
                    }
                    SpanChange::Closed { cut, .. } => {
                        cut.iter().for_each(|slice| times.change(process, slice.thread, replay, record.epoch_nanos));
                    }
                    _ => {}
                }
                while replay.take_closed().is_some() {}
            }
            EntryContent::Gap { cause, .. } => {
                let shard = recording.losing_shard(entry.ring, *cause);
                replay.gap(shard);
                // The cause `NeverCommitted` means that the thread never finished recording the lost event. The thread
                // did not leave its spans after that, so their time goes on.
                if *cause != GapCause::NeverCommitted {
                    times.forget(process, shard, replay);
                }
            }
            EntryContent::Typed { .. } => {}
        }
    }
    times.finish()
}

/// The time in which each span was the innermost span of a thread.
struct InnermostTimes<'t> {
    timeline: &'t Timeline,
    /// The time of each span in nanoseconds. A span has the same index here as in the timeline.
    nanos: Vec<u64>,
    threads: HashMap<(u32, ThreadKey), Innermost>,
}

/// The innermost span of a thread.
#[derive(Default)]
struct Innermost {
    /// The index of the span in the timeline. `None` if the thread is in no span, or if it entered its innermost span
    /// before a loss.
    span: Option<usize>,
    since_nanos: u64,
    /// The id of the first slice that began after the last loss. Earlier slices do not count, because their exits may
    /// be lost.
    first_counted: u64,
}

impl InnermostTimes<'_> {
    /// Adds the time until `nanos` to the span that was the thread's innermost one until now. Then looks up the span
    /// that is the innermost one from now on.
    fn change(&mut self, process: u32, thread: ThreadKey, replay: &SpanReplay, nanos: u64) {
        let innermost = self.threads.entry((process, thread)).or_default();
        innermost.count(nanos, &mut self.nanos);
        let slice = replay.stack(thread).last().filter(|slice| slice.id >= innermost.first_counted);
        innermost.span = slice.and_then(|slice| self.timeline.index_of((process, slice.span)));
        innermost.since_nanos = nanos;
    }

    /// Stops counting the time of each thread that may have recorded some of the lost events. The thread may have left
    /// its spans meanwhile. `shard` names the perf ring that lost the events; it is `None` if another kind of ring lost
    /// them.
    fn forget(&mut self, process: u32, shard: Option<(u32, u32)>, replay: &SpanReplay) {
        for ((of_process, thread), innermost) in &mut self.threads {
            if *of_process == process && self.timeline.concerns(process, shard, *thread) {
                innermost.span = None;
                innermost.first_counted = replay.slices_begun();
            }
        }
    }

    /// Adds the time until the end of the recording to each thread's innermost span. Returns the times of all spans.
    fn finish(mut self) -> Vec<u64> {
        for innermost in self.threads.values() {
            innermost.count(self.timeline.last_nanos, &mut self.nanos);
        }
        self.nanos
    }
}

impl Innermost {
    fn count(&self, until_nanos: u64, nanos: &mut [u64]) {
        if let Some(span) = self.span {
            nanos[span] = nanos[span].saturating_add(until_nanos.saturating_sub(self.since_nanos));
        }
    }
}

/// Returns the names from the program to the span.
fn stack(recording: &CaptureRecording<'_>, timeline: &Timeline, shown: Names, index: usize) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut at = Some(index);
    while let Some(index) = at
        && names.len() < DEPTH_MAX
    {
        names.push(frame(&timeline.spans[index].shown_name(shown)));
        at = timeline.parent_of(index);
    }
    let process = timeline.spans[index].process;
    let program = recording.capture.rings().iter().find(|ring| ring.process == process);
    names.push(frame(program.map_or("", |ring| &ring.program_name)));
    names.reverse();
    names.join(";")
}

/// Returns the name with spaces in place of the characters that separate names and stacks.
fn frame(name: &str) -> String {
    if name.is_empty() {
        return "?".into();
    }
    name.chars().map(|c| if c == ';' || c.is_control() { ' ' } else { c }).collect()
}
