//! The replay of a stream without end, in bounded memory.
//!
//! This replay keeps at most a given number of spans, and no slices. It keeps fields undecoded, so that unread fields
//! cost little. It also keeps a span that was created before the oldest events in the rings, if a record names the
//! span.

use super::refused::RefusedSpans;
use super::span_record::SpanRecord;
use super::{LiveLimits, SpanReplay};
use crate::schema::perf::{PerfEvent, RawFields};
use crate::tracing::read::raw::RawRecord;
use crate::tracing::read::record::{Fields, FieldsProblem};
use crate::tracing::read::slice::ThreadKey;
use crate::tracing::read::span::Span;
use crate::tracing::span_id::SpanId;

/// The mean size of the fields of a span, in bytes, up to which a replay keeps the fields of all spans.
const FIELD_BYTES_PER_SPAN: u64 = 512;
/// The number of slices that may be open for each span that may be.
const SLICES_PER_SPAN: usize = 4;
/// The number of threads that may be in spans.
const THREADS_MAX: usize = 1 << 16;
/// The bytes of fields from which on values that were recorded again are looked for, and removed.
const COMPACT_BYTES: usize = 4 << 10;
/// The number of buffers that are kept for the fields of later spans.
const BUFFERS_MAX: usize = 1 << 10;
/// The size up to which a buffer is kept, in bytes.
const BUFFER_BYTES_MAX: usize = 1 << 10;

impl SpanReplay {
    /// Creates a replay that keeps at most `spans_max` spans.
    pub fn live(spans_max: usize) -> Self {
        let limits = LiveLimits { spans_max, refused: RefusedSpans::default(), refused_enters: 0, buffers: Vec::new() };
        Self { live: Some(limits), ..Self::new().without_slices() }
    }

    /// Returns how many open spans are not kept because there was no room for them.
    pub fn not_tracked(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.refused.count())
    }

    /// Returns how many spans have found no room so far, whether they are open or not.
    pub fn spans_without_room(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.refused.added())
    }

    /// Returns how many of the spans without room were forgotten, because their close may have been lost.
    pub fn forgotten_spans(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.refused.forgotten())
    }

    /// Returns how many enters were left out because there was no room for them.
    pub fn refused_enters(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.refused_enters)
    }

    /// Forgets what is of no use any more. A reader of a live stream calls this from time to time.
    pub fn forget_old(&mut self) {
        if let Some(live) = &mut self.live {
            live.refused.forget_lost(self.losses.of_process(self.now_epoch_nanos), self.gaps);
        }
        self.forget_threads();
    }

    /// Returns the number of links of threads to rings, and the number of stacks.
    #[doc(hidden)]
    pub fn thread_counts(&self) -> (usize, usize) {
        (self.losses.links(), self.stacks.threads())
    }

    /// Returns the number of closes after which spans wait for late records.
    #[doc(hidden)]
    pub fn closing_count(&self) -> usize {
        self.closing.len()
    }

    /// Returns true if events of the process were lost. Without losses, each open span has a creation.
    pub fn has_losses(&self) -> bool {
        self.gaps > 0
    }

    /// Returns the threads that have recorded and that have not ended, in no order.
    pub fn threads(&self) -> impl Iterator<Item = ThreadKey> {
        self.losses.known_threads()
    }

    /// Returns true if the open span may have been closed without the replay knowing, because its close may be among
    /// lost events. `is_entered` says that a thread is certainly in the span.
    pub fn may_have_closed(&self, span: &Span, is_entered: bool) -> bool {
        !is_entered && self.losses.of_process(self.now_epoch_nanos) > span.last_seen_epoch_nanos
    }

    /// Keeps the memory of the fields of a span that was taken, for a later span.
    pub(super) fn keep_buffer(&mut self, mut buffer: Vec<u8>) {
        let Some(live) = &mut self.live else { return };
        if live.buffers.len() < BUFFERS_MAX && (1..=BUFFER_BYTES_MAX).contains(&buffer.capacity()) {
            buffer.clear();
            live.buffers.push(buffer);
        }
    }

    /// Returns true if a record is to be left out, because there is no room for its span.
    pub(super) fn live_step(
        &mut self,
        event: PerfEvent,
        span: Option<SpanId>,
        thread: ThreadKey,
        record: &impl SpanRecord,
    ) -> bool {
        let Some(live) = &mut self.live else { return false };
        let is_full = self.spans.len() >= live.spans_max;
        let may_be_refused = is_full || live.refused.count() > 0;
        let unknown = span.filter(|id| may_be_refused && !self.spans.contains_key(id));
        let nanos = record.epoch_nanos();
        match (event, unknown) {
            (PerfEvent::SpanNew, Some(id)) if is_full => {
                live.refused.add(id, nanos, live.spans_max);
                // Its parent exists, whether there is room for the child or not.
                self.happen(record.related(), thread, nanos, false);
                true
            }
            (PerfEvent::SpanClose, Some(id)) => {
                let is_refused = live.refused.close(id);
                if is_full && !is_refused && self.gaps > 0 {
                    // Its creation may be lost.
                    live.refused.add_closed();
                }
                is_refused || is_full
            }
            (PerfEvent::SpanRecord | PerfEvent::SpanEnter, Some(id)) if is_full || live.refused.may_have(id) => {
                // The span is open. After a loss, it may be one that was forgotten.
                if !live.refused.see(id, nanos) && self.gaps > 0 && !live.refused.may_have(id) {
                    live.refused.add(id, nanos, live.spans_max);
                }
                true
            }
            (PerfEvent::SpanExit, Some(id)) if is_full || live.refused.may_have(id) => {
                live.refused.see(id, nanos);
                true
            }
            (PerfEvent::SpanEnter, _) => {
                let is_refused = self.stacks.open() >= live.spans_max.saturating_mul(SLICES_PER_SPAN)
                    || !self.stacks.has_room(thread, THREADS_MAX);
                live.refused_enters += u64::from(is_refused);
                is_refused
            }
            (PerfEvent::ThreadTime | PerfEvent::ThreadSwitched, _) => !self.stacks.has_room(thread, THREADS_MAX),
            // The spans that a span follows from are not kept: there may be any number of them.
            (PerfEvent::SpanFollowsFrom, _) => {
                self.happen(span, thread, nanos, true);
                true
            }
            (PerfEvent::ThreadEnded, _) => {
                if self.stacks.stack_of(thread).is_empty() {
                    self.losses.forget_thread(thread);
                }
                false
            }
            _ => false,
        }
    }

    /// Notes that a record names a span. If the span is not known and events were lost, its creation may be one of
    /// them: the span was opened before the window.
    pub(super) fn note_named(&mut self, span: Option<SpanId>, epoch_nanos: u64) {
        let (Some(live), Some(id)) = (&mut self.live, span) else { return };
        let is_refused = live.refused.see(id, epoch_nanos) || live.refused.may_have(id);
        if self.gaps == 0 || is_refused {
            return;
        }
        if self.spans.len() < live.spans_max {
            self.span(id, epoch_nanos, || None);
        } else {
            live.refused.add(id, epoch_nanos, live.spans_max);
        }
    }

    /// Keeps the fields of a record undecoded. `is_creation` is true if the record is the creation of the span: its
    /// values are older than all others.
    pub(super) fn keep_raw_fields(&mut self, id: SpanId, record: &impl SpanRecord, is_creation: bool) {
        let (Some(live), Some(record)) = (&mut self.live, record.raw_fields()) else { return };
        let Some(span) = self.spans.get_mut(&id) else { return };
        let bytes_max = (live.spans_max as u64).saturating_mul(FIELD_BYTES_PER_SPAN);
        let bytes = note_fields(&mut span.fields, record).filter(|_| self.more_bytes < bytes_max);
        let Some(bytes) = bytes else {
            span.fields.missing = span.fields.missing.saturating_add(record.ext.field_count);
            return;
        };
        if bytes.is_empty() {
            return;
        }
        if span.raw_fields.capacity() == 0
            && let Some(buffer) = live.buffers.pop()
        {
            span.raw_fields = buffer;
        }
        let before = span.raw_fields.len();
        // The buffer is about to grow, or it has become large: most of it may be old values.
        if before >= COMPACT_BYTES && before + bytes.len() > span.raw_fields.capacity() {
            compact(&mut span.raw_fields);
        }
        let before = span.raw_fields.len();
        span.raw_fields.extend_from_slice(bytes);
        if is_creation {
            span.raw_fields.rotate_left(before);
        }
        let (was, is) = (span.more_bytes, span.raw_fields.capacity() as u64);
        span.more_bytes = is;
        self.more_bytes = self.more_bytes.saturating_sub(was).saturating_add(is);
    }
}

