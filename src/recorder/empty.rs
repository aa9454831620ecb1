//! Events without payload.
//!
//! Their four words of content extension go in registers: an array is put into memory word by word and read from there in
//! halves, for which the processor waits.

use super::core::Core;
use crate::ring::writer::Fields;

impl Core {
    /// Records an event without payload.
    #[inline(never)]
    pub(super) fn record_empty(&self, event_type: u16, ext0: u64, ext1: u64, ext2: u64, ext3: u64) -> u64 {
        if self.is_switched_on()
            && let Some(seqno) = self.record_empty_at_once(event_type, ext0, ext1, ext2, ext3)
        {
            return seqno;
        }
        self.record_empty_otherwise(event_type, ext0, ext1, ext2, ext3)
    }

    /// As [`Self::record_empty`] in the ordinary case, for who knows that recording is on: a straight line. In every other case `None`;
    /// then go on, out of line, with [`Self::record_empty_otherwise`].
    #[inline(always)]
    pub(crate) fn record_empty_at_once(
        &self,
        event_type: u16,
        ext0: u64,
        ext1: u64,
        ext2: u64,
        ext3: u64,
    ) -> Option<u64> {
        if !self.is_surely_original_process() {
            return None;
        }
        let epoch_nanos = self.now_at_once()?;
        let claim = self.writer.reserve_empty_at_once()?;
        let seqno = claim.seqno;
        let content_ext = [ext0, ext1, ext2, ext3];
        self.writer.commit_empty(claim, &Fields { event_type, payload_bytes: 0, epoch_nanos, content_ext });
        Some(seqno)
    }

    /// See [`Self::record_empty_at_once`].
    #[cold]
    #[inline(never)]
    pub(crate) fn record_empty_otherwise(&self, event_type: u16, ext0: u64, ext1: u64, ext2: u64, ext3: u64) -> u64 {
        if !self.may_record() {
            return 0;
        }
        let epoch_nanos = self.clock.now_epoch_nanos();
        let content_ext = [ext0, ext1, ext2, ext3];
        let claim = self.writer.reserve_empty();
        let seqno = claim.seqno;
        self.writer.commit(None, claim, &Fields { event_type, payload_bytes: 0, epoch_nanos, content_ext });
        seqno
    }
}
