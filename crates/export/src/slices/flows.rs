//! Flows: arrows between slices. They show relations that a viewer cannot infer.
//!
//! An arrow goes:
//!
//! - from a span to a span that follows from it
//! - in thread view, from a parent to a child whose first slice is on another thread
//! - in thread view, from the slice in which a task was woken to the task's next poll
//! - between processes, from a remote parent to its child
//!
//! No arrow begins at a span that was closed more than 5 milliseconds before the arrow's end.

use crate::options::View;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, IdMap, OpenSlice, RawRecord, Span, SpanId, SpanReplay, SpanStep, ThreadKey};
use eventring_tasks::TARGET;

/// The number of a flow: an arrow from a slice or instant to a later one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u64);

/// The flows that begin and that end at a slice or instant.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowEnds<'a> {
    /// The flows that begin here.
    pub begins: &'a [FlowId],
    /// The flows that end here.
    pub ends: &'a [FlowId],
}

/// The flows between the drawn slices of one process. In thread view, a drawn slice is a span slice, and its number is
/// the id of this. In span view it is a span.
#[derive(Default)]
pub(crate) struct Flows {
    /// The number of the slice at which each flow begins, in ascending order. The index is the number of the flow.
    begins: Vec<u32>,
    /// The number of the slice at which a flow ends, and the number of the flow.
    ends: Vec<(u32, u32)>,
    /// The number of flows of other processes, which come before these.
    before: u64,
    /// The flows from or to slices of other processes, in the order of the slices of this one.
    joined: Vec<JoinedFlow>,
}

/// The end of a flow between processes that is at a slice of one of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct JoinedFlow {
    slice: u32,
    begins_here: bool,
    id: FlowId,
}

impl Flows {
    /// Returns the flows of the next slice. `place` is a reader's place, and the numbers of its slices ascend.
    pub(crate) fn of_next(&self, place: &mut FlowPlace, slice: u64) -> SliceFlows {
        let mut found = SliceFlows::default();
        while let Some(begin) = self.begins.get(place.begins).filter(|begin| u64::from(**begin) <= slice) {
            place.begins += 1;
            if u64::from(*begin) == slice {
                found.begins.push(FlowId(self.before + place.begins as u64));
            }
        }
        while let Some((end, flow)) = self.ends.get(place.ends).filter(|(end, _)| u64::from(*end) <= slice) {
            place.ends += 1;
            if u64::from(*end) == slice {
                found.ends.push(FlowId(self.before + u64::from(*flow) + 1));
            }
        }
        while let Some(joined) = self.joined.get(place.joined).filter(|joined| u64::from(joined.slice) <= slice) {
            place.joined += 1;
            if u64::from(joined.slice) == slice {
                let side = if joined.begins_here { &mut found.begins } else { &mut found.ends };
                side.push(joined.id);
            }
        }
        found
    }

    /// Takes an end of a flow between processes.
    pub(crate) fn join(&mut self, slice: u32, begins_here: bool, id: FlowId) {
        self.joined.push(JoinedFlow { slice, begins_here, id });
    }

    /// Puts the flows between processes into the order of their slices.
    pub(crate) fn sort_joined(&mut self) {
        self.joined.sort_unstable();
    }

    pub(crate) fn count(&self) -> u64 {
        self.begins.len() as u64
    }
}

/// The place of a reader of flows.
#[derive(Default)]
pub(crate) struct FlowPlace {
    begins: usize,
    ends: usize,
    joined: usize,
}

/// The flows of one slice.
#[derive(Default)]
pub(crate) struct SliceFlows {
    begins: Vec<FlowId>,
    ends: Vec<FlowId>,
}

impl SliceFlows {
    pub(crate) fn as_ends(&self) -> FlowEnds<'_> {
        FlowEnds { begins: &self.begins, ends: &self.ends }
    }
}

impl From<FlowEnds<'_>> for SliceFlows {
    fn from(flows: FlowEnds<'_>) -> Self {
        Self { begins: flows.begins.to_vec(), ends: flows.ends.to_vec() }
    }
}

/// A finder of the flows of one process.
pub(crate) struct FlowFinder {
    view: View,
    /// The spans that may be at the beginning or the end of a flow.
    spans: IdMap<SpanId, FlowSpan>,
    /// The slices between which each flow goes.
    found: Vec<(u32, u32)>,
    /// The place at which the arrow from a remote parent ends, until somebody takes it.
    called: Option<ArrowEnd>,
}

