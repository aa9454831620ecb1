//! Charts as SVG.

use super::activity::Activity;
use super::block_bars::BlockBar;
use super::durations::Histogram;
use eventring_export::numbers::{grouped, time};
use eventring_export::outline::Outline;
use eventring_export::summary::SpanSummary;
use std::fmt::Write as _;

/// The largest number of losses that the chart of events shows.
const LOSSES_MAX: usize = 500;

/// The place of the charts over time: their width, and the room on the left and above.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 8.0;

/// Returns the chart of the events a second, with the times of losses in another colour. `rate_max` is the rate at the
/// top of the scale.
pub(super) fn events(activity: &Activity, outline: &Outline, rate_max: f64) -> String {
    const HEIGHT: f64 = 150.0;
    let length_nanos = outline.counts.last_nanos.saturating_sub(outline.counts.first_nanos).max(1);
    let most = (rate_max * activity.part_nanos as f64 / 1e9).max(1.0);
    let step = WIDTH * activity.part_nanos as f64 / length_nanos as f64;
    let begin = WIDTH * activity.first_nanos.saturating_sub(outline.counts.first_nanos) as f64 / length_nanos as f64;
    let mut svg = String::from("<svg viewBox=\"0 0 1040 190\" role=\"img\" aria-label=\"events a second\">");
    let rate = most * 1e9 / activity.part_nanos as f64;
    scale(&mut svg, HEIGHT, |part| grouped((rate * part).round() as u64));
    for loss in outline.losses.iter().take(LOSSES_MAX) {
        let place = |nanos: u64| {
            let since =
                nanos.clamp(outline.counts.first_nanos, outline.counts.last_nanos.max(outline.counts.first_nanos));
            LEFT + WIDTH * (since - outline.counts.first_nanos) as f64 / length_nanos as f64
        };
        let (from, until) = (place(loss.from_nanos), place(loss.until_nanos));
        let (width, title) = ((until - from).max(1.0), loss.title());
        _ = write!(
            svg,
            "<rect class=\"lost\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>{title}</title></rect>"
        );
    }
    for (index, count) in activity.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (HEIGHT * *count as f64 / most).clamp(0.5, HEIGHT);
        let (x, y) = (begin + step * index as f64, TOP + HEIGHT - height);
        // The last part may end after the recording.
        let (width, count) = ((step.min(WIDTH - x) - 0.8).max(0.4), grouped(*count));
        let x = LEFT + x.min(WIDTH);
        draw_bar(&mut svg, [x, y, width, height], &format!("events: {count}"));
    }
    time_axis(&mut svg, HEIGHT, length_nanos);
    svg.push_str("</svg>");
    svg
}

/// Returns the chart of a number of blocks over the time of a recording, named `what`: a bar for each block, or one for
/// each few neighbouring blocks with their mean.
pub(super) fn blocks(bars: &[BlockBar], outline: &Outline, what: &str, value: fn(&BlockBar) -> u64) -> String {
    const HEIGHT: f64 = 110.0;
    let (first_nanos, last_nanos) = (outline.counts.first_nanos, outline.counts.last_nanos);
    let length_nanos = last_nanos.saturating_sub(first_nanos).max(1);
    let mean = |bar: &BlockBar| value(bar) as f64 / bar.blocks.max(1) as f64;
    let most = bars.iter().map(mean).fold(1.0, f64::max);
    let mut svg = format!("<svg viewBox=\"0 0 1040 150\" role=\"img\" aria-label=\"{what} per block\">");
    scale(&mut svg, HEIGHT, |part| short(most * part));
    let place = |nanos: u64| WIDTH * (nanos.clamp(first_nanos, last_nanos) - first_nanos) as f64 / length_nanos as f64;
    for bar in bars {
        let height = (HEIGHT * mean(bar) / most).clamp(0.5, HEIGHT);
        let (x, y) = (LEFT + place(bar.from_nanos), TOP + HEIGHT - height);
        let width = (place(bar.until_nanos) - place(bar.from_nanos)).max(1.0);
        let (numbers, mean) = (bar.numbers(), grouped(mean(bar).round() as u64));
        let per_block = if bar.blocks > 1 { " per block" } else { "" };
        draw_bar(&mut svg, [x, y, width, height], &format!("{numbers}: {mean} {what}{per_block}"));
    }
    time_axis(&mut svg, HEIGHT, length_nanos);
    svg.push_str("</svg>");
    svg
}

