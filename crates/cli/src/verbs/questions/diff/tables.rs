//! The comparison for people.

use crate::text::format::{grouped, shown_name};
use crate::text::paint::{DIM, ERROR, GOOD, PLAIN, Style, WARNING};
use crate::text::table::{NumberTable, shortened_name};
use eventring_capture::numbers::{percent_change, signed, time};
use eventring_report::compare::{ComparedSpan, Comparison, ExceededLimit, LimitResults, Measure};
use std::io::{self, Write};

pub(super) fn write(
    out: &mut impl Write,
    comparison: &Comparison,
    results: &LimitResults,
    with_times: bool,
    columns: Option<usize>,
) -> io::Result<()> {
    if comparison.spans.is_empty() {
        writeln!(out, "{DIM}no spans{DIM:#}")?;
    }
    if comparison.has_instructions {
        let mut table = NumberTable::new(["span", "count", "instructions/call A", "B", "change", ""]);
        for span in &comparison.spans {
            table.row(instructions(span), style(span, Measure::Instructions));
        }
        table.write(out, columns)?;
        if let Some(note) = comparison.exactness_note() {
            writeln!(out, "{DIM}{note}{DIM:#}")?;
        }
        match with_times {
            true => writeln!(out)?,
            false => {
                writeln!(out, "{DIM}times under QEMU are noise, so they were left out; --times shows them{DIM:#}")?
            }
        }
    }
    if !comparison.spans.is_empty() && (with_times || !comparison.has_instructions) {
        let mut table = NumberTable::new(["span", "count", "busy/call A", "change", "", "p50", "p99", "sure"]);
        for span in &comparison.spans {
            table.row(times(span, comparison.alpha), style(span, Measure::Busy));
        }
        table.write(out, columns)?;
        let alpha = comparison.alpha * 100.0;
        writeln!(
            out,
            "{DIM}sure: durations differ; in {alpha} % of comparisons without a change, a span says yes{DIM:#}"
        )?;
        if let Some(note) = comparison.loss_note() {
            writeln!(out, "{WARNING}{note}{WARNING:#}")?;
        }
    }
    if let Some(note) = comparison.not_whole_note() {
        writeln!(out, "{WARNING}{note}{WARNING:#}")?;
    }
    for exceeded in &results.exceeded {
        writeln!(out, "{ERROR}failed:{ERROR:#} {}", failure(exceeded))?;
    }
    for incomplete in &results.incomplete {
        writeln!(out, "{ERROR}incomplete:{ERROR:#} {incomplete}")?;
    }
    Ok(())
}

fn instructions(span: &ComparedSpan) -> [String; 6] {
    let [a, b, change, relative] = cells(span, Measure::Instructions);
    [shown_name(&span.full_name()), count(span), a, b, change, relative]
}

fn times(span: &ComparedSpan, alpha: f64) -> [String; 8] {
    let [a, _, change, relative] = cells(span, Measure::Busy);
    let of =
        |measure| if span.a.is_some() && span.b.is_some() { relative_change(span, measure) } else { String::new() };
    let sure = match span.is_significant(alpha) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    [shown_name(&span.full_name()), count(span), a, change, relative, of(Measure::P50), of(Measure::P99), sure.into()]
}

/// Returns what one call takes on both sides, the difference, and the difference in percent.
fn cells(span: &ComparedSpan, measure: Measure) -> [String; 4] {
    let shown = |value: f64| measure.show(value);
    let signed = |change: f64| match change {
        0.0 => "0".to_owned(),
        change => format!("{}{}", if change > 0.0 { '+' } else { '-' }, shown(change.abs())),
    };
    let [a, b] = span.per_call(measure);
    let cell = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), shown);
    let (change, relative) = match (a, b) {
        (Some(a), Some(b)) => {
            // Quotients of equal sums by other counts may differ in their last digits.
            let change = if (b - a).abs() <= 1e-12 * a.max(b) { 0.0 } else { b - a };
            (signed(change), if a > 0.0 { percent_change(change / a) } else { String::new() })
        }
        _ => (String::new(), String::new()),
    };
    [cell(a), cell(b), change, span.one_sided().map_or(relative, str::to_owned)]
}

/// Returns the number of spans: one number, or two if the sides differ. Of a side that has none whole, it is not known.
fn count(span: &ComparedSpan) -> String {
    match span.values(Measure::Count) {
        Some((a, b)) if a != b => format!("{}→{}", grouped(a), grouped(b)),
        Some((a, _)) => grouped(a),
        None => {
            let counts = [span.a, span.b].map(|side| side.and_then(|side| side.get(Measure::Count)));
            let cells = counts.into_iter().zip(span.not_whole).map(|(count, not_whole)| match (count, not_whole) {
                (None, 1..) => "–".to_owned(),
                (count, _) => grouped(count.unwrap_or(0)),
            });
            cells.collect::<Vec<_>>().join("→")
        }
    }
}

fn relative_change(span: &ComparedSpan, measure: Measure) -> String {
    span.relative_change(measure).map_or_else(String::new, percent_change)
}

fn style(span: &ComparedSpan, measure: Measure) -> Style {
    match (span.a.is_some() && span.b.is_some(), span.change(measure)) {
        (false, _) => WARNING,
        (true, Some(0) | None) => DIM,
        (true, Some(change)) if measure.is_time() || change > 0 => PLAIN,
        (true, _) => GOOD,
    }
}

fn failure(exceeded: &ExceededLimit) -> String {
    let measure = exceeded.limit.measure();
    let show = if measure.is_time() { time } else { grouped };
    let change = i128::from(exceeded.b) - i128::from(exceeded.a);
    let relative = match relative_change(&exceeded.span, measure) {
        relative if relative.is_empty() => relative,
        relative => format!(", {relative}"),
    };
    format!(
        "{}: {} of {} went from {} to {}: {}{relative}",
        shortened_name(&exceeded.limit.to_string()),
        measure.name(),
        shortened_name(&exceeded.span.full_name()),
        show(exceeded.a),
        show(exceeded.b),
        signed(change, show)
    )
}
