//! The first look at a capture: when each span began and ended, and how long threads were in it.

use super::ExportSummary;
use super::lanes::{self, Interval};
use super::losses::{Loss, LossCollector, LostUntil};
use super::recording::{Content, Recording};
use super::stays::{Stay, Stays};
use crate::capture::CaptureError;
use crate::tracing::{CallSite, PerfContent, PerfRecord, SpanId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A thread: the ring that is its recorder's shard 0, and its id there.
pub(super) type ThreadKey = (u32, u32);
/// A span: the process that recorded it, and its id there.
pub(super) type SpanKey = (u32, SpanId);

/// What is known of all spans.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) spans: Vec<SpanTimes>,
    index: HashMap<SpanKey, usize>,
    /// Slices of threads that do not nest in those around them, by the number of their enter, with their lane, from 1.
    pub(super) apart: HashMap<u64, u32>,
    /// Slices whose thread was still in the span at the end of the recording, by the number of their enter.
    pub(super) open_slices: HashSet<u64>,
    /// Slices whose end may have been lost, by the number of their enter, with the last time at which they are known to have lasted.
    pub(super) lost_slices: HashMap<u64, u64>,
    /// The rings in which each thread has recorded: mostly one.
    rings_of_threads: HashMap<ThreadKey, Vec<u32>>,
    /// All of these.
    rings_of_any: HashSet<u32>,
    pub(super) losses: Vec<Loss>,
    pub(super) counts: ExportSummary,
    /// Times of the first and the last event.
    pub(super) first_nanos: u64,
    pub(super) last_nanos: u64,
}

/// A span, without its fields.
#[derive(Debug)]
pub(super) struct SpanTimes {
    pub(super) process: u32,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) call_site: Option<Arc<CallSite>>,
    /// When it was created, or first seen.
    pub(super) start_nanos: u64,
    pub(super) is_start_known: bool,
    pub(super) end_nanos: Option<u64>,
    /// Nothing was seen of its end, which may have been lost. If this is false and there is no end, it was open at the end of the recording.
    pub(super) is_end_lost: bool,
    /// The last time at which it is known to have been there: when something named it, or happened in it, or a child of it was created.
    pub(super) seen_nanos: u64,
    /// How long threads were in it, each counted once; of an open span, until the end of the recording.
    pub(super) busy_nanos: u64,
    /// False where it has no end and some of its events may have been lost.
    pub(super) is_busy_known: bool,
    /// Its time without that in which a child of it was there, of an open span until the end of the recording; `None` if its beginning or its end was
    /// lost.
    pub(super) self_nanos: Option<u64>,
    /// Of threads in it.
    pub(super) stays: Stays,
    /// Where it is drawn among the spans of its process.
    pub(super) lane: u32,
}

impl SpanTimes {
    /// From creation to close; `None` while one of them is not known.
    pub(super) fn wall_nanos(&self) -> Option<u64> {
        self.end_nanos.filter(|_| self.is_start_known).map(|end| end.saturating_sub(self.start_nanos))
    }

    /// Whether it was there when the recording ended.
    pub(super) fn is_open(&self) -> bool {
        self.end_nanos.is_none() && !self.is_end_lost
    }

    /// Until when it is drawn: its end, or the last that is known of it. `None` of an open span.
    pub(super) fn drawn_end_nanos(&self) -> Option<u64> {
        let end = self.end_nanos.or(self.is_end_lost.then_some(self.seen_nanos))?;
        Some(end.max(self.start_nanos))
    }

    /// When something is drawn in it that happened in it: not at its end, which is no part of a slice.
    pub(super) fn drawn(&self, nanos: u64) -> u64 {
        self.drawn_end_nanos().map_or(nanos, |end| nanos.min(end.saturating_sub(1))).max(self.start_nanos)
    }

    /// Its name; `span N` if that was lost.
    pub(super) fn name(&self) -> String {
        self.call_site.as_ref().map_or_else(|| format!("span {}", self.id), |call_site| call_site.name.clone())
    }

