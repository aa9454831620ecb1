//! Arrows between processes: from a remote parent to its child.

use super::flows::{ArrowEnd, FlowFinder, FlowId, Flows};
use eventring::tracing::Span;
use eventring_capture::recording::ReplayState;

/// The arrows that were found.
#[derive(Default)]
pub(crate) struct Joins {
    found: Vec<Join>,
}

/// An arrow, with the process and the slice at each end.
struct Join {
    from: (usize, u32),
    to: (usize, u32),
}

impl Joins {
    /// Looks for the remote parent of the span that has begun in a process. The parent must be open, or have closed in
    /// the last milliseconds. `flows` returns what is known of the slices of a process.
    pub(crate) fn add<'f>(
        &mut self,
        (process, called): (usize, ArrowEnd),
        state: ReplayState<'_>,
        flows: impl Fn(usize) -> &'f FlowFinder,
    ) {
        let Some((of, parent)) = state.span(process, called.span).and_then(|span| remote_parent(span, state)) else {
            return;
        };
        let Some(from) = flows(of).caller(parent).filter(|from| from.start_nanos < called.start_nanos) else { return };
        if let (Ok(from), Ok(to)) = (u32::try_from(from.slice), u32::try_from(called.slice)) {
            self.found.push(Join { from: (of, from), to: (process, to) });
        }
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.found.capacity() as u64 * 3 * size_of::<Join>() as u64
    }

    /// Gives the arrows to the processes. `before` is the number of all other flows.
    pub(crate) fn finish(self, processes: &mut [&mut Flows], before: u64) {
        for (join, number) in self.found.into_iter().zip(1..) {
            let id = FlowId(before + number);
            for ((process, slice), begins_here) in [(join.from, true), (join.to, false)] {
                if let Some(process) = processes.get_mut(process) {
                    process.join(slice, begins_here, id);
                }
            }
        }
        processes.iter_mut().for_each(|flows| flows.sort_joined());
    }
}

/// Returns the remote parent of a span, with the index of its process, if it is a known span of this recording.
fn remote_parent<'r>(span: &Span, state: ReplayState<'r>) -> Option<(usize, &'r Span)> {
    let (trace, parent_id) = (span.remote_trace?, span.remote_parent?);
    let rings = &state.tables.rings;
    (0..state.replays.len()).find_map(|process| {
        let ids = rings.ids(process);
        let is_it = |span: &&Span| {
            let of_span = ids.of(span);
            (of_span.trace_id, of_span.span_id) == (trace.trace_id, parent_id)
        };
        let candidates = [false, true].map(|is_remote| ids.span_of(parent_id, is_remote));
        let spans = candidates.into_iter().flatten().filter_map(|id| state.span(process, id));
        Some((process, spans.into_iter().find(is_it)?))
    })
}
