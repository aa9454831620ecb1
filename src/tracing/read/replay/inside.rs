//! Which spans are inside of which. A closed span is kept as long as spans inside of it are in the replay.

use super::SpanReplay;
use super::around::SpansAround;
use crate::tracing::read::span::Span;
use crate::tracing::span_id::SpanId;

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
