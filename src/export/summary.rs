//! Counts and durations of spans, by name.

use super::payloads::{self, PayloadLosses};
use super::recording::CaptureRecording;
use super::timeline::Timeline;
use crate::capture::{CaptureError, CaptureFile};
use serde_json::json;
use std::collections::BTreeMap;

/// The spans of a capture, by name and target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The spans with the largest total first.
    pub spans: Vec<SpanSummary>,
    /// The number of events that were lost, whatever the cause.
    pub lost: u64,
    /// The events that have lost their payload, counted for each ring that has such events.
    pub payload_losses: Vec<PayloadLosses>,
    /// The number of events in files that a rotated capture removed again while it ran. These events do not count as
    /// lost, but spans may have begun in them.
    pub removed: u64,
    /// The problems of the capture, a line each.
    pub problems: Vec<String>,
}

/// The counts and times of all spans that have the same name and target. Times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SpanSummary {
    /// The name.
    pub name: String,
    /// The target.
    pub target: String,
    /// The number of spans that were created and closed. All times below are those of these spans.
    pub count: u64,
    /// The number of further spans that were open at the end.
    pub open: u64,
    /// The number of spans whose end was not seen and may have been lost. They are not part of `count`.
    pub end_lost: u64,
    /// The number of spans that were closed, but whose creation was lost, so their duration is not known. They are not
    /// part of `count`.
    pub incomplete: u64,
    /// The sum of the times from creation to close.
    pub total_nanos: u64,
    /// The part of the total in which no child of the span existed.
    pub self_nanos: u64,
    /// The sum of the times that threads were in the spans.
    pub busy_nanos: u64,
    /// The sum of the idle times of the spans. The idle time of a span is its duration minus the times that threads
    /// were in it, but not less than 0.
    pub idle_nanos: u64,
    /// The median of the durations.
    pub p50_nanos: u64,
    /// The duration that 90 % of the spans did not exceed.
    pub p90_nanos: u64,
    /// The duration that 99 % of the spans did not exceed.
    pub p99_nanos: u64,
    /// The longest duration.
    pub max_nanos: u64,
}

/// Counts the spans of a capture and measures their times. All numbers are exact, percentiles too.
///
/// # Errors
/// There is no perf ring, a perf ring has a schema of another version, or the capture would take too much memory.
pub fn summarize(capture: &CaptureFile) -> Result<Summary, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    recording.expect_spans()?;
    let timeline = Timeline::of(&recording)?;
    let mut groups: BTreeMap<(String, String), Group> = BTreeMap::new();
    for span in &timeline.spans {
        let group = groups.entry((span.name(), span.target().to_owned())).or_default();
        match (span.wall_nanos(), span.end_nanos) {
            (Some(wall), _) => group.add(wall, span.self_nanos.unwrap_or(0), span.busy_nanos),
            (None, None) if span.is_end_lost => group.summary.end_lost += 1,
            (None, None) => group.summary.open += 1,
            (None, Some(_)) => group.summary.incomplete += 1,
        }
    }
    let mut spans: Vec<SpanSummary> =
        groups.into_iter().map(|((name, target), group)| group.finish(name, target)).collect();
    spans.sort_by_key(|span| std::cmp::Reverse(span.total_nanos));
    let problems = capture.problems().iter().chain(&timeline.counts.problems).cloned().collect();
    let removed = capture.end().map_or(0, |end| end.stats.removed());
    let (lost, payload_losses) = (timeline.counts.lost, timeline.counts.payload_losses);
    Ok(Summary { spans, lost, payload_losses, removed, problems })
}

impl Summary {
    /// Returns the number of events that have lost their payload, in all rings together.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        payloads::count(&self.payload_losses)
    }

    /// Returns the summary as JSON: `{"spans": [{"name", "target", "count", "total_ns", "self_ns", "busy_ns", "p50_ns",
    /// "p90_ns", "p99_ns", "max_ns"}, …], "lost", "lost_payloads", "payload_losses": [{"ring", "expired", "malformed",
    /// "omitted"}, …], "removed"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let spans: Vec<serde_json::Value> = self
            .spans
            .iter()
            .map(|span| {
                json!({
                    "name": span.name, "target": span.target, "count": span.count, "total_ns": span.total_nanos,
                    "self_ns": span.self_nanos, "busy_ns": span.busy_nanos, "p50_ns": span.p50_nanos,
                    "p90_ns": span.p90_nanos, "p99_ns": span.p99_nanos, "max_ns": span.max_nanos,
                })
            })
            .collect();
        json!({
            "spans": spans, "lost": self.lost, "lost_payloads": self.lost_payloads(),
            "payload_losses": payloads::to_json(&self.payload_losses), "removed": self.removed,
        })
        .to_string()
    }
}

#[derive(Default)]
struct Group {
    summary: SpanSummary,
    /// All durations. They take little memory compared to the spans, which are in memory anyway.
    walls: Vec<u64>,
}

impl Group {
    fn add(&mut self, wall: u64, self_nanos: u64, busy: u64) {
        let summary = &mut self.summary;
        summary.count += 1;
        summary.total_nanos = summary.total_nanos.saturating_add(wall);
        summary.self_nanos = summary.self_nanos.saturating_add(self_nanos);
        summary.busy_nanos = summary.busy_nanos.saturating_add(busy);
        summary.idle_nanos = summary.idle_nanos.saturating_add(wall.saturating_sub(busy));
        summary.max_nanos = summary.max_nanos.max(wall);
        self.walls.push(wall);
    }

    fn finish(mut self, name: String, target: String) -> SpanSummary {
        self.walls.sort_unstable();
        let (p50_nanos, p90_nanos, p99_nanos) = (self.percentile(50), self.percentile(90), self.percentile(99));
        SpanSummary { name, target, p50_nanos, p90_nanos, p99_nanos, ..self.summary }
    }

    /// Returns the smallest duration that `percent` of the spans do not exceed. `walls` must be sorted.
    fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.walls.len() * percent).div_ceil(100);
        self.walls.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}
