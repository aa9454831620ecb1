//! The open spans for which a replay in bounded memory has no room.
//!
//! For a span without room, the replay keeps only the id, by which it recognises the close of the span, and the last
//! time at which the span is known to have existed. If the close may be lost, the replay drops the span. Beyond a
//! number of ids, further spans are only counted.

use crate::tracing::read::id_map::IdMap;
use crate::tracing::span_id::SpanId;

/// The spans that began when there was no room for another.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedSpans {
    last_seen: IdMap<SpanId, u64>,
    /// The number of further spans, of which not even the ids are kept.
    beyond: u64,
    /// The number of losses that the replay had seen at the last call of [`Self::forget_lost`].
    gaps: u64,
    forgotten: u64,
    /// The number of all spans that were added. It never falls.
    added: u64,
}

impl RefusedSpans {
    /// Adds a span. The ids of at most `ids_max` spans are kept.
    pub(super) fn add(&mut self, id: SpanId, epoch_nanos: u64, ids_max: usize) {
        if self.see(id, epoch_nanos) {
            return;
        }
        self.added += 1;
        if self.last_seen.len() < ids_max {
            self.last_seen.insert(id, epoch_nanos);
        } else {
            self.beyond += 1;
        }
    }

    /// Notes that a span existed at this time. Returns false if its id is not kept.
    pub(super) fn see(&mut self, id: SpanId, epoch_nanos: u64) -> bool {
        let known = self.last_seen.get_mut(&id);
        known.map(|last| *last = epoch_nanos.max(*last)).is_some()
    }

    /// Notes that a span was closed. Returns false if it is not one of these.
    pub(super) fn close(&mut self, id: SpanId) -> bool {
        let is_known = self.last_seen.remove(&id).is_some();
        let is_beyond = !is_known && self.beyond > 0;
        self.beyond -= u64::from(is_beyond);
        is_known || is_beyond
    }

    /// Returns true if a span that the replay does not know may be one of these. It is certain unless there are spans
    /// whose ids are not kept.
    pub(super) fn may_have(&self, id: SpanId) -> bool {
        self.beyond > 0 || self.last_seen.contains_key(&id)
    }

    /// Returns the number of spans that are open for certain. Ids of which are not kept count as well.
    pub(super) fn count(&self) -> u64 {
        self.last_seen.len() as u64 + self.beyond
    }

    /// Forgets the spans that were last seen before `lost_until_nanos`: until then, events were lost, and their close
    /// may be one of them. `gaps` is the number of losses so far.
    pub(super) fn forget_lost(&mut self, lost_until_nanos: u64, gaps: u64) {
        if gaps == self.gaps || self.count() == 0 {
            return;
        }
        self.gaps = gaps;
        let before = self.count();
        self.last_seen.retain(|_, last| *last >= lost_until_nanos);
        if self.last_seen.len() < self.last_seen.capacity() / 4 {
            self.last_seen.shrink_to_fit();
        }
        self.beyond = 0;
        self.forgotten += before - self.count();
    }

    /// Notes a span without room of which only the close was seen.
    pub(super) fn add_closed(&mut self) {
        self.added += 1;
    }

    /// Returns how many spans were added so far, whether they are open or not.
    pub(super) fn added(&self) -> u64 {
        self.added
    }

    /// Returns how many spans were forgotten because their close may be lost.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}
