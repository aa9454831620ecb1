//! The effect of each event on the counts of tasks, and on their locks.

use super::answer::{Answer, LockWait, TaskView};
use super::finished::Finished;
use super::locks::{Known, Locks, Turn};
use super::open::{OpenTasks, TaskChange, TaskEvent};
use super::place::places;
use super::present::{PresentTasks, leave_out_others};
use super::seen::{TARGET, number};
use super::task::Tally;
use super::{Question, TaskState};
use eventring::now::Present;
use eventring::schema::perf::PerfEvent;
use eventring::tracing::{Catalog, RawRecord, SpanId, SpanStep, ThreadKey};
use eventring_capture::recording::{EntryContent, RecordingEntry, ReplayConsumer, ReplayState, SpanParts};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

/// The number of waits for locks in an answer.
const LOCK_WAITS_MAX: usize = 10;

/// Collects.
pub(crate) struct Collector {
    question: Question,
    open: OpenTasks<Tally>,
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
        let (open, locks) = (OpenTasks::default(), HashMap::new());
        let (lock_waits, answer) = (BinaryHeap::new(), Answer::default());
        Self { question: *question, open, locks, finished, lock_waits, present, answer }
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

    fn change(&mut self, seen: &Seen<'_>, change: TaskChange<Tally>) {
        // With something lost in it, it may have been several.
        let ended = change.ended.filter(|_| change.is_certain);
        if let Some(mut closed) = change.closed {
            ended.iter().for_each(|phase| closed.more.add(phase, change.epoch_nanos));
            let view = closed.view(change.id, pid(seen.state, seen.process), None, change.epoch_nanos, true);
            return self.finished.add(view);
        }
        let Some(task) = self.open.get_mut(seen.process, change.id) else { return };
        let tally = &mut task.more;
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
            _ => {}
        }
    }

    /// Returns what is known of a task, whose turn began at this time.
    fn known(&self, process: usize, id: Option<SpanId>, nanos: u64) -> Known {
        match id.and_then(|id| self.open.get(process, id)) {
            Some(task) if self.open.is_certain(process, task) && self.open.has_all_since(process, nanos) => {
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
        let is_open = |id: &SpanId| self.open.get(seen.process, *id).is_some();
        // In what tables show, the record names the task, and the stack is that of another time.
        let own = seen.record.span().filter(is_open);
        let task = own.or_else(|| stack.iter().rev().map(|slice| slice.span).find(is_open)).map(SpanId::get);
        let (locks, open, nanos) = (self.locks.entry(seen.process).or_default(), &self.open, seen.record.epoch_nanos());
        let name_of = |id: u64| {
            let task = SpanId::new(id).and_then(|id| open.get(seen.process, id));
            task.map(|task| task.more.name.clone()).unwrap_or_default()
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
    fn parts(&self) -> SpanParts {
        SpanParts { presents: true, ..SpanParts::default() }
    }

    fn leave_out(&self, present: &mut Present, catalog: &Catalog) {
        leave_out_others(present, catalog);
    }

    fn looked(&mut self, process: usize, present: &Present, epoch_nanos: u64) {
        self.open.look(process, present, epoch_nanos);
        // Nobody knows which thread has recorded it.
        let unwakeable = present.tasks.iter().filter(|task| task.is_unwakeable);
        for id in unwakeable.filter_map(|task| SpanId::new(task.id)) {
            self.open.get_mut(process, id).into_iter().for_each(|task| task.more.is_unwakeable = true);
        }
        let guards = present.locks.iter().map(|lock| lock.guard);
        self.locks.get_mut(&process).into_iter().for_each(|locks| locks.look(guards.clone(), epoch_nanos));
    }

    fn entry(&mut self, entry: &RecordingEntry<'_>, step: &SpanStep, state: ReplayState<'_>) -> io::Result<()> {
        let change = self.open.entry(entry, step, state);
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
        for (process, replay) in state.replays.iter().enumerate() {
            let is_task = |id: SpanId| self.open.get(process, id).is_some();
            let is_shown = self.present.has(process);
            if let Some(locks) = self.locks.get(&process).filter(|_| !is_shown) {
                let known = |id, nanos| self.known(process, SpanId::new(id), nanos);
                let stuck = locks.stuck(known);
                self.answer.deadlocks.extend(stuck.cycles);
                self.answer.futurelocks.extend(stuck.futurelocks);
            }
            let mut places = places(replay, is_task);
            let end_nanos = end_nanos.get(process).copied().unwrap_or(state.now_nanos);
            for (id, task, is_certain) in self.open.take_process(process) {
                let view = task.view(id, pid(state, process), places.remove(&id), end_nanos, is_certain);
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
        let open = self.open.count() * (size_of::<Tally>() + 192);
        let latencies: u64 = self.open.iter().take(1000).map(|task| task.more.kept_bytes()).sum();
        (open + of_locks * 64) as u64 + latencies + self.finished.kept_bytes()
    }
}
