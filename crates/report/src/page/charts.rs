//! Charts as SVG.

use super::activity::Activity;
use super::durations::Histogram;
use eventring_export::numbers::{grouped, time};
use eventring_export::outline::Outline;
use eventring_export::summary::SpanSummary;
use std::fmt::Write as _;

/// The largest number of losses that the chart of events shows.
const LOSSES_MAX: usize = 500;

/// Returns the chart of the events a second, with the times of losses in another colour. `rate_max` is the rate at the
/// top of the scale.
pub(super) fn events(activity: &Activity, outline: &Outline, rate_max: f64) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 150.0;
    const LEFT: f64 = 70.0;
    const TOP: f64 = 8.0;
    let length_nanos = outline.counts.last_nanos.saturating_sub(outline.counts.first_nanos).max(1);
    let most = (rate_max * activity.part_nanos as f64 / 1e9).max(1.0);
    let step = WIDTH * activity.part_nanos as f64 / length_nanos as f64;
    let begin = WIDTH * activity.first_nanos.saturating_sub(outline.counts.first_nanos) as f64 / length_nanos as f64;
    let mut svg = String::from("<svg viewBox=\"0 0 1040 190\" role=\"img\" aria-label=\"events a second\">");
    let rate = most * 1e9 / activity.part_nanos as f64;
    for part in [0.0, 0.5, 1.0] {
        let y = TOP + HEIGHT * (1.0 - part);
        let text = grouped((rate * part).round() as u64);
        _ = write!(svg, "<path class=\"line\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", LEFT + WIDTH);
        _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
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
        _ = write!(
            svg,
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>events: {count}</title></rect>"
        );
    }
    for part in 0..=4_u64 {
        let (x, text) =
            (LEFT + WIDTH * part as f64 / 4.0, time((u128::from(length_nanos) * u128::from(part) / 4) as u64));
        _ = write!(svg, "<text x=\"{x:.1}\" y=\"178\" class=\"{}\">{text}</text>", anchor(part));
    }
    svg.push_str("</svg>");
    svg
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
        _ = write!(
            svg,
            "<rect class=\"bar\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{title}</title></rect>"
        );
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
