//! The comparison of a capture's numbers with those of the budget file, and the result for people and for programs.

use super::file::Budget;
use super::{CapturedFigures, USUAL_MEASURES};
use crate::text::format::{counted, grouped};
use crate::text::paint::{DIM, ERROR, GOOD, PLAIN, WARNING};
use crate::text::table::NumberTable;
use eventring_export::numbers::signed;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// The instructions of a span that is not exact may differ from its budget by one in so many: 10 %.
const INEXACT_PART: u64 = 10;

/// The reason why a filtered capture gives no budget, with a remedy.
pub(super) const FILTERED: &str = "the capture was filtered or sampled, so it has a part of the spans; capture all, \
                                   without --where, --span and --sample";

/// The result for one number of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum BudgetResult {
    /// The number is within the tolerance.
    #[serde(rename = "ok")]
    Kept,
    /// The number is larger than budget and tolerance.
    Exceeded,
    /// The number is less than the budget, by more than the tolerance.
    Improved,
    /// The capture does not have the span.
    Missing,
    /// The capture has the span, but not the number.
    #[serde(rename = "not counted")]
    NotCounted,
    /// Events were left out, lost or overwritten, or some spans of this name were not counted, so the number says
    /// nothing.
    Incomplete,
    /// The file does not have the span.
    New,
}

impl BudgetResult {
    fn name(self) -> &'static str {
        match self {
            Self::Kept => "ok",
            Self::Exceeded => "exceeded",
            Self::Improved => "improved",
            Self::Missing => "missing",
            Self::NotCounted => "not counted",
            Self::Incomplete => "incomplete",
            Self::New => "new",
        }
    }
}

impl CapturedFigures {
    /// Returns false if the number of a budget is one of instructions that differ from run to run by some percent.
    fn is_exact(&self, budget: &Budget) -> bool {
        !(budget.measure.is_of_instructions() && self.inexact.contains(&budget.span))
    }
}

/// A number of the file, or a span that the file does not have.
pub(super) struct CheckedBudget<'b> {
    span: &'b str,
    budget: Option<&'b Budget>,
    found: Option<u64>,
    /// False if the number is one of instructions that differ from run to run.
    is_exact: bool,
    pub(super) result: BudgetResult,
    pub(super) has_failed: bool,
}

impl CheckedBudget<'_> {
    fn change(&self) -> Option<i128> {
        self.budget.zip(self.found).map(|(budget, found)| i128::from(found) - i128::from(budget.number))
    }

    fn measure(&self) -> Option<&'static str> {
        self.budget.map(|budget| budget.measure.key())
    }
}

/// Compares the figures of a capture with the budgets. With `is_exact`, less than a budget and spans without a budget
/// are failures, too.
pub(super) fn check<'b>(budgets: &'b [Budget], figures: &'b CapturedFigures, is_exact: bool) -> Vec<CheckedBudget<'b>> {
    let of_file = budgets.iter().map(|budget| {
        let of_span = figures.spans.get(&budget.span);
        let found = of_span.and_then(|figures| figures.get(budget.measure));
        let result = result(budget, of_span.is_some(), found, figures);
        let has_failed = match result {
            BudgetResult::Kept | BudgetResult::New => false,
            BudgetResult::Improved => is_exact,
            // A time of a program that runs on, and has lost some events, is still what was seen.
            BudgetResult::Incomplete => is_exact || figures.is_filtered || budget.measure.is_of_instructions(),
            BudgetResult::Exceeded | BudgetResult::Missing | BudgetResult::NotCounted => true,
        };
        let is_exact = figures.is_exact(budget);
        CheckedBudget { span: &budget.span, budget: Some(budget), found, is_exact, result, has_failed }
    });
    let is_new = |name: &&String| !budgets.iter().any(|budget| budget.span == **name);
    let new = figures.spans.keys().filter(is_new).map(|span| {
        let result = BudgetResult::New;
        CheckedBudget { span, budget: None, found: None, is_exact: true, result, has_failed: is_exact }
    });
    of_file.chain(new).collect()
}

fn result(budget: &Budget, is_there: bool, found: Option<u64>, figures: &CapturedFigures) -> BudgetResult {
    // The events that the filter left out may be calls of any span.
    if figures.is_filtered {
        return BudgetResult::Incomplete;
    }
    let Some(found) = found else {
        return if is_there { BudgetResult::NotCounted } else { BudgetResult::Missing };
    };
    // An instruction that is not counted would pass for one that is saved.
    let is_partly_counted = figures.has_losses || figures.not_counted.contains_key(&budget.span);
    match () {
        () if budget.measure.is_of_instructions() && is_partly_counted => BudgetResult::Incomplete,
        () if !figures.is_exact(budget) && found.abs_diff(budget.number) <= budget.number / INEXACT_PART => {
            BudgetResult::Kept
        }
        () if budget.tolerance.order_of(budget.number, found).is_gt() => BudgetResult::Exceeded,
        () if !budget.tolerance.negative().order_of(budget.number, found).is_lt() => BudgetResult::Kept,
        // A span that was lost, or was still open, is no gain.
        () if figures.has_losses => BudgetResult::Incomplete,
        () if figures.not_whole.contains(&budget.span) && !budget.measure.is_percentile() => BudgetResult::Incomplete,
        () => BudgetResult::Improved,
    }
}

