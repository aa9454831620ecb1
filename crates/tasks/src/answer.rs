//! The answer.

use super::{Order, TaskState};
use serde_json::{Value, json};

/// What tasks do and wait for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The tasks that have not ended, and some of those that have, in the order that was asked for.
    pub tasks: Vec<TaskView>,
    /// The tasks that will never go on, as far as they are known: those of a cycle wait for locks that the next one
    /// holds, and a task alone waits for a wake that cannot come, or for a lock that it holds itself.
    pub deadlocks: Vec<Vec<u64>>,
    /// The tasks that were given a lock for which they do not wait any more, without having given up the wait: they poll
    /// something else. Others wait for the lock, or they do themselves. A lock that is free and has waiters is theirs.
    pub futurelocks: Vec<u64>,
    /// The longest waits for locks that have ended, the longest first; at most ten.
    pub lock_waits: Vec<LockWait>,
    /// The counts of all tasks.
    pub counts: Counts,
    /// The number of events that were lost. What they said is not in the counts.
    pub lost: u64,
    /// What was wrong with the capture, a line each.
    pub problems: Vec<String>,
}

/// The counts of all tasks, also of those that are not listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// All tasks.
    pub tasks: u64,
    /// Those that have returned.
    pub done: u64,
    /// Those that were dropped before.
    pub cancelled: u64,
    /// Those that have panicked.
    pub panicked: u64,
    /// Those that have ended, and of which nobody has recorded how.
    pub ended: u64,
    /// Those of which it is not known what they do, or whether they have ended.
    pub unknown: u64,
    /// The polls of all tasks.
    pub polls: u64,
    /// The wakes of all tasks.
    pub wakes: u64,
    /// The tasks that have ended and are not listed.
    pub not_listed: u64,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TaskView {
    /// The id of its span. No other task of its process has it.
    pub id: u64,
    /// Its process.
    pub pid: u32,
    /// Its name; empty if its beginning was overwritten.
    pub name: String,
    /// File and line of the call that spawned it.
    pub spawned_at: String,
    /// `async`, `local`, `blocking`, or `hooked` if the runtime alone has seen it.
    pub kind: String,
    /// What it does.
    pub state: TaskState,
    /// If it is not known what it does: the time until which it was, in nanoseconds since the epoch.
    pub unknown_since_epoch_nanos: Option<u64>,
    /// True if it waits, and nobody has its waker.
    pub is_unwakeable: bool,
    /// The number of polls.
    pub polls: u64,
    /// The number of wakes.
    pub wakes: u64,
    /// The time of all polls, in nanoseconds.
    pub busy_nanos: u64,
    /// The time of the longest poll, in nanoseconds.
    pub longest_poll_nanos: u64,
    /// The time from the first wake after a poll to the next poll, which 99 in 100 do not exceed, in nanoseconds.
    pub scheduled_p99_nanos: Option<u64>,
    /// The innermost span that is open in it: the place of its await.
    pub span: Option<String>,
    /// The span in which the thread was that has woken it last.
    pub woken_by: Option<WokenBy>,
}

/// Who has woken a task.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct WokenBy {
    /// The id of the span.
    pub id: u64,
    /// Its name.
    pub name: String,
}

/// A wait for a lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub struct LockWait {
    /// How long it was, in nanoseconds.
    pub nanos: u64,
    /// When it began, in nanoseconds since the epoch.
    pub start_nanos: u64,
    /// The name of the task that waited; empty if none did.
    pub name: String,
    /// The name of the task that freed the lock last before the wait ended; empty if that is not known.
    pub holder: String,
}

impl LockWait {
    fn to_json(&self) -> Value {
        json!({ "ns": self.nanos, "start_ns": self.start_nanos, "name": self.name, "holder": self.holder })
    }
}

impl TaskView {
    /// Returns what an order compares.
    #[must_use]
    pub(crate) fn rank(&self, order: Order) -> u64 {
        match order {
            Order::LongestPoll => self.longest_poll_nanos,
            Order::Busy => self.busy_nanos,
            Order::Scheduled => self.scheduled_p99_nanos.unwrap_or(0),
            Order::Polls => self.polls,
            Order::Wakes => self.wakes,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "id": self.id, "name": self.name, "spawned_at": self.spawned_at, "state": self.state.name(),
            "polls": self.polls, "wakes": self.wakes, "busy_ns": self.busy_nanos,
            "longest_poll_ns": self.longest_poll_nanos, "scheduled_p99_ns": self.scheduled_p99_nanos,
            "span": self.span,
            "woken_by": self.woken_by.as_ref().map(|by| json!({ "id": by.id, "name": by.name })),
            "kind": self.kind, "pid": self.pid, "unwakeable": self.is_unwakeable,
            "unknown_since_ns": self.unknown_since_epoch_nanos,
        })
    }
}

impl Answer {
    /// Returns the answer as JSON: `tasks`, `deadlocks`, `futurelocks`, `lock_waits`, `counts`, `lost`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Counts { tasks, done, cancelled, panicked, ended, unknown, polls, wakes, not_listed } = self.counts;
        json!({
            "tasks": self.tasks.iter().map(TaskView::to_json).collect::<Vec<_>>(),
            "deadlocks": self.deadlocks, "futurelocks": self.futurelocks,
            "lock_waits": self.lock_waits.iter().map(LockWait::to_json).collect::<Vec<_>>(),
            "counts": {
                "tasks": tasks, "done": done, "cancelled": cancelled, "panicked": panicked, "ended": ended,
                "unknown": unknown, "polls": polls, "wakes": wakes, "not_listed": not_listed,
            },
            "lost": self.lost,
        })
    }
}
