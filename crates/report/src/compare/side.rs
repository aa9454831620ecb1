//! One side of a comparison: the figures of each span over the captures of the side.

use super::measure::SpanFigures;
use eventring_export::{SpanSummary, Summary};
use std::collections::BTreeMap;

/// A name and a target.
pub(super) type SpanKey = (String, String);

/// A span on one side.
#[derive(Default)]
pub(super) struct SideSpan<'s> {
    /// The summaries of the span, one for each capture that has it.
    summaries: Vec<&'s SpanSummary>,
}

impl SideSpan<'_> {
    pub(super) fn captures(&self) -> usize {
        self.summaries.len()
    }

    pub(super) fn figures(&self) -> SpanFigures {
        let all: Vec<SpanFigures> = self.summaries.iter().map(|summary| SpanFigures::from(*summary)).collect();
        SpanFigures::medians(&all)
    }

    /// Returns true if the instructions of the span are the same in each run of a program that does the same.
    pub(super) fn is_exact(&self) -> bool {
        self.summaries.iter().all(|summary| summary.instructions.is_none_or(|counted| counted.is_exact()))
    }

    /// Returns the medians of the blocks of all captures, in the order of time within each capture.
    pub(super) fn block_medians(&self) -> Vec<u64> {
        self.summaries.iter().flat_map(|summary| &summary.block_medians).copied().collect()
    }

    /// Returns true if the blocks of all captures have two or more calls.
    pub(super) fn has_blocks(&self) -> bool {
        self.summaries.iter().all(|summary| summary.count >= 2 * summary.block_medians.len() as u64)
    }

    /// Returns the medians of the captures.
    pub(super) fn capture_medians(&self) -> Vec<u64> {
        self.summaries.iter().map(|summary| summary.p50_nanos).collect()
    }
}

/// Returns the spans of a side that were closed.
pub(super) fn spans(captures: &[Summary]) -> BTreeMap<SpanKey, SideSpan<'_>> {
    let mut spans: BTreeMap<SpanKey, SideSpan<'_>> = BTreeMap::new();
    for summary in captures.iter().flat_map(|capture| &capture.spans).filter(|summary| summary.count > 0) {
        let key = (summary.name.clone(), summary.target.clone());
        spans.entry(key).or_default().summaries.push(summary);
    }
    spans
}

/// Returns how many spans of each name and target a side has that were not seen whole: open spans, and those whose
/// beginning or end was not seen.
pub(super) fn not_whole(captures: &[Summary]) -> BTreeMap<SpanKey, u64> {
    let mut counts = BTreeMap::new();
    for summary in captures.iter().flat_map(|capture| &capture.spans) {
        let count = summary.open.saturating_add(summary.end_lost).saturating_add(summary.incomplete);
        let of_key: &mut u64 = counts.entry((summary.name.clone(), summary.target.clone())).or_default();
        *of_key = of_key.saturating_add(count);
    }
    counts
}
