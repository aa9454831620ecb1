//! The first look at a capture: when each span began and ended, and how long threads were in it.

use super::ExportSummary;
use super::lanes::{self, Interval};
use super::losses::{Loss, LossCollector};
use super::recording::{Content, Recording};
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
    /// Slices that were never ended, by the number of their enter.
    pub(super) open_slices: HashSet<u64>,
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
    /// How long threads were in it, each counted once; of an open span, until the end of the recording.
    pub(super) busy_nanos: u64,
    /// False of an open span of whose events some may have been lost.
    pub(super) is_busy_known: bool,
    /// Its time without that in which a child of it was there; `None` if its duration is not known.
    pub(super) self_nanos: Option<u64>,
    /// Where it is drawn among the spans of its process.
    pub(super) lane: u32,
}

impl SpanTimes {
    /// From creation to close; `None` while one of them is not known.
    pub(super) fn wall_nanos(&self) -> Option<u64> {
        self.end_nanos.filter(|_| self.is_start_known).map(|end| end.saturating_sub(self.start_nanos))
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
    /// How many spans were known when that happened last: of those, events may be missing.
    spans_before_loss: usize,
}

impl Timeline {
    pub(super) fn of(recording: &Recording<'_>) -> Self {
        let mut losses = LossCollector::new(recording.capture.rings().len());
        let mut builder = Builder::default();
        let mut first_nanos = u64::MAX;
        let mut last_nanos = 0;
        let mut entries = recording.entries();
        for entry in &mut entries {
            let nanos = match &entry.content {
                Content::Gap { first_seqno, count, cause } => {
                    losses.gap(entry.ring, *first_seqno, *count, *cause);
                    builder.lossy.insert(entry.process);
                    builder.spans_before_loss = builder.timeline.spans.len();
                    builder.timeline.counts.lost = builder.timeline.counts.lost.saturating_add(*count);
                    continue;
                }
                Content::Perf { recorder, record } => {
                    builder.record(entry.process, *recorder, record);
                    record.epoch_nanos
                }
                Content::Other { descriptor, .. } => {
                    builder.timeline.counts.exec_events += 1;
                    descriptor.record_epoch_nanos
                }
            };
            losses.event(entry.ring, nanos);
            first_nanos = first_nanos.min(nanos);
            last_nanos = last_nanos.max(nanos);
        }
        let problems = entries.problems().to_vec();
        let mut timeline = builder.finish(last_nanos);
        timeline.first_nanos = first_nanos.min(last_nanos);
        timeline.last_nanos = last_nanos;
        timeline.losses = losses.finish(recording, timeline.first_nanos, last_nanos);
        timeline.counts.problems = problems;
        timeline
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
                busy_nanos: 0,
                is_busy_known: true,
                self_nanos: None,
                lane: 0,
            });
            spans.len() - 1
        });
        let span = &mut spans[index];
        if !span.is_start_known {
            span.start_nanos = span.start_nanos.min(nanos);
        }
        index
    }

    fn place_spans(&mut self) {
        let intervals: Vec<Interval> = (0..self.spans.len())
            .map(|index| {
                let span = &self.spans[index];
                let end = span.end_nanos.map(|end| end.max(span.start_nanos));
                Interval { start: span.start_nanos, end, parent: self.parent_of(index) }
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
                Some((self.parent_of(index)?, span.start_nanos, span.end_nanos.unwrap_or(u64::MAX)))
            })
            .collect();
        children.sort_unstable();
        let mut covered: HashMap<usize, u64> = HashMap::new();
        for family in children.chunk_by(|a, b| a.0 == b.0) {
            let parent = &self.spans[family[0].0];
            let Some(parent_end) = parent.end_nanos else { continue };
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
            span.self_nanos = span.wall_nanos().map(|wall| wall.saturating_sub(covered));
        }
    }
}

impl Builder {
    fn record(&mut self, process: u32, recorder: u32, record: &PerfRecord) {
        let nanos = record.epoch_nanos;
        let thread = (recorder, record.thread.id);
        let timeline = &mut self.timeline;
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
                self.threads.entry(thread).or_default().push(OpenSlice { span, enter, start_nanos: nanos });
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
    }

    fn exit(&mut self, thread: ThreadKey, span: usize, nanos: u64) {
        let stack = self.threads.entry(thread).or_default();
        let Some(at) = stack.iter().rposition(|slice| slice.span == span) else { return };
        let is_innermost = at + 1 == stack.len();
        let slice = stack.remove(at);
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
                let OpenSlice { enter, start_nanos, .. } = stack.remove(at);
                if !is_innermost {
                    self.apart.push(ApartSlice { thread: *thread, enter, start_nanos, end_nanos: nanos });
                }
            }
        }
    }

    /// Threads stay in open spans until the end of the recording.
    fn end_open_slices(&mut self, last_nanos: u64) {
        let spans = &mut self.timeline.spans;
        for stack in self.threads.values() {
            let mut counted = HashSet::new();
            for slice in stack {
                let span = &mut spans[slice.span];
                // Entered again while it was entered: counts once.
                if span.end_nanos.is_none() && counted.insert(slice.span) {
                    let busy = last_nanos.saturating_sub(slice.start_nanos);
                    span.busy_nanos = span.busy_nanos.saturating_add(busy);
                }
            }
        }
        for span in spans.iter_mut().take(self.spans_before_loss).filter(|span| span.end_nanos.is_none()) {
            // Its exits may be among what was lost.
            span.is_busy_known = !self.lossy.contains(&span.process);
        }
        for span in spans.iter_mut().filter(|span| span.end_nanos.is_none() && !span.is_start_known) {
            span.is_busy_known = false;
        }
    }

    fn finish(mut self, last_nanos: u64) -> Timeline {
        self.end_open_slices(last_nanos);
        let mut timeline = self.timeline;
        timeline.open_slices = self.threads.values().flatten().map(|slice| slice.enter).collect();
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
        timeline.place_spans();
        timeline.find_self_times();
        timeline.counts.spans = timeline.spans.len() as u64;
        timeline.counts.open_spans = timeline.spans.iter().filter(|span| span.end_nanos.is_none()).count() as u64;
        timeline
    }
}
