//! The second pass over a capture. It draws tracks, slices, instants and counters for a trace viewer.

mod chain;
mod drawn;
mod instants;
mod meters;
mod pending_instants;
mod slices;
mod spans;
mod states;
mod tasks;
mod thread_states;
mod tracks;

use super::args::{ArgValue, Args};
use super::outline::Outline;
use crate::formats::trace_writer::{Alert, Label, SliceId, TraceWriter, TrackId};
use crate::names::Names;
use crate::options::{ExportOptions, View};
use crate::slices::flows::FlowPlace;
use crate::slices::track_rows::TrackRows;
use chain::Chains;
use drawn::DrawnSpan;
use eventring::reader::Descriptor;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, IdMap, RawRecord, SpanId, SpanReplay, SpanStep, ThreadKey};
use eventring_capture::CaptureError;
use eventring_capture::recording::{
    CaptureRecording, EntryContent, OverSpan, RecordingEntry, ReplayConsumer, ReplayParts, ReplayState, replay_capture,
    write_error,
};
use eventring_profile::by_span::{KernelPart, KernelWanted};
use eventring_tasks::OpenTasks;
use meters::Meters;
use pending_instants::PendingInstants;
use states::States;
use std::io;
use tasks::DrawnTasks;
use thread_states::ThreadStates;
use tracks::TrackKey;

/// Draws a recording as a trace.
///
/// # Errors
/// Writing fails, or the export would take more memory than any capture of this size from a real program needs.
pub fn draw(
    recording: &CaptureRecording<'_>,
    outline: &Outline,
    ExportOptions { view, names, .. }: ExportOptions,
    writer: &mut dyn TraceWriter,
) -> Result<(), CaptureError> {
    let mut builder = TraceBuilder {
        recording,
        outline,
        view,
        names,
        writer,
        tracks: IdMap::default(),
        slices_drawn: 0,
        processes: recording.processes().iter().map(|_| DrawnProcess::default()).collect(),
        meters: (view == View::Both)
            .then(|| Meters::new(outline.counts.first_nanos, outline.counts.last_nanos, recording)),
        overlapping_rows: IdMap::default(),
        free_from: IdMap::default(),
        held: PendingInstants::default(),
        chains: Chains::new(recording),
        states: outline.kernel.as_ref().map(|_| {
            States::new(outline.processes.iter().map(|process| process.flows.count()).fold(0, u64::saturating_add))
        }),
        drawn_tasks: DrawnTasks::default(),
        thread_states: ThreadStates::default(),
        now_nanos: 0,
        field_bytes: 0,
    };
    replay_capture(recording, &mut builder)?;
    builder.finish().map_err(write_error)
}

struct TraceBuilder<'p> {
    recording: &'p CaptureRecording<'p>,
    outline: &'p Outline,
    view: View,
    names: Names,
    writer: &'p mut dyn TraceWriter,
    tracks: IdMap<TrackKey, TrackId>,
    slices_drawn: u64,
    processes: Vec<DrawnProcess>,
    /// Counters of events and spans, in a trace with both views.
    meters: Option<Meters>,
    /// The rows of each thread's slices that overlap without nesting.
    overlapping_rows: IdMap<ThreadKey, TrackRows>,
    /// The time from which the next slice of a thread can be drawn. Only threads that have a slice with a drawn end
    /// after its true end are here.
    free_from: IdMap<ThreadKey, u64>,
    held: PendingInstants,
    /// The blocks of execution events.
    chains: Chains,
    /// What threads did; `None` if the kernel says nothing.
    states: Option<States>,
    drawn_tasks: DrawnTasks,
    /// What threads did, as they have measured it themselves.
    thread_states: ThreadStates,
    /// The latest time of an event so far.
    now_nanos: u64,
    /// An estimate of the size of all fields in memory.
    field_bytes: u64,
}

/// The spans of one process.
#[derive(Default)]
struct DrawnProcess {
    /// The spans that are not over, and those that were closed in the last milliseconds of the stream.
    spans: IdMap<SpanId, DrawnSpan>,
    /// The rows of spans in span view.
    rows: TrackRows,
    flows: FlowPlace,
    /// The bytes that were allocated since the recording began, without those that were freed.
    allocated_bytes: i64,
}

