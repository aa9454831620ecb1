//! The page about one capture: a header, the loss account, tables and charts, and a document with speedscope.

use super::figures::CaptureFigures;
use super::flame::FlameGraph;
use super::percentiles::{self, ChartedCurve};
use super::profile::EmbeddedProfile;
use super::text::{escape, fill, shortened};
use super::{charts, frame, tables};
use eventring_export::Weight;
use eventring_export::numbers::time;
use std::fmt::Write as _;

/// The number of spans whose durations have charts.
pub(crate) const CHARTS: usize = 6;

/// Returns a whole page: `main` is its content, and `footer` stands below it. It may show its own style, and run the
/// scripts that `scripts` allows. There is no network.
pub(crate) fn document(title: &str, scripts: &str, main: String, footer: &str) -> String {
    fill(include_str!("document.html"), |name| match name {
        "scripts" => scripts.into(),
        "style" => include_str!("page.css").into(),
        "title" => escape(title),
        "main" => main.clone(),
        "footer" => footer.into(),
        _ => frame::ZOOM.into(),
    })
}

/// Everything that a page about one capture shows.
pub(super) struct CapturePage<'p> {
    pub(super) figures: &'p CaptureFigures<'p>,
    pub(super) profile: &'p EmbeddedProfile,
}

impl CapturePage<'_> {
    pub(super) fn html(&self) -> String {
        let figures = self.figures;
        let has_events = figures.events() > 0;
        let template = if has_events { include_str!("capture.html") } else { include_str!("empty.html") };
        let main = fill(template, |name| match name {
            "title" => escape(&figures.title()),
            "when" => figures.when(),
            "tiles" => figures.tiles(),
            "problems" => figures.problems(),
            "spans" => tables::spans(figures),
            "percentiles" => self.percentiles(),
            "events" => figures.events_chart(figures.rate_max()),
            "durations" => self.durations(),
            "weight" => figures.time_by_stack().into(),
            "flames" => self.flames(),
            "rings" => tables::rings(figures),
            "profile" => self.profile(),
            _ => String::new(),
        });
        let has_profile = has_events && !self.profile.is_empty;
        document(&figures.title(), &frame::scripts_of_capture(), main, &frame::credits(has_profile))
    }

    /// Returns speedscope with the profile. speedscope has nothing to show of a profile without slices.
    fn profile(&self) -> String {
        if self.profile.is_empty {
            return "<p class=\"note\">No thread was in a span.</p>".into();
        }
        let class = if self.profile.is_cut { "cut" } else { "note" };
        let (note, document) = (escape(&self.profile.note), escape(&frame::document(&self.profile.gzip)));
        format!(
            "<p class=\"{class}\">{note}</p>\n<noscript><style>iframe {{ display: none }}</style>\
             <p class=\"cut\">The profile needs scripts, and this browser does not run them. \
             The rest of the page needs none.</p></noscript>\n\
             <iframe title=\"speedscope\" srcdoc=\"{document}\"></iframe>"
        )
    }

    fn percentiles(&self) -> String {
        let spans = self.figures.durations.iter().zip(&self.figures.summary.spans);
        let mut curves: Vec<ChartedCurve<'_>> = Vec::new();
        for (durations, span) in spans.filter(|(_, span)| span.count > 0).take(CHARTS) {
            let class = format!("hue{}", curves.len());
            curves.push(ChartedCurve { name: &span.name, class, curve: &durations.curve });
        }
        if curves.is_empty() {
            return String::from("<p class=\"note\">No span was closed.</p>");
        }
        format!(
            "{}<div class=\"wide\">{}</div>",
            percentiles::legend(&curves),
            percentiles::chart(&curves, 1040.0, 300.0)
        )
    }

    fn durations(&self) -> String {
        let mut out = String::new();
        let spans = self.figures.durations.iter().zip(&self.figures.summary.spans).take(CHARTS);
        for (durations, span) in spans.filter(|(_, span)| span.count > 0) {
            let chart = charts::durations(&durations.histogram, span);
            let name = escape(&shortened(&span.name));
            let (p50, p99) = (time(span.p50_nanos), time(span.p99_nanos));
            _ = write!(out, "<figure><figcaption><b>{name}</b> p50 {p50} · p99 {p99}</figcaption>{chart}</figure>");
        }
        out
    }

    fn flames(&self) -> String {
        let mut out = String::new();
        for (weight, label) in [(Weight::Time, "Time by stack"), (Weight::Instructions, "Instructions by stack")] {
            if let Some(graph) = FlameGraph::of([self.figures.flame_side(1.0, true)], weight).svg(label) {
                _ = write!(out, "<h3>{label}</h3>{graph}");
            }
        }
        if out.is_empty() { "<p class=\"note\">No thread was in a span.</p>".into() } else { out }
    }
}
