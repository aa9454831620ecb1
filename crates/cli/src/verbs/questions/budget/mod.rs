//! `eventring budget`.
//!
//! | file | idea |
//! |---|---|
//! | `figures` | the numbers of a capture that a budget limits |
//! | `file` | the budget file |
//! | `check` | the comparison of a capture's numbers with the budget file |

mod check;
mod figures;
mod file;

use super::summary::not_counted;
use crate::args::limit::LimitArgs;
use crate::exit::{Exit, Failure};
use crate::input::measured::Measured;
use crate::output;
use crate::text::format::counted;
use crate::text::out::{stderr, stdout};
use crate::text::paint::WARNING;
pub(crate) use check::CheckedBudgets;
use check::{BudgetResult, CheckedBudget};
use eventring_ask::command_line;
use eventring_export::full_name;
use eventring_report::compare::{Comparison, Measure, SpanFigures};
use figures::{CapturedFigures, FiguresByName, USUAL_MEASURES};
use file::BudgetFile;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Keep what spans may cost in a file, and check captures by it
#[derive(clap::Args)]
pub(crate) struct BudgetArgs {
    #[command(subcommand)]
    action: BudgetAction,
}

#[derive(clap::Subcommand)]
enum BudgetAction {
    Check(CheckArgs),
    Update(UpdateArgs),
}

/// Compare a capture with the budget file. The exit code is 18 if a span is not within its budget, and 16 if the
/// capture does not hold all instructions, or was filtered
#[derive(clap::Args)]
struct CheckArgs {
    #[command(flatten)]
    input: BudgetInput,
    /// Fail also if a number is less than its budget, or if a span has no budget
    #[arg(long)]
    exact: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limit: LimitArgs,
    /// Exit with code 16 if events were lost or overwritten before the capture began, or lost their payloads
    #[arg(long)]
    strict: bool,
}

/// Write the numbers of a capture into the budget file. Comments and tolerances of the file stay
#[derive(clap::Args)]
struct UpdateArgs {
    #[command(flatten)]
    input: BudgetInput,
    /// A measure of spans that are new in the file, instead of instructions and `self_instructions`, as in limits of
    /// `diff`; may be repeated
    #[arg(long = "measure", value_name = "MEASURE", value_parser = parse_measure)]
    measures: Vec<Measure>,
}

#[derive(clap::Args)]
struct BudgetInput {
    /// The budget file
    #[arg(value_name = "BUDGETS")]
    budgets: PathBuf,
    /// The capture, or all files of a rotated one; of several captures of the same program, the medians
    #[arg(value_name = "CAPTURE", required = true)]
    captures: Vec<PathBuf>,
    /// Write all numbers of the capture into this file, for Bencher (Bencher Metric Format); `-` is stdout
    #[arg(long, value_name = "FILE")]
    bmf: Option<PathBuf>,
}

fn parse_measure(text: &str) -> Result<Measure, String> {
    let names = || Measure::ALL.map(Measure::name).join(", ");
    Measure::of_name(text).ok_or_else(|| format!("expected one of {}", names()))
}

pub(crate) fn run(args: &BudgetArgs) -> anyhow::Result<Exit> {
    match &args.action {
        BudgetAction::Check(args) => check(args),
        BudgetAction::Update(args) => update(args),
    }
}

fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let budgets = BudgetFile::open(&args.input.budgets)?;
    let rows = budgets.budgets()?;
    if rows.is_empty() {
        let file = args.input.budgets.display();
        return Exit::Failed.fail(format!(
            "{file}: it has no number, expected that of one span at least; `{}` writes them",
            command_line("budget update", &[&*args.input.budgets, "CAPTURE".as_ref()], &[])
        ));
    }
    let (measured, captured) = args.input.read(args.json)?;
    let checked = check::check(&rows, &captured, args.exact);
    // stdout may be taken by the numbers for Bencher.
    match (args.json, args.input.bmf.as_deref().is_some_and(output::is_stdout)) {
        (true, true) => return Err(crate::input::saved::stdout_twice().into()),
        (true, false) => {
            let id = |row: &Value| [&row["span"], &row["measure"]].map(|it| it.as_str().unwrap_or_default()).join(" ");
            args.limit.write_whole(&CheckedBudgets::new(&checked), "budgets", id)?;
        }
        (false, true) => check::write(&mut stderr(), &checked, &captured, None)?,
        (false, false) => {
            let columns = crate::text::format::columns(&std::io::stdout());
            check::write(&mut stdout(), &checked, &captured, columns)?;
        }
    }
    args.input.write_bmf(&measured, &captured.spans)?;
    warn_of_not_counted(&captured);
    let has_failed = |row: &CheckedBudget<'_>| row.has_failed;
    let is_incomplete = |row: &CheckedBudget<'_>| row.has_failed && row.result == BudgetResult::Incomplete;
    match measured.exit_code(args.strict, checked.iter().any(has_failed)) {
        Exit::Exceeded if checked.iter().any(is_incomplete) => Ok(Exit::Lost),
        exit => Ok(exit),
    }
}

