//! The tasks that have not ended, and their phases. Only this module derives phases from records.

use super::losses::Losses;
use super::phase::{Phase, TaskState};
use super::seen::{TARGET, is_task};
use eventring::now::{Present, SpanCell};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, IdMap, SpanId, SpanReplay, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayPart, ReplayState};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The number of tasks up to which those stay whose span the replay has given up.
const GIVEN_UP_MAX: usize = 4096;

/// The number of call sites up to which they are looked at. They may come one by one.
const SITES_MAX: usize = 1024;

/// An estimate of the bytes that a task takes.
const TASK_BYTES: u64 = 128;

/// The tasks of a stream that have not ended, each with its phase: a part of a replay.
#[derive(Clone, Debug, Default)]
pub struct OpenTasks {
    processes: Vec<OfProcess>,
    /// What the last entry says of a task.
    change: Option<TaskChange>,
}

/// Something for each of some tasks: the index of the process, and the id of the task's span.
#[derive(Clone, Debug)]
pub struct PerTask<T>(Vec<IdMap<SpanId, T>>);

#[derive(Clone, Debug, Default)]
struct OfProcess {
    tasks: IdMap<SpanId, OpenTask>,
    losses: Losses,
    /// True if a call site is that of tasks or of their events. If none is, events need no look.
    has_tasks: bool,
    /// The number of call sites that were looked at, by recorder.
    sites: Vec<usize>,
}

/// A task that has not ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenTask {
    /// What it does.
    pub phase: Phase,
    /// The thread that polls it.
    polled_by: Option<ThreadKey>,
}

/// What has happened to a task.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TaskChange {
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
    /// Its span has closed. This was its last phase.
    Closed(Phase),
}

impl OpenTasks {
    /// Returns what an entry says of a task.
    #[inline]
    fn change(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> Option<TaskChange> {
        let process = entry.process_index;
        if self.processes.len() <= process {
            self.processes.resize_with(process + 1, OfProcess::default);
        }
        let of_process = &mut self.processes[process];
        let (recorder, record, catalog) = match &entry.content {
            EntryContent::Perf { recorder, record, catalog } => (*recorder, record, catalog),
            EntryContent::Gap(gap) => {
                if entry.tables.rings.is_perf(entry.ring) {
                    of_process.losses.gap(entry.ring, gap.cause);
                }
                return None;
            }
            EntryContent::Typed { .. } => return None,
        };
        let nanos = record.epoch_nanos();
        of_process.losses.event(entry.ring, nanos);
        if !of_process.may_be_of_task(recorder, record.event, catalog) {
            return None;
        }
        let replay = state.replays.get(process)?;
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
                let what = TaskEvent::Closed(task.phase);
                return Some(TaskChange { id: *span, what, ended, is_certain, epoch_nanos: nanos });
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
        Some(TaskChange { id, what, ended, is_certain, epoch_nanos: nanos })
    }
}

impl OfProcess {
    /// Returns false if no event that has come so far can be of a task.
    #[inline]
    fn may_be_of_task(&mut self, recorder: u32, event: Option<PerfEvent>, catalog: &Catalog) -> bool {
        let (count, _) = catalog.counts();
        let is_known = event != Some(PerfEvent::CallSite) && self.sites.get(recorder as usize) == Some(&count);
        if !self.has_tasks && !is_known {
            self.look_for_tasks(recorder as usize, catalog, count);
        }
        self.has_tasks
    }

    #[cold]
    fn look_for_tasks(&mut self, recorder: usize, catalog: &Catalog, count: usize) {
        self.sites.resize(self.sites.len().max(recorder + 1), 0);
        self.sites[recorder] = count;
        self.has_tasks = count > SITES_MAX || catalog.call_sites().any(|site| site.target == TARGET);
    }

    /// Returns a task. If it is not known and its span is open, it is new, or its beginning was overwritten.
    #[inline]
    fn task(&mut self, replay: &SpanReplay, id: SpanId) -> Option<&mut OpenTask> {
        match self.tasks.entry(id) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(new) => {
                let span = replay.get(id)?;
                if span.closed.is_some() || !span.call_site.as_deref().is_some_and(is_task) {
                    return None;
                }
                let phase = Phase::spawned(span.start_epoch_nanos());
                Some(new.insert(OpenTask { phase, polled_by: None }))
            }
        }
    }
}

impl OpenTasks {
    /// Returns what the last entry of the replay says of a task.
    #[inline]
    #[must_use]
    pub fn last_change(&self) -> Option<TaskChange> {
        self.change
    }

