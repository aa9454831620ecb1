//! The table of the changes from A to B.

use super::{Basis, ComparisonReport};
use crate::compare::{ComparedSpan, Measure};
use crate::page::html::escape;
use crate::page::tables::{ROWS_MAX, name, rest};
use eventring_export::numbers::percent_change;
use std::fmt::Write as _;

impl ComparisonReport<'_> {
    /// Returns the table as HTML. The spans whose [`Self::order_measure`] has changed most come first.
    pub(super) fn changes(&self) -> String {
        if self.comparison.spans.is_empty() {
            return "<p class=\"note\">No span was closed.</p>".into();
        }
        let unit = escape(&self.basis.unit());
        let mut columns: Vec<(Measure, String)> = vec![
            (Measure::Count, "count".into()),
            (Measure::P50, "p50".into()),
            (Measure::P99, "p99".into()),
            (Measure::Busy, format!("busy, {unit}")),
            (Measure::SelfTime, format!("self, {unit}")),
        ];
        if self.comparison.has_instructions {
            columns.push((Measure::Instructions, format!("instructions, {unit}")));
        }
        let mut out = String::from("<table class=\"changes\"><thead><tr><th></th>");
        columns.iter().for_each(|(_, head)| _ = write!(out, "<th class=\"of\" colspan=\"3\">{head}</th>"));
        out.push_str("<th class=\"of\"></th></tr><tr><th>span</th>");
        columns.iter().for_each(|_| out.push_str("<th class=\"of\">A</th><th>B</th><th>change</th>"));
        out.push_str("<th class=\"of\">sure</th></tr></thead><tbody>");
        let mut spans: Vec<&ComparedSpan> = self.comparison.spans.iter().collect();
        let change = |span: &ComparedSpan| {
            let value = |side| self.value(span, self.order_measure(), side).unwrap_or(0.0);
            (value(1) - value(0)).abs()
        };
        spans.sort_by(|x, y| change(y).total_cmp(&change(x)));
        for span in spans.into_iter().take(ROWS_MAX) {
            let badge = |what| format!("<span class=\"badge\">{what}</span>");
            let badge = span.one_sided().map_or_else(String::new, badge);
            _ = write!(out, "<tr><td>{}{badge}</td>", name(&span.target, &span.name));
            columns.iter().for_each(|(measure, _)| self.cells(&mut out, span, *measure));
            let sure = match span.is_significant(self.comparison.alpha) {
                Some(true) => "yes",
                Some(false) => "no",
                None => "",
            };
            _ = write!(out, "<td class=\"of\">{sure}</td></tr>");
        }
        out.push_str("</tbody></table>");
        rest(&mut out, self.comparison.spans.len(), "names of spans");
        out
    }

    /// Returns the measure by whose change the table is ordered. It is a column of the table.
    fn order_measure(&self) -> Measure {
        if self.comparison.has_instructions { Measure::Instructions } else { Measure::SelfTime }
    }

    /// Says in which order the spans are.
    pub(super) fn changes_order(&self) -> String {
        let what = if self.comparison.has_instructions { "instructions" } else { "self time" };
        format!("The spans whose {what} {} has changed most come first.", escape(&self.basis.unit()))
    }

    /// Says what cannot be read from the numbers of the table, as HTML.
    pub(super) fn changes_limits(&self) -> String {
        let notes = [self.comparison.not_whole_note(), self.comparison.loss_note()];
        notes.into_iter().flatten().map(|note| format!("<p class=\"cut\">{}.</p>", escape(&note))).collect()
    }

    /// Returns the value that the table shows of a side.
    fn value(&self, span: &ComparedSpan, measure: Measure, side: usize) -> Option<f64> {
        if self.basis == Basis::OwnCall {
            return span.per_call(measure)[side];
        }
        let value = [span.a, span.b][side]?.get(measure)? as f64;
        Some(if is_divided(measure) { value / self.divisors[side] } else { value })
    }

    /// Writes the values of both sides, and the change.
    fn cells(&self, out: &mut String, span: &ComparedSpan, measure: Measure) {
        let (a, b) = (self.value(span, measure, 0), self.value(span, measure, 1));
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| measure.show(value));
        let change = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0);
        let class = class(change);
        // A quotient has no exact digits, so tiny differences of it are none.
        let change = change.map(|change| if is_divided(measure) { (change * 1e4).round() / 1e4 } else { change });
        let change = change.map_or_else(String::new, percent_change);
        _ = write!(out, "<td class=\"of\">{}</td><td>{}</td><td class=\"{class}\">{change}</td>", cell(a), cell(b));
    }
}

/// Returns the class of the cell of a change.
pub(super) fn class(change: Option<f64>) -> &'static str {
    match change {
        Some(change) if change > 0.0 => "more",
        Some(change) if change < 0.0 => "less",
        _ => "",
    }
}

/// Returns true if the values are sums over a capture, which are divided by the basis.
fn is_divided(measure: Measure) -> bool {
    matches!(measure, Measure::Busy | Measure::SelfTime | Measure::Instructions)
}
