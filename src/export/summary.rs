//! Spans counted by name.

use super::no_spans;
use super::payloads::{self, PayloadLosses};
use super::recording::Recording;
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
    /// Events that were lost, whatever the cause.
    pub lost: u64,
    /// Events that have lost their payload: by ring, without those that have lost none.
    pub payload_losses: Vec<PayloadLosses>,
    /// Events that were captured, in files that the capture has removed again: spans may have begun there. They are not lost.
    pub removed: u64,
    /// What was wrong with the capture, a line each.
    pub problems: Vec<String>,
}

/// All spans with the same name and target. Times are nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SpanSummary {
    /// Their name.
    pub name: String,
    /// Their target.
    pub target: String,
    /// How many were created and closed. All that follows is about these.
    pub count: u64,
    /// How many more were open at the end.
    pub open: u64,
    /// How many more have no end that was seen, and may have had one that was lost.
    pub end_lost: u64,
    /// How many more were closed whose creation was lost, so that their duration is not known.
    pub incomplete: u64,
    /// From creation to close, added up.
    pub total_nanos: u64,
    /// Of that, the time in which none of their children was there.
    pub self_nanos: u64,
    /// How long threads were in them, added up.
    pub busy_nanos: u64,
    /// Of the total, the time in which no thread was in them; several threads at once count as one each.
    pub idle_nanos: u64,
    /// Half of them took no longer.
    pub p50_nanos: u64,
    /// 90 % of them took no longer.
    pub p90_nanos: u64,
    /// 99 % of them took no longer.
    pub p99_nanos: u64,
    /// The longest one.
    pub max_nanos: u64,
}

/// Counts the spans of a capture. Everything is exact, percentiles too.
///
/// # Errors
/// There is no perf ring, or it has a schema of another version.
pub fn summarize(capture: &CaptureFile) -> Result<Summary, CaptureError> {
    let recording = Recording::new(capture)?;
    if !capture.rings().iter().any(|ring| ring.is_perf()) {
        return Err(no_spans(capture));
    }
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
    /// Events of all rings that have lost their payload.
    #[must_use]
    pub fn lost_payloads(&self) -> u64 {
        payloads::count(&self.payload_losses)
    }

    /// For programs: `{"spans": [{"name", "target", "count", "total_ns", "self_ns", "busy_ns", "p50_ns", "p90_ns", "p99_ns",
    /// "max_ns"}, …], "lost", "lost_payloads", "payload_losses": [{"ring", "expired", "malformed", "omitted"}, …], "removed"}`.
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
    /// All durations. (The spans are in memory, too; a histogram for each name takes far more where each span has its own.)
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

    /// The smallest duration that so many of a hundred do not exceed; `walls` are sorted.
    fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.walls.len() * percent).div_ceil(100);
        self.walls.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}
