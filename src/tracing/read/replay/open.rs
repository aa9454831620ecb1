//! The open spans and slices of a replay.

use super::SpanReplay;
use crate::tracing::read::slice::{OpenSlice, ThreadKey};
use crate::tracing::read::span::Span;
use crate::tracing::read::time_spent::TimeSpent;
use crate::tracing::span_id::SpanId;

impl SpanReplay {
    /// Returns the span with this id. Returns `None` if no record has named the span, or if the span was taken.
    #[must_use]
    pub fn get(&self, id: SpanId) -> Option<&Span> {
        self.spans.get(&id).map(Box::as_ref)
    }

    /// Returns the number of spans that were not taken yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the number of spans that have not been closed.
    pub fn open_count(&self) -> usize {
        self.spans.len().saturating_sub(self.closing.len())
    }

    /// Returns true if all spans were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the spans that were not taken, in no order.
    pub fn spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.values().map(Box::as_ref)
    }

    /// Returns the spans that have not been closed, in no order.
    pub fn open_spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.values().map(Box::as_ref).filter(|span| span.is_open())
    }

    /// Returns how many slices have begun since the replay began. The next slice gets this number as its id.
    #[must_use]
    pub fn slices_begun(&self) -> u64 {
        self.stacks.begun()
    }

    /// Returns the slices that have not ended, in the order of the threads' keys. The slices of one thread follow one
    /// another, outermost first.
    pub fn open_slices(&self) -> impl Iterator<Item = &OpenSlice> {
        self.stacks.all()
    }

    /// Returns the slices that the thread is in, innermost last.
    #[must_use]
    pub fn stack(&self, thread: ThreadKey) -> &[OpenSlice] {
        self.stacks.stack_of(thread)
    }

    /// Returns true if the thread may have left the slice before `now_epoch_nanos` without the replay knowing,
    /// because the exit was lost.
    #[must_use]
    pub fn may_have_ended(&self, slice: &OpenSlice, now_epoch_nanos: u64) -> bool {
        self.losses.of_thread(slice.thread, now_epoch_nanos) > slice.last_seen_epoch_nanos
    }

    /// Returns how threads spent the time in an open span until `now_epoch_nanos`, if any of it was measured. What a
    /// thread did after its last event is not known.
    #[must_use]
    pub fn times_until(&self, id: SpanId, now_epoch_nanos: u64) -> Option<TimeSpent> {
        let mut sum = self.get(id)?.times;
        let is_in = |stack: &[OpenSlice]| stack.iter().any(|slice| slice.span == id);
        let lost_until = |thread| self.losses.of_own_rings(thread, now_epoch_nanos);
        self.stacks.open_times(now_epoch_nanos, is_in, lost_until, |span, _, times| {
            if span == id {
                sum = sum.plus(times);
            }
        });
        Some(sum).filter(TimeSpent::is_measured)
    }

    /// Notes that a span was open at this time, and that this thread was in it, if it is known and has not closed: tables
    /// of the present have shown it.
    pub fn see_open(&mut self, id: SpanId, inside: Option<ThreadKey>, epoch_nanos: u64) {
        if let Some(span) = self.spans.get_mut(&id).filter(|span| span.is_open()) {
            span.see(epoch_nanos);
            inside.iter().for_each(|thread| self.stacks.see_inside(*thread, id, epoch_nanos));
        }
    }

    /// Returns the number of spans that were seen since the replay began.
    pub fn spans_seen(&self) -> u64 {
        self.spans_seen
    }

    /// Returns the losses of all rings. This is for callers that read the same records a second time.
    pub fn losses(&self) -> &super::RingLosses {
        &self.losses
    }
}
