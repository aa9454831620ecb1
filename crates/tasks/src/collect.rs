//! The effect of each event on the tasks' counts and locks.

use super::answer::{Answer, LockWait, TaskView};
use super::finished::Finished;
use super::locks::{Known, Locks, Turn};
use super::open::{OpenTasks, PerTask, TaskChange, TaskEvent};
use super::phase::TaskState;
use super::place::places;
use super::present::{PresentTasks, leave_out_others};
use super::question::Question;
use super::seen::{TARGET, number};
use super::task::Tally;
use eventring::now::Present;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, RawRecord, SpanId, SpanStep, ThreadKey};
use eventring_capture::recording::{
    CaptureRecording, EntryContent, RecordingEntry, ReplayConsumer, ReplayNeeds, ReplayParts, ReplayState,
    replay_presents,
};
use eventring_capture::{CaptureError, CapturedPresent};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::io;

/// The number of waits for locks in an answer.
const LOCK_WAITS_MAX: usize = 10;

/// Collects.
pub(crate) struct Collector {
    question: Question,
    tallies: PerTask<Tally>,
    locks: HashMap<usize, Locks>,
    finished: Finished,
    /// The longest waits.
    lock_waits: BinaryHeap<Reverse<LockWait>>,
    present: PresentTasks,
    answer: Answer,
}

/// A record of a perf ring, and where it is from.
struct Seen<'e> {
    process: usize,
    record: &'e RawRecord<'e>,
    catalog: &'e Catalog,
    thread: ThreadKey,
    state: ReplayState<'e>,
}

impl Collector {
    pub(crate) fn new(question: &Question, present: PresentTasks) -> Self {
        let finished = Finished::new(question.order, question.finished_max);
        let (tallies, locks) = (PerTask::default(), HashMap::new());
        let (lock_waits, answer) = (BinaryHeap::new(), Answer::default());
        Self { question: *question, tallies, locks, finished, lock_waits, present, answer }
    }

    pub(crate) fn finish(self) -> Answer {
        let (counts, finished) = self.finished.finish();
        let Answer { mut tasks, deadlocks, futurelocks, .. } = self.answer;
        tasks.extend(finished);
        // What is not known comes last.
        let is_unknown = |task: &TaskView| task.state == TaskState::Unknown;
        tasks.sort_by_key(|task| (is_unknown(task), Reverse(task.rank(self.question.order)), task.pid, task.id));
        let lock_waits = self.lock_waits.into_sorted_vec().into_iter().map(|Reverse(wait)| wait).collect();
        Answer { tasks, deadlocks, futurelocks, lock_waits, counts, ..Answer::default() }
    }

    fn change(&mut self, seen: &Seen<'_>, change: TaskChange) {
        // With something lost in it, it may have been several.
        let ended = change.ended.filter(|_| change.is_certain);
        let tally = self.tallies.get_or_default(seen.process, change.id);
        ended.iter().for_each(|phase| tally.add(phase, change.epoch_nanos));
        match change.what {
            TaskEvent::Spawned => {
                let fields = seen.record.named_fields(seen.catalog);
                let text = |name: &str| fields.get(name).map(ToString::to_string).unwrap_or_default();
                (tally.name, tally.spawned_at, tally.kind) = (text("name"), text("spawned_at"), text("kind"));
            }
            TaskEvent::PollBegun => {
                tally.polls += 1;
                tally.is_unwakeable = false;
            }
            TaskEvent::Woken => {
                let site = |by: SpanId| seen.state.span(seen.process, by)?.call_site.clone();
                let stack = seen.state.replays[seen.process].stack(seen.thread);
                tally.woken_by = stack.last().map(|slice| (slice.span, site(slice.span)));
                tally.wakes += 1;
                tally.is_unwakeable = false;
            }
            TaskEvent::Unwakeable => tally.is_unwakeable = true,
            TaskEvent::Closed(phase) => {
                let tally = std::mem::take(tally);
                self.tallies.remove(seen.process, change.id);
                let pid = pid(seen.state, seen.process);
                self.finished.add(tally.view(&phase, change.id, pid, None, change.epoch_nanos, true));
            }
            _ => {}
        }
    }