    pub(super) fn target(&self) -> &str {
        self.call_site.as_ref().map_or("", |call_site| &call_site.target)
    }
}

/// A stay of a thread in a span that has not ended yet.
struct OpenSlice {
    span: usize,
    enter: u64,
    start_nanos: u64,
    /// The last time at which the thread is known to have been in it.
    seen_nanos: u64,
}

impl OpenSlice {
    fn until(&self, thread: ThreadKey, end_nanos: u64) -> Stay {
        Stay { thread, enter: self.enter, start_nanos: self.start_nanos, end_nanos }
    }
}

/// A slice that did not end as the innermost one.
struct ApartSlice {
    thread: ThreadKey,
    enter: u64,
    start_nanos: u64,
    end_nanos: u64,
}

#[derive(Default)]
struct Builder {
    timeline: Timeline,
    threads: HashMap<ThreadKey, Vec<OpenSlice>>,
    apart: Vec<ApartSlice>,
    /// Processes that have lost events.
    lossy: HashSet<u32>,
}

impl Timeline {
    /// # Errors
    /// It would keep more than a capture of that size can hold.
    pub(super) fn of(recording: &Recording<'_>) -> Result<Self, CaptureError> {
        let mut losses = LossCollector::new(recording.capture.rings().len());
        let mut builder = Builder::default();
        let mut first_nanos = u64::MAX;
        let mut last_nanos = 0;
        let mut seen_rings = HashSet::new();
        let mut entries = recording.entries();
        for entry in &mut entries {
            let nanos = match &entry.content {
                Content::Gap { first_seqno, count, cause } => {
                    losses.gap(entry.ring, *first_seqno, *count, *cause);
                    builder.lossy.insert(entry.process);
                    builder.timeline.counts.lost = builder.timeline.counts.lost.saturating_add(*count);
                    continue;
                }
                Content::Perf { recorder, record } => {
                    builder.record(entry.process, entry.ring, *recorder, record);
                    record.epoch_nanos
                }
                Content::Other { descriptor, .. } => {
                    builder.timeline.counts.exec_events += 1;
                    if let Some(span) = recording.span(entry.ring, descriptor) {
                        builder.timeline.see_inside((entry.process, span), descriptor.record_epoch_nanos);
                    }
                    descriptor.record_epoch_nanos
                }
            };
            losses.event(entry.ring, nanos);
            seen_rings.insert(entry.ring);
            first_nanos = first_nanos.min(nanos);
            last_nanos = last_nanos.max(nanos);
        }
        if let Some(error) = entries.refused() {
            return Err(error);
        }
        let problems = entries.problems().to_vec();
        let payload_losses = entries.payload_losses();
        let first_nanos = first_nanos.min(last_nanos);
        let losses = losses.finish(recording, first_nanos, last_nanos);
        let lost = LostUntil::new(recording, &losses, &seen_rings);
        builder.timeline.first_nanos = first_nanos;
        builder.timeline.last_nanos = last_nanos;
        let mut timeline = builder.finish(recording, &lost);
        timeline.losses = losses;
        timeline.counts.problems = problems;
        timeline.counts.payload_losses = payload_losses;
        Ok(timeline)
    }

    pub(super) fn index_of(&self, key: SpanKey) -> Option<usize> {
        self.index.get(&key).copied()
    }

    pub(super) fn get(&self, key: SpanKey) -> Option<&SpanTimes> {
        self.index_of(key).map(|index| &self.spans[index])
    }

    /// For each span its parent, if that was seen.
    pub(super) fn parent_of(&self, index: usize) -> Option<usize> {
        let span = &self.spans[index];
        self.index_of((span.process, span.parent?))
    }

