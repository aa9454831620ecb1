//! The open spans in the order in which they began.

use eventring::tracing::{IdMap, SpanId, SpanReplay};
use std::collections::VecDeque;

/// The number of spans up to which closed spans stay in the list.
const CLOSED_MAX: usize = 4096;

/// A list of spans in the order of their beginnings. Closed spans leave the list from time to time.
#[derive(Default)]
pub(crate) struct SpanOrder {
    /// The time of each span's beginning, or the first time at which the span was seen. The times never fall.
    spans: VecDeque<(u64, SpanId)>,
    /// The number of spans that the replay had seen when it was last looked at.
    seen: u64,
}

impl SpanOrder {
    /// Adds those of these spans that are new in the replay.
    #[inline]
    pub(crate) fn look(&mut self, replay: &SpanReplay, spans: [Option<SpanId>; 2]) {
        if replay.spans_seen() == self.seen {
            return;
        }
        for id in spans.into_iter().flatten() {
            let new = replay.get(id).filter(|span| span.number > self.seen);
            if let Some(span) = new {
                let nanos = self.spans.back().map_or(0, |(last, _)| *last).max(span.start_epoch_nanos());
                self.spans.push_back((nanos, id));
            }
        }
        self.seen = replay.spans_seen();
        if self.spans.len() > 2 * replay.len() + CLOSED_MAX {
            self.remove_closed(replay);
        }
    }

    /// Removes the spans that the replay does not have any more, and those that are in the list twice.
    pub(crate) fn remove_closed(&mut self, replay: &SpanReplay) {
        self.spans.retain(|(_, id)| replay.get(*id).is_some_and(|span| span.is_open()));
        if self.spans.len() > replay.len() {
            // A span that was given up and then seen again is in the list twice. The later place is the right one.
            let mut last: IdMap<SpanId, usize> = IdMap::default();
            last.extend(self.spans.iter().enumerate().map(|(at, (_, id))| (*id, at)));
            let mut at = 0..;
            self.spans.retain(|(_, id)| last.get(id).copied() == at.next());
        }
    }

    /// Sorts the spans by what is known of their beginnings now: those of tables came first.
    pub(crate) fn sort(&mut self, replay: &SpanReplay) {
        let begun = |id: SpanId| replay.get(id).map_or(0, eventring::tracing::Span::start_epoch_nanos);
        self.spans.iter_mut().for_each(|(nanos, id)| *nanos = begun(*id));
        self.spans.make_contiguous().sort_by_key(|(nanos, _)| *nanos);
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the spans, oldest first. Some of them may be closed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SpanId> {
        self.spans.iter().map(|(_, id)| *id)
    }

    /// Returns the spans that began after the first time, and not after the second one. Some of them may be closed.
    pub(crate) fn between(&self, after_nanos: u64, until_nanos: u64) -> impl Iterator<Item = SpanId> {
        let from = self.spans.partition_point(|(nanos, _)| *nanos <= after_nanos);
        let until = self.spans.partition_point(|(nanos, _)| *nanos <= until_nanos).max(from);
        self.spans.range(from..until).map(|(_, id)| *id)
    }
}