fn update(args: &UpdateArgs) -> anyhow::Result<Exit> {
    let mut budgets = BudgetFile::open_or_new(&args.input.budgets)?;
    let (measured, captured) = args.input.read(false)?;
    if measured.exit != Exit::Done || measured.has_losses || measured.has_missing_files {
        let exit = if measured.exit == Exit::Done { Exit::Lost } else { measured.exit };
        let message = "the capture is not whole, so its numbers are no budget; name all files of a rotated capture, or capture \
                       it again, with larger rings if events were lost or overwritten";
        return exit.fail(message);
    }
    if captured.is_filtered {
        return Err(Exit::Lost.failure(format!("no budget was written: {}", check::FILTERED)).into());
    }
    let measures = match &*args.measures {
        [] => &USUAL_MEASURES[..],
        measures => measures,
    };
    let updated = budgets.update(&captured.spans, measures)?;
    let has_budget = |name: &&String| {
        budgets
            .budgets()
            .is_ok_and(|rows| rows.iter().any(|row| row.span == **name && row.measure.is_of_instructions()))
    };
    if let Some(name) = captured.not_counted.keys().find(has_budget) {
        return Exit::Lost.fail(format!(
            "{name}: {} not counted, expected none: open at the end, never entered, or not seen whole, so the numbers are no \
             budget; let the program enter and close all its spans and end by itself, and count again",
            counted(captured.not_counted[name], "span is", "spans are")
        ));
    }
    let text = budgets.text();
    write_file(&args.input.budgets, &text, &measured)?;
    args.input.write_bmf(&measured, &captured.spans)?;
    for name in &updated.removed {
        say!("removed: {}, which the capture does not have", name);
    }
    warn_of_not_counted(&captured);
    let spans = counted(updated.written as u64, "span", "spans");
    say!("{spans} written to {}", args.input.budgets.display());
    Ok(Exit::Done)
}

/// Says on stderr which spans are not in the numbers.
fn warn_of_not_counted(captured: &CapturedFigures) {
    for (name, number) in &captured.not_counted {
        let spans = counted(*number, "span", "spans");
        say!(
            "{WARNING}warning:{WARNING:#} {}: {spans} not counted: open at the end, never entered, or not seen whole",
            name
        );
    }
}

/// Replaces a file by one with this text.
fn write_file(path: &Path, text: &str, measured: &Measured) -> anyhow::Result<()> {
    let target = output::look(path, true)?;
    output::write_whole((path, target), true, &measured.read, |mut file| {
        file.write_all(text.as_bytes()).map_err(|error| Failure::writing(path, &error).into())
    })
}

impl BudgetInput {
    fn read(&self, is_quiet: bool) -> anyhow::Result<(Measured, CapturedFigures)> {
        let place = |path: &Path| path.canonicalize().ok();
        if let Some(path) = &self.bmf
            && (*path == self.budgets || place(path).is_some_and(|of_bmf| place(&self.budgets) == Some(of_bmf)))
        {
            return Exit::Exists.fail(format!(
                "cannot write {}: it is the budget file, which is not written over; choose another name for --bmf",
                path.display()
            ));
        }
        let mut measured = Measured::read(&self.captures, is_quiet)?;
        // A budget is about the whole run.
        measured.has_losses |= measured.lacks_beginning;
        let (mut figures, mut inexact, mut not_whole) = (FiguresByName::new(), BTreeSet::new(), BTreeSet::new());
        // Nothing is tested here, so the rate of false alarms has no effect.
        for span in Comparison::new(&[], &measured.summaries, 0.01).spans {
            let name = span.full_name();
            if !span.is_exact {
                inexact.insert(name.clone());
            }
            if span.not_whole != [0, 0] {
                not_whole.insert(name.clone());
            }
            if let Some(other) = span.b.and_then(|of_span| figures.insert(name.clone(), of_span)) {
                let calls = other.get(Measure::Count).unwrap_or(0);
                return Exit::Failed.fail(format!(
                    "two spans of different targets are both called {name} (one of them has {calls} calls), expected names that \
                     tell spans apart; rename one of them"
                ));
            }
        }
        let mut not_counted_of = BTreeMap::new();
        for summary in &measured.summaries {
            // If no instructions were counted at all, the times are what matters.
            if summary.spans.iter().all(|span| span.instructions.is_none()) {
                continue;
            }
            for span in summary.spans.iter().filter(|span| not_counted(span) > 0) {
                *not_counted_of.entry(full_name(&span.name, &span.target)).or_default() += not_counted(span);
            }
        }
        let has_losses = measured.has_missing_files || measured.summaries.iter().any(|summary| summary.lost > 0);
        let is_filtered = measured.filters.iter().any(|filter| !filter.is_empty());
        let captured = CapturedFigures {
            spans: figures,
            not_counted: not_counted_of,
            has_losses,
            is_filtered,
            not_whole,
            inexact,
        };
        Ok((measured, captured))
    }

    /// Writes `{"shop::request": {"instructions": {"value": 1234}, …}, …}`, the Bencher Metric Format.
    fn write_bmf(&self, measured: &Measured, figures: &FiguresByName) -> anyhow::Result<()> {
        let Some(path) = &self.bmf else { return Ok(()) };
        let of_span = |figures: &SpanFigures| -> Map<String, Value> {
            let valued = Measure::ALL.into_iter().filter_map(|measure| Some((measure, figures.get(measure)?)));
            let object = |value: u64| Map::from_iter([("value".to_owned(), value.into())]).into();
            valued.map(|(measure, value)| (measure.key().to_owned(), object(value))).collect()
        };
        let all: Map<String, Value> =
            figures.iter().map(|(name, figures)| (name.clone(), of_span(figures).into())).collect();
        let text = format!("{:#}\n", Value::from(all));
        if output::is_stdout(path) {
            return Ok(stdout().write_all(text.as_bytes())?);
        }
        write_file(path, &text, measured)
    }
}