    fn span(&mut self, process: u32, id: SpanId, nanos: u64) -> usize {
        let spans = &mut self.spans;
        let index = *self.index.entry((process, id)).or_insert_with(|| {
            spans.push(SpanTimes {
                process,
                id,
                parent: None,
                call_site: None,
                start_nanos: nanos,
                is_start_known: false,
                end_nanos: None,
                is_end_lost: false,
                seen_nanos: nanos,
                busy_nanos: 0,
                is_busy_known: true,
                self_nanos: None,
                stays: Stays::default(),
                lane: 0,
            });
            spans.len() - 1
        });
        let span = &mut spans[index];
        span.seen_nanos = span.seen_nanos.max(nanos);
        if !span.is_start_known {
            span.start_nanos = span.start_nanos.min(nanos);
        }
        index
    }

    /// Something happened in a span.
    fn see_inside(&mut self, key: SpanKey, nanos: u64) -> Option<usize> {
        let index = self.index_of(key)?;
        let span = &mut self.spans[index];
        span.seen_nanos = span.seen_nanos.max(nanos);
        Some(index)
    }

    /// Whether what a ring has lost may have been recorded by that thread.
    pub(super) fn concerns(&self, ring: u32, thread: ThreadKey) -> bool {
        let is_its = self.rings_of_threads.get(&thread).is_some_and(|rings| rings.contains(&ring));
        is_its || !self.rings_of_any.contains(&ring)
    }

    fn place_spans(&mut self) {
        let intervals: Vec<Interval> = (0..self.spans.len())
            .map(|index| {
                let span = &self.spans[index];
                Interval { start: span.start_nanos, end: span.drawn_end_nanos(), parent: self.parent_of(index) }
            })
            .collect();
        let mut by_process: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, span) in self.spans.iter().enumerate() {
            by_process.entry(span.process).or_default().push(index);
        }
        for indices in by_process.into_values() {
            let place: HashMap<usize, usize> =
                indices.iter().enumerate().map(|(place, index)| (*index, place)).collect();
            let own: Vec<Interval> = indices
                .iter()
                .map(|index| {
                    let parent = intervals[*index].parent.and_then(|parent| place.get(&parent).copied());
                    Interval { parent, ..intervals[*index] }
                })
                .collect();
            for (index, lane) in indices.into_iter().zip(lanes::assign(&own)) {
                self.spans[index].lane = lane;
            }
        }
    }

    /// A span's self time: what no child's time covers.
    fn find_self_times(&mut self) {
        let mut children: Vec<(usize, u64, u64)> = (0..self.spans.len())
            .filter_map(|index| {
                let span = &self.spans[index];
                Some((self.parent_of(index)?, span.start_nanos, span.drawn_end_nanos().unwrap_or(u64::MAX)))
            })
            .collect();
        children.sort_unstable();
        let mut covered: HashMap<usize, u64> = HashMap::new();
        for family in children.chunk_by(|a, b| a.0 == b.0) {
            let parent = &self.spans[family[0].0];
            let Some(parent_end) = parent.end_nanos.or(parent.is_open().then_some(self.last_nanos)) else { continue };
            let (mut until, mut sum) = (parent.start_nanos, 0_u64);
            for (_, start, end) in family {
                let (start, end) = ((*start).max(until), (*end).min(parent_end));
                if end > start {
                    sum = sum.saturating_add(end - start);
                    until = end;
                }
            }
            covered.insert(family[0].0, sum);
        }
        for (index, span) in self.spans.iter_mut().enumerate() {
            let covered = covered.get(&index).copied().unwrap_or(0);
            let end = span.end_nanos.or(span.is_open().then_some(self.last_nanos)).filter(|_| span.is_start_known);
            span.self_nanos = end.map(|end| end.saturating_sub(span.start_nanos).saturating_sub(covered));
        }
    }
}

