//! Folded stacks: `program;request;query 1234`, with self time in nanoseconds.

use super::View;
use super::recording::{Content, Recording};
use super::timeline::{ThreadKey, Timeline};
use crate::reader::GapCause as LossCause;
use crate::tracing::PerfContent;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// A stack of more spans than this keeps its innermost ones.
const DEPTH_MAX: usize = 256;

/// Writes the stacks, sorted. In span view a span's self time is its time without its children's; in thread view it is the
/// time in which a thread was in it and in no other span inside. What is open lasts until the end of the recording, as in all formats.
pub(super) fn write(recording: &Recording<'_>, timeline: &Timeline, view: View, out: &mut dyn Write) -> io::Result<()> {
    let mut self_nanos = vec![0_u64; timeline.spans.len()];
    match view {
        View::Span => {
            for (index, span) in timeline.spans.iter().enumerate() {
                self_nanos[index] = span.self_nanos.unwrap_or(0);
            }
        }
        View::Thread => find_innermost_times(recording, timeline, &mut self_nanos),
    }
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (index, nanos) in self_nanos.into_iter().enumerate().filter(|(_, nanos)| *nanos > 0) {
        let sum = stacks.entry(stack(recording, timeline, index)).or_default();
        *sum = sum.saturating_add(nanos);
    }
    stacks.iter().try_for_each(|(stack, nanos)| writeln!(out, "{stack} {nanos}"))
}

fn find_innermost_times(recording: &Recording<'_>, timeline: &Timeline, self_nanos: &mut [u64]) {
    /// Who is in what, and since when nothing has changed.
    #[derive(Default)]
    struct Stay {
        stack: Vec<usize>,
        since_nanos: u64,
    }
    let mut threads: HashMap<ThreadKey, Stay> = HashMap::new();
    for entry in recording.entries() {
        let (recorder, record) = match &entry.content {
            Content::Perf { recorder, record } => (*recorder, record),
            // The thread was recording it when the program died, and stayed where it was.
            Content::Gap { cause: LossCause::NeverCommitted, .. } => continue,
            Content::Gap { .. } => {
                // What these threads did meanwhile is not known: no time is counted across.
                threads.retain(|thread, _| !timeline.concerns(entry.ring, *thread));
                continue;
            }
            Content::Other { .. } => continue,
        };
        let (span, is_enter) = match &record.content {
            PerfContent::SpanEnter { span, .. } => (*span, true),
            PerfContent::SpanExit { span, .. } => (*span, false),
            _ => continue,
        };
        let Some(span) = timeline.index_of((entry.process, span)) else { continue };
        let stay = threads.entry((recorder, record.thread.id)).or_default();
        if let Some(innermost) = stay.stack.last() {
            let sum = &mut self_nanos[*innermost];
            *sum = sum.saturating_add(record.epoch_nanos.saturating_sub(stay.since_nanos));
        }
        stay.since_nanos = record.epoch_nanos;
        if is_enter {
            stay.stack.push(span);
        } else if let Some(at) = stay.stack.iter().rposition(|entered| *entered == span) {
            stay.stack.remove(at);
        }
    }
    for stay in threads.into_values() {
        if let Some(innermost) = stay.stack.last() {
            let sum = &mut self_nanos[*innermost];
            *sum = sum.saturating_add(timeline.last_nanos.saturating_sub(stay.since_nanos));
        }
    }
}

/// The names from the program to the span.
fn stack(recording: &Recording<'_>, timeline: &Timeline, index: usize) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut at = Some(index);
    while let Some(index) = at
        && names.len() < DEPTH_MAX
    {
        names.push(frame(&timeline.spans[index].name()));
        at = timeline.parent_of(index);
    }
    let process = timeline.spans[index].process;
    let program = recording.capture.rings().iter().find(|ring| ring.process == process);
    names.push(frame(program.map_or("", |ring| &ring.program_name)));
    names.reverse();
    names.join(";")
}

/// A name without what separates stacks.
fn frame(name: &str) -> String {
    if name.is_empty() {
        return "?".into();
    }
    name.chars().map(|c| if c == ';' || c.is_control() { ' ' } else { c }).collect()
}
