//! `eventring tasks`.

mod text;

use crate::args::limit::{self, LimitArgs};
use crate::exit::Exit;
use crate::text::out::stdout;
use eventring_tasks::{Order, Question, tasks};
use std::io::Write as _;
use std::path::PathBuf;

/// Show what tasks do and wait for, and deadlocks
///
/// Their polls, wakes, the span of their await, and tasks that wait for each other. Programs record their tasks with
/// the crate eventring-tokio (docs/TOKIO.md). Works on rings of running programs and of killed ones, and on captures.
#[derive(clap::Args)]
pub(crate) struct TasksArgs {
    /// Capture files, those of a rotated capture, or names or paths of rings
    #[arg(value_name = "FILE", required = true)]
    names: Vec<PathBuf>,
    /// What the first tasks have most of
    #[arg(long, value_name = "BY", default_value = "longest-poll")]
    slowest: Slowest,
    /// Show only tasks that will never go on: those that wait for locks that each other hold, those that nobody can
    /// wake, and those that do not take a lock that they were given
    #[arg(long)]
    deadlocks: bool,
    /// Show at most this many tasks; with --json, at most this many of those that have ended [default: 40, 10000]
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
}

/// The orders.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Slowest {
    LongestPoll,
    Busy,
    Scheduled,
    Polls,
    Wakes,
}

/// The number of tasks that people get.
const ROWS: usize = 40;

pub(crate) fn run(args: &TasksArgs) -> anyhow::Result<Exit> {
    let saved = crate::input::saved::open(&args.names, true)?;
    let order = match args.slowest {
        Slowest::LongestPoll => Order::LongestPoll,
        Slowest::Busy => Order::Busy,
        Slowest::Scheduled => Order::Scheduled,
        Slowest::Polls => Order::Polls,
        Slowest::Wakes => Order::Wakes,
    };
    let mut question = Question { order, ..Question::default() };
    if let Some(max) = args.max {
        question.finished_max = max;
    }
    let mut answer = tasks(&saved.capture, &question)?;
    if args.deadlocks {
        let found = answer.deadlocks.iter().flatten().chain(&answer.futurelocks);
        answer.tasks.retain(|task| found.clone().any(|id| *id == task.id));
    }
    let mut out = stdout();
    if args.json {
        args.limit.write_whole(&answer, "tasks", limit::id)?;
    } else {
        text::write(&mut out, &answer, args.max.unwrap_or(ROWS), args.deadlocks)?;
    }
    out.flush()?;
    Ok(saved.report(&args.names, &answer.problems, &[]))
}