/// Writes the result for people.
pub(super) fn write(
    out: &mut impl Write,
    rows: &[CheckedBudget<'_>],
    figures: &CapturedFigures,
    columns: Option<usize>,
) -> io::Result<()> {
    let mut table = NumberTable::new(["span", "measure", "budget", "found", "change", "result"]);
    for row in rows {
        let style = match (row.has_failed, row.result) {
            (true, _) => ERROR,
            (false, BudgetResult::Improved) => GOOD,
            (false, BudgetResult::New) => WARNING,
            (false, _) => PLAIN,
        };
        let number = |number: Option<u64>| number.map_or_else(String::new, grouped);
        let change = row.change().map_or_else(String::new, |change| signed(change, grouped));
        let (measure, budget) = (row.measure().unwrap_or_default(), row.budget.map(|budget| budget.number));
        let result = row.result.name().into();
        table.row([row.span.to_owned(), measure.into(), number(budget), number(row.found), change, result], style);
    }
    table.write(out, columns)?;
    let count = |is_it: &dyn Fn(&CheckedBudget<'_>) -> bool| rows.iter().filter(|row| is_it(row)).count() as u64;
    let having = |result| count(&|row| row.result == result);
    if count(&|row| !row.is_exact) > 0 {
        let inexact = counted(count(&|row| !row.is_exact), "number is", "numbers are");
        writeln!(
            out,
            "{DIM}{inexact} not exact: the spans were entered several times, as those of futures are; up to 10 % is no change{DIM:#}"
        )?;
    }
    if having(BudgetResult::Improved) > 0 {
        let improved = counted(having(BudgetResult::Improved), "number is", "numbers are");
        writeln!(out, "{DIM}{improved} less than the budget; `eventring budget update` keeps the gain{DIM:#}")?;
    }
    if having(BudgetResult::Incomplete) > 0 {
        let incomplete = counted(having(BudgetResult::Incomplete), "number is", "numbers are");
        let why = match figures.is_filtered {
            true => FILTERED,
            false => {
                "events were lost or overwritten, or spans were open at the end; capture again, with larger rings \
                 (EVENTRING_PERF=name:256MiB, or init(\"name:256MiB\")) or spans that are closed"
            }
        };
        writeln!(out, "{WARNING}{incomplete} incomplete: {why}{WARNING:#}")?;
    }
    // An update writes no other spans.
    let has_usual_measures =
        |span: &str| USUAL_MEASURES.iter().any(|measure| figures.spans[span].get(*measure).is_some());
    let new = count(&|row| row.result == BudgetResult::New && has_usual_measures(row.span));
    if new > 0 && !figures.is_filtered && !figures.has_losses {
        let new = counted(new, "span has", "spans have");
        writeln!(out, "{DIM}{new} no budget yet; `eventring budget update` gives one{DIM:#}")?;
    }
    match count(&|row| row.has_failed) {
        0 => Ok(()),
        failed => {
            writeln!(out, "{ERROR}failed:{ERROR:#} {}", counted(failed, "budget is not kept", "budgets are not kept"))
        }
    }
}

/// What `budget check --json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckedBudgets<'b> {
    failed: bool,
    budgets: Vec<CheckedRow<'b>>,
}

#[derive(Serialize, JsonSchema)]
struct CheckedRow<'b> {
    span: &'b str,
    /// Null, as `budget`, if the file does not have the span.
    measure: Option<&'static str>,
    budget: Option<u64>,
    found: Option<u64>,
    change: Option<i64>,
    tolerance: Option<String>,
    result: BudgetResult,
    failed: bool,
}

impl<'b> CheckedBudgets<'b> {
    pub(super) fn new(rows: &[CheckedBudget<'b>]) -> Self {
        let row = |row: &CheckedBudget<'b>| CheckedRow {
            span: row.span,
            measure: row.measure(),
            budget: row.budget.map(|budget| budget.number),
            found: row.found,
            change: row.change().and_then(|change| i64::try_from(change).ok()),
            tolerance: row.budget.map(|budget| budget.tolerance.to_string()),
            result: row.result,
            failed: row.has_failed,
        };
        Self { failed: rows.iter().any(|row| row.has_failed), budgets: rows.iter().map(row).collect() }
    }
}
