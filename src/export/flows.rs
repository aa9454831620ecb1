//! Flows: the arrows between slices that a viewer cannot know by itself.
//!
//! An arrow goes from a span to a span that follows from it. In thread view, an arrow also goes from a parent to a
//! child whose first slice is on another thread.

use super::View;
use super::span_slices::Slice;
use super::span_times::SpanTimes;
use super::timeline::{SliceKey, Timeline};
use super::trace_writer::{FlowEnds, FlowId};

/// The flows of all slices. In thread view, the key of a slice is that of its span slice. In span view it is the
/// process and the id of the span.
#[derive(Default)]
pub(super) struct Flows {
    begins: FlowsByKey,
    ends: FlowsByKey,
}

/// Flows by the key of a slice.
#[derive(Default)]
struct FlowsByKey {
    keys: Vec<SliceKey>,
    flows: Vec<FlowId>,
}

impl Flows {
    /// Finds the flows between the spans of a timeline.
    pub(super) fn of(timeline: &Timeline, view: View) -> Self {
        let (mut begins, mut ends) = (Vec::new(), Vec::new());
        let mut add = |(begin, end): (SliceKey, SliceKey)| {
            let flow = FlowId(begins.len() as u64 + 1);
            begins.push((begin, flow));
            ends.push((end, flow));
        };
        for (index, span) in timeline.spans.iter().enumerate() {
            let arrow = |from: &SpanTimes| match view {
                View::Thread => between_slices(from, span),
                View::Span => between_spans(from, span),
            };
            let key = |id| timeline.get((span.process, id));
            span.follows_from.iter().filter_map(|id| arrow(key(*id)?)).for_each(&mut add);
            if view == View::Thread
                && let Some(parent) = timeline.parent_of(index)
            {
                to_other_thread(&timeline.spans[parent], span).into_iter().for_each(&mut add);
            }
        }
        Self { begins: FlowsByKey::new(begins), ends: FlowsByKey::new(ends) }
    }

    /// Returns the flows of a slice.
    pub(super) fn at(&self, key: SliceKey) -> FlowEnds<'_> {
        FlowEnds { begins: self.begins.get(key), ends: self.ends.get(key) }
    }
}

impl FlowsByKey {
    fn new(mut flows: Vec<(SliceKey, FlowId)>) -> Self {
        flows.sort_unstable_by_key(|(key, flow)| (*key, flow.0));
        let (keys, flows) = flows.into_iter().unzip();
        Self { keys, flows }
    }

    fn get(&self, key: SliceKey) -> &[FlowId] {
        let from = self.keys.partition_point(|other| *other < key);
        let count = self.keys[from..].iter().take_while(|other| **other == key).count();
        &self.flows[from..from + count]
    }
}

/// Returns the arrow from the last slice of one span that began before the first slice of another, to this slice.
fn between_slices(from: &SpanTimes, to: &SpanTimes) -> Option<(SliceKey, SliceKey)> {
    let first = to.slices.first()?;
    Some(arrow(from.process, from.slices.last_before(first.start_nanos)?, first))
}

/// Returns the arrow from the slice of the parent in which a child was created, to the first slice of the child.
/// Returns `None` if both are on one thread.
fn to_other_thread(parent: &SpanTimes, child: &SpanTimes) -> Option<(SliceKey, SliceKey)> {
    let first = child.slices.first()?;
    // The parent may have been idle when the child was created.
    let created_in = parent.slices.at(None, child.start_nanos).filter(|slice| slice.start_nanos < first.start_nanos);
    let from = created_in.or_else(|| parent.slices.last_before(first.start_nanos))?;
    (from.thread != first.thread).then(|| arrow(parent.process, from, first))
}

/// Returns the arrow between the slices of two spans in span view.
fn between_spans(from: &SpanTimes, to: &SpanTimes) -> Option<(SliceKey, SliceKey)> {
    let key = |span: &SpanTimes| (span.process, span.id.get());
    (from.start_nanos < to.start_nanos).then(|| (key(from), key(to)))
}

fn arrow(process: u32, from: Slice, to: Slice) -> (SliceKey, SliceKey) {
    ((process, from.id), (process, to.id))
}
