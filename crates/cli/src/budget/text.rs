//! The result for people and for programs.

use super::check::{BudgetResult, CheckedBudget, CheckedBudgets};
use crate::format::{counted, grouped, one_line};
use crate::paint::{DIM, ERROR, GOOD, PLAIN, WARNING};
use crate::table::NumberTable;
use eventring_report::compare::Measure;
use serde_json::{Value, json};
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, checked: &CheckedBudgets, columns: Option<usize>) -> io::Result<()> {
    let mut table = NumberTable::new(["span", "measure", "budget", "found", "change", "result"]);
    for row in &checked.rows {
        let style = match (row.has_failed, row.result) {
            (true, _) => ERROR,
            (false, BudgetResult::Improved) => GOOD,
            (false, BudgetResult::New) => WARNING,
            (false, _) => PLAIN,
        };
        let number = |number: Option<u64>| number.map_or_else(String::new, grouped);
        let change = row.change().map_or_else(String::new, |change| match change {
            0 => "0".to_owned(),
            change => {
                let sign = if change < 0 { '-' } else { '+' };
                format!("{sign}{}", grouped(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX)))
            }
        });
        let measure = row.measure.map_or("", Measure::key);
        let cells = [
            one_line(&row.span),
            measure.into(),
            number(row.budget),
            number(row.found),
            change,
            name(row.result).into(),
        ];
        table.row(cells, style);
    }
    table.write(out, columns)?;
    if checked.count(BudgetResult::Improved) > 0 {
        let improved = counted(checked.count(BudgetResult::Improved), "number is", "numbers are");
        writeln!(out, "{DIM}{improved} less than the budget; `eventring budget update` keeps the gain{DIM:#}")?;
    }
    if checked.count(BudgetResult::Incomplete) > 0 {
        let incomplete = counted(checked.count(BudgetResult::Incomplete), "number is", "numbers are");
        writeln!(
            out,
            "{WARNING}{incomplete} incomplete: events were lost, or spans were open at the end; capture again, with larger rings \
             (EVENTRING_PERF=name:256MiB, or init(\"name:256MiB\")) or spans that are closed{WARNING:#}"
        )?;
    }
    if checked.count(BudgetResult::New) > 0 {
        let new = counted(checked.count(BudgetResult::New), "span has", "spans have");
        writeln!(out, "{DIM}{new} no budget yet; `eventring budget update` gives one{DIM:#}")?;
    }
    let failed = checked.rows.iter().filter(|row| row.has_failed).count() as u64;
    if failed > 0 {
        writeln!(out, "{ERROR}failed:{ERROR:#} {}", counted(failed, "budget is not kept", "budgets are not kept"))?;
    }
    Ok(())
}

/// Returns `{"failed": BOOL, "budgets": [{"span", "measure", "budget", "found", "change", "tolerance", "result",
/// "failed"}]}`.
pub(super) fn to_json(checked: &CheckedBudgets) -> Value {
    let row = |row: &CheckedBudget| {
        json!({
            "span": row.span, "measure": row.measure.map(Measure::key), "budget": row.budget, "found": row.found,
            "change": row.change().and_then(|change| i64::try_from(change).ok()),
            "tolerance": row.tolerance.map(|tolerance| tolerance.to_string()), "result": name(row.result),
            "failed": row.has_failed,
        })
    };
    json!({ "failed": checked.has_failed(), "budgets": checked.rows.iter().map(row).collect::<Vec<Value>>() })
}

impl CheckedBudget {
    fn change(&self) -> Option<i128> {
        self.budget.zip(self.found).map(|(budget, found)| i128::from(found) - i128::from(budget))
    }
}

fn name(result: BudgetResult) -> &'static str {
    match result {
        BudgetResult::Kept => "ok",
        BudgetResult::Exceeded => "exceeded",
        BudgetResult::Improved => "improved",
        BudgetResult::Missing => "missing",
        BudgetResult::NotCounted => "not counted",
        BudgetResult::Incomplete => "incomplete",
        BudgetResult::New => "new",
    }
}
