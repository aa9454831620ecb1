//! The answer, as it is printed in JSON.

use super::phase::TaskState;
use super::question::Order;
use schemars::JsonSchema;
use serde::Serialize;

/// What tasks do and wait for.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
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
    #[serde(skip)]
    pub problems: Vec<String>,
}

/// The counts of all tasks, also of those that are not listed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct TaskView {
    /// The id of its span. No other task of its process has it.
    pub id: u64,
    /// Its name; empty if its beginning was overwritten.
    pub name: String,
    /// File and line of the call that spawned it.
    pub spawned_at: String,
    /// What it does.
    pub state: TaskState,
    /// The number of polls.
    pub polls: u64,
    /// The number of wakes.
    pub wakes: u64,
    /// The time of all polls, in nanoseconds.
    #[serde(rename = "busy_ns")]
    pub busy_nanos: u64,
    /// The time of the longest poll, in nanoseconds.
    #[serde(rename = "longest_poll_ns")]
    pub longest_poll_nanos: u64,
    /// The time from the first wake after a poll to the next poll, which 99 in 100 do not exceed, in nanoseconds.
    #[serde(rename = "scheduled_p99_ns")]
    pub scheduled_p99_nanos: Option<u64>,
    /// The innermost span that is open in it: the place of its await.
    pub span: Option<String>,
    /// The span in which the thread was that has woken it last.
    pub woken_by: Option<WokenBy>,
    /// `async`, `local`, `blocking`, or `hooked` if the runtime alone has seen it.
    pub kind: String,
    /// Its process.
    pub pid: u32,
    /// True if it waits, and nobody has its waker.
    #[serde(rename = "unwakeable")]
    pub is_unwakeable: bool,
    /// If it is not known what it does: the time until which it was, in nanoseconds since the epoch.
    #[serde(rename = "unknown_since_ns")]
    pub unknown_since_epoch_nanos: Option<u64>,
}

/// Who has woken a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct WokenBy {
    /// The id of the span.
    pub id: u64,
    /// Its name.
    pub name: String,
}

/// A wait for a lock.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct LockWait {
    /// How long it was, in nanoseconds.
    #[serde(rename = "ns")]
    pub nanos: u64,
    /// When it began, in nanoseconds since the epoch.
    #[serde(rename = "start_ns")]
    pub start_nanos: u64,
    /// The name of the task that waited; empty if none did.
    pub name: String,
    /// The name of the task that freed the lock last before the wait ended; empty if that is not known.
    pub holder: String,
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
}
