//! Flame graphs as SVG: one of a capture, or the difference of two.
//!
//! This module draws the graphs itself. The usual crate for flame graphs, `inferno`, does not fit, for these reasons:
//!
//! - The script of `inferno` starts in an attribute `onload`. A content security policy that allows this attribute
//!   allows scripts in all attributes, and does not protect the page against hostile names.
//! - The script finds elements by ids that are the same in each graph, so a page can have only one graph.
//! - The colours suit only a light page.
//! - The licence of `inferno`, CDDL-1.0, would apply to every program with this crate.
//!
//! Drawing a rectangle for each frame takes less code than changing `inferno`.

use crate::page::html::{escape, shortened};
use eventring_export::Weight;
use eventring_export::numbers::{counted, percent_change, time};
use eventring_export::stacks::Stacks;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

/// The narrowest frame that is drawn, as a part of the whole width.
const WIDTH_MIN: f64 = 0.001;
/// The largest number of frames that are drawn.
const FRAMES_MAX: usize = 4_000;
/// The largest number of rows that are drawn.
const ROWS_MAX: u32 = 100;
/// The height of a row in pixels.
const ROW: u32 = 19;

/// The stacks of one side.
pub(crate) struct FlameSide<'s> {
    pub(super) stacks: &'s Stacks,
    /// The names of the processes. Each is a frame of its own; without names there is one frame for all of them.
    pub(super) programs: Vec<&'s str>,
    /// The number by which times and instructions are divided.
    pub(super) divisor: f64,
}

/// A flame graph with frames of one side or of two.
struct FlameGraph<'s, const SIDES: usize> {
    frames: Vec<FlameFrame<'s, SIDES>>,
    divisors: [f64; SIDES],
    weight: Weight,
}

struct FlameFrame<'s, const SIDES: usize> {
    name: &'s str,
    outer: usize,
    inside: Vec<usize>,
    /// The sums of each side, with those of the frames inside.
    sums: [u64; SIDES],
}

impl<'s, const SIDES: usize> FlameGraph<'s, SIDES> {
    /// Makes the graph. Frames with the same names around them are the same frame, on whichever side they are.
    fn new(sides: [FlameSide<'s>; SIDES], weight: Weight) -> Self {
        let divisors = sides.each_ref().map(|side| if side.divisor > 0.0 { side.divisor } else { 1.0 });
        let mut frames = vec![FlameFrame { name: "all", outer: 0, inside: Vec::new(), sums: [0; SIDES] }];
        let mut known: HashMap<(usize, &str), usize> = HashMap::new();
        for (index, side) in sides.iter().enumerate() {
            let mut of_stacks: Vec<usize> = Vec::new();
            for stack in side.stacks.all() {
                let mut place = |outer: usize, name: &'s str| {
                    *known.entry((outer, name)).or_insert_with(|| {
                        frames.push(FlameFrame { name, outer, inside: Vec::new(), sums: [0; SIDES] });
                        frames.len() - 1
                    })
                };
                let outer = match stack.outer {
                    Ok(outer) => of_stacks[outer],
                    Err(process) => side.stacks.program(process, &side.programs).map_or(0, |program| place(0, program)),
                };
                let frame = place(outer, stack.name);
                let sum = &mut frames[frame].sums[index];
                *sum = sum.saturating_add(stack.sums.get(weight));
                of_stacks.push(frame);
            }
        }
        // A frame comes after the frame around it.
        for index in (1..frames.len()).rev() {
            let (outer, sums) = (frames[index].outer, frames[index].sums);
            frames[outer].inside.push(index);
            for (sum, more) in frames[outer].sums.iter_mut().zip(sums) {
                *sum = sum.saturating_add(more);
            }
        }
        Self { frames, divisors, weight }
    }

    /// Returns the graph as SVG, the outermost frames on top, or `None` if there is nothing to show. `label` says what
    /// the graph is.
    fn svg(&self, label: &str) -> Option<String> {
        // All frames are in one frame if there is one program.
        let top = match &self.frames[0].inside[..] {
            [only] => *only,
            _ => 0,
        };
        let whole = self.width(top);
        if whole <= 0.0 {
            return None;
        }
        let (mut drawn, mut count, mut rows, mut left_out) = (String::new(), 0, 0, 0_u64);
        let mut next = VecDeque::from([(top, 0.0, 0)]);
        while let Some((index, from, row)) = next.pop_front() {
            let frame = &self.frames[index];
            let width = self.width(index) / whole;
            if width < WIDTH_MIN || count == FRAMES_MAX || row == ROWS_MAX {
                left_out += u64::from(width > 0.0);
                continue;
            }
            (count, rows) = (count + 1, rows.max(row + 1));
            self.draw(&mut drawn, frame, (from, width, row), top);
            let mut inside = frame.inside.clone();
            inside.sort_by(|a, b| self.width(*b).total_cmp(&self.width(*a)).then(a.cmp(b)));
            let mut from = from;
            for index in inside {
                next.push_back((index, from, row + 1));
                from += self.width(index) / whole;
            }
        }
        let height = rows * ROW;
        let label = escape(label);
        let mut out = format!(
            "<div class=\"wide\"><svg class=\"flame\" width=\"100%\" height=\"{height}\" role=\"group\" \
             aria-label=\"{label}\">{drawn}</svg></div>"
        );
        if left_out > 0 {
            out.push_str(
                "<p class=\"note\">Frames narrower than a thousandth of the graph, or too deep, are left out.</p>",
            );
        }
        Some(out)
    }

