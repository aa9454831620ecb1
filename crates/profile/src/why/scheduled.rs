//! The times at which tasks were woken, and for which they waited for a worker.

use crate::line::times::Times;
use eventring::tracing::SpanId;
use eventring_capture::recording::{RecordingEntry, ReplayState};
use eventring_tasks::{OpenTasks, Phase, TaskEvent, TaskState, is_task};
use std::collections::HashMap;

/// A task: the index of its process, and its span.
pub(super) type TaskKey = (usize, SpanId);

/// A wait of a task for a worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The thread that has woken the task outside of all spans, as the system numbers it. A worker does so when it
    /// comes to what it has put off: timers, sockets, and tasks that have yielded.
    pub(super) put_off_by: Option<u32>,
}

/// The waits of tasks for workers, as far as they lie in the times of the found spans.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    tasks: HashMap<TaskKey, Waits>,
}

#[derive(Debug, Default)]
struct Waits {
    /// True if its wakes are recorded. Of a task that only the runtime has seen, they are not.
    has_wakes: bool,
    /// In order, and apart.
    waits: Vec<Wait>,
    /// Who has put off the wait that goes on.
    put_off_by: Option<u32>,
}

impl Scheduled {
    pub(super) fn entry(&mut self, entry: &RecordingEntry<'_>, state: ReplayState<'_>, windows: &Times) {
        let Some(change) = state.part().and_then(OpenTasks::last_change) else { return };
        let key = (entry.process_index, change.id);
        if change.what == TaskEvent::Woken {
            let waits = self.tasks.entry(key).or_default();
            waits.has_wakes = true;
            // Later wakes, or one during a poll, do not begin a wait.
            if change.ended.is_some() {
                waits.put_off_by = thread_outside(entry, state);
            }
        }
        // With something lost in it, the task may have done something else.
        if let Some(phase) = change.ended.filter(|_| change.is_certain) {
            self.add(key, &phase, change.epoch_nanos, windows);
        }
    }

    fn add(&mut self, key: TaskKey, phase: &Phase, end_nanos: u64, windows: &Times) {
        let since = phase.since_epoch_nanos;
        if phase.state == TaskState::Woken && since < end_nanos && windows.overlap(since, end_nanos) {
            let task = self.tasks.entry(key).or_default();
            let put_off_by = task.put_off_by.take();
            task.waits.push(Wait { from: since, to: end_nanos, put_off_by });
        }
    }

    /// Takes the end of a recording: some tasks still wait.
    pub(super) fn end(&mut self, state: ReplayState<'_>, end_nanos: &[u64], windows: &Times) {
        let Some(open) = state.part::<OpenTasks>() else { return };
        for (process, end_nanos) in end_nanos.iter().enumerate() {
            for (id, task, _) in open.in_order(process).filter(|(.., is_certain)| *is_certain) {
                self.add((process, id), &task.phase, *end_nanos, windows);
            }
        }
    }

    /// Returns the task in which a span is, or that it is.
    pub(super) fn task_of(process: usize, id: SpanId, state: ReplayState<'_>) -> Option<TaskKey> {
        let mut spans = state.spans_around(process, id);
        spans.find(|span| span.call_site.as_deref().is_some_and(is_task)).map(|span| (process, span.id))
    }

    /// Returns the waits of a task that overlap with a time. Returns `None` if nobody says when it was woken.
    pub(super) fn between(&self, task: TaskKey, from: u64, to: u64) -> Option<impl Iterator<Item = Wait> + use<'_>> {
        let waits = &self.tasks.get(&task).filter(|task| task.has_wakes)?.waits;
        let first = waits.partition_point(|wait| wait.to <= from);
        let waits = waits[first..].iter().take_while(move |wait| wait.from < to);
        Some(waits.map(move |wait| Wait { from: wait.from.max(from), to: wait.to.min(to), ..*wait }))
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        let waits: usize = self.tasks.values().map(|task| task.waits.len()).sum();
        (self.tasks.len() * 96 + waits * size_of::<Wait>()) as u64
    }
}

/// Returns the thread that has recorded an entry, if it is in no span.
fn thread_outside(entry: &RecordingEntry<'_>, state: ReplayState<'_>) -> Option<u32> {
    let thread = entry.thread()?;
    let stack = state.replays.get(entry.process_index)?.stack(thread);
    if stack.is_empty() { state.tables.thread(thread)?.os_thread_id } else { None }
}