impl Builder {
    fn record(&mut self, process: u32, ring: u32, recorder: u32, record: &PerfRecord) {
        let nanos = record.epoch_nanos;
        let thread = (recorder, record.thread.id);
        let timeline = &mut self.timeline;
        let rings = timeline.rings_of_threads.entry(thread).or_default();
        if !rings.contains(&ring) {
            rings.push(ring);
            timeline.rings_of_any.insert(ring);
        }
        let named = |timeline: &mut Timeline, id, call_site: &Arc<CallSite>| {
            let index = timeline.span(process, id, nanos);
            let known = &mut timeline.spans[index].call_site;
            if known.is_none() && call_site.is_known {
                *known = Some(call_site.clone());
            }
            index
        };
        match &record.content {
            PerfContent::SpanNew { span, parent, call_site, .. } => {
                let index = timeline.span(process, *span, nanos);
                let span = &mut timeline.spans[index];
                span.parent = *parent;
                span.call_site = Some(call_site.clone());
                span.start_nanos = nanos;
                span.is_start_known = true;
            }
            PerfContent::SpanRecord { span, call_site, .. } => {
                named(timeline, *span, call_site);
            }
            PerfContent::SpanEnter { span, call_site } => {
                let span = named(timeline, *span, call_site);
                let enter = timeline.counts.slices;
                timeline.counts.slices += 1;
                self.threads.entry(thread).or_default().push(OpenSlice {
                    span,
                    enter,
                    start_nanos: nanos,
                    seen_nanos: nanos,
                });
            }
            PerfContent::SpanExit { span, call_site } => {
                let span = named(timeline, *span, call_site);
                self.exit(thread, span, nanos);
            }
            PerfContent::SpanClose { span, call_site } => {
                let span = named(timeline, *span, call_site);
                timeline.spans[span].end_nanos = Some(nanos);
                if self.lossy.contains(&process) {
                    self.close_lost_slices(recorder, span, nanos);
                }
            }
            PerfContent::SpanFollowsFrom { span, .. } => {
                timeline.span(process, *span, nanos);
            }
            PerfContent::Event { .. } => timeline.counts.events += 1,
            PerfContent::Counter { .. } => timeline.counts.counters += 1,
            PerfContent::Marker { .. } => timeline.counts.markers += 1,
            _ => {}
        }
        self.see_around(process, thread, record);
    }

    /// What happens in a span, its children's creation too, says that it is there, and that the thread is in it, if that is where the thread was last.
    fn see_around(&mut self, process: u32, thread: ThreadKey, record: &PerfRecord) {
        let around = match &record.content {
            // That the child is there later says nothing of its parent.
            PerfContent::SpanNew { parent, .. } => *parent,
            PerfContent::Event { span, .. }
            | PerfContent::Counter { span, .. }
            | PerfContent::Marker { span, .. }
            | PerfContent::NotRecorded { span, .. } => *span,
            _ => return,
        };
        let Some(span) = around.and_then(|span| self.timeline.see_inside((process, span), record.epoch_nanos)) else {
            return;
        };
        let innermost = self.threads.get_mut(&thread).and_then(|stack| stack.last_mut());
        if let Some(slice) = innermost.filter(|slice| slice.span == span) {
            slice.seen_nanos = slice.seen_nanos.max(record.epoch_nanos);
        }
    }

    fn exit(&mut self, thread: ThreadKey, span: usize, nanos: u64) {
        let stack = self.threads.entry(thread).or_default();
        let Some(at) = stack.iter().rposition(|slice| slice.span == span) else { return };
        let is_innermost = at + 1 == stack.len();
        let slice = stack.remove(at);
        self.timeline.spans[span].stays.add(slice.until(thread, nanos));
        if !is_innermost {
            self.apart.push(ApartSlice {
                thread,
                enter: slice.enter,
                start_nanos: slice.start_nanos,
                end_nanos: nanos,
            });
        }
        if !stack.iter().any(|other| other.span == span) {
            let busy = &mut self.timeline.spans[span].busy_nanos;
            *busy = busy.saturating_add(nanos.saturating_sub(slice.start_nanos));
        }
    }