    /// Returns what is known of a task, whose turn began at this time.
    fn known(open: &OpenTasks, process: usize, id: Option<SpanId>, nanos: u64) -> Known {
        match id.and_then(|id| open.get(process, id)) {
            Some(task) if open.is_certain(process, task) && open.has_all_since(process, nanos) => {
                if task.phase.state == TaskState::Idle { Known::IsIdle } else { Known::IsAlive }
            }
            _ => Known::Nothing,
        }
    }

    /// Takes an event of a lock.
    fn lock(&mut self, seen: &Seen<'_>) {
        let site = seen.catalog.known_call_site(seen.record.ext.call_site_id);
        let Some(site) = site.filter(|site| site.target == TARGET && site.name.starts_with("lock_")) else { return };
        let fields = seen.record.named_fields(seen.catalog);
        let (Some(lock), Some(guard)) = (number(&fields, "lock"), number(&fields, "guard")) else { return };
        // The task that the thread polls, however many spans are inside of it.
        let stack = seen.state.replays[seen.process].stack(seen.thread);
        let Some(open) = seen.state.part::<OpenTasks>() else { return };
        let is_open = |id: &SpanId| open.get(seen.process, *id).is_some();
        // In what tables show, the record names the task, and the stack is that of another time.
        let own = seen.record.span().filter(is_open);
        let task = own.or_else(|| stack.iter().rev().map(|slice| slice.span).find(is_open)).map(SpanId::get);
        let (locks, nanos) = (self.locks.entry(seen.process).or_default(), seen.record.epoch_nanos());
        let tallies = &self.tallies;
        let name_of = |id: u64| {
            let task = SpanId::new(id).and_then(|id| tallies.get(seen.process, id));
            task.map(|task| task.name.clone()).unwrap_or_default()
        };
        let is_shared = fields.get("mode").is_some_and(|mode| mode.to_string() == "read");
        let turn = Turn { lock, task, is_shared, since_nanos: nanos, told_nanos: nanos };
        match &*site.name {
            "lock_wait" => locks.wait(guard, turn),
            "lock_held" => {
                if let Some((start_nanos, holder)) = locks.hold(guard, turn) {
                    let (name, holder) = (task.map(name_of).unwrap_or_default(), holder.to_owned());
                    let nanos = nanos.saturating_sub(start_nanos);
                    self.lock_waits.push(Reverse(LockWait { nanos, start_nanos, name, holder }));
                    if self.lock_waits.len() > LOCK_WAITS_MAX {
                        self.lock_waits.pop();
                    }
                }
            }
            "lock_free" => locks.free(guard, nanos, name_of),
            _ => {}
        }
    }
}

fn pid(state: ReplayState<'_>, process: usize) -> u32 {
    state.tables.rings.programs().get(process).map_or(0, |program| program.pid)
}

impl ReplayConsumer for Collector {
    fn needs(&self) -> ReplayNeeds {
        ReplayNeeds { presents: true, ..ReplayNeeds::default() }
    }

    fn follow(&self, parts: &mut ReplayParts) {
        parts.ask(OpenTasks::default);
    }

    fn leave_out(&self, present: &mut Present, catalog: &Catalog) {
        leave_out_others(present, catalog);
    }

