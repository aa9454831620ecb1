//! The tables of a page.

use super::figures::CaptureFigures;
use crate::page::html::{escape, shortened};
use eventring::reader::GapCause;
use eventring_export::SharedNames;
use eventring_export::numbers::{counted, grouped, time};
use eventring_export::summary::{SpanSummary, TimeSummary};
use std::fmt::Write as _;

/// The largest number of rows that a table has.
pub(crate) const ROWS_MAX: usize = 200;

/// Returns the table of the spans, those with the largest total first.
pub(super) fn spans(figures: &CaptureFigures<'_>) -> String {
    let spans = &figures.summary.spans;
    let are_counted = spans.iter().any(|span| span.instructions.is_some());
    let mut heads = vec!["count", "total", "self", "busy", "p50", "p90", "p99", "p99.9", "max"];
    heads.extend(are_counted.then_some("instructions"));
    let measured = measured_parts(spans);
    heads.extend(measured.iter().map(|(head, _)| *head));
    let further: Vec<&FurtherSpans> = FURTHER.iter().filter(|further| further.is_shown(spans)).collect();
    heads.extend(further.iter().map(|further| further.head));
    let mut out = String::from("<table><thead><tr><th>span</th>");
    heads.into_iter().chain(["errors"]).for_each(|head| _ = write!(out, "<th>{head}</th>"));
    out.push_str("</tr></thead><tbody>");
    let longest = spans.first().map_or(1, |span| span.total_nanos).max(1);
    for span in spans.iter().take(ROWS_MAX) {
        let of = |nanos| if span.count > 0 { time(nanos) } else { "–".into() };
        let part = 100.0 * span.total_nanos as f64 / longest as f64;
        _ = write!(out, "<tr><td>{}", name(&span.target, &span.name));
        _ = write!(out, "<svg class=\"part\" viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\">");
        _ = write!(
            out,
            "<rect class=\"bar\" width=\"{part:.2}\" height=\"1\"/></svg></td><td>{}</td>",
            grouped(span.count)
        );
        let times = [span.total_nanos, span.self_nanos, span.busy_nanos, span.p50_nanos, span.p90_nanos];
        times
            .into_iter()
            .chain([span.p99_nanos, span.p999_nanos, span.max_nanos])
            .for_each(|nanos| _ = write!(out, "<td>{}</td>", of(nanos)));
        if are_counted {
            let counted = span.instructions.map_or_else(String::new, |counted| grouped(counted.all));
            _ = write!(out, "<td>{counted}</td>");
        }
        let times = span.times.as_ref().map(TimeSummary::in_words);
        for (_, part) in &measured {
            let cell = times.as_ref().map_or("", |times| &times[*part]);
            _ = write!(out, "<td>{cell}</td>");
        }
        let further = further.iter().map(|further| ((further.count)(span), "open"));
        for (count, class) in further.chain([(span.errors, "bad")]) {
            _ = match count {
                0 => write!(out, "<td></td>"),
                count => write!(out, "<td class=\"{class}\">{}</td>", grouped(count)),
            };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    rest(&mut out, spans.len(), "names of spans");
    out.push_str(&account(spans));
    out
}

/// Returns the names and numbers of the parts of the busy time that were measured: the columns that the table has.
fn measured_parts(spans: &[SpanSummary]) -> Vec<(&'static str, usize)> {
    let times: Vec<&TimeSummary> = spans.iter().filter_map(|span| span.times.as_ref()).collect();
    let parts = TimeSummary::default().parts().map(|(name, _)| name).into_iter().zip(0..);
    // Whatever was measured has three parts. A column of what was not says something only if there is any.
    let is_shown =
        |part: &usize| !times.is_empty() && (*part < 3 || times.iter().any(|times| times.parts()[*part].1 > 0));
    parts.filter(|(_, part)| is_shown(part)).collect()
}

/// Spans of a name that are in none of its times, for one reason.
struct FurtherSpans {
    /// The head of their column.
    head: &'static str,
    /// The words behind their number.
    what: &'static str,
    count: fn(&SpanSummary) -> u64,
}

const FURTHER: [FurtherSpans; 3] = [
    FurtherSpans { head: "open", what: "still open", count: |span| span.open },
    FurtherSpans { head: "end not seen", what: "whose end was not seen", count: |span| span.end_lost },
    FurtherSpans { head: "beginning not seen", what: "whose beginning was not seen", count: |span| span.incomplete },
];

impl FurtherSpans {
    /// Returns how many there are of all names together.
    fn sum(&self, spans: &[SpanSummary]) -> u64 {
        spans.iter().map(self.count).fold(0, u64::saturating_add)
    }

    /// Returns true if the table has their column. It has that of open spans also if there are none.
    fn is_shown(&self, spans: &[SpanSummary]) -> bool {
        self.head == "open" || self.sum(spans) > 0
    }
}

/// Says how many spans the table has, and how many of them are in its times: `4 spans: 3 seen whole, 1 still open.`
fn account(spans: &[SpanSummary]) -> String {
    let whole = spans.iter().map(|span| span.count).fold(0, u64::saturating_add);
    let further = FURTHER.iter().map(|further| (further.sum(spans), further.what)).filter(|(count, _)| *count > 0);
    let further: Vec<(u64, &str)> = further.collect();
    if further.is_empty() {
        return String::new();
    }
    let all = further.iter().fold(whole, |sum, (count, _)| sum.saturating_add(*count));
    let further: Vec<String> = further.iter().map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
    format!(
        "<p class=\"note\">{}: {} seen whole, {}. Counts and times are those of the spans seen whole.</p>",
        counted(all, "span", "spans"),
        grouped(whole),
        further.join(", ")
    )
}

/// Returns the name of a span with its target, as HTML.
pub(crate) fn name(target: &str, name: &str) -> String {
    let target = if target.is_empty() { String::new() } else { format!("{}::", shortened(target)) };
    format!("<span class=\"target\">{}</span>{}", escape(&target), escape(&shortened(name)))
}

/// Returns the section of the typed events: the table of their types. It is empty if there are none.
pub(super) fn typed(figures: &CaptureFigures<'_>) -> String {
    let events = &figures.summary.events;
    if events.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<section><h2>Typed events</h2><div class=\"wide\"><table><thead><tr><th>type</th><th>count</th>\
         <th>a second</th><th>payload bytes</th><th>bytes each</th></tr></thead><tbody>",
    );
    let shared = SharedNames::from_names(events.iter().map(|event| (event.name.as_str(), event.content.as_str())));
    for event in events.iter().take(ROWS_MAX) {
        let per_second = event.per_second.map_or("–".into(), |rate| grouped(rate.round() as u64));
        let each = event.payload_bytes / event.count.max(1);
        let numbers = [grouped(event.count), per_second, grouped(event.payload_bytes), grouped(each)];
        _ = write!(out, "<tr><td>{}</td>", escape(&shortened(&shared.shown(&event.name, &event.content))));
        numbers.iter().for_each(|number| _ = write!(out, "<td>{number}</td>"));
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    rest(&mut out, events.len(), "types of events");
    out.push_str("</div></section>");
    out
}

/// Returns the table of the rings: their events, and those that they lost by each cause.
pub(crate) fn rings(figures: &CaptureFigures<'_>) -> String {
    let rings = figures.recording.capture.rings();
    let causes: Vec<GapCause> = GapCause::ALL.into_iter().filter(|cause| cause.is_loss()).collect();
    let causes: Vec<GapCause> = causes.into_iter().filter(|cause| figures.lost_by(*cause, None) > 0).collect();
    let mut out = String::from("<table><thead><tr><th>ring</th><th>events</th>");
    causes.iter().for_each(|cause| _ = write!(out, "<th>{}</th>", cause.name().replace('_', " ")));
    out.push_str("<th>lost payloads</th></tr></thead><tbody>");
    for (index, ring) in rings.iter().enumerate().take(ROWS_MAX) {
        _ = write!(out, "<tr><td>{}", escape(&ring.name));
        if !ring.content_name.is_empty() {
            _ = write!(out, " <span class=\"target\">{}</span>", escape(&ring.content_name));
        }
        _ = write!(out, "</td><td>{}</td>", grouped(figures.events_of_rings[index]));
        let losses = causes.iter().map(|cause| figures.lost_by(*cause, Some(index as u32)));
        let of_ring = figures.counts().payload_losses.iter().find(|losses| losses.ring == ring.name);
        for count in losses.chain([of_ring.map_or(0, eventring_capture::recording::PayloadLosses::count)]) {
            let class = if count > 0 { "bad" } else { "" };
            _ = write!(out, "<td class=\"{class}\">{}</td>", grouped(count));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    rest(&mut out, rings.len(), "rings");
    out
}

/// Says how many rows are left out.
pub(crate) fn rest(out: &mut String, all: usize, what: &str) {
    if let Some(more) = all.checked_sub(ROWS_MAX).filter(|more| *more > 0) {
        _ = write!(out, "<p class=\"cut\">{} more {what} are left out.</p>", grouped(more as u64));
    }
}
