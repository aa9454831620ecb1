//! Tasks of an executor. Each living task gets a track with its phases as slices. The times in which workers are parked
//! are slices, too.

use super::{Args, Label, TraceBuilder, TrackKey};
use crate::args::ArgValue;
use crate::formats::trace_writer::{SliceId, TrackId};
use eventring::tracing::{Catalog, IdMap, RawRecord, SpanId, ThreadKey};
use eventring_capture::recording::{RecordingEntry, ReplayState};
use eventring_tasks::{OpenTasks, PerTask, Phase, TARGET, TaskEvent, TaskState};
use std::collections::HashMap;
use std::io;

/// The target of what workers say.
const WORKER: &str = "eventring::worker";

/// The tasks that have not ended, and the workers that are parked.
#[derive(Default)]
pub(super) struct DrawnTasks {
    open: PerTask<DrawnTask>,
    /// Those that have not ended, each with its process, what it does, and whether that is certain.
    remaining: Vec<(usize, SpanId, Phase, bool)>,
    /// The tracks on which no task lives now, by their process and name.
    free: HashMap<(u32, String), Vec<(TrackId, u64)>>,
    /// The number of tracks.
    count: u32,
    /// Since when a worker is parked.
    parked: IdMap<ThreadKey, (u32, u64)>,
}

/// A task whose slice has begun.
struct DrawnTask {
    track: TrackId,
    /// The slice of its whole life.
    life: SliceId,
    name: String,
    process: u32,
    /// The time up to which its track has slices.
    until_nanos: u64,
}

