//! The first pass over a capture. It finds the beginning and the end of each span, and the time that threads were in
//! the span.

use super::ExportSummary;
use super::losses::{Loss, LossCollector};
use super::recording::{CaptureRecording, EntryContent};
use super::span_slices;
use super::span_times::SpanTimes;
use super::track_rows::{self, Interval};
use crate::capture::CaptureError;
use crate::tracing::{PerfContent, Span, SpanChange, SpanId, SpanReplay, ThreadKey};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The key of a span: the process that recorded it, and the span's id in this process.
pub(super) type SpanKey = (u32, SpanId);
/// The key of a slice: the process that recorded it, and the slice's id in the replay of this process.
pub(super) type SliceKey = (u32, u64);

/// The spans of a capture, with their times and their track rows.
#[derive(Default)]
pub(super) struct Timeline {
    pub(super) spans: Vec<SpanTimes>,
    index: HashMap<SpanKey, usize>,
    /// The slices that overlap other slices of their thread without nesting, each with its track row, from 1.
    pub(super) overlapping: HashMap<SliceKey, u32>,
    /// The slices whose thread was still in the span at the end of the recording.
    pub(super) open_slices: HashSet<SliceKey>,
    /// The slices whose end may have been lost, each with the last time at which its thread is known to have been in
    /// the span.
    pub(super) lost_slices: HashMap<SliceKey, u64>,
    pub(super) losses: Vec<Loss>,
    pub(super) counts: ExportSummary,
    /// The times of the first and the last event.
    pub(super) first_nanos: u64,
    pub(super) last_nanos: u64,
}

impl Timeline {
    /// Reads a recording to its end.
    ///
    /// # Errors
    /// The export would take more memory than any capture of this size from a real program needs.
    pub(super) fn of(recording: &CaptureRecording<'_>) -> Result<Self, CaptureError> {
        let mut losses = LossCollector::new(recording.capture.rings().len());
        let mut replays: BTreeMap<u32, SpanReplay> = BTreeMap::new();
        let mut timeline = Self { first_nanos: u64::MAX, ..Self::default() };
        let counts = &mut timeline.counts;
        let mut entries = recording.entries();
        while let Some(entry) = entries.next() {
            let replay = replays.entry(entry.process).or_insert_with(|| SpanReplay::new().without_fields());
            let nanos = match &entry.content {
                EntryContent::Gap { first_seqno, count, cause } => {
                    losses.gap(entry.ring, *first_seqno, *count, *cause);
                    replay.gap(recording.losing_shard(entry.ring, *cause));
                    counts.lost = counts.lost.saturating_add(*count);
                    continue;
                }
                EntryContent::Perf { recorder, record, catalog } => {
                    let record = record.decode(catalog);
                    match (replay.push(*recorder, &record), &record.content) {
                        (SpanChange::SliceBegun(_), _) => counts.slices += 1,
                        (_, PerfContent::Event { .. }) => counts.events += 1,
                        (_, PerfContent::Counter { .. }) => counts.counters += 1,
                        (_, PerfContent::Marker { .. }) => counts.markers += 1,
                        _ => {}
                    }
                    record.epoch_nanos
                }
                EntryContent::Typed { descriptor, .. } => {
                    counts.typed_events += 1;
                    if let Some(span) = recording.span(entry.ring, descriptor) {
                        replay.push_typed_event(span, descriptor.record_epoch_nanos);
                    }
                    descriptor.record_epoch_nanos
                }
            };
            losses.event(entry.ring, nanos);
            timeline.first_nanos = timeline.first_nanos.min(nanos);
            timeline.last_nanos = timeline.last_nanos.max(nanos);
            entries.check_kept(replays.values().map(SpanReplay::kept_bytes).sum())?;
        }
        counts.problems = entries.problems().to_vec();
        counts.payload_losses = entries.payload_losses();
        timeline.first_nanos = timeline.first_nanos.min(timeline.last_nanos);
        timeline.losses = losses.finish(recording, timeline.first_nanos, timeline.last_nanos);
        replays.into_iter().for_each(|(process, replay)| timeline.end(process, replay));
        timeline.counts.spans = timeline.spans.len() as u64;
        timeline.counts.open_spans = timeline.spans.iter().filter(|span| span.is_open()).count() as u64;
        timeline.counts.lost_ends = timeline.spans.iter().filter(|span| span.is_end_lost).count() as u64;
        Ok(timeline)
    }