    /// Returns the width of a frame: the mean of the sides.
    fn width(&self, frame: usize) -> f64 {
        self.values(&self.frames[frame]).iter().sum::<f64>() / SIDES as f64
    }

    /// Returns the divided sum of each side.
    fn values(&self, frame: &FlameFrame<'_, SIDES>) -> [f64; SIDES] {
        std::array::from_fn(|side| frame.sums[side] as f64 / self.divisors[side])
    }

    fn draw(&self, out: &mut String, frame: &FlameFrame<'_, SIDES>, (from, width, row): (f64, f64, u32), top: usize) {
        let name = escape(&shortened(if frame.name.is_empty() { "?" } else { frame.name }));
        let show = |value: f64| match self.weight {
            Weight::Time | Weight::Cpu | Weight::Queue | Weight::Sleep | Weight::Blocked | Weight::Runnable => {
                time(value.round() as u64)
            }
            Weight::Instructions => counted(value.round() as u64, "instruction", "instructions"),
        };
        let values = self.values(frame);
        let (class, text, title) = match values[..] {
            [a, b] => {
                let change = change(a, b);
                let (class, change) = (class(change), text_of(change));
                (class, format!("{name} {change}"), format!("{name}: A {}, B {}, {change}", show(a), show(b)))
            }
            _ => {
                let part = 100.0 * values[0] / self.values(&self.frames[top])[0];
                let own = frame.inside.iter().map(|inside| self.values(&self.frames[*inside])[0]).sum::<f64>();
                let own = show((values[0] - own).max(0.0));
                let title = format!("{name}: {}, {part:.1} % of all; {own} in no frame below it", show(values[0]));
                (format!("hue{}", hue(frame.name)), name, title)
            }
        };
        let (x, width, y, height) = (from * 100.0, width * 100.0, row * ROW, ROW - 1);
        _ = write!(
            out,
            "<svg class=\"{class}\" x=\"{x:.3}%\" y=\"{y}\" width=\"{width:.3}%\" height=\"{height}\"><title>{title}</title>\
             <rect width=\"100%\" height=\"100%\"/><text x=\"4\" y=\"13\">{text}</text></svg>"
        );
    }
}

/// Returns the graphs of these weights as HTML. `unit` stands behind what each graph is.
pub(crate) fn graphs<'s, const SIDES: usize>(
    weights: &[Weight],
    unit: &str,
    sides: impl Fn() -> [FlameSide<'s>; SIDES],
) -> String {
    let mut out = String::new();
    for weight in weights {
        let label = match weight {
            Weight::Time => format!("Time by stack{unit}"),
            Weight::Instructions => format!("Instructions by stack{unit}"),
            Weight::Cpu => format!("On the processor{unit}, by samples"),
            Weight::Queue => format!("In the queue for a processor{unit}, as threads measured it"),
            Weight::Sleep => format!("Asleep{unit}, as threads measured it"),
            Weight::Blocked => format!("Blocked{unit}, where threads left their processors"),
            Weight::Runnable => format!("Runnable{unit}, while others ran"),
        };
        if let Some(graph) = FlameGraph::new(sides(), *weight).svg(&label) {
            _ = write!(out, "<h3>{}</h3>{graph}", escape(&label));
        }
    }
    if out.is_empty() { "<p class=\"note\">No thread was in a span.</p>".into() } else { out }
}

/// Returns one of six hues for a name, always the same one.
fn hue(name: &str) -> u32 {
    name.bytes().fold(7, |hash: u32, byte| hash.wrapping_mul(31).wrapping_add(byte.into())) % 6
}

/// Returns the change of a frame from A to B: B minus A, divided by A. It is infinite for a new frame, and -1 for one
/// that is gone.
fn change(a: f64, b: f64) -> f64 {
    if a > 0.0 || b > 0.0 { b / a - 1.0 } else { 0.0 }
}

/// Returns the class that gives a frame with this change its colour: four steps for more, four for less, one for about
/// the same.
fn class(change: f64) -> String {
    // Twice as much and half as much have the same step.
    let octaves = (1.0 + change).log2();
    let step = match octaves.abs() {
        ..0.029 => return "same".into(),
        ..0.138 => 1,
        ..0.322 => 2,
        ..0.585 => 3,
        _ => 4,
    };
    format!("{}{step}", if octaves > 0.0 { "more" } else { "less" })
}

