//! The page about two captures.

use super::{Basis, ComparisonReport, ReportSide};
use crate::compare::{ComparedSpan, Measure};
use crate::page::document::{CHARTS, document};
use crate::page::html::{escape, fill, shortened};
use crate::page::percentiles::{self, ChartedCurve};
use crate::page::{flame, tables};
use eventring_export::Weight;
use std::fmt::Write as _;

impl ComparisonReport<'_> {
    /// Returns the page.
    #[must_use]
    pub fn html(&self) -> String {
        let [a, b] = self.sides.each_ref().map(|side| shortened(&side.name));
        let title = format!("{a} and {b}");
        let template = match self.has_span_rings() {
            true => include_str!("comparison.html"),
            false => include_str!("comparison_blocks.html"),
        };
        let main = fill(template, |name| match name {
            "title" => escape(&title),
            "basis" => self.basis_note(),
            "sides" => self.sides_note(),
            "blocks" => self.blocks(),
            "unit" => escape(&self.basis.flame_unit()),
            "heads" => self.each_side("sides", |side| {
                let figures = &side.figures;
                let (title, when) = (escape(&figures.title()), figures.when());
                let (tiles, problems) = (figures.tiles(), figures.problems());
                format!("<p>{title}</p><p class=\"note\">{when}</p><div class=\"tiles\">{tiles}</div>{problems}")
            }),
            "order" => self.changes_order(),
            "limits" => self.changes_limits(),
            "changes" => self.changes(),
            "alpha" => ((self.comparison.alpha * 1e6).round() / 1e4).to_string(),
            "percentiles" => self.percentiles(),
            "flames" => self.flames(),
            "weight" => self.sides[0].figures.time_by_stack().into(),
            "events" => self.events(),
            "rings" => {
                self.each_side("sides", |side| format!("<div class=\"wide\">{}</div>", tables::rings(&side.figures)))
            }
            _ => String::new(),
        });
        document(&title, main)
    }

    /// Returns the charts of the events a second, with one scale.
    fn events(&self) -> String {
        let rate_max = self.sides.iter().map(|side| side.figures.rate_max()).fold(0.0, f64::max);
        self.each_side("stacked", |side| format!("<div class=\"wide\">{}</div>", side.figures.events_chart(rate_max)))
    }

    /// Returns what `show` makes of both sides, in an element of this class.
    fn each_side(&self, class: &str, show: impl Fn(&ReportSide<'_>) -> String) -> String {
        let mut out = format!("<div class=\"{class}\">");
        for (side, letter) in self.sides.iter().zip(["A", "B"]) {
            let name = escape(&shortened(&side.name));
            _ = write!(out, "<div><h3><span class=\"side\">{letter}</span> {name}</h3>{}</div>", show(side));
        }
        out.push_str("</div>");
        out
    }

    /// Returns true if a side can have spans.
    fn has_span_rings(&self) -> bool {
        self.sides.iter().any(|side| side.figures.has_span_rings())
    }

    /// Says which amount of work the sums belong to, and what [`Self::sides_note`] says.
    fn basis_note(&self) -> String {
        let [a, b] = self.sides.each_ref().map(|side| self.basis.amount(&side.figures));
        let unit = self.basis.unit();
        let what = match self.basis {
            Basis::OwnCall => format!(
                "Self times and instructions are <b>{unit}</b> of their span, flame graphs <b>{}</b>",
                self.basis.flame_unit()
            ),
            _ => format!("Self times, instructions and flame graphs are <b>{}</b>", escape(&unit)),
        };
        let (a, b) = (escape(&a), escape(&b));
        format!("<p>{what}, so that captures of different length compare: A {a}, B {b}.</p>{}", self.sides_note())
    }

    /// Says whether the sides are the same, and whether losses make their numbers too small.
    fn sides_note(&self) -> String {
        let mut out = String::new();
        if self.sides[0].name == self.sides[1].name {
            let name = escape(&shortened(&self.sides[0].name));
            _ = write!(out, "<p class=\"cut\">A and B are both {name}.</p>");
        }
        let sides = self.sides.iter().zip(["A", "B"]);
        let lost: Vec<(&str, String)> = sides.filter_map(|(side, letter)| Some((letter, side.lost()?))).collect();
        if !lost.is_empty() {
            let what: Vec<String> = lost.iter().map(|(letter, what)| format!("{letter} lost {what}")).collect();
            let letters: Vec<&str> = lost.iter().map(|(letter, _)| *letter).collect();
            let (what, letters) = (what.join(", and "), letters.join(" and "));
            _ = write!(out, "<p class=\"cut\">{what}, so the numbers of {letters} are too small.</p>");
        }
        out
    }

    /// Returns a chart for each of the hottest spans, with the curves of both sides.
    fn percentiles(&self) -> String {
        let mut spans: Vec<&ComparedSpan> = self.comparison.spans.iter().collect();
        let total = |span: &ComparedSpan| {
            let of = |figures: Option<_>, divisor: f64| {
                let total = figures.and_then(|figures: crate::compare::SpanFigures| figures.get(Measure::Total));
                total.unwrap_or(0) as f64 / divisor
            };
            of(span.a, self.divisors[0]) + of(span.b, self.divisors[1])
        };
        spans.sort_by(|x, y| total(y).total_cmp(&total(x)));
        let mut out = String::new();
        for span in spans.into_iter().take(CHARTS) {
            let curve = |side: usize, class: &str| {
                let curve = self.sides[side].figures.curve(&span.name, &span.target)?;
                Some(ChartedCurve { name: ["A", "B"][side].into(), class: class.into(), curve })
            };
            let curves: Vec<ChartedCurve<'_>> = curve(0, "a").into_iter().chain(curve(1, "b")).collect();
            if !curves.is_empty() {
                let (legend, chart) = (percentiles::legend(&curves), percentiles::chart(&curves, 480.0, 230.0));
                let name = tables::name(&span.target, &span.name);
                _ = write!(out, "<figure><figcaption><b>{name}</b>{legend}</figcaption>{chart}</figure>");
            }
        }
        out
    }

    /// Returns the differences of the flame graphs of time and of instructions.
    fn flames(&self) -> String {
        // The programs of the sides may have different names, like those of two builds. Their stacks are the same.
        let have_programs = self.sides.iter().any(|side| side.figures.programs().len() > 1);
        let weights = [Weight::Time, Weight::Instructions];
        let weights = if self.comparison.has_instructions { &weights[..] } else { &weights[..1] };
        flame::graphs(weights, &format!(", {}", self.basis.flame_unit()), || {
            std::array::from_fn::<_, 2, _>(|side| {
                self.sides[side].figures.flame_side(self.divisors[side], have_programs)
            })
        })
    }
}