    /// Returns a task of a process.
    #[must_use]
    pub fn get(&self, process: usize, id: SpanId) -> Option<&OpenTask> {
        self.processes.get(process)?.tasks.get(&id)
    }

    /// Returns the tasks of a process, in no order.
    pub fn of_process(&self, process: usize) -> impl Iterator<Item = (SpanId, &OpenTask)> {
        self.processes.get(process).into_iter().flat_map(|of| of.tasks.iter().map(|(id, task)| (*id, task)))
    }

    /// Returns the tasks of a process, in the order of their ids, and whether it is [certain](Self::is_certain) what
    /// each of them does.
    pub fn in_order(&self, process: usize) -> impl Iterator<Item = (SpanId, &OpenTask, bool)> {
        let mut tasks: Vec<(SpanId, &OpenTask)> = self.of_process(process).collect();
        tasks.sort_unstable_by_key(|(id, _)| *id);
        tasks.into_iter().map(move |(id, task)| (id, task, self.is_certain(process, task)))
    }

    /// Returns true if it is known what the task does: no ring of its process can have lost what would end it.
    #[must_use]
    pub fn is_certain(&self, process: usize, task: &OpenTask) -> bool {
        self.has_all_since(process, task.phase.told_nanos)
    }

    /// Returns true if no ring of the process can have lost an event since this time.
    pub(crate) fn has_all_since(&self, process: usize, epoch_nanos: u64) -> bool {
        self.processes.get(process).is_some_and(|of| of.losses.has_all_since(epoch_nanos))
    }
}

impl ReplayPart for OpenTasks {
    #[inline]
    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) {
        let change = self.change(entry, step, state);
        if change.is_some() || self.change.is_some() {
            self.change = change;
        }
    }

    /// A task that did what the events say is known to have done it then, whatever was lost before.
    fn looked(&mut self, process: usize, present: &Present, epoch_nanos: u64) {
        let Some(of_process) = self.processes.get_mut(process) else { return };
        let spans: HashMap<u64, &SpanCell> = present.spans.iter().map(|span| (span.id, span)).collect();
        for cell in &present.tasks {
            let task = SpanId::new(cell.id).and_then(|id| of_process.tasks.get_mut(&id));
            let does = spans.get(&cell.id).map(|span| cell.phase(span).0.into());
            let same = task.filter(|task| Some(task.phase.state) == does);
            same.into_iter().for_each(|task| task.phase.told_nanos = task.phase.told_nanos.max(epoch_nanos));
        }
    }

    /// Forgets tasks whose spans the replay has given up, if they are many.
    fn tidy(&mut self, state: ReplayState<'_>) {
        for (process, of_process) in self.processes.iter_mut().enumerate() {
            let open = state.replays.get(process).map_or(0, SpanReplay::len);
            if of_process.tasks.len() > open + GIVEN_UP_MAX {
                of_process.tasks.retain(|id, _| state.span(process, *id).is_some());
            }
        }
    }

    fn kept_bytes(&self) -> u64 {
        self.processes.iter().map(|of| of.tasks.len() as u64 * TASK_BYTES).sum()
    }
}

impl<T> Default for PerTask<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PerTask<T> {
    /// Returns what a task has.
    #[must_use]
    pub fn get(&self, process: usize, id: SpanId) -> Option<&T> {
        self.0.get(process)?.get(&id)
    }

    /// Returns what a task has, to be changed.
    pub fn get_mut(&mut self, process: usize, id: SpanId) -> Option<&mut T> {
        self.0.get_mut(process)?.get_mut(&id)
    }

    /// Returns what a task has, and gives it something if it has nothing.
    pub fn get_or_default(&mut self, process: usize, id: SpanId) -> &mut T
    where
        T: Default,
    {
        self.of_process(process).entry(id).or_default()
    }

    /// Gives a task something.
    pub fn insert(&mut self, process: usize, id: SpanId, of_task: T) {
        self.of_process(process).insert(id, of_task);
    }

    /// Takes what a task has.
    pub fn remove(&mut self, process: usize, id: SpanId) -> Option<T> {
        self.0.get_mut(process)?.remove(&id)
    }

    /// Returns what tasks have, in no order.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(IdMap::values)
    }

    fn of_process(&mut self, process: usize) -> &mut IdMap<SpanId, T> {
        if self.0.len() <= process {
            self.0.resize_with(process + 1, IdMap::default);
        }
        &mut self.0[process]
    }
}
