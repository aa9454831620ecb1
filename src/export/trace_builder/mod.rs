//! The second pass over a capture. It draws tracks, slices, instants and counters for a trace viewer.

mod drawn;
mod instants;
mod slices;
mod spans;
mod tracks;

use super::args::{ArgValue, Args};
use super::flows::Flows;
use super::recording::{CaptureRecording, EntryContent};
use super::timeline::{SliceKey, SpanKey, Timeline};
use super::trace_writer::{Label, SliceId, TraceWriter, TrackId};
use super::{ExportOptions, Names, View};
use crate::schema::perf::FieldValue;
use crate::tracing::{CallSite, Field, Fields, PerfContent, PerfRecord, SpanChange, SpanId, SpanReplay, ThreadKey};
use drawn::{DrawnSlice, DrawnSpan, Waiting};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tracks::TrackKey;

/// Draws a recording as a trace.
pub(super) fn draw(
    recording: &CaptureRecording<'_>,
    timeline: &Timeline,
    ExportOptions { view, names }: ExportOptions,
    writer: &mut dyn TraceWriter,
) -> io::Result<()> {
    let mut builder = TraceBuilder {
        recording,
        timeline,
        view,
        names,
        flows: Flows::of(timeline, view),
        writer,
        replays: HashMap::new(),
        tracks: HashMap::new(),
        slices_drawn: 0,
        spans: HashMap::new(),
        slices: HashMap::new(),
        waiting: HashMap::new(),
        moved: HashMap::new(),
        free_from: HashMap::new(),
    };
    for entry in recording.entries() {
        let process = entry.process;
        match &entry.content {
            EntryContent::Perf { recorder, record } => builder.record(process, *recorder, record)?,
            EntryContent::Typed { descriptor, payload } => {
                builder.typed_event(process, entry.ring, descriptor, payload)?;
            }
            EntryContent::Gap { cause, .. } => builder.replay(process).gap(recording.losing_shard(entry.ring, *cause)),
        }
    }
    builder.end_lost_spans()?;
    builder.losses()?;
    builder.writer.finish()
}

struct TraceBuilder<'p> {
    recording: &'p CaptureRecording<'p>,
    timeline: &'p Timeline,
    view: View,
    names: Names,
    flows: Flows,
    writer: &'p mut dyn TraceWriter,
    replays: HashMap<u32, SpanReplay>,
    tracks: HashMap<TrackKey, TrackId>,
    slices_drawn: u64,
    /// The open spans.
    spans: HashMap<SpanKey, DrawnSpan>,
    /// The slices that have begun in the output and have not ended there.
    slices: HashMap<SliceKey, DrawnSlice>,
    /// Instants that were read before the beginning of their slice. This happens because events of different rings can
    /// be a few nanoseconds out of order.
    waiting: HashMap<SliceKey, Vec<Waiting>>,
    /// The drawn beginning of each slice that is drawn later than it began. A slice is drawn later if an earlier slice
    /// of its thread took no time, because a slice without length is drawn one nanosecond long.
    moved: HashMap<SliceKey, u64>,
    /// The time from which the next slice of a thread can be drawn. Only threads that have a slice with a drawn end
    /// after its true end are here.
    free_from: HashMap<ThreadKey, u64>,
}

impl TraceBuilder<'_> {
    fn record(&mut self, process: u32, recorder: u32, record: &PerfRecord) -> io::Result<()> {
        let nanos = record.epoch_nanos;
        let replay = self.replay(process);
        while replay.take_closed().is_some() {}
        match replay.push(recorder, record) {
            SpanChange::None => self.instant_of(process, recorder, record),
            SpanChange::Updated(span) => self.update((process, span), record),
            SpanChange::SliceBegun(slice) => {
                self.see((process, slice.span), nanos)?;
                self.begin_slice(process, &slice, &record.thread)
            }
            SpanChange::SliceEnded(slice) => {
                self.see((process, slice.span), nanos)?;
                self.end_slice(process, &slice, nanos, Args::default())
            }
            SpanChange::Closed { span, cut } => {
                self.see((process, span), nanos)?;
                for slice in cut {
                    // No thread can be in a span after the close. The slice is still open here, so the record of its
                    // exit was lost.
                    self.end_slice(process, &slice, nanos, drawn::lost_end())?;
                }
                self.close((process, span), nanos)
            }
        }
    }

    /// Draws the changes that a record makes to a span.
    fn update(&mut self, key: SpanKey, record: &PerfRecord) -> io::Result<()> {
        match &record.content {
            PerfContent::SpanNew { fields, .. } => {
                self.spans.entry(key).or_default().add_fields(fields);
                self.show_span(key)
            }
            PerfContent::SpanRecord { fields, .. } => {
                self.see(key, record.epoch_nanos)?;
                self.add_fields(key, fields);
                Ok(())
            }
            PerfContent::SpanFollowsFrom { follows, .. } => {
                let (name, value) = (Arc::from("follows_from"), FieldValue::U64(follows.get()));
                let values = vec![Field { name, index: u8::MAX, value, cut: None }];
                self.add_fields(key, &Fields { values, ..Fields::default() });
                Ok(())
            }
            _ => self.see(key, record.epoch_nanos),
        }
    }

    fn add_fields(&mut self, key: SpanKey, fields: &Fields) {
        if let Some(span) = self.spans.get_mut(&key) {
            span.add_fields(fields);
        }
    }

    fn replay(&mut self, process: u32) -> &mut SpanReplay {
        self.replays.entry(process).or_insert_with(|| SpanReplay::new().without_fields().without_slices())
    }

    /// Returns the parent and the call site of a span, as far as the replay has seen them by now.
    fn described(&self, key: SpanKey) -> (Option<SpanId>, Option<Arc<CallSite>>) {
        let span = self.replays.get(&key.0).and_then(|replay| replay.get(key.1));
        span.map_or((None, None), |span| (span.parent, span.call_site.clone()))
    }

    /// Draws the losses, each ring's on a track of its own.
    fn losses(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        for loss in &timeline.losses {
            let track = self.track(TrackKey::Losses(loss.ring), None)?;
            let slice = self.next_slice();
            let mut args = Args::default();
            args.push("first_seqno", ArgValue::Uint(loss.first_seqno));
            args.push("count", ArgValue::Uint(loss.count));
            loss.causes().for_each(|(cause, count)| args.push(cause.name(), ArgValue::Uint(count)));
            let title = loss.title();
            let label = Label { name: &title, category: "eventring", ..Label::default() };
            self.writer.begin(track, slice, loss.from_nanos, label, &args)?;
            self.writer.end(track, slice, loss.until_nanos, &Args::default())?;
        }
        Ok(())
    }

    fn next_slice(&mut self) -> SliceId {
        self.slices_drawn += 1;
        SliceId(self.slices_drawn)
    }
}
