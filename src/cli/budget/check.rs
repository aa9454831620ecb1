//! The numbers of a capture beside those of the budget file.

use super::FiguresByName;
use super::file::Budget;
use eventring::__internals::compare::{ChangeAmount, Measure};

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
    /// The file does not have the span.
    New,
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

    pub(super) fn count(&self, result: BudgetResult) -> u64 {
        self.rows.iter().filter(|row| row.result == result).count() as u64
    }
}

/// Compares the figures of a capture with the budgets. With `is_exact`, less than a budget and spans without a budget
/// are failures, too.
pub(super) fn check(budgets: &[Budget], figures: &FiguresByName, is_exact: bool) -> CheckedBudgets {
    let of_file = budgets.iter().map(|budget| {
        let of_span = figures.get(&budget.span);
        let found = of_span.and_then(|figures| figures.get(budget.measure));
        let result = match (of_span, found) {
            (None, _) => BudgetResult::Missing,
            (_, None) => BudgetResult::NotCounted,
            (_, Some(found)) if budget.tolerance.order_of(budget.number, found).is_gt() => BudgetResult::Exceeded,
            (_, Some(found)) if budget.tolerance.negative().order_of(budget.number, found).is_lt() => {
                BudgetResult::Improved
            }
            _ => BudgetResult::Kept,
        };
        let (budgeted, tolerance) = (Some(budget.number), Some(budget.tolerance));
        let has_failed = fails(result, is_exact);
        let (span, measure) = (budget.span.clone(), Some(budget.measure));
        CheckedBudget { span, measure, budget: budgeted, found, tolerance, result, has_failed }
    });
    let is_new = |name: &&String| !budgets.iter().any(|budget| budget.span == **name);
    let new = figures.keys().filter(is_new).map(|name| CheckedBudget {
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
        BudgetResult::Exceeded | BudgetResult::Missing | BudgetResult::NotCounted => true,
        BudgetResult::Improved | BudgetResult::New => is_exact,
    }
}
