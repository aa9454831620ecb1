//! Closed spans that the replay keeps because conditions test the ancestors of an event's span. For example, a request
//! may end before a job that it has started.

use super::memory::SPAN_BYTES;
use crate::tracing::read::id_map::IdMap;
use crate::tracing::read::span::Span;
use crate::tracing::span_id::SpanId;
use std::collections::VecDeque;

/// The largest number of closed spans that are kept. A task that starts the next one inside of its own span, and so on,
/// has ever more spans around it. Beyond this number, those that were closed first are forgotten.
const KEPT_MAX: usize = 1 << 16;
/// The same for the bytes that they take in addition to themselves.
const MORE_BYTES_MAX: u64 = 32 << 20;

/// The closed spans that were taken, and that have spans inside of them which were not.
#[derive(Clone, Debug, Default)]
pub(super) struct SpansAround {
    pub(super) spans: IdMap<SpanId, Box<Span>>,
    /// The ids in the order in which they were taken. Some of them may not be kept any more.
    order: VecDeque<SpanId>,
    /// An estimate of the bytes that the spans take in addition to themselves.
    more_bytes: u64,
}

impl SpansAround {
    pub(super) fn is_full(&self) -> bool {
        self.spans.len() >= KEPT_MAX || self.more_bytes >= MORE_BYTES_MAX
    }

    /// Adds a span that is taken.
    pub(super) fn add(&mut self, span: &Span) {
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
    pub(super) fn take_first(&mut self) -> Option<Box<Span>> {
        loop {
            let id = self.order.pop_front()?;
            if let Some(span) = self.take(id) {
                return Some(span);
            }
        }
    }

    pub(super) fn take(&mut self, id: SpanId) -> Option<Box<Span>> {
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
