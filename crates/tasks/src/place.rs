//! The place where a task waits, which is the innermost open span in the task.

use eventring::tracing::{Span, SpanId, SpanReplay};
use std::collections::HashMap;

/// Returns the name of the innermost open span of each task of a process.
pub(crate) fn places(replay: &SpanReplay, is_task: impl Fn(SpanId) -> bool) -> HashMap<SpanId, String> {
    let mut innermost: HashMap<SpanId, ((usize, u64), &Span)> = HashMap::new();
    for span in replay.open_spans() {
        let mut depth = 0;
        let around = replay.spans_around(span.id).filter_map(|span| span.parent);
        let task = around.inspect(|_| depth += 1).find(|id| is_task(*id));
        let Some(task) = task else { continue };
        let rank = (depth, span.number);
        let place = innermost.entry(task).or_insert((rank, span));
        if place.0 < rank {
            *place = (rank, span);
        }
    }
    let name = |span: &Span| match &span.call_site {
        Some(site) if !site.target.is_empty() => format!("{}::{}", site.target, site.name),
        _ => span.name(),
    };
    innermost.into_iter().map(|(task, (_, span))| (task, name(span))).collect()
}
