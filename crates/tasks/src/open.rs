//! The tasks that have not ended, and what each of them does: the one place that knows what a record says of a task.

use super::losses::Losses;
use super::phase::{Phase, TaskState};
use super::seen::{TARGET, is_task};
use eventring::now::{Present, SpanCell};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{IdMap, SpanId, SpanReplay, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayState};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The number of tasks up to which those stay whose span the replay has given up.
const GIVEN_UP_MAX: usize = 4096;

/// The tasks of a stream that have not ended, each with its phase and with something of the caller's.
#[derive(Clone, Debug, Default)]
pub struct OpenTasks<T = ()> {
    processes: Vec<OfProcess<T>>,
}

#[derive(Clone, Debug)]
struct OfProcess<T> {
    tasks: IdMap<SpanId, OpenTask<T>>,
    losses: Losses,
}

impl<T> Default for OfProcess<T> {
    fn default() -> Self {
        Self { tasks: IdMap::default(), losses: Losses::default() }
    }
}

/// A task that has not ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenTask<T> {
    /// What it does.
    pub phase: Phase,
    /// What the caller keeps.
    pub more: T,
    /// The thread that polls it.
    polled_by: Option<ThreadKey>,
}

/// What has happened to a task.
#[derive(Debug)]
#[non_exhaustive]
pub struct TaskChange<T = ()> {
    /// The id of its span.
    pub id: SpanId,
    /// What has happened.
    pub what: TaskEvent,
    /// The phase that this has ended, if it has ended one.
    pub ended: Option<Phase>,
    /// False if events of the process were lost in the phase that this has ended: it may have been several phases.
    pub is_certain: bool,
    /// The time, in nanoseconds since the epoch.
    pub epoch_nanos: u64,
    /// The task, if its span has closed.
    pub closed: Option<OpenTask<T>>,
}

/// Something that happens to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TaskEvent {
    /// It was spawned.
    Spawned,
    /// A thread began to poll it.
    PollBegun,
    /// The poll has ended.
    PollEnded,
    /// It was woken.
    Woken,
    /// It waits, and nobody has its waker any more.
    Unwakeable,
    /// It has ended.
    Ended,
    /// Its span has closed.
    Closed,
}

impl<T: Default> OpenTasks<T> {
    /// Takes the next entry of a replay. Returns what it says of a task.
    #[inline]
    pub fn entry(
        &mut self,
        entry: &RecordingEntry<'_>,
        step: &SpanStep,
        state: ReplayState<'_>,
    ) -> Option<TaskChange<T>> {
        let process = entry.process_index;
        if self.processes.len() <= process {
            self.processes.resize_with(process + 1, OfProcess::default);
        }
        let of_process = &mut self.processes[process];
        let (record, catalog) = match &entry.content {
            EntryContent::Perf { record, catalog, .. } => (record, catalog),
            EntryContent::Gap(gap) => {
                if entry.tables.rings.is_perf(entry.ring) {
                    of_process.losses.gap(entry.ring, gap.cause);
                }
                return None;
            }
            EntryContent::Typed { .. } => return None,
        };
        let replay = state.replays.get(process)?;
        let nanos = record.epoch_nanos();
        of_process.losses.event(entry.ring, nanos);
        let (id, what, ended) = match (record.event, step) {
            (Some(PerfEvent::SpanNew), SpanStep::Updated(id)) => {
                of_process.task(replay, *id)?;
                (*id, TaskEvent::Spawned, None)
            }
            (Some(PerfEvent::SpanRecord), SpanStep::Updated(id)) => {
                let task = of_process.task(replay, *id)?;
                let outcome = record.named_fields(catalog).get("outcome").map(ToString::to_string);
                let outcome = TaskState::of_name(&outcome?)?;
                (*id, TaskEvent::Ended, Some(task.phase.end(outcome, nanos)))
            }
            (_, SpanStep::SliceBegun(slice)) => {
                let known = of_process.tasks.get(&slice.span);
                let polled = known.filter(|task| task.polled_by.is_some_and(|by| by != slice.thread));
                // Another thread that enters the span of a task which is polled does not poll it.
                if polled.is_some_and(|task| of_process.losses.has_all_since(task.phase.told_nanos)) {
                    return None;
                }
                let task = of_process.task(replay, slice.span)?;
                task.polled_by = Some(slice.thread);
                (slice.span, TaskEvent::PollBegun, Some(task.phase.begin_poll(nanos)))
            }
            (_, SpanStep::SliceEnded(taken)) => {
                let task = of_process.task(replay, taken.slice.span)?;
                if task.polled_by.take_if(|by| *by == taken.slice.thread).is_none() && task.polled_by.is_some() {
                    return None;
                }
                let ended = task.phase.end_poll(taken.slice.entered_epoch_nanos, nanos);
                (taken.slice.span, TaskEvent::PollEnded, Some(ended))
            }
            (_, SpanStep::Closed { span, .. }) => {
                let mut task = of_process.tasks.remove(span)?;
                // Nobody says how a task has ended that only the runtime has seen.
                let is_open = !task.phase.state.is_over();
                let ended = is_open.then(|| task.phase.end(TaskState::Ended, nanos));
                let is_certain = of_process.losses.has_all_since(task.phase.told_nanos);
                let (what, closed) = (TaskEvent::Closed, Some(task));
                return Some(TaskChange { id: *span, what, ended, is_certain, epoch_nanos: nanos, closed });
            }
            (Some(PerfEvent::Event), _) => {
                let site = catalog.known_call_site(record.ext.call_site_id)?;
                let id = record.span().filter(|_| site.target == TARGET)?;
                match &*site.name {
                    "woken" => (id, TaskEvent::Woken, of_process.task(replay, id)?.phase.wake(nanos)),
                    "unwakeable" => (id, TaskEvent::Unwakeable, None),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let task = of_process.tasks.get_mut(&id)?;
        let is_certain = of_process.losses.has_all_since(task.phase.told_nanos);
        // After the others, the task does what it did before, or has been woken, which may be lost.
        if is_certain || matches!(what, TaskEvent::Spawned | TaskEvent::PollBegun | TaskEvent::Ended) {
            task.phase.told_nanos = nanos;
        }
        Some(TaskChange { id, what, ended, is_certain, epoch_nanos: nanos, closed: None })
    }
}

impl<T: Default> OfProcess<T> {
    /// Returns a task. If it is not known and its span is open, it is new, or its beginning was overwritten.
    #[inline]
    fn task(&mut self, replay: &SpanReplay, id: SpanId) -> Option<&mut OpenTask<T>> {
        match self.tasks.entry(id) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) => {
                let span = replay.get(id)?;
                if span.closed.is_some() || !span.call_site.as_deref().is_some_and(is_task) {
                    return None;
                }
                let phase = Phase::spawned(span.start_epoch_nanos());
                Some(new.insert(OpenTask { phase, more: T::default(), polled_by: None }))
            }
        }
    }
}

impl<T> OpenTasks<T> {
    /// Takes what tables of the present have shown at a time: a task that did what the events say is known to have done
    /// it then, whatever was lost before.
    pub fn look(&mut self, process: usize, present: &Present, epoch_nanos: u64) {
        let Some(of_process) = self.processes.get_mut(process) else { return };
        let spans: HashMap<u64, &SpanCell> = present.spans.iter().map(|span| (span.id, span)).collect();
        for cell in &present.tasks {
            let task = SpanId::new(cell.id).and_then(|id| of_process.tasks.get_mut(&id));
            let does = spans.get(&cell.id).map(|span| cell.phase(span).0.into());
            let same = task.filter(|task| Some(task.phase.state) == does);
            same.into_iter().for_each(|task| task.phase.told_nanos = task.phase.told_nanos.max(epoch_nanos));
        }
    }