/// The place of a slice at which an arrow from or to another process ends.
#[derive(Clone, Copy)]
pub(crate) struct ArrowEnd {
    /// The number of the slice.
    pub(crate) slice: u64,
    /// The span of the slice.
    pub(crate) span: SpanId,
    pub(crate) start_nanos: u64,
}

#[derive(Default)]
struct FlowSpan {
    first: Option<FlowSlice>,
    last: Option<FlowSlice>,
    /// The slice of the parent in which the span was created.
    created_in: Option<FlowSlice>,
    /// The slice in which a task was first woken since its last poll.
    woken_in: Option<u64>,
}

/// A slice of a span.
#[derive(Clone, Copy)]
struct FlowSlice {
    id: u64,
    thread: ThreadKey,
    start_nanos: u64,
    /// `None` until the slice ends.
    end_nanos: Option<u64>,
}

impl FlowFinder {
    /// Makes a finder. In a trace with both views, the flows go between the slices of threads.
    pub(crate) fn new(view: View) -> Self {
        let view = if view.has_threads() { View::Thread } else { View::Span };
        Self { view, spans: IdMap::default(), found: Vec::new(), called: None }
    }

    /// Notes a record and its effect on the replay of its process.
    pub(crate) fn record(
        &mut self,
        record: &RawRecord<'_>,
        (catalog, thread): (&Catalog, ThreadKey),
        step: &SpanStep,
        replay: &SpanReplay,
    ) {
        let spans = (record.span(), record.related());
        // The replay drops the links of a span that has very many.
        if record.event == Some(PerfEvent::SpanFollowsFrom) && matches!(step, SpanStep::None) {
            return;
        }
        if record.event == Some(PerfEvent::SpanRecord) {
            self.note_caller(spans.0, replay);
        }
        match (record.event, self.view, spans) {
            (Some(PerfEvent::SpanFollowsFrom), View::Span, (Some(later), Some(earlier))) => {
                self.between_spans(earlier, later, replay);
            }
            (Some(PerfEvent::SpanFollowsFrom), View::Thread, (Some(later), Some(earlier))) => {
                // The later span may have begun already. Otherwise its first slice looks for the earlier one.
                if let Some(first) = self.spans.get(&later).and_then(|later| later.first) {
                    self.follow(earlier, first);
                }
            }
            (Some(PerfEvent::SpanNew), View::Thread, (Some(child), Some(parent))) => {
                let created_in = self.spans.get(&parent).and_then(|parent| parent.last);
                let nanos = record.epoch_nanos();
                let created_in = created_in.filter(|slice| slice.end_nanos.is_none_or(|end| end >= nanos));
                if created_in.is_some() {
                    self.spans.entry(child).or_default().created_in = created_in;
                }
            }
            (Some(PerfEvent::Event), View::Thread, (Some(task), _)) => {
                let site = catalog.known_call_site(record.ext.call_site_id);
                if site.is_some_and(|site| site.target == TARGET && site.name == "woken") {
                    self.wake(task, replay.stack(thread));
                }
            }
            (_, View::Thread, _) => match step {
                SpanStep::SliceBegun(slice) => self.begin(slice, replay),
                SpanStep::SliceEnded(taken) => self.end(&taken.slice, record.epoch_nanos()),
                SpanStep::Closed { cut, .. } => {
                    cut.iter().for_each(|taken| self.end(&taken.slice, record.epoch_nanos()));
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Takes the place at which the arrow from a remote parent ends, if the last record has shown such a place.
    pub(crate) fn take_called(&mut self) -> Option<ArrowEnd> {
        self.called.take()
    }

    /// Returns the place at which an arrow to another process begins at this span of the replay.
    pub(crate) fn caller(&self, span: &Span) -> Option<ArrowEnd> {
        let (slice, start_nanos) = match self.view {
            View::Span => (span.number, span.start_epoch_nanos()),
            _ => self.spans.get(&span.id).and_then(|span| span.last).map(|last| (last.id, last.start_nanos))?,
        };
        Some(ArrowEnd { slice, span: span.id, start_nanos })
    }

    /// Notes that a span has got a remote parent after its first slice has begun, or that spans are drawn whole.
    fn note_caller(&mut self, id: Option<SpanId>, replay: &SpanReplay) {
        let Some(span) = id.and_then(|id| replay.get(id)).filter(|span| span.remote_parent.is_some()) else { return };
        let first = self.spans.get(&span.id).and_then(|span| span.first).map(|first| (first.id, first.start_nanos));
        let place = if self.view == View::Span { Some((span.number, span.start_epoch_nanos())) } else { first };
        self.called = place.map(|(slice, start_nanos)| ArrowEnd { slice, span: span.id, start_nanos });
    }

    /// Forgets a span that is over.
    pub(crate) fn forget(&mut self, span: &Span) {
        self.spans.remove(&span.id);
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        let of_spans = self.spans.len() as u64 * 2 * size_of::<(SpanId, FlowSpan)>() as u64;
        of_spans.saturating_add(self.found.capacity() as u64 * 24)
    }

    /// Returns the flows. `before` is the number of flows of other processes.
    pub(crate) fn finish(mut self, before: u64) -> Flows {
        self.found.sort_unstable();
        let mut ends: Vec<(u32, u32)> = self.found.iter().zip(0..).map(|((_, end), flow)| (*end, flow)).collect();
        ends.sort_unstable();
        let begins = self.found.into_iter().map(|(begin, _)| begin).collect();
        Flows { begins, ends, before, joined: Vec::new() }
    }

    fn begin(&mut self, slice: &OpenSlice, replay: &SpanReplay) {
        let begun =
            FlowSlice { id: slice.id, thread: slice.thread, start_nanos: slice.entered_epoch_nanos, end_nanos: None };
        let span = self.spans.entry(slice.span).or_default();
        span.last = Some(begun);
        if let Some(woken_in) = span.woken_in.take() {
            self.found.extend(u32::try_from(woken_in).ok().zip(u32::try_from(begun.id).ok()));
        }
        if span.first.is_some() {
            return;
        }
        span.first = Some(begun);
        let Some((replayed, created_in)) = replay.get(slice.span).zip(Some(span.created_in)) else { return };
        if replayed.remote_parent.is_some() {
            self.called = Some(ArrowEnd { slice: begun.id, span: slice.span, start_nanos: begun.start_nanos });
        }
        replayed.follows_from.iter().for_each(|earlier| self.follow(*earlier, begun));
        if let Some(parent) = replayed.parent {
            // The parent may have been idle when the child was created.
            let of_parent = || self.spans.get(&parent).and_then(|parent| parent.last);
            let from = created_in.or_else(of_parent).filter(|from| from.start_nanos < begun.start_nanos);
            if let Some(from) = from.filter(|from| from.thread != begun.thread) {
                self.add(from.id, begun.id);
            }
        }
    }

    /// Notes a wake of a task by a thread that is in these slices. A task that wakes itself gets no arrow.
    fn wake(&mut self, task: SpanId, waker: &[OpenSlice]) {
        if let Some(slice) = waker.last().filter(|slice| slice.span != task) {
            self.spans.entry(task).or_default().woken_in.get_or_insert(slice.id);
        }
    }

    fn end(&mut self, slice: &OpenSlice, nanos: u64) {
        let last = self.spans.get_mut(&slice.span).and_then(|span| span.last.as_mut());
        if let Some(last) = last.filter(|last| last.id == slice.id) {
            last.end_nanos = Some(nanos);
        }
    }

    /// Adds the arrow from the last slice of a span that began before the first slice of another, to this slice.
    fn follow(&mut self, earlier: SpanId, first: FlowSlice) {
        let from = self.spans.get(&earlier).and_then(|earlier| earlier.last);
        if let Some(from) = from.filter(|from| from.start_nanos < first.start_nanos) {
            self.add(from.id, first.id);
        }
    }

    /// Adds the arrow between the slices of two spans in span view.
    fn between_spans(&mut self, earlier: SpanId, later: SpanId, replay: &SpanReplay) {
        if let (Some(from), Some(to)) = (replay.get(earlier), replay.get(later))
            && from.start_epoch_nanos() < to.start_epoch_nanos()
        {
            self.add(from.number, to.number);
        }
    }

    fn add(&mut self, from: u64, to: u64) {
        if let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) {
            self.found.push((from, to));
        }
    }
}
