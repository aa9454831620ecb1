//! The self time of spans: the time in which no child existed.

use super::timeline::Timeline;
use std::collections::HashMap;

/// Finds the self time of every span.
pub(super) fn find(timeline: &mut Timeline) {
    let last_nanos = timeline.last_nanos;
    let covered = covered_by_children(timeline);
    for (index, span) in timeline.spans.iter_mut().enumerate() {
        let covered = covered.get(&index).copied().unwrap_or(0);
        let end = span.end_nanos.or(span.is_open().then_some(last_nanos)).filter(|_| span.is_start_known);
        span.self_nanos = end.map(|end| end.saturating_sub(span.start_nanos).saturating_sub(covered));
    }
}

/// Returns, for each span that has children, how long at least one of its children existed.
fn covered_by_children(timeline: &Timeline) -> HashMap<usize, u64> {
    let child = |index: usize| {
        let span = &timeline.spans[index];
        Some((timeline.parent_of(index)?, span.start_nanos, span.drawn_end_nanos().unwrap_or(u64::MAX)))
    };
    let mut children: Vec<(usize, u64, u64)> = (0..timeline.spans.len()).filter_map(child).collect();
    children.sort_unstable();
    let mut covered = HashMap::new();
    for family in children.chunk_by(|a, b| a.0 == b.0) {
        let parent = &timeline.spans[family[0].0];
        let Some(parent_end) = parent.end_nanos.or(parent.is_open().then_some(timeline.last_nanos)) else { continue };
        let (mut until, mut sum) = (parent.start_nanos, 0_u64);
        for (_, start, end) in family {
            let (start, end) = ((*start).max(until), (*end).min(parent_end));
            if end > start {
                sum = sum.saturating_add(end - start);
                until = end;
            }
        }
        covered.insert(family[0].0, sum);
    }
    covered
}