    /// Returns a task of a process.
    #[must_use]
    pub fn get(&self, process: usize, id: SpanId) -> Option<&OpenTask<T>> {
        self.processes.get(process)?.tasks.get(&id)
    }

    /// Returns a task of a process, to be changed.
    pub fn get_mut(&mut self, process: usize, id: SpanId) -> Option<&mut OpenTask<T>> {
        self.processes.get_mut(process)?.tasks.get_mut(&id)
    }

    /// Returns the tasks of a process, in no order.
    pub fn of_process(&self, process: usize) -> impl Iterator<Item = (SpanId, &OpenTask<T>)> {
        self.processes.get(process).into_iter().flat_map(|of| of.tasks.iter().map(|(id, task)| (*id, task)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &OpenTask<T>> {
        self.processes.iter().flat_map(|of| of.tasks.values())
    }

    /// Takes the tasks of a process, in the order of their ids, and whether it is [certain](Self::is_certain) what each
    /// of them does.
    pub fn take_process(&mut self, process: usize) -> impl Iterator<Item = (SpanId, OpenTask<T>, bool)> + use<T> {
        let of_process = self.processes.get_mut(process).map(std::mem::take).unwrap_or_default();
        let OfProcess { tasks, losses } = of_process;
        let mut tasks: Vec<(SpanId, OpenTask<T>)> = tasks.into_iter().collect();
        tasks.sort_unstable_by_key(|(id, _)| *id);
        tasks.into_iter().map(move |(id, task)| {
            let is_certain = losses.has_all_since(task.phase.told_nanos);
            (id, task, is_certain)
        })
    }

    /// Returns true if it is known what the task does: no ring of its process can have lost what would end it.
    #[must_use]
    pub fn is_certain(&self, process: usize, task: &OpenTask<T>) -> bool {
        self.has_all_since(process, task.phase.told_nanos)
    }

    /// Returns true if no ring of the process can have lost an event since this time.
    pub(crate) fn has_all_since(&self, process: usize, epoch_nanos: u64) -> bool {
        self.processes.get(process).is_some_and(|of| of.losses.has_all_since(epoch_nanos))
    }

    /// Returns the number of tasks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.processes.iter().map(|of| of.tasks.len()).sum()
    }

    /// Forgets tasks whose spans the replay has given up, if they are many.
    pub fn tidy(&mut self, state: ReplayState<'_>) {
        for (process, of_process) in self.processes.iter_mut().enumerate() {
            let open = state.replays.get(process).map_or(0, SpanReplay::len);
            if of_process.tasks.len() > open + GIVEN_UP_MAX {
                of_process.tasks.retain(|id, _| state.span(process, *id).is_some());
            }
        }
    }
}
