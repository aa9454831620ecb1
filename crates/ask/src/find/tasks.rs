//! Flags of tasks: polls, wakes, locks, deadlocks.

use crate::flag::{
    Flag, FlagKind, LATE_POLL_NANOS, LOCK_WAIT_NANOS, LONG_POLL_NANOS, STORM_WAKES, STORM_WAKES_PER_POLL,
};
use eventring_capture::{CaptureError, CaptureFile};
use eventring_export::numbers::{grouped, time};
use eventring_tasks::{Answer, Order, Question, TaskState, TaskView, tasks};
use std::collections::{HashMap, HashSet};

/// The tasks that have ended and are looked at, for each order.
const FINISHED_MAX: usize = 1000;
/// The smallest number of polls of a task that wakes itself without end, and their longest mean time.
const SPIN: (u64, u64) = (1000, 1_000_000);

pub(crate) fn find(capture: &CaptureFile, flags: &mut Vec<Flag>) -> Result<(), CaptureError> {
    let ask = |order| tasks(capture, &Question { order, finished_max: FINISHED_MAX });
    let answer = ask(Order::LongestPoll)?;
    let mut seen = HashSet::new();
    of_answer(&answer, &mut seen, flags);
    // Others are first in these orders, if not all tasks are listed.
    if answer.counts.not_listed > 0 {
        for order in [Order::Wakes, Order::Scheduled] {
            for task in &ask(order)?.tasks {
                of_task(task, &mut seen, flags);
            }
        }
    }
    Ok(())
}

fn of_answer(answer: &Answer, seen: &mut HashSet<(u32, u64)>, flags: &mut Vec<Flag>) {
    let by_id: HashMap<u64, &TaskView> = answer.tasks.iter().map(|task| (task.id, task)).collect();
    let find = |id: &u64| by_id.get(id).copied();
    let place = |ids: &[u64], who: &str| {
        let span = ids.iter().filter_map(find).find_map(|task| task.span.clone());
        span.map_or_else(String::new, |span| format!("; {who} is in {span}"))
    };
    let name_of = |id: &u64| find(id).map_or_else(|| id.to_string(), name);
    for cycle in answer.deadlocks.iter().filter(|cycle| !is_futurelock(answer, cycle)) {
        let names: Vec<String> = cycle.iter().map(name_of).collect();
        let (kind, evidence) = match cycle.as_slice() {
            [id] if find(id).is_some_and(|task| task.is_unwakeable) => {
                (FlagKind::LostWaker, format!("it waits, and nobody can wake it any more{}", place(cycle, "it")))
            }
            [_] => (FlagKind::TaskDeadlock, format!("it waits for a lock that it holds itself{}", place(cycle, "it"))),
            _ => (
                FlagKind::TaskDeadlock,
                format!("each waits for a lock that the next one holds{}", place(cycle, "one")),
            ),
        };
        flags.push(Flag::new(kind, &names.join(", "), names.len() as u64, evidence).count(names.len() as u64));
    }
    for id in &answer.futurelocks {
        let evidence = format!(
            "it was given a lock for which others wait, and polls something else{}: poll the wait, or drop it",
            place(&[*id], "it")
        );
        flags.push(Flag::new(FlagKind::Futurelock, &name_of(id), 1, evidence).id(*id));
    }
    for wait in answer.lock_waits.iter().filter(|wait| wait.nanos >= LOCK_WAIT_NANOS) {
        let holder = if wait.holder.is_empty() { "a task whose name is not known" } else { &wait.holder };
        let evidence = format!("it waited {} for a lock, until {holder} freed it", time(wait.nanos));
        flags.push(Flag::new(FlagKind::LockWait, &wait.name, wait.nanos, evidence).at(wait.start_nanos));
    }
    for task in &answer.tasks {
        of_task(task, seen, flags);
    }
}

/// Returns true if the cycle is one task, which has a flag of its own.
fn is_futurelock(answer: &Answer, cycle: &[u64]) -> bool {
    matches!(cycle, [id] if answer.futurelocks.contains(id))
}

/// Adds the flags of a task, unless it has been looked at.
fn of_task(task: &TaskView, seen: &mut HashSet<(u32, u64)>, flags: &mut Vec<Flag>) {
    if !seen.insert((task.pid, task.id)) {
        return;
    }
    let place = if task.spawned_at.is_empty() { String::new() } else { format!("; spawned at {}", task.spawned_at) };
    let mut add = |kind, weight, evidence: String| {
        flags.push(Flag::new(kind, &name(task), weight, format!("{evidence}{place}")).id(task.id));
    };
    if task.state == TaskState::Panicked {
        add(FlagKind::TaskPanicked, 1, "it has panicked".to_owned());
    }
    // A blocking task is one poll.
    if task.longest_poll_nanos >= LONG_POLL_NANOS && task.kind != "blocking" {
        add(FlagKind::LongPoll, task.longest_poll_nanos, format!("a poll took {}", time(task.longest_poll_nanos)));
    }
    if let Some(nanos) = task.scheduled_p99_nanos.filter(|nanos| *nanos >= LATE_POLL_NANOS) {
        add(FlagKind::LatePoll, nanos, format!("it was polled up to {} after it was woken", time(nanos)));
    }
    let is_storm = task.wakes >= STORM_WAKES && task.wakes / STORM_WAKES_PER_POLL >= task.polls;
    let wakes_itself = task.woken_by.as_ref().is_some_and(|by| by.id == task.id);
    let spins = wakes_itself && task.polls >= SPIN.0 && task.busy_nanos / task.polls <= SPIN.1;
    if is_storm || spins {
        let by = if spins { ", by itself" } else { "" };
        let evidence =
            format!("it was woken {} times{by}, and polled {} times", grouped(task.wakes), grouped(task.polls));
        add(FlagKind::WakeStorm, task.wakes, evidence);
    }
}

fn name(task: &TaskView) -> String {
    if task.name.is_empty() { format!("task {}", task.id) } else { task.name.clone() }
}