impl TraceBuilder<'_> {
    /// Draws what an entry says of a task.
    pub(super) fn task(
        &mut self,
        entry: &RecordingEntry<'_>,
        record: Option<(&RawRecord<'_>, &Catalog)>,
        state: ReplayState<'_>,
    ) -> io::Result<()> {
        if !self.view.has_threads() {
            return Ok(());
        }
        let Some(tasks) = state.part::<OpenTasks>() else { return Ok(()) };
        let Some(change) = tasks.last_change() else { return Ok(()) };
        let (process, id) = (entry.process_index, change.id);
        let mut drawn = match self.drawn_tasks.open.remove(process, id) {
            Some(drawn) => drawn,
            None => {
                let is_spawned = change.what == TaskEvent::Spawned;
                let fields = record.filter(|_| is_spawned).map(|(record, catalog)| record.named_fields(catalog));
                let name = fields.and_then(|fields| fields.get("name").map(ToString::to_string));
                let since = change.ended.map_or(change.epoch_nanos, |phase| phase.since_epoch_nanos);
                self.begin_task(entry.process, id, name.unwrap_or_else(|| "task".to_owned()), since)?
            }
        };
        // Between the last poll and the end, nothing happens.
        let is_end = change.what == TaskEvent::Ended
            && tasks.get(process, id).is_some_and(|task| task.phase.state != TaskState::Cancelled);
        if let Some(phase) = change.ended.filter(|phase| !is_end || phase.state == TaskState::Running) {
            self.draw_phase(&mut drawn, &phase, change.epoch_nanos, &Args::default())?;
        }
        if matches!(change.what, TaskEvent::Closed(_)) {
            return self.end_task(drawn, change.epoch_nanos, &Args::default());
        }
        self.drawn_tasks.open.insert(process, id, drawn);
        Ok(())
    }

    fn begin_task(&mut self, process: u32, id: SpanId, name: String, since_nanos: u64) -> io::Result<DrawnTask> {
        let free = self.drawn_tasks.free.get_mut(&(process, name.clone())).and_then(Vec::pop);
        let (track, free_nanos) = match free {
            Some(free) => free,
            None => {
                self.drawn_tasks.count += 1;
                let key = TrackKey::Task { process, number: self.drawn_tasks.count, name: name.clone() };
                (self.track(key, None)?, 0)
            }
        };
        let (life, until_nanos) = (self.next_slice(), since_nanos.max(free_nanos));
        let args = Args::one("id", ArgValue::Uint(id.get()));
        let label = Label { name: &name, category: TARGET, ..Label::default() };
        self.writer.begin(track, life, until_nanos, label, &args)?;
        Ok(DrawnTask { track, life, name, process, until_nanos })
    }

    fn draw_phase(&mut self, drawn: &mut DrawnTask, phase: &Phase, nanos: u64, args: &Args) -> io::Result<()> {
        let name = match phase.state {
            TaskState::Running => "polled",
            state => state.name(),
        };
        let since = phase.since_epoch_nanos.max(drawn.until_nanos);
        if phase.state.is_over() || nanos <= since {
            return Ok(());
        }
        drawn.until_nanos = nanos;
        let label = Label { name, category: TARGET, ..Label::default() };
        self.whole_slice(drawn.track, (since, nanos), label, args)
    }

    fn end_task(&mut self, drawn: DrawnTask, nanos: u64, args: &Args) -> io::Result<()> {
        let DrawnTask { track, life, name, process, until_nanos } = drawn;
        let end = super::drawn::drawn_end(until_nanos, nanos);
        self.writer.end(track, life, end, args)?;
        self.drawn_tasks.free.entry((process, name)).or_default().push((track, end));
        Ok(())
    }

    /// Draws how long a worker was parked.
    pub(super) fn worker(
        &mut self,
        process: u32,
        thread: ThreadKey,
        record: &RawRecord<'_>,
        catalog: &Catalog,
    ) -> io::Result<()> {
        let site = catalog.known_call_site(record.ext.call_site_id).filter(|site| site.target == WORKER);
        if site.is_none() || !self.view.has_threads() {
            return Ok(());
        }
        // The name of the call site is its place; what it says is its message.
        let message = record.named_fields(catalog).get("message").map(ToString::to_string);
        let nanos = record.epoch_nanos();
        match message.as_deref() {
            Some("parked") => _ = self.drawn_tasks.parked.insert(thread, (process, nanos)),
            Some("unparked") => {
                if let Some((_, since)) = self.drawn_tasks.parked.remove(&thread) {
                    let described = catalog.thread(thread.thread_id);
                    self.thread_track(process, thread, &described)?;
                    self.draw_parked(process, thread, since, nanos, &Args::default())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn draw_parked(&mut self, process: u32, of: ThreadKey, since: u64, until: u64, args: &Args) -> io::Result<()> {
        let track = self.track(TrackKey::Parked(process, of), None)?;
        let label = Label { name: "parked", category: WORKER, ..Label::default() };
        self.whole_slice(track, (since, until.max(since + 1)), label, args)
    }

    /// Draws the tasks that have not ended, and the workers that are parked.
    pub(super) fn end_tasks(&mut self) -> io::Result<()> {
        let ends = self.outline.end_nanos.clone();
        for (process, id, phase, is_certain) in std::mem::take(&mut self.drawn_tasks.remaining) {
            let Some(mut drawn) = self.drawn_tasks.open.remove(process, id) else { continue };
            let end_nanos = ends.get(process).copied().unwrap_or(self.now_nanos);
            if is_certain {
                let mut args = Args::default();
                args.push_open(phase.since_epoch_nanos, end_nanos);
                self.draw_phase(&mut drawn, &phase, end_nanos, &args)?;
            }
            self.end_task(drawn, end_nanos, &Args::one("open", ArgValue::Bool(true)))?;
        }
        let mut parked: Vec<_> = std::mem::take(&mut self.drawn_tasks.parked).into_iter().collect();
        parked.sort_unstable_by_key(|(thread, _)| (thread.recorder, thread.thread_id));
        for (thread, (process, since)) in parked {
            let index = self.recording.processes().iter().position(|known| *known == process);
            let until = index.and_then(|index| ends.get(index)).copied().unwrap_or(self.now_nanos);
            let mut args = Args::default();
            args.push_open(since, until);
            self.draw_parked(process, thread, since, until, &args)?;
        }
        Ok(())
    }

    /// Keeps what the tasks do at the end.
    pub(super) fn keep_tasks(&mut self, state: ReplayState<'_>) {
        let Some(tasks) = state.part::<OpenTasks>() else { return };
        for process in 0..state.replays.len() {
            let remaining = tasks.in_order(process).map(|(id, task, is_certain)| (process, id, task.phase, is_certain));
            self.drawn_tasks.remaining.extend(remaining);
        }
    }

    pub(super) fn kept_task_bytes(&self) -> u64 {
        self.drawn_tasks.open.values().count() as u64 * 256
    }
}
