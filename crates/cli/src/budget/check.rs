//! The numbers of a capture beside those of the budget file.

use super::FiguresByName;
use super::file::Budget;
use eventring_report::compare::{ChangeAmount, Measure};
use std::collections::BTreeMap;

/// The result for one number of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BudgetResult {
    /// The number is within the tolerance.
    Kept,
    /// The number is larger than budget and tolerance.
    Exceeded,
    /// The number is less than the budget, by more than the tolerance.
    Improved,
    /// The capture does not have the span.
    Missing,
    /// The capture has the span, but not the number.
    NotCounted,
    /// Events were lost, or some spans of this name were not counted, so the number says nothing.
    Incomplete,
    /// The file does not have the span.
    New,
}

/// The figures of a capture, and what they do not hold.
pub(super) struct CapturedFigures {
    pub(super) spans: FiguresByName,
    /// The spans of which some were not counted, with the number of these.
    pub(super) not_counted: BTreeMap<String, u64>,
    /// True if events were lost, or files of the capture are missing.
    pub(super) has_losses: bool,
}

impl CapturedFigures {
    /// Returns true if this number of a span does not hold all that has happened. An instruction that is not counted
    /// would pass for one that is saved.
    fn is_incomplete(&self, span: &str, measure: Measure) -> bool {
        measure.is_of_instructions() && (self.has_losses || self.not_counted.contains_key(span))
    }
}

/// A number of the file, or a span that the file does not have.
pub(super) struct CheckedBudget {
    pub(super) span: String,
    pub(super) measure: Option<Measure>,
    pub(super) budget: Option<u64>,
    pub(super) found: Option<u64>,
    pub(super) tolerance: Option<ChangeAmount>,
    pub(super) result: BudgetResult,
    pub(super) has_failed: bool,
}

/// All numbers of the file.
pub(super) struct CheckedBudgets {
    pub(super) rows: Vec<CheckedBudget>,
}

impl CheckedBudgets {
    pub(super) fn has_failed(&self) -> bool {
        self.rows.iter().any(|row| row.has_failed)
    }

    /// Returns true if a budget has failed because the capture does not hold all that has happened.
    pub(super) fn is_incomplete(&self) -> bool {
        self.rows.iter().any(|row| row.has_failed && row.result == BudgetResult::Incomplete)
    }

    pub(super) fn count(&self, result: BudgetResult) -> u64 {
        self.rows.iter().filter(|row| row.result == result).count() as u64
    }
}

/// Compares the figures of a capture with the budgets. With `is_exact`, less than a budget and spans without a budget
/// are failures, too.
pub(super) fn check(budgets: &[Budget], figures: &CapturedFigures, is_exact: bool) -> CheckedBudgets {
    let of_file = budgets.iter().map(|budget| {
        let of_span = figures.spans.get(&budget.span);
        let found = of_span.and_then(|figures| figures.get(budget.measure));
        let result = match (of_span, found) {
            (None, _) => BudgetResult::Missing,
            (_, None) => BudgetResult::NotCounted,
            _ if figures.is_incomplete(&budget.span, budget.measure) => BudgetResult::Incomplete,
            (_, Some(found)) if budget.tolerance.order_of(budget.number, found).is_gt() => BudgetResult::Exceeded,
            (_, Some(found)) if budget.tolerance.negative().order_of(budget.number, found).is_lt() => {
                // What was lost is no gain.
                if figures.has_losses { BudgetResult::Incomplete } else { BudgetResult::Improved }
            }
            _ => BudgetResult::Kept,
        };
        let (budgeted, tolerance) = (Some(budget.number), Some(budget.tolerance));
        // A time of a program that runs on, and has lost some events, is still what was seen.
        let has_failed = match result {
            BudgetResult::Incomplete => is_exact || budget.measure.is_of_instructions(),
            result => fails(result, is_exact),
        };
        let (span, measure) = (budget.span.clone(), Some(budget.measure));
        CheckedBudget { span, measure, budget: budgeted, found, tolerance, result, has_failed }
    });
    let is_new = |name: &&String| !budgets.iter().any(|budget| budget.span == **name);
    let new = figures.spans.keys().filter(is_new).map(|name| CheckedBudget {
        span: name.clone(),
        measure: None,
        budget: None,
        found: None,
        tolerance: None,
        result: BudgetResult::New,
        has_failed: fails(BudgetResult::New, is_exact),
    });
    CheckedBudgets { rows: of_file.chain(new).collect() }
}

fn fails(result: BudgetResult, is_exact: bool) -> bool {
    match result {
        BudgetResult::Kept => false,
        BudgetResult::Exceeded | BudgetResult::Missing | BudgetResult::NotCounted | BudgetResult::Incomplete => true,
        BudgetResult::Improved | BudgetResult::New => is_exact,
    }
}
