//! The phase of a task, and when it began.

use eventring::now::TaskPhase;
use schemars::JsonSchema;
use serde::Serialize;

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// A thread polls it.
    Running,
    /// It was woken, or spawned, and waits for a worker.
    Woken,
    /// It waits to be woken.
    Idle,
    /// It has returned.
    Done,
    /// It was dropped before.
    Cancelled,
    /// It has panicked.
    Panicked,
    /// It has ended, and nobody has recorded how: only the runtime has seen it.
    Ended,
    /// Nobody knows: what would say it may be lost.
    Unknown,
}

impl TaskState {
    /// Returns the name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Woken => "woken",
            Self::Idle => "idle",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
            Self::Panicked => "panicked",
            Self::Ended => "ended",
            Self::Unknown => "unknown",
        }
    }

    /// Returns what the task does, unless it has ended or nobody knows.
    #[must_use]
    pub fn phase(self) -> Option<TaskPhase> {
        [TaskPhase::Running, TaskPhase::Woken, TaskPhase::Idle].into_iter().find(|phase| Self::from(*phase) == self)
    }

    /// Returns the state with this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::Done, Self::Cancelled, Self::Panicked].into_iter().find(|state| state.name() == name)
    }

    /// Returns true if the task has ended.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled | Self::Panicked | Self::Ended)
    }
}

impl From<TaskPhase> for TaskState {
    fn from(phase: TaskPhase) -> Self {
        match phase {
            TaskPhase::Running => Self::Running,
            TaskPhase::Woken => Self::Woken,
            TaskPhase::Idle => Self::Idle,
        }
    }
}

/// What a task does, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Phase {
    /// What it does.
    pub state: TaskState,
    /// The beginning, in nanoseconds since the epoch. A wake during a poll counts from the end of the poll.
    pub since_epoch_nanos: u64,
    /// True until the first poll.
    pub is_first: bool,
    /// True if it was woken since the poll began.
    is_woken_again: bool,
    /// The time of the last event after which it was known what the task does.
    pub(crate) told_nanos: u64,
}

impl Phase {
    pub(crate) fn spawned(nanos: u64) -> Self {
        let state = TaskState::Woken;
        Self { state, since_epoch_nanos: nanos, is_first: true, is_woken_again: false, told_nanos: nanos }
    }

    /// Returns how long it has lasted at a time.
    #[must_use]
    pub fn nanos_until(&self, epoch_nanos: u64) -> u64 {
        epoch_nanos.saturating_sub(self.since_epoch_nanos)
    }

    fn turn(&mut self, state: TaskState, nanos: u64) -> Self {
        let next = Self { state, since_epoch_nanos: nanos, is_first: false, is_woken_again: false, ..*self };
        std::mem::replace(self, next)
    }

    pub(crate) fn begin_poll(&mut self, nanos: u64) -> Self {
        self.turn(TaskState::Running, nanos)
    }

    /// Ends a poll. `since_nanos` is its beginning, which may not have been seen.
    pub(crate) fn end_poll(&mut self, since_nanos: u64, nanos: u64) -> Self {
        let state = if self.is_woken_again { TaskState::Woken } else { TaskState::Idle };
        self.turn(state, nanos);
        Self { state: TaskState::Running, since_epoch_nanos: since_nanos, ..*self }
    }

    /// Wakes the task. Returns the phase that this ends.
    pub(crate) fn wake(&mut self, nanos: u64) -> Option<Self> {
        self.is_woken_again |= self.state == TaskState::Running;
        (self.state == TaskState::Idle).then(|| self.turn(TaskState::Woken, nanos))
    }

    pub(crate) fn end(&mut self, state: TaskState, nanos: u64) -> Self {
        self.turn(state, nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other_without_gaps_and_a_wake_during_a_poll_counts_from_its_end() {
        let mut phase = Phase::spawned(10);
        let mut ended = vec![phase.begin_poll(20)];
        assert_eq!(phase.wake(25), None);
        ended.push(phase.end_poll(20, 30));
        assert_eq!(phase.state, TaskState::Woken);
        ended.push(phase.begin_poll(40));
        ended.push(phase.end_poll(40, 50));
        ended.push(phase.wake(60).unwrap());
        assert_eq!(phase.wake(65), None);
        ended.push(phase.end(TaskState::Cancelled, 70));
        let seen: Vec<_> = ended.iter().map(|phase| (phase.state.name(), phase.since_epoch_nanos)).collect();
        assert_eq!(seen, [("woken", 10), ("running", 20), ("woken", 30), ("running", 40), ("idle", 50), ("woken", 60)]);
        assert_eq!((ended[0].is_first, ended[2].is_first), (true, false));
        assert_eq!((phase.state, phase.nanos_until(75)), (TaskState::Cancelled, 5));
    }
}