    fn looked(&mut self, process: usize, present: &Present, epoch_nanos: u64) {
        // Nobody knows which thread has recorded it.
        let unwakeable = present.tasks.iter().filter(|task| task.is_unwakeable);
        for id in unwakeable.filter_map(|task| SpanId::new(task.id)) {
            self.tallies.get_mut(process, id).into_iter().for_each(|task| task.is_unwakeable = true);
        }
        let guards = present.locks.iter().filter(|lock| lock.site == 0).map(|lock| lock.guard);
        self.locks.get_mut(&process).into_iter().for_each(|locks| locks.look(guards.clone(), epoch_nanos));
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, _: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let change = state.part().and_then(OpenTasks::last_change);
        if let EntryContent::Perf { recorder, record, catalog } = &entry.content {
            let thread = ThreadKey { recorder: *recorder, thread_id: record.ext.thread_id };
            let seen = Seen { process: entry.process_index, record, catalog, thread, state };
            match change {
                Some(change) => self.change(&seen, change),
                None if record.event == Some(PerfEvent::Event) => self.lock(&seen),
                None => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64]) -> io::Result<()> {
        let mut views = Vec::new();
        let Some(open) = state.part::<OpenTasks>() else { return Ok(()) };
        for (process, replay) in state.replays.iter().enumerate() {
            let is_task = |id: SpanId| open.get(process, id).is_some();
            let is_shown = self.present.has(process);
            if let Some(locks) = self.locks.get(&process).filter(|_| !is_shown) {
                let known = |id, nanos| Self::known(open, process, SpanId::new(id), nanos);
                let stuck = locks.stuck(known);
                self.answer.deadlocks.extend(stuck.cycles);
                self.answer.futurelocks.extend(stuck.futurelocks);
            }
            let mut places = places(replay, is_task);
            let end_nanos = end_nanos.get(process).copied().unwrap_or(state.now_nanos);
            for (id, task, is_certain) in open.in_order(process) {
                let (tally, place) = (self.tallies.remove(process, id).unwrap_or_default(), places.remove(&id));
                let view = tally.view(&task.phase, id, pid(state, process), place, end_nanos, is_certain);
                if is_shown {
                    views.push(self.present.correct(view));
                    continue;
                }
                if view.is_unwakeable && view.state == TaskState::Idle {
                    self.answer.deadlocks.push(vec![id.get()]);
                }
                views.push(view);
            }
        }
        self.answer.deadlocks.append(&mut self.present.deadlocks);
        self.answer.futurelocks.append(&mut self.present.futurelocks);
        for view in views.into_iter().chain(self.present.take_others()) {
            if view.state.is_over() {
                self.finished.add(view);
            } else {
                self.finished.count(&view);
                self.answer.tasks.push(view);
            }
        }
        Ok(())
    }

    fn kept_bytes(&self) -> u64 {
        let of_locks: usize = self.locks.values().map(Locks::len).sum();
        let open = self.tallies.values().count() * (size_of::<Tally>() + 64);
        let latencies: u64 = self.tallies.values().take(1000).map(Tally::kept_bytes).sum();
        (open + of_locks * 64) as u64 + latencies + self.finished.kept_bytes()
    }
}

/// Reads what tables of the present show at the end of a capture.
pub(crate) fn present_tasks(recording: &CaptureRecording<'_>) -> Result<PresentTasks, CaptureError> {
    let mut presents = recording.capture.presents()?;
    let rings = recording.rings();
    let is_whole = |of: &CapturedPresent| of.present.untabled == Default::default();
    let has_tables = |recorder: u32| presents.iter().any(|of| of.ring == recorder && is_whole(of));
    let without = rings.recorders().iter().filter(|recorder| !has_tables(**recorder));
    let without: HashSet<usize> = without.map(|recorder| rings.origin(*recorder).process_index).collect();
    presents.retain(|of| !without.contains(&rings.origin(of.ring).process_index));
    let processes = presents.iter().map(|of| rings.origin(of.ring).process_index).collect();
    if presents.is_empty() {
        return Ok(PresentTasks::default());
    }
    let mut collector = Collector::new(&Question::default(), PresentTasks::default());
    replay_presents(recording, &mut presents, &mut collector)?;
    let Answer { tasks, deadlocks, futurelocks, .. } = collector.finish();
    let mut tasks: HashMap<_, _> = tasks.into_iter().map(|task| ((task.pid, task.id), task)).collect();
    for of in &presents {
        let pid = rings.programs().get(rings.origin(of.ring).process_index).map_or(0, |program| program.pid);
        for cell in &of.present.tasks {
            if let Some(task) = tasks.get_mut(&(pid, cell.id)) {
                (task.polls, task.wakes) = (cell.polls.into(), cell.wakes);
            }
        }
    }
    Ok(PresentTasks { processes, tasks, deadlocks, futurelocks })
}
