//! Closed ancestors of spans that are still in the replay. For example, the span of a request may end before the span
//! of a job that the request has started. The replay keeps such ancestors, because conditions test the ancestors of an
//! event's span.

use super::SpanReplay;
use super::memory::SPAN_BYTES;
use crate::tracing::read::id_map::IdMap;
use crate::tracing::{Span, SpanId};
use std::collections::VecDeque;

/// The largest number of closed spans that are kept. A task that starts the next one inside of its own span, and so on,
/// has ever more spans around it. Beyond this number, those that were closed first are forgotten.
const KEPT_MAX: usize = 1 << 16;
/// The same for the bytes that they take in addition to themselves.
const MORE_BYTES_MAX: u64 = 32 << 20;

/// The closed spans that were taken, and that have spans inside of them which were not.
#[derive(Clone, Debug, Default)]
pub(super) struct SpansAround {
    spans: IdMap<SpanId, Box<Span>>,
    /// The ids in the order in which they were taken. Some of them may not be kept any more.
    order: VecDeque<SpanId>,
    /// An estimate of the bytes that the spans take in addition to themselves.
    more_bytes: u64,
}

impl SpansAround {
    fn is_full(&self) -> bool {
        self.spans.len() >= KEPT_MAX || self.more_bytes >= MORE_BYTES_MAX
    }

    /// Adds a span that is taken.
    fn add(&mut self, span: &Span) {
        self.take(span.id);
        let mut span = Box::new(span.clone());
        // Nobody asks when threads were in it.
        (span.slices, span.cut_slices, span.follows_from) = (Vec::new(), Vec::new(), Vec::new());
        span.more_bytes = span.raw_fields.capacity() as u64 + span.fields.kept_bytes();
        self.more_bytes += span.more_bytes;
        self.order.push_back(span.id);
        self.spans.insert(span.id, span);
        if self.order.len() > 2 * KEPT_MAX {
            self.order.retain(|id| self.spans.contains_key(id));
        }
    }

    /// Takes the span that was added first.
    fn take_first(&mut self) -> Option<Box<Span>> {
        loop {
            let id = self.order.pop_front()?;
            if let Some(span) = self.take(id) {
                return Some(span);
            }
        }
    }

    fn take(&mut self, id: SpanId) -> Option<Box<Span>> {
        if self.spans.is_empty() {
            return None;
        }
        let span = self.spans.remove(&id)?;
        self.more_bytes = self.more_bytes.saturating_sub(span.more_bytes);
        if self.spans.is_empty() {
            self.order.clear();
        }
        Some(span)
    }

    /// Returns an estimate of the bytes that the spans take.
    pub(super) fn kept_bytes(&self) -> u64 {
        (self.spans.len() as u64).saturating_mul(SPAN_BYTES).saturating_add(self.more_bytes)
    }
}

impl SpanReplay {
    /// Returns the span with this id, also if it is kept for the spans inside of it.
    pub(super) fn get_around(&self, id: SpanId) -> Option<&Span> {
        // What comes of a span long after its close makes an empty one.
        self.around.spans.get(&id).or_else(|| self.spans.get(&id)).map(Box::as_ref)
    }

    /// Returns the span with this id and those around it, innermost first. A span that was closed and taken is among
    /// them as long as a span inside of it was not taken; if there are very many, those that were closed first are
    /// forgotten. In a damaged ring a span can be its own ancestor, so there are at most 1,000.
    pub fn spans_around(&self, id: SpanId) -> impl Iterator<Item = &Span> {
        std::iter::successors(self.get_around(id), |span| self.get_around(span.parent?)).take(1000)
    }

    /// Returns the number of closed spans that are kept because spans are inside of them.
    #[doc(hidden)]
    pub fn around_count(&self) -> usize {
        self.around.spans.len()
    }

    /// Notes that a span was created inside of another one. `before` is the parent that it was said to have.
    pub(super) fn note_inside(&mut self, id: SpanId, parent: Option<SpanId>, before: Option<SpanId>) {
        if let Some(earlier) = self.around.take(id) {
            self.let_go(&earlier);
        }
        if parent == before || parent == Some(id) {
            return;
        }
        if let Some(before) = before {
            self.leave(before);
        }
        if let Some(parent) = parent.and_then(|parent| self.place_of(parent)) {
            parent.spans_inside = parent.spans_inside.saturating_add(1);
        }
    }

    /// Notes that a span is taken that was closed, and keeps it for the spans inside of it.
    pub(super) fn keep_around(&mut self, span: &mut Span) {
        if span.spans_inside > 0 {
            while self.around.is_full()
                && let Some(first) = self.around.take_first()
            {
                self.let_go(&first);
            }
            self.around.add(span);
            span.spans_inside = 0;
        } else {
            self.let_go(span);
        }
    }

    /// Notes that a span is not there any more, so that those around it may go, too.
    pub(super) fn let_go(&mut self, span: &Span) {
        if let Some(parent) = span.parent.filter(|parent| *parent != span.id) {
            self.leave(parent);
        }
    }

    /// Forgets the closed spans that are kept.
    pub(super) fn forget_around(&mut self) {
        self.around = SpansAround::default();
    }

    /// Notes that one span less is inside of a span.
    fn leave(&mut self, mut outer: SpanId) {
        while let Some(span) = self.place_of(outer) {
            span.spans_inside = span.spans_inside.saturating_sub(1);
            if span.spans_inside > 0 {
                return;
            }
            let Some(parent) = self.around.take(outer).and_then(|span| span.parent) else { return };
            outer = parent;
        }
    }

    fn place_of(&mut self, id: SpanId) -> Option<&mut Box<Span>> {
        match self.around.spans.get_mut(&id) {
            Some(span) => Some(span),
            None => self.spans.get_mut(&id),
        }
    }
}
