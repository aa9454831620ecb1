//! The functions with which a replay returns its spans: closed spans, lost spans, and the remaining spans at the end of
//! the stream.

use super::{GRACE_NANOS, SpanReplay};
use crate::tracing::read::record::Fields;
use crate::tracing::read::slice::OpenSlice;
use crate::tracing::read::span::Span;
use crate::tracing::read::time_spent::TimeSpent;
use crate::tracing::span_id::SpanId;
use std::collections::{HashMap, HashSet};

/// The number of pairs of a thread and a ring to which it has recorded that are kept for threads that are in no span.
const LINKS_MAX: usize = 1 << 17;
/// The number of places that are kept for later spans.
const FREE_MAX: usize = 4096;

/// The spans in which threads are at the end of a recording.
pub struct StacksAtEnd {
    now_epoch_nanos: u64,
    spans: HashSet<SpanId>,
    /// The time for which threads have been in each span since they entered it.
    busy_nanos: HashMap<SpanId, (u64, TimeSpent)>,
}

impl SpanReplay {
    /// Takes the next span that was closed at least 5 milliseconds before the newest record. The spans come in the
    /// order of their closes in the stream. Returns `None` if there is no such span yet. At the end of the stream,
    /// spans that were closed in its last 5 milliseconds are still in the replay; [`Self::finish`] returns them.
    pub fn take_closed(&mut self) -> Option<Span> {
        self.take_closed_boxed().map(|span| *span)
    }

    /// Takes the next closed span as [`Self::take_closed`] does. [`Self::recycle`] takes it back.
    #[inline]
    pub fn take_closed_boxed(&mut self) -> Option<Box<Span>> {
        let reached_nanos = self.now_epoch_nanos;
        let reached_nanos = self.reached_in_batch().unwrap_or(reached_nanos);
        self.take_closed_until(reached_nanos.checked_sub(GRACE_NANOS)?)
    }

    /// Takes the next span that was closed until this time.
    #[inline]
    pub(super) fn take_closed_until(&mut self, until_nanos: u64) -> Option<Box<Span>> {
        loop {
            let (closed, id) = *self.closing.front()?;
            if closed > until_nanos {
                return None;
            }
            self.closing.pop_front();
            // If the ring is damaged, a span can have two closes. The span is then already gone at its second close.
            if let Some(mut span) = self.spans.remove(&id) {
                self.more_bytes = self.more_bytes.saturating_sub(span.more_bytes);
                self.resolve(&mut span, self.now_epoch_nanos);
                self.keep_around(&mut span);
                return Some(span);
            }
        }
    }

    /// Notes that the stream has reached this time, in nanoseconds since the epoch, even if it has no event then.
    pub fn advance(&mut self, epoch_nanos: u64) {
        self.now_epoch_nanos = self.now_epoch_nanos.max(epoch_nanos);
    }

    /// Forgets threads that are in no span, if they are too many.
    pub(super) fn forget_threads(&mut self) {
        let stacks = &self.stacks;
        self.losses.keep_in_bounds(LINKS_MAX, |thread| !stacks.stack_of(thread).is_empty());
    }

    /// Takes back a span that was taken, so that its memory serves a later span.
    pub fn recycle(&mut self, mut span: Box<Span>) {
        self.keep_buffer(std::mem::take(&mut span.raw_fields));
        if self.free.len() < FREE_MAX {
            // What the span has outside of itself is freed now.
            (span.fields, span.slices) = (Fields::default(), Vec::new());
            self.free.push(span);
        }
    }

    /// Takes the open spans whose close may have been lost, in the order of their ids. Takes only spans that were last
    /// seen before `epoch_nanos`. A reader of a live stream calls this function from time to time: otherwise a span
    /// whose close was lost would stay in the replay for ever. If a later record names a span that was taken here, the
    /// replay begins a new [`Span`] with the same id.
    pub fn take_lost(&mut self, epoch_nanos: u64) -> Vec<Span> {
        let now_epoch_nanos = self.now_epoch_nanos;
        let lost_until = self.losses.of_process(now_epoch_nanos).min(epoch_nanos);
        let entered = self.spans_on_stacks(now_epoch_nanos);
        let is_lost = |span: &&Span| span.last_seen_epoch_nanos < lost_until && !entered.contains(&span.id);
        let mut lost: Vec<SpanId> = self.open_spans().filter(is_lost).map(|span| span.id).collect();
        lost.sort_unstable();
        self.take_all(lost)
    }

