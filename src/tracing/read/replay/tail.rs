//! The replay of batches that arrive one after the other. Events that two rings record at the same time may arrive in
//! different batches. So a closed span waits for all records up to 5 milliseconds after its close.

use super::memory::{CLOSING_BYTES, OPEN_SLICE_BYTES, SPAN_BYTES, THREAD_BYTES};
use super::{BatchTimes, SpanReplay};
use crate::tracing::read::span::Span;
use crate::tracing::span_id::SpanId;

impl SpanReplay {
    /// Begins a batch. All records up to this time have come, or are in the batch: spans that were closed later wait.
    /// The time is in nanoseconds since the epoch.
    pub fn begin_batch(&mut self, complete_until: u64) {
        let before = self.batch.map_or(0, |batch| batch.complete_until);
        self.batch = Some(BatchTimes { complete_until: complete_until.max(before), reached: 0 });
    }

    /// Notes that the batch is over. From now on, [`Self::take_closed_boxed`] takes the spans that were closed at least
    /// 5 milliseconds before the time until which the records are complete.
    pub fn end_batch(&mut self) {
        self.reach_in_batch(u64::MAX);
        self.advance(self.reached_in_batch().unwrap_or(0));
        self.forget_threads();
    }

    /// Notes the time of a record.
    #[inline]
    pub(super) fn reach_in_batch(&mut self, epoch_nanos: u64) {
        if let Some(batch) = &mut self.batch {
            batch.reached = batch.reached.max(epoch_nanos);
        }
    }

    /// Returns the time until which all records have been replayed; `None` if there are no batches.
    #[inline]
    pub(super) fn reached_in_batch(&self) -> Option<u64> {
        self.batch.map(|batch| batch.complete_until.min(batch.reached))
    }

    /// Returns an estimate of the bytes that the replay keeps in memory at present. The estimate is a little too high.
    pub fn kept_bytes(&self) -> u64 {
        [
            (self.spans.len() as u64).saturating_mul(SPAN_BYTES),
            (self.stacks.open() as u64).saturating_mul(OPEN_SLICE_BYTES),
            (self.losses.threads() as u64).saturating_mul(THREAD_BYTES),
            (self.closing.len() as u64).saturating_mul(CLOSING_BYTES),
            self.more_bytes,
            self.around.kept_bytes(),
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Takes spans until the replay keeps at most half of `bytes_max`, if it keeps more than that: closed ones, spans
    /// whose close may have been lost, and then those that were seen first.
    pub fn make_room(&mut self, bytes_max: u64) -> Vec<Span> {
        let mut spans = Vec::new();
        if self.kept_bytes() <= bytes_max {
            return spans;
        }
        while let Some(span) = self.take_closed_until(u64::MAX) {
            spans.push(*span);
        }
        self.forget_around();
        spans.extend(self.take_lost(self.now_epoch_nanos));
        if self.kept_bytes() <= bytes_max / 2 {
            return spans;
        }
        let mut oldest: Vec<(u64, SpanId)> = self.open_spans().map(|span| (span.number, span.id)).collect();
        oldest.sort_unstable();
        let mut oldest = oldest.into_iter().map(|(_, id)| id);
        while self.kept_bytes() > bytes_max / 2 {
            // The stacks are searched for each part. So the parts are large.
            let count = oldest.len() / 8 + 1;
            let part: Vec<SpanId> = oldest.by_ref().take(count).collect();
            if part.is_empty() {
                break;
            }
            spans.extend(self.take_all(part));
        }
        spans
    }
}
