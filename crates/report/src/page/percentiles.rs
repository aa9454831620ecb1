//! The chart of durations by percentile. On the horizontal scale, 90 %, 99 %, 99.9 % and so on are at equal distances.

use super::durations::{NAMED, PercentileCurve};
use crate::page::html::{escape, shortened};
use eventring_export::numbers::time;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The curve of one span, with its name and the class that gives the curve its colour and dashes.
pub(crate) struct ChartedCurve<'c> {
    pub(crate) name: Cow<'c, str>,
    pub(crate) class: String,
    pub(crate) curve: &'c PercentileCurve,
}

/// Returns the chart, whose width and height are in the units of its view box.
pub(crate) fn chart(curves: &[ChartedCurve<'_>], width: f64, height: f64) -> String {
    const LEFT: f64 = 64.0;
    const BELOW: f64 = 28.0;
    const TOP: f64 = 10.0;
    const RIGHT: f64 = 24.0;
    let points = || curves.iter().flat_map(|curve| &curve.curve.points);
    let last = points().map(|point| point.nines).fold(1.0, f64::max);
    let end = NAMED.iter().map(|named| named.nines).find(|nines| *nines >= last).unwrap_or(last);
    let scale = LogScale::covering(points().map(|point| point.nanos));
    let x_of = |nines: f64| LEFT + (width - LEFT - RIGHT) * nines / end;
    let y_of = |nanos: u64| TOP + (height - TOP - BELOW) * (1.0 - scale.place(nanos));
    let mut svg = format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"durations by percentile\">");
    for nanos in &scale.lines {
        let y = y_of(*nanos);
        _ = write!(svg, "<path class=\"line\" d=\"M{LEFT} {y:.1}H{:.1}\"/>", width - RIGHT);
        let text = time_of_line(*nanos);
        _ = write!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{text}</text>", LEFT - 6.0, y + 4.0);
    }
    for named in NAMED.iter().filter(|named| named.nines <= end) {
        let (x, name) = (x_of(named.nines), named.name);
        _ = write!(svg, "<path class=\"line\" d=\"M{x:.1} {TOP}V{:.1}\"/>", height - BELOW);
        _ = write!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"middle\">{name}</text>", height - 8.0);
    }
    for ChartedCurve { name, class, curve } in curves {
        let name = escape(&shortened(name));
        let mut path = String::new();
        for (index, point) in curve.points.iter().enumerate() {
            let step = if index == 0 { 'M' } else { 'L' };
            _ = write!(path, "{step}{:.1} {:.1}", x_of(point.nines), y_of(point.nanos));
        }
        _ = write!(svg, "<path class=\"curve {class}\" d=\"{path}\"><title>{name}</title></path>");
        let marks = NAMED.iter().filter_map(|named| Some((named.name, curve.at(named)?)));
        let longest = curve.points.last().map(|point| ("longest", *point));
        for (mark, point) in marks.chain(longest) {
            let (x, y) = (x_of(point.nines), y_of(point.nanos));
            let title = format!("{name} {mark}: {}", time(point.nanos));
            _ = write!(
                svg,
                "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"><title>{title}</title></circle>"
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

/// Returns the key to the curves.
pub(crate) fn legend(curves: &[ChartedCurve<'_>]) -> String {
    let mut out = String::from("<p class=\"legend\">");
    for ChartedCurve { name, class, .. } in curves {
        let key =
            format!("<svg class=\"key\" viewBox=\"0 0 34 10\"><path class=\"curve {class}\" d=\"M1 5H33\"/></svg>");
        _ = write!(out, "<span>{key}{}</span>", escape(&shortened(name)));
    }
    out.push_str("</p>");
    out
}

/// A logarithmic scale of times, which begins and ends with a line.
struct LogScale {
    lines: Vec<u64>,
}

impl LogScale {
    fn covering(nanos: impl Iterator<Item = u64> + Clone) -> Self {
        /// The largest number of lines.
        const LINES_MAX: usize = 8;
        let shortest = nanos.clone().min().unwrap_or(1).max(1);
        let longest = nanos.max().unwrap_or(1).max(shortest);
        let of_steps = |steps: &[u64]| {
            let decades = (0..=19).map(|exponent| 10_u64.pow(exponent));
            let lines: Vec<u64> =
                decades.flat_map(|decade| steps.iter().filter_map(move |step| decade.checked_mul(*step))).collect();
            let first = lines.partition_point(|line| *line <= shortest).saturating_sub(1).min(lines.len() - 2);
            let last = lines.partition_point(|line| *line < longest).clamp(first + 1, lines.len() - 1);
            lines[first..=last].to_vec()
        };
        let fine = of_steps(&[1, 2, 5]);
        Self { lines: if fine.len() <= LINES_MAX { fine } else { of_steps(&[1]) } }
    }

    /// Returns the place of a time on the scale, from 0 to 1.
    fn place(&self, nanos: u64) -> f64 {
        let log = |nanos: u64| (nanos.max(1) as f64).ln();
        let (first, last) = (log(self.lines[0]), log(self.lines[self.lines.len() - 1]));
        ((log(nanos) - first) / (last - first)).clamp(0.0, 1.0)
    }
}

/// Returns a time of one significant digit without the zeros after it: `20 ms`.
fn time_of_line(nanos: u64) -> String {
    time(nanos).replace(".00 ", " ").replace(".0 ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_begins_before_the_shortest_time_and_ends_after_the_longest() {
        let lines = |nanos: &[u64]| LogScale::covering(nanos.iter().copied()).lines;
        assert_eq!(lines(&[130, 900]), [100, 200, 500, 1000]);
        assert_eq!(lines(&[500, 500]), [500, 1000]);
        assert_eq!(lines(&[3, 4_000_000]), [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000]);
        assert_eq!(lines(&[]), [1, 2]);
        let huge = lines(&[u64::MAX, u64::MAX]);
        assert!(huge.len() >= 2 && huge.is_sorted(), "{huge:?}");
        let scale = LogScale::covering([100, 10_000].into_iter());
        assert!((scale.place(1000) - 0.5).abs() < 1e-9);
        assert_eq!([scale.place(0), scale.place(u64::MAX)], [0.0, 1.0]);
        assert_eq!([1, 20, 5_000, 20_000_000].map(time_of_line), ["1 ns", "20 ns", "5 µs", "20 ms"]);
    }
}
