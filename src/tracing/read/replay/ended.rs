//! The spans that a replay hands out: closed spans, lost spans, and all spans at the end of the stream.

use super::{OpenSlice, SpanReplay};
use crate::tracing::{Span, SpanId};
use std::collections::HashSet;

/// The time for which the replay keeps a closed span, in nanoseconds. Records of the span by other threads may come
/// later in the stream than the close, by up to this time.
pub(super) const GRACE_NANOS: u64 = 5_000_000;

impl SpanReplay {
    /// Takes the next span that was closed some milliseconds ago, in the order of the closes.
    pub fn take_closed(&mut self) -> Option<Span> {
        loop {
            let (closed, id) = *self.closing.front()?;
            if closed.saturating_add(GRACE_NANOS) > self.now_epoch_nanos {
                return None;
            }
            self.closing.pop_front();
            // The span may have been taken already, because a damaged ring can close a span twice.
            if let Some(mut span) = self.spans.remove(&id) {
                self.resolve(&mut span, self.now_epoch_nanos);
                return Some(span);
            }
        }
    }

    /// Takes the open spans that were last seen before `epoch_nanos` and whose end may have been lost, by id. A reader
    /// of a live stream calls this now and then, because otherwise the replay would for ever keep a span whose close
    /// was lost. If more records of a taken span come, they begin a new [`Span`] with the same id.
    pub fn take_lost(&mut self, epoch_nanos: u64) -> Vec<Span> {
        let now_epoch_nanos = self.now_epoch_nanos;
        let lost_until = self.losses.of_process(now_epoch_nanos).min(epoch_nanos);
        let entered = self.spans_on_stacks(now_epoch_nanos);
        let is_lost = |span: &&Span| span.last_seen_epoch_nanos < lost_until && !entered.contains(&span.id);
        let mut lost: Vec<SpanId> = self.open_spans().filter(is_lost).map(|span| span.id).collect();
        lost.sort_unstable();
        let mut spans: Vec<Span> = lost.iter().filter_map(|id| self.spans.remove(id)).collect();
        spans.iter_mut().for_each(|span| self.resolve(span, now_epoch_nanos));
        self.stacks.forget(&lost.into_iter().collect());
        spans
    }

    /// Ends the replay and returns all spans that were not taken, by id. `now_epoch_nanos` is the time at which the
    /// recording ended. By this time the replay decides for each open span whether its end may have been lost.
    #[must_use]
    pub fn finish(mut self, now_epoch_nanos: u64) -> Vec<Span> {
        let entered = self.spans_on_stacks(now_epoch_nanos);
        let mut spans: Vec<Span> = std::mem::take(&mut self.spans).into_values().collect();
        for span in &mut spans {
            if span.is_open() && entered.contains(&span.id) {
                // A thread is still in the span, so the span existed until the end of the recording.
                span.see(now_epoch_nanos);
            }
            self.resolve(span, now_epoch_nanos);
        }
        spans.sort_unstable_by_key(|span| span.id);
        spans
    }

    /// Returns the spans that a thread is certainly in: the thread has entered the span, and no exit can have been
    /// lost.
    fn spans_on_stacks(&self, now_epoch_nanos: u64) -> HashSet<SpanId> {
        let is_entered = |slice: &&OpenSlice| !self.may_have_ended(slice, now_epoch_nanos);
        self.open_slices().filter(is_entered).map(|slice| slice.span).collect()
    }

    /// Decides which parts of a span may have been lost.
    fn resolve(&self, span: &mut Span, now_epoch_nanos: u64) {
        span.may_have_losses |= self.gaps > span.gaps_before;
        if span.is_open() {
            let lost_until = self.losses.of_process(now_epoch_nanos);
            span.is_end_lost = lost_until > span.last_seen_epoch_nanos;
            let is_all_seen = span.created.as_ref().is_some_and(|created| lost_until <= created.epoch_nanos);
            span.is_busy_known = !span.is_end_lost && is_all_seen;
        }
    }
}