impl ReplayConsumer for TraceBuilder<'_> {
    fn seqnos(&mut self, entry: &RecordingEntry<'_>) {
        self.chains.seqnos(entry);
    }

    fn follow(&self, parts: &mut ReplayParts) {
        if self.view.has_threads() {
            parts.ask(OpenTasks::default);
        }
        if self.states.is_some() {
            KernelPart::ask(KernelWanted::default(), parts);
        }
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let replay = &state.replays[entry.process_index];
        let descriptor: &Descriptor = match &entry.content {
            EntryContent::Perf { record, .. } => record.descriptor,
            EntryContent::Typed { descriptor, .. } => descriptor,
            EntryContent::Gap(gap) => {
                self.chains.gap(entry);
                let shard = state.tables.rings.losing_shard(entry.ring, gap.cause);
                self.thread_states.forget(|thread| replay.losses().concerns(shard, thread));
                self.kernel_entry(entry, state)?;
                return self.task(entry, None, state);
            }
        };
        self.now_nanos = self.now_nanos.max(descriptor.record_epoch_nanos);
        self.sample_meters(self.now_nanos)?;
        if let Some(meters) = &mut self.meters {
            meters.count(entry, descriptor, step, replay);
        }
        while let Some(instant) = self.held.take(self.now_nanos) {
            self.draw_instant(&instant)?;
        }
        if self.kernel_entry(entry, state)? {
            return Ok(());
        }
        match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => {
                self.record(entry, *recorder, record, catalog, step, replay)?;
                let thread = ThreadKey { recorder: *recorder, thread_id: record.ext.thread_id };
                if self.view.has_threads() {
                    self.thread_state(entry.process, thread, record, catalog)?;
                }
                if record.event == Some(PerfEvent::Event) {
                    self.worker(entry.process, thread, record, catalog)?;
                }
                self.task(entry, Some((record, *catalog)), state)
            }
            EntryContent::Typed { descriptor, payload } if self.chains.has(entry.ring) => {
                self.chain_event(entry, descriptor, *payload)
            }
            EntryContent::Typed { descriptor, payload } => self.typed_event(entry, descriptor, *payload),
            EntryContent::Gap(_) => Ok(()),
        }
    }

    fn span(&mut self, process: usize, over: &OverSpan<'_>, _: ReplayState<'_>) -> io::Result<()> {
        if let Some(drawn) = self.processes[process].spans.remove(&over.span.id) {
            self.field_bytes = self.field_bytes.saturating_sub(drawn.field_bytes);
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, _: &[u64]) -> io::Result<()> {
        self.keep_tasks(state);
        self.end_states(state)
    }

    fn kept_bytes(&self) -> u64 {
        const SPAN_BYTES: u64 = 4 * size_of::<(SpanId, DrawnSpan)>() as u64;
        const TRACK_BYTES: u64 = 512;
        let of_process = |process: &DrawnProcess| process.spans.len() as u64 * SPAN_BYTES + process.rows.kept_bytes();
        let rows = self.overlapping_rows.values().map(TrackRows::kept_bytes).fold(0, u64::saturating_add);
        let processes = self.processes.iter().map(of_process).fold(0, u64::saturating_add);
        let tracks = self.tracks.len() as u64 * TRACK_BYTES;
        let states = self.states.as_ref().map_or(0, States::kept_bytes);
        let states = states.saturating_add(self.thread_states.kept_bytes());
        let more = [self.held.kept_bytes(), self.chains.kept_bytes(), self.kept_task_bytes(), self.field_bytes, states];
        [rows, processes, tracks].into_iter().chain(more).fold(0, u64::saturating_add)
    }
}