    /// Takes these open spans, in this order.
    pub(super) fn take_all(&mut self, lost: Vec<SpanId>) -> Vec<Span> {
        let now_epoch_nanos = self.now_epoch_nanos;
        let mut spans: Vec<Span> = lost.iter().filter_map(|id| self.spans.remove(id)).map(|span| *span).collect();
        let more_bytes: u64 = spans.iter().map(|span| span.more_bytes).sum();
        self.more_bytes = self.more_bytes.saturating_sub(more_bytes);
        spans.iter_mut().for_each(|span| self.resolve(span, now_epoch_nanos));
        // They make room, so they are not kept for the spans inside of them.
        spans.iter().for_each(|span| self.let_go(span));
        self.stacks.forget(&lost.into_iter().collect());
        spans
    }

    /// Ends the replay and returns all spans that were not taken, in the order of their ids. These are the spans that
    /// are still open, and also spans that were closed in the last 5 milliseconds of the stream, which
    /// [`Self::take_closed`] did not return. [`Span::closed`] tells which they are: it is `None` for an open span.
    /// `now_epoch_nanos` is the time at which the recording ended. If events were lost after an open span was last
    /// seen, its [`Span::is_end_lost`] is true.
    #[must_use]
    pub fn finish(mut self, now_epoch_nanos: u64) -> Vec<Span> {
        let entered = self.stacks_at(now_epoch_nanos);
        let mut spans: Vec<Span> = std::mem::take(&mut self.spans).into_values().map(|span| *span).collect();
        spans.iter_mut().for_each(|span| self.end_with(span, &entered));
        spans.sort_unstable_by_key(|span| span.id);
        spans
    }

    /// Returns the spans in which threads are at the end of the recording.
    pub fn stacks_at(&self, now_epoch_nanos: u64) -> StacksAtEnd {
        let mut busy_nanos: HashMap<SpanId, (u64, TimeSpent)> = HashMap::new();
        let lost_until = |thread| self.losses.of_own_rings(thread, now_epoch_nanos);
        self.stacks.open_times(
            now_epoch_nanos,
            |_| true,
            lost_until,
            |span, nanos, times| {
                let (sum, of_span) = busy_nanos.entry(span).or_insert((0, TimeSpent::NONE));
                (*sum, *of_span) = (sum.saturating_add(nanos), of_span.plus(times));
            },
        );
        StacksAtEnd { now_epoch_nanos, spans: self.spans_on_stacks(now_epoch_nanos), busy_nanos }
    }

    /// Sets in a span what is known of it at the end of the recording.
    pub fn end_with(&self, span: &mut Span, entered: &StacksAtEnd) {
        if span.is_open() {
            if let Some((busy_nanos, times)) = entered.busy_nanos.get(&span.id) {
                span.counted_busy_nanos = span.counted_busy_nanos.saturating_add(*busy_nanos);
                span.times = span.times.plus(*times);
            }
            if entered.spans.contains(&span.id) {
                // A thread is still in this open span, so the span existed until the end of the recording.
                span.see(entered.now_epoch_nanos);
            }
        }
        self.resolve(span, entered.now_epoch_nanos);
    }

    /// Returns the spans that some thread is certainly in at `now_epoch_nanos`. The thread has entered the span, and
    /// its exit cannot have been lost.
    fn spans_on_stacks(&self, now_epoch_nanos: u64) -> HashSet<SpanId> {
        let is_entered = |slice: &&OpenSlice| !self.may_have_ended(slice, now_epoch_nanos);
        self.open_slices().filter(is_entered).map(|slice| slice.span).collect()
    }

    /// Sets the fields of `span` that show which of its records may have been lost.
    fn resolve(&self, span: &mut Span, now_epoch_nanos: u64) {
        span.may_have_losses |= self.gaps > span.gaps_before;
        if !span.cut_slices.is_empty() {
            span.instructions = None;
        }
        if span.is_open() {
            let lost_until = self.losses.of_process(now_epoch_nanos);
            span.is_end_lost = lost_until > span.last_seen_epoch_nanos;
            let is_all_seen = span.created.as_ref().is_some_and(|created| lost_until <= created.epoch_nanos);
            span.is_busy_known = !span.is_end_lost && is_all_seen;
        }
    }
}
