//! The page about one capture: a header, the loss account, tables and charts.

use super::figures::CaptureFigures;
use super::flame::FlameGraph;
use super::percentiles::{self, ChartedCurve};
use super::text::{escape, fill, shortened};
use super::{charts, tables};
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
pub(super) fn of_capture(figures: &CaptureFigures<'_>) -> String {
    let template = if figures.events() > 0 { include_str!("capture.html") } else { include_str!("empty.html") };
    let main = fill(template, |name| match name {
        "title" => escape(&figures.title()),
        "when" => figures.when(),
        "tiles" => figures.tiles(),
        "problems" => figures.problems(),
        "spans" => tables::spans(figures),
        "percentiles" => figures.percentile_charts(),
        "events" => figures.events_chart(figures.rate_max()),
        "durations" => figures.duration_charts(),
        "weight" => figures.time_by_stack().into(),
        "flames" => figures.flames(),
        "rings" => tables::rings(figures),
        _ => String::new(),
    });
    document(&figures.title(), main)
}

impl CaptureFigures<'_> {
    fn percentile_charts(&self) -> String {
        let spans = self.durations.iter().zip(&self.summary.spans);
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

    fn duration_charts(&self) -> String {
        let mut out = String::new();
        let spans = self.durations.iter().zip(&self.summary.spans).take(CHARTS);
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
            if let Some(graph) = FlameGraph::new([self.flame_side(1.0, true)], weight).svg(label) {
                _ = write!(out, "<h3>{label}</h3>{graph}");
            }
        }
        if out.is_empty() { "<p class=\"note\">No thread was in a span.</p>".into() } else { out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Encodes bytes as base64.
    fn base64(bytes: &[u8]) -> String {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
        for three in bytes.chunks(3) {
            let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for digit in 0..4 {
                let is_padding = digit > three.len();
                out.push(if is_padding { '=' } else { char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]) });
            }
        }
        out
    }

    /// Returns the sum of a text in base64, from coreutils.
    fn sha256(text: &str) -> String {
        let mut sum = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        sum.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let hex = sum.wait_with_output().unwrap().stdout;
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        base64(&hex[..64].chunks(2).map(byte).collect::<Vec<u8>>())
    }

    #[test]
    fn the_policy_names_the_sum_of_the_script() {
        assert_eq!(ZOOM_SHA256, sha256(ZOOM));
        // A script with one of these would end early or have another sum in a browser.
        assert!(!ZOOM.contains("</script") && !ZOOM.contains('\r') && !ZOOM.contains("<!--"));
    }
}
