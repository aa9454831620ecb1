//! What is open in a replay, and which spans are done.

use super::{OpenSlice, RingLosses, SpanReplay, ThreadKey};
use crate::tracing::{Span, SpanId};

/// How far the times of two threads' events may run against the order in which they happened, and a late event against the stream,
/// in nanoseconds.
pub(super) const GRACE_NANOS: u64 = 5_000_000;

impl SpanReplay {
    /// Returns a span that has not been handed out yet.
    #[must_use]
    pub fn get(&self, id: SpanId) -> Option<&Span> {
        self.spans.get(&id)
    }

    /// Returns the number of spans that have not been handed out yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if every span has been handed out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the spans that have not been closed, in no order.
    pub fn open_spans(&self) -> impl Iterator<Item = &Span> {
        self.spans.values().filter(|span| span.is_open())
    }

    /// Returns the number of slices that have begun, which is the id of the next one.
    #[must_use]
    pub fn slices_begun(&self) -> u64 {
        self.stacks.begun()
    }

    /// Returns the slices that have not ended; those of one thread from the outside in.
    pub fn open_slices(&self) -> impl Iterator<Item = &OpenSlice> {
        self.stacks.all()
    }

    /// Returns the slices that the thread is in, innermost last.
    #[must_use]
    pub fn stack(&self, thread: ThreadKey) -> &[OpenSlice] {
        self.stacks.of(thread)
    }

    /// Returns true if the end of an open slice may have been lost by `now_epoch_nanos`.
    #[must_use]
    pub fn may_have_ended(&self, slice: &OpenSlice, now_epoch_nanos: u64) -> bool {
        self.losses.of_thread(slice.thread, now_epoch_nanos) > slice.last_seen_epoch_nanos
    }

    /// Returns the losses of the rings, for callers that go through the same records again.
    #[cfg(feature = "export")]
    pub(crate) fn losses(&self) -> &RingLosses {
        &self.losses
    }

    /// Returns the next span that was closed long enough ago, in the order of the closes.
    pub fn take_closed(&mut self) -> Option<Span> {
        loop {
            let (closed, id) = *self.closing.front()?;
            if closed.saturating_add(GRACE_NANOS) > self.now_epoch_nanos {
                return None;
            }
            self.closing.pop_front();
            // A damaged ring can close a span twice.
            if let Some(mut span) = self.spans.remove(&id) {
                span.may_have_losses |= self.gaps > span.gaps_before;
                return Some(span);
            }
        }
    }

    /// Ends the replay at `now_epoch_nanos`, the time at which recording ended, and returns all spans that have not been handed out, by
    /// id. Open spans say whether their end may have been lost.
    #[must_use]
    pub fn finish(mut self, now_epoch_nanos: u64) -> Vec<Span> {
        let is_entered = |slice: &&OpenSlice| !self.may_have_ended(slice, now_epoch_nanos);
        let entered: Vec<SpanId> = self.open_slices().filter(is_entered).map(|slice| slice.span).collect();
        for id in entered {
            // A thread is in the span until the end.
            if let Some(span) = self.spans.get_mut(&id).filter(|span| span.is_open()) {
                span.see(now_epoch_nanos);
            }
        }
        let lost_until = self.losses.of_process(now_epoch_nanos);
        let mut spans: Vec<Span> = self.spans.into_values().collect();
        for span in &mut spans {
            span.may_have_losses |= self.gaps > span.gaps_before;
        }
        for span in spans.iter_mut().filter(|span| span.is_open()) {
            span.is_end_lost = lost_until > span.last_seen_epoch_nanos;
            let is_all_seen = span.created.as_ref().is_some_and(|created| lost_until <= created.epoch_nanos);
            span.is_busy_known = !span.is_end_lost && is_all_seen;
        }
        spans.sort_unstable_by_key(|span| span.id);
        spans
    }
}