    pub(super) fn index_of(&self, key: SpanKey) -> Option<usize> {
        self.index.get(&key).copied()
    }

    pub(super) fn get(&self, key: SpanKey) -> Option<&SpanTimes> {
        self.index_of(key).map(|index| &self.spans[index])
    }

    /// Returns the parent of a span, if the parent was seen.
    pub(super) fn parent_of(&self, index: usize) -> Option<usize> {
        let span = &self.spans[index];
        self.index_of((span.process, span.parent?))
    }

    /// Takes the spans of a process.
    fn end(&mut self, process: u32, replay: SpanReplay) {
        let last_nanos = self.last_nanos;
        for slice in replay.open_slices() {
            if replay.may_have_ended(slice, last_nanos) {
                self.lost_slices.insert((process, slice.id), slice.last_seen_epoch_nanos);
            } else {
                self.open_slices.insert((process, slice.id));
            }
        }
        let mut spans = replay.finish(last_nanos);
        spans.sort_unstable_by_key(|span| span.number);
        let first = self.spans.len();
        self.spans.reserve_exact(spans.len());
        let mut overlapping = Vec::new();
        for span in spans {
            overlapping.extend(overlapping_slices(&span));
            let end_of = |slice| match self.open_slices.contains(&(process, slice)) {
                true => Some(span_slices::OPEN),
                false => self.lost_slices.get(&(process, slice)).copied(),
            };
            self.index.insert((process, span.id), self.spans.len());
            self.spans.push(SpanTimes::new(process, span, last_nanos, end_of));
        }
        self.place_overlapping(process, overlapping);
        self.place_spans(first);
    }

    /// Assigns track rows to those slices of each thread that overlap without nesting.
    fn place_overlapping(&mut self, process: u32, mut slices: Vec<Overlapping>) {
        slices.sort_unstable_by_key(|slice| (slice.thread, slice.id));
        for of_thread in slices.chunk_by(|a, b| a.thread == b.thread) {
            let intervals: Vec<Interval> = of_thread.iter().map(|slice| slice.interval).collect();
            let rows = track_rows::assign(&intervals);
            self.overlapping.extend(of_thread.iter().zip(rows).map(|(slice, row)| ((process, slice.id), row + 1)));
        }
    }

    /// Assigns track rows to the spans of one process. These are the spans from index `first` on.
    fn place_spans(&mut self, first: usize) {
        let interval = |index: usize| {
            let span = &self.spans[index];
            let parent = self.parent_of(index).map(|parent| parent - first);
            Interval { start: span.start_nanos, end: span.drawn_end_nanos(), parent }
        };
        let intervals: Vec<Interval> = (first..self.spans.len()).map(interval).collect();
        for (span, row) in self.spans[first..].iter_mut().zip(track_rows::assign(&intervals)) {
            span.row = row;
        }
    }
}

/// A slice that does not nest: it ended before a slice that had begun later on the same thread.
struct Overlapping {
    thread: ThreadKey,
    id: u64,
    interval: Interval,
}

fn overlapping_slices(span: &Span) -> impl Iterator<Item = Overlapping> {
    let closed = span.closed.as_ref().map(|closed| closed.epoch_nanos);
    span.slices.iter().filter(|slice| !slice.nests).filter_map(move |slice| {
        let end = if slice.is_cut { closed } else { slice.exited_epoch_nanos };
        let interval = Interval { start: slice.entered_epoch_nanos?, end, parent: None };
        Some(Overlapping { thread: slice.thread_key(), id: slice.id?, interval })
    })
}