impl TraceBuilder<'_> {
    fn record(
        &mut self,
        entry: &RecordingEntry<'_>,
        recorder: u32,
        record: &RawRecord<'_>,
        catalog: &Catalog,
        step: &SpanStep,
        replay: &SpanReplay,
    ) -> io::Result<()> {
        let (process, nanos) = (entry.process_index, record.epoch_nanos());
        match step {
            SpanStep::None => self.instant_of(entry, recorder, record, catalog),
            SpanStep::Updated(span) => self.update(process, *span, record, catalog, replay),
            SpanStep::SliceBegun(slice) => {
                self.show_span(process, slice.span, replay)?;
                self.begin_slice(entry, slice, catalog, replay)
            }
            SpanStep::SliceEnded(taken) => {
                self.show_span(process, taken.slice.span, replay)?;
                let mut args = Args::default();
                args.push_scope_end(replay.get(taken.slice.span));
                args.push_instructions(taken.instructions);
                args.push_times(Some(taken.times));
                args.push_allocated(replay.get(taken.slice.span).and_then(|span| span.allocated));
                self.end_slice(process, &taken.slice, nanos, args)
            }
            SpanStep::Closed { span, cut } => {
                self.show_span(process, *span, replay)?;
                for taken in cut {
                    // No thread can be in a span after the close. The exit comes later, was lost, or never comes.
                    let mut args = Args::default();
                    args.push_scope_end(replay.get(*span));
                    args.push_times(Some(taken.times));
                    if self.outline.processes[process].missing_exits.contains(taken.slice.id) {
                        args = match replay.may_have_ended(&taken.slice, nanos) {
                            true => drawn::lost_end(),
                            false => drawn::missing_exit(),
                        };
                    }
                    self.end_slice(process, &taken.slice, nanos, args)?;
                }
                self.close(process, *span, nanos, replay)?;
                let drawn = self.processes[process].spans.get_mut(span);
                let forgotten = drawn.map_or(0, DrawnSpan::forget_fields);
                self.field_bytes = self.field_bytes.saturating_sub(forgotten);
                Ok(())
            }
        }
    }

    /// Draws the changes that a record makes to a span.
    fn update(
        &mut self,
        process: usize,
        id: SpanId,
        record: &RawRecord<'_>,
        catalog: &Catalog,
        replay: &SpanReplay,
    ) -> io::Result<()> {
        match record.event {
            Some(PerfEvent::SpanNew) => {
                self.change(process, id, |span| span.add_fields(record.named_fields(catalog)));
                self.show_span(process, id, replay)
            }
            Some(PerfEvent::SpanRecord) => {
                self.show_span(process, id, replay)?;
                self.change(process, id, |span| span.add_fields(record.named_fields(catalog)));
                Ok(())
            }
            Some(PerfEvent::SpanFollowsFrom) => {
                if let (true, Some(follows)) = (self.processes[process].spans.contains_key(&id), record.related()) {
                    let args = Args::one("follows_from", ArgValue::Uint(follows.get()));
                    self.change(process, id, |span| span.add_args(args));
                }
                Ok(())
            }
            _ => self.show_span(process, id, replay),
        }
    }

    /// Changes the fields of a span.
    fn change(&mut self, process: usize, id: SpanId, change: impl FnOnce(&mut DrawnSpan)) {
        let span = self.processes[process].spans.entry(id).or_default();
        let before = span.field_bytes;
        change(span);
        self.field_bytes = self.field_bytes.saturating_sub(before).saturating_add(span.field_bytes);
    }

    /// Draws what is left at the end of the recording.
    fn finish(&mut self) -> io::Result<()> {
        while let Some(instant) = self.held.take_any() {
            self.draw_instant(&instant)?;
        }
        if let Some(Meters { grain_start_nanos, .. }) = self.meters {
            self.sample_grain(grain_start_nanos)?;
        }
        self.end_lost_spans()?;
        self.end_chains()?;
        self.end_tasks()?;
        self.end_thread_states()?;
        self.losses()?;
        self.writer.finish()
    }

    /// Draws the losses, each ring's on a track of its own.
    fn losses(&mut self) -> io::Result<()> {
        let outline = self.outline;
        for loss in &outline.losses {
            let track = self.track(TrackKey::Losses(loss.ring), None)?;
            let mut args = Args::one("first_seqno", ArgValue::Uint(loss.first_seqno));
            args.push("count", ArgValue::Uint(loss.count));
            loss.causes().for_each(|(cause, count)| args.push(cause.name(), ArgValue::Uint(count)));
            let title = loss.title();
            let alert = Some(Alert::Loss);
            let label = Label { name: &title, category: "eventring", alert, ..Label::default() };
            self.whole_slice(track, (loss.from_nanos, loss.until_nanos), label, &args)?;
        }
        Ok(())
    }

    /// Draws a slice from its begin to its end.
    fn whole_slice(
        &mut self,
        track: TrackId,
        (from_nanos, until_nanos): (u64, u64),
        label: Label<'_>,
        args: &Args,
    ) -> io::Result<()> {
        let slice = self.next_slice();
        self.writer.begin(track, slice, from_nanos, label, args)?;
        self.writer.end(track, slice, until_nanos, &Args::default())
    }

    fn next_slice(&mut self) -> SliceId {
        self.slices_drawn += 1;
        SliceId(self.slices_drawn)
    }
}
