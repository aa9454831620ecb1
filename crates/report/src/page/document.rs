//! The page about one capture: a header, the counts of losses, tables and charts.

use super::figures::{CaptureFigures, KERNEL_WEIGHTS};
use super::percentiles::{self, ChartedCurve};
use super::{charts, flame, tables};
use crate::page::html::{escape, fill, shortened};
use eventring_export::Weight;
use eventring_export::numbers::time;
use std::fmt::Write as _;

/// The number of spans whose durations have charts.
pub(crate) const CHARTS: usize = 6;

/// The script that makes frames of flame graphs wider.
pub(super) const ZOOM: &str = include_str!("zoom.js");
/// The sum of the script, by which a page lets a browser run this script and no other.
const ZOOM_SHA256: &str = "C8BbmaHkeo80JrE76YVB9tjbQdp08y8oBxenLVG1Etw=";

/// Returns a whole page: `main` is its content. It may show its own style, and run its own script. There is no network.
pub(crate) fn document(title: &str, main: String) -> String {
    fill(include_str!("document.html"), |name| match name {
        "script" => ZOOM_SHA256.into(),
        "style" => include_str!("page.css").into(),
        "title" => escape(title),
        "main" => main.clone(),
        _ => ZOOM.into(),
    })
}

/// Returns the page about one capture.
pub(super) fn of_capture(figures: &CaptureFigures<'_>, flame: Option<&str>) -> String {
    let template = match (figures.events(), figures.counts().typed_events) {
        (0, _) => include_str!("empty.html"),
        (all, typed) if all == typed => include_str!("typed.html"),
        _ => include_str!("capture.html"),
    };
    let main = fill(template, |name| match name {
        "title" => escape(&figures.title()),
        "when" => figures.when(),
        "tiles" => figures.tiles(),
        "problems" => figures.problems(),
        "spans" => tables::spans(figures),
        "blocks" => figures.blocks_section(),
        "typed" => tables::typed(figures),
        "percentiles" => figures.percentile_charts(),
        "events" => figures.events_chart(figures.rate_max()),
        "durations" => figures.duration_charts(),
        "weight" => figures.time_by_stack().into(),
        "flames" => flame::graphs(&[Weight::Time, Weight::Instructions], "", || [figures.flame_side(1.0, true)]),
        "kernel" => figures.kernel_graphs(flame),
        "rings" => tables::rings(figures),
        _ => String::new(),
    });
    document(&figures.title(), main)
}

impl CaptureFigures<'_> {
    /// Returns the section about what threads did in the spans of one name, if the kernel says it.
    fn kernel_graphs(&self, flame: Option<&str>) -> String {
        let slowest = || self.slowest_with_kernel();
        let Some(name) = flame.map(str::to_owned).or_else(slowest) else { return String::new() };
        let stacks = self.stacks.of_span(&name);
        let side = || [flame::FlameSide { stacks: &stacks, programs: Vec::new(), divisor: 1.0 }];
        let graphs = flame::graphs(&KERNEL_WEIGHTS, &format!(" in {name}"), side);
        fill(include_str!("kernel.html"), |part| match part {
            "span" => escape(&name),
            _ => graphs.clone(),
        })
    }

    fn percentile_charts(&self) -> String {
        let spans = self.durations.iter().zip(&self.summary.spans);
        let shared = self.shared_names();
        let mut curves: Vec<ChartedCurve<'_>> = Vec::new();
        for (durations, span) in spans.filter(|(_, span)| span.count > 0).take(CHARTS) {
            let class = format!("hue{}", curves.len());
            let name = shared.shown(&span.name, &span.target);
            curves.push(ChartedCurve { name, class, curve: &durations.curve });
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

    fn duration_charts(&self) -> String {
        let (mut out, shared) = (String::new(), self.shared_names());
        let spans = self.durations.iter().zip(&self.summary.spans).take(CHARTS);
        for (durations, span) in spans.filter(|(_, span)| span.count > 0) {
            let chart = charts::durations(&durations.histogram, span);
            let name = escape(&shortened(&shared.shown(&span.name, &span.target)));
            let (p50, p99) = (time(span.p50_nanos), time(span.p99_nanos));
            _ = write!(out, "<figure><figcaption><b>{name}</b> p50 {p50} · p99 {p99}</figcaption>{chart}</figure>");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Returns the sum of a text in base64, from coreutils.
    fn sha256(text: &str) -> String {
        let sum = "sha256sum | cut -c-64 | tr a-f A-F | basenc --base16 -d | base64";
        let mut sum =
            Command::new("sh").args(["-c", sum]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap().trim_end().to_owned()
    }

    #[test]
    fn the_policy_names_the_sum_of_the_script() {
        assert_eq!(ZOOM_SHA256, sha256(ZOOM));
        // A script with one of these would end early or have another sum in a browser.
        assert!(!ZOOM.contains("</script") && !ZOOM.contains('\r') && !ZOOM.contains("<!--"));
    }
}