/// Returns the payload of a record with fields, or `None` if its fields cannot be read. Notes in `fields` what is
/// missing.
fn note_fields<'p>(fields: &mut Fields, record: &RawRecord<'p>) -> Option<&'p [u8]> {
    fields.missing = fields.missing.saturating_add(record.ext.missing_fields);
    match record.payload.valid() {
        Some(payload) => Some(payload),
        None if record.ext.field_count == 0 => Some(&[]),
        None => {
            fields.problem = Some(FieldsProblem::Expired);
            None
        }
    }
}

/// Removes all but the last value of each field.
fn compact(bytes: &mut Vec<u8>) {
    let mut last: Vec<(u8, std::ops::Range<usize>)> = Vec::new();
    let mut from = 0;
    let mut fields = RawFields::new(bytes);
    while let Some(Ok(field)) = fields.next() {
        let until = fields.offset();
        last.retain(|(index, _)| *index != field.index);
        last.push((field.index, from..until));
        from = until;
    }
    *bytes = last.into_iter().flat_map(|(_, range)| bytes[range].to_vec()).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the bytes of a field with a value of one byte.
    fn field(index: u8, value: u8) -> [u8; 5] {
        [index, 6, 1, 0, value]
    }

    #[test]
    fn of_values_that_were_recorded_again_the_last_one_stays() {
        let mut bytes: Vec<u8> = (0..=255).flat_map(|value| [field(1, value), field(2, value / 2)].concat()).collect();
        bytes.extend(field(3, 9));
        bytes.extend(field(1, 77));
        compact(&mut bytes);
        assert_eq!(bytes, [field(2, 127), field(3, 9), field(1, 77)].concat());
        compact(&mut bytes);
        assert_eq!(bytes.len(), 15);
    }
}
