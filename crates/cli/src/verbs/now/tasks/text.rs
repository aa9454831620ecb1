//! Tasks for people.

use crate::text::format::{columns, counted, duration, shown_name};
use crate::text::paint::{BOLD, DIM, ERROR, PLAIN, WARNING};
use crate::text::table::NumberTable;
use eventring_tasks::{Answer, TaskState, TaskView};
use std::io::{self, Write};
use std::time::Duration;

/// Writes the deadlocks, a table of the first tasks, and the counts.
pub(super) fn write(out: &mut impl Write, answer: &Answer, rows: usize, deadlocks_only: bool) -> io::Result<()> {
    for cycle in &answer.deadlocks {
        write_deadlock(out, answer, cycle)?;
    }
    for task in answer.futurelocks.iter().filter(|task| !answer.deadlocks.contains(&vec![**task])) {
        let task = name(answer, task);
        writeln!(
            out,
            "{WARNING}futurelock:{WARNING:#} {BOLD}{task}{BOLD:#} was given a lock for which others wait, and does not \
             poll its wait for it"
        )?;
    }
    if !answer.tasks.is_empty() {
        table(&answer.tasks[..rows.min(answer.tasks.len())]).write(out, columns(&io::stdout()))?;
    } else if deadlocks_only {
        let unknown = match answer.counts.unknown {
            0 => String::new(),
            count => format!(" among the other tasks: {} unknown", counted(count, "task is", "tasks are")),
        };
        writeln!(out, "no deadlocks{unknown}")?;
    }
    let counts = &answer.counts;
    let not_shown = counts.not_listed + answer.tasks.len().saturating_sub(rows) as u64;
    if not_shown > 0 && !deadlocks_only {
        writeln!(out, "{DIM}and {}{DIM:#}", counted(not_shown, "further task", "further tasks"))?;
    }
    let (tasks, polls) = (counted(counts.tasks, "task", "tasks"), counted(counts.polls, "poll", "polls"));
    let (wakes, done) = (counted(counts.wakes, "wake", "wakes"), counts.done);
    let (cancelled, panicked) = (counts.cancelled, counts.panicked);
    // Of tasks that only the runtime has seen, nobody knows more.
    let ended = if counts.ended > 0 { format!(", {} ended", counts.ended) } else { String::new() };
    let unknown = if counts.unknown > 0 { format!(", {} unknown", counts.unknown) } else { String::new() };
    writeln!(
        out,
        "{DIM}{tasks}: {done} done, {cancelled} cancelled, {panicked} panicked{ended}{unknown}; {polls}, {wakes}{DIM:#}"
    )?;
    if answer.lost > 0 {
        let lost = counted(answer.lost, "event is", "events are");
        writeln!(
            out,
            "{WARNING}{lost} missing:{WARNING:#} the counts are too low, and what is said of waits may be wrong"
        )?;
    }
    Ok(())
}

/// Returns the name of a task, with its id.
fn name(answer: &Answer, id: &u64) -> String {
    let task = answer.tasks.iter().find(|task| task.id == *id);
    task.map_or_else(|| id.to_string(), |task| format!("{} ({id})", shown_name(&task.name)))
}

/// Writes a cycle: who waits for whom.
fn write_deadlock(out: &mut impl Write, answer: &Answer, cycle: &[u64]) -> io::Result<()> {
    let find = |id: &u64| answer.tasks.iter().find(|task| task.id == *id);
    let why = match cycle {
        [id] if find(id).is_some_and(|task| task.is_unwakeable) => " waits, and nobody can wake it any more",
        [id] if answer.futurelocks.contains(id) => {
            " waits for a lock that was given to an earlier wait of its own, which it does not poll any more"
        }
        [_] => " waits for a lock that it holds itself",
        _ => " wait for locks that the next one holds",
    };
    let names: Vec<String> = cycle.iter().map(|id| name(answer, id)).collect();
    writeln!(out, "{ERROR}deadlock:{ERROR:#} {BOLD}{}{BOLD:#}{why}", names.join(" → "))
}

fn table(tasks: &[TaskView]) -> NumberTable<8> {
    let mut table =
        NumberTable::new(["task", "id", "state", "polls", "wakes", "busy", "longest poll", "scheduled p99"]);
    let nanos = |nanos| duration(Duration::from_nanos(nanos));
    for task in tasks {
        let style = match task.state {
            TaskState::Panicked => ERROR,
            TaskState::Idle if task.is_unwakeable => ERROR,
            TaskState::Running => BOLD,
            TaskState::Unknown => DIM,
            state if state.is_over() => DIM,
            _ => PLAIN,
        };
        let cells = [
            shown_name(&task.name),
            task.id.to_string(),
            task.state.name().to_owned(),
            task.polls.to_string(),
            task.wakes.to_string(),
            nanos(task.busy_nanos),
            nanos(task.longest_poll_nanos),
            task.scheduled_p99_nanos.map(nanos).unwrap_or_default(),
        ];
        table.row_with_note(cells, style, note(task));
    }
    table
}

/// Returns where a task waits, who has woken it, and where it was spawned.
fn note(task: &TaskView) -> String {
    let mut parts = Vec::new();
    parts.extend(task.span.as_ref().map(|span| format!("in {span}")));
    parts.extend(task.woken_by.as_ref().map(|by| format!("woken by {} ({})", shown_name(&by.name), by.id)));
    if !task.spawned_at.is_empty() {
        parts.push(task.spawned_at.clone());
    }
    parts.join(", ")
}