    /// No thread is in a span that is closed: its exit was lost.
    fn close_lost_slices(&mut self, recorder: u32, span: usize, nanos: u64) {
        for (thread, stack) in self.threads.iter_mut().filter(|(thread, _)| thread.0 == recorder) {
            while let Some(at) = stack.iter().rposition(|slice| slice.span == span) {
                let is_innermost = at + 1 == stack.len();
                let slice = stack.remove(at);
                self.timeline.spans[span].stays.add(slice.until(*thread, nanos));
                let OpenSlice { enter, start_nanos, .. } = slice;
                if !is_innermost {
                    self.apart.push(ApartSlice { thread: *thread, enter, start_nanos, end_nanos: nanos });
                }
            }
        }
    }

    /// Decides of each slice and span without an end whether it was open at the end of the recording, or its end may have been lost.
    fn end_open(&mut self, recording: &Recording<'_>, lost: &LostUntil) {
        let timeline = &mut self.timeline;
        let last_nanos = timeline.last_nanos;
        let mut is_entered = vec![false; timeline.spans.len()];
        for (thread, stack) in &self.threads {
            let rings = timeline.rings_of_threads.get(thread).map_or(&[][..], Vec::as_slice);
            let lost_until = lost.of_thread(recording.ring(thread.0).process, rings);
            let mut counted = HashSet::new();
            for slice in stack {
                let span = &mut timeline.spans[slice.span];
                let is_lost = lost_until > slice.seen_nanos;
                span.stays.add(slice.until(*thread, if is_lost { slice.seen_nanos } else { u64::MAX }));
                if is_lost {
                    timeline.lost_slices.insert(slice.enter, slice.seen_nanos);
                    continue;
                }
                timeline.open_slices.insert(slice.enter);
                is_entered[slice.span] = true;
                // Entered again while it was entered: counts once.
                if span.end_nanos.is_none() && counted.insert(slice.span) {
                    let busy = last_nanos.saturating_sub(slice.start_nanos);
                    span.busy_nanos = span.busy_nanos.saturating_add(busy);
                }
            }
        }
        for (span, is_entered) in timeline.spans.iter_mut().zip(is_entered) {
            if is_entered && span.end_nanos.is_none() {
                span.seen_nanos = last_nanos;
            }
        }
        for span in timeline.spans.iter_mut().filter(|span| span.end_nanos.is_none()) {
            let lost_until = lost.of_process(span.process);
            // At the end of the recording it is there, whatever was lost until then.
            span.is_end_lost = lost_until > span.seen_nanos;
            span.is_busy_known = !span.is_end_lost && span.is_start_known && lost_until <= span.start_nanos;
        }
    }

    fn finish(mut self, recording: &Recording<'_>, lost: &LostUntil) -> Timeline {
        self.end_open(recording, lost);
        let mut timeline = self.timeline;
        let mut by_thread: HashMap<ThreadKey, Vec<ApartSlice>> = HashMap::new();
        for slice in self.apart {
            by_thread.entry(slice.thread).or_default().push(slice);
        }
        for slices in by_thread.into_values() {
            let interval =
                |slice: &ApartSlice| Interval { start: slice.start_nanos, end: Some(slice.end_nanos), parent: None };
            let intervals: Vec<Interval> = slices.iter().map(interval).collect();
            let lanes = lanes::assign(&intervals);
            timeline.apart.extend(slices.iter().zip(lanes).map(|(slice, lane)| (slice.enter, lane + 1)));
        }
        timeline.spans.iter_mut().for_each(|span| span.stays.sort());
        timeline.place_spans();
        timeline.find_self_times();
        timeline.counts.spans = timeline.spans.len() as u64;
        timeline.counts.open_spans = timeline.spans.iter().filter(|span| span.is_open()).count() as u64;
        timeline.counts.lost_ends = timeline.spans.iter().filter(|span| span.is_end_lost).count() as u64;
        timeline
    }
}