fn text_of(change: f64) -> String {
    match change {
        f64::INFINITY => "new".into(),
        -1.0 => "gone".into(),
        _ => percent_change((change * 1e4).round() / 1e4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::figures::CaptureFigures;
    use eventring::schema::perf::{CallSiteKind, PerfEvent};
    use eventring_capture::fixtures::CaptureFixture;
    use eventring_export::View;

    /// Returns the graph of a thread that was in these spans, one after the other: each has its name, its depth, and
    /// the time in which it was the innermost span.
    fn graph(spans: &[(&str, usize, u64)]) -> String {
        let mut made = CaptureFixture::new();
        let mut nanos = 10_000;
        let mut open: Vec<(u64, u32)> = Vec::new();
        let leave = |made: &mut CaptureFixture, open: &mut Vec<(u64, u32)>, depth: usize, nanos: u64| {
            while open.len() > depth {
                let (id, site) = open.pop().unwrap();
                made.span(PerfEvent::SpanExit, nanos, 1, id, site);
                made.span(PerfEvent::SpanClose, nanos, 1, id, site);
            }
        };
        for (index, (name, depth, own)) in spans.iter().enumerate() {
            let (id, site) = (index as u64 + 1, index as u32 + 1);
            made.call_site(1_000, site, CallSiteKind::Span, name, &[]);
            leave(&mut made, &mut open, *depth, nanos);
            made.span_new(nanos, 1, (id, open.last().map_or(0, |(id, _)| *id)), site, &[]);
            made.span(PerfEvent::SpanEnter, nanos, 1, id, site);
            open.push((id, site));
            nanos += own;
        }
        leave(&mut made, &mut open, 0, nanos);
        let capture = made.open();
        let figures = CaptureFigures::read(&capture, View::Thread.into()).unwrap();
        FlameGraph::new([figures.flame_side(1.0, true)], Weight::Time).svg("time").unwrap_or_default()
    }

    /// Returns the place, the width, the row and the title of each frame.
    fn frames(svg: &str) -> Vec<String> {
        let frame = |part: &str| {
            let value = |name: &str| {
                let (_, rest) = part.split_once(&format!(" {name}=\"")).unwrap();
                rest.split('"').next().unwrap().to_owned()
            };
            let (_, title) = part.split_once("<title>").unwrap();
            let title = title.split("</title>").next().unwrap();
            format!("{} {} {} {title}", value("x"), value("width"), value("y"))
        };
        svg.split("<svg class=\"hue").skip(1).map(frame).collect()
    }

    #[test]
    fn a_frame_lies_below_the_frame_around_it_and_is_as_wide_as_its_part_of_the_time() {
        let svg = graph(&[("a", 0, 100), ("b", 1, 300), ("a", 0, 100), ("c", 1, 500)]);
        assert_eq!(
            frames(&svg),
            [
                "0.000% 100.000% 0 shop: 1.00 µs, 100.0 % of all; 0 ns in no frame below it",
                "0.000% 100.000% 19 a: 1.00 µs, 100.0 % of all; 200 ns in no frame below it",
                "0.000% 50.000% 38 c: 500 ns, 50.0 % of all; 500 ns in no frame below it",
                "50.000% 30.000% 38 b: 300 ns, 30.0 % of all; 300 ns in no frame below it",
            ]
        );
        assert!(svg.contains("height=\"57\"") && !svg.contains("left out"), "{svg}");
    }

    #[test]
    fn what_is_too_narrow_or_too_deep_is_left_out_and_the_graph_says_so() {
        let narrow = graph(&[("a", 0, 100_000), ("b", 1, 99), ("c", 1, 101)]);
        assert!(!narrow.contains(">b</text>") && narrow.contains(">c</text>"), "{narrow}");
        assert!(narrow.contains("are left out"), "{narrow}");
        let names: Vec<String> = (0..150).map(|depth| format!("span {depth}")).collect();
        let deep: Vec<(&str, usize, u64)> =
            names.iter().enumerate().map(|(depth, name)| (name.as_str(), depth, 10)).collect();
        let deep = graph(&deep);
        assert_eq!(frames(&deep).len(), ROWS_MAX as usize);
        assert!(deep.contains("are left out"), "{deep}");
        assert_eq!(graph(&[]), "");
    }

    #[test]
    fn more_and_less_have_colours_by_their_factor() {
        let class = |a: f64, b: f64| class(change(a, b));
        assert_eq!([class(0.0, 1.0), class(1.0, 0.0), class(0.0, 0.0)], ["more4", "less4", "same"]);
        assert_eq!([class(100.0, 101.0), class(100.0, 99.0)], ["same", "same"]);
        assert_eq!([class(100.0, 105.0), class(100.0, 120.0), class(100.0, 140.0)], ["more1", "more2", "more3"]);
        // Twice as much and half as much are equally far from the same.
        assert_eq!([class(100.0, 200.0), class(200.0, 100.0)], ["more4", "less4"]);
        let texts = [(0.0, 1.0), (1.0, 0.0), (4.0, 5.0), (5.0, 4.0)].map(|(a, b)| text_of(change(a, b)));
        assert_eq!(texts, ["new", "gone", "+25.0%", "-20.0%"]);
    }
}
