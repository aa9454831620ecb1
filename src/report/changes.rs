//! The table of the changes from A to B.

use super::ComparisonReport;
use crate::compare::{ComparedSpan, Measure};
use crate::export::html::tables::{ROWS_MAX, name, rest};
use crate::export::html::text::escape;
use crate::export::numbers::{grouped, percent_change, time};
use std::fmt::Write as _;

impl ComparisonReport<'_> {
    /// Returns the table as HTML. The spans that have changed most come first.
    pub(super) fn changes(&self) -> String {
        if self.comparison.spans.is_empty() {
            return "<p class=\"note\">No span was closed.</p>".into();
        }
        let unit = escape(&self.basis.unit());
        let mut columns: Vec<(Measure, String)> = vec![
            (Measure::Count, "count".into()),
            (Measure::P50, "p50".into()),
            (Measure::P99, "p99".into()),
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
        for span in self.comparison.spans.iter().take(ROWS_MAX) {
            let badge = match (span.a.is_some(), span.b.is_some()) {
                (false, _) => "<span class=\"badge\">new</span>",
                (_, false) => "<span class=\"badge\">gone</span>",
                _ => "",
            };
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

    /// Writes the values of both sides, and the change.
    fn cells(&self, out: &mut String, span: &ComparedSpan, measure: Measure) {
        let is_divided = matches!(measure, Measure::SelfTime | Measure::Instructions);
        let value = |side: usize| {
            let value = [span.a, span.b][side]?.get(measure)? as f64;
            Some(if is_divided { value / self.divisors[side] } else { value })
        };
        let show = |value: f64| match measure.is_time() {
            true => time(value.round() as u64),
            // A quotient of few instructions has decimals.
            false if value < 100.0 && value.fract() != 0.0 => format!("{value:.2}"),
            false => grouped(value.round() as u64),
        };
        let (a, b) = (value(0), value(1));
        let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), show);
        let change = a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a - 1.0);
        let class = match change {
            Some(change) if change > 0.0 => "more",
            Some(change) if change < 0.0 => "less",
            _ => "",
        };
        // A quotient has no exact digits, so tiny differences of it are none.
        let change = change.map(|change| if is_divided { (change * 1e4).round() / 1e4 } else { change });
        let change = change.map_or_else(String::new, percent_change);
        _ = write!(out, "<td class=\"of\">{}</td><td>{}</td><td class=\"{class}\">{change}</td>", cell(a), cell(b));
    }
}