/// Returns a number with three significant digits, and the letter of its size: `30.0 M`.
fn short(number: f64) -> String {
    let (value, unit) = match number {
        n if n < 1e5 => return grouped(n.round() as u64),
        n if n < 1e6 => (n / 1e3, "k"),
        n if n < 1e9 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    let decimals = if value >= 100.0 { 0 } else { 1 };
    format!("{value:.decimals$} {unit}")
}

fn draw_bar(svg: &mut String, [x, y, width, height]: [f64; 4], title: &str) {
    _ = write!(
        svg,
        "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{title}</title></rect>"
    );
}

/// Writes lines at nothing, at the half and at the top of a scale. `show` writes the number at a part of the scale.
fn scale(svg: &mut String, height: f64, show: impl Fn(f64) -> String) {
    for part in [0.0, 0.5, 1.0] {
        let (y, text) = (TOP + height * (1.0 - part), show(part));
        _ = write!(svg, "<path class=\"line\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", LEFT + WIDTH);
        _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
}

/// Writes the times since the beginning below a chart.
fn time_axis(svg: &mut String, height: f64, length_nanos: u64) {
    let y = TOP + height + 20.0;
    for part in 0..=4_u64 {
        let x = LEFT + WIDTH * part as f64 / 4.0;
        let text = time((u128::from(length_nanos) * u128::from(part) / 4) as u64);
        _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y}\" class=\"{}\">{text}</text>", anchor(part));
    }
}

/// Returns the histogram of the durations of spans on a logarithmic scale, with lines at the median and at p99.
pub(super) fn durations(histogram: &Histogram, span: &SpanSummary) -> String {
    const WIDTH: f64 = 308.0;
    const HEIGHT: f64 = 80.0;
    const LEFT: f64 = 6.0;
    const TOP: f64 = 6.0;
    let begin = histogram.counts.iter().position(|count| *count > 0).unwrap_or(0);
    // A scale of at least two octaves keeps the bars of spans that all took equally long narrow.
    let parts = histogram.counts.len().saturating_sub(begin).max(8);
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let step = WIDTH / parts as f64;
    let mut svg = String::from("<svg viewBox=\"0 0 320 112\" role=\"img\" aria-label=\"durations\">");
    _ = write!(svg, "<path class=\"line\" d=\"M{LEFT} {:.1}H{:.1}\"/>", TOP + HEIGHT, LEFT + WIDTH);
    for (index, count) in histogram.counts.iter().enumerate().skip(begin).filter(|(_, count)| **count > 0) {
        let height = (HEIGHT * *count as f64 / most as f64).max(1.0);
        let (x, y) = (LEFT + step * (index - begin) as f64, TOP + HEIGHT - height);
        let (width, count) = ((step - 0.8).max(0.5), grouped(*count));
        let (from, until) = (Histogram::begin(index), Histogram::begin(index + 1));
        let title = format!("{count} from {} to {}", time(from as u64), time(until as u64));
        draw_bar(&mut svg, [x, y, width, height], &title);
    }
    for nanos in [span.p50_nanos, span.p99_nanos] {
        let x = LEFT + (step * (Histogram::place(nanos) - begin as f64)).clamp(0.0, WIDTH);
        _ = write!(svg, "<path class=\"mark\" d=\"M{x:.1} {TOP}V{:.1}\"/>", TOP + HEIGHT);
    }
    for part in [0_u64, 2, 4] {
        let x = LEFT + WIDTH * part as f64 / 4.0;
        let nanos = (begin as f64 + parts as f64 * part as f64 / 4.0) / 4.0;
        _ = write!(svg, "<text x=\"{x:.1}\" y=\"104\" class=\"{}\">{}</text>", anchor(part), time(nanos.exp2() as u64));
    }
    svg.push_str("</svg>");
    svg
}

/// Returns the class of a text below an axis that is divided into four parts.
pub(super) fn anchor(part: u64) -> &'static str {
    match part {
        0 => "begin",
        4 => "end",
        _ => "middle",
    }
}
