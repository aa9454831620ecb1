//! Events whose time was taken before their payload was made.

use super::core::Core;
use std::sync::Arc;

impl Core {
    /// As [`Self::record`] with the time `epoch_nanos`, which [`Self::now_at_once`] gave.
    ///
    /// Reading the clock takes longer than most else: if it comes first, the making of the payload goes on meanwhile. No event should be
    /// recorded between the two by the same thread: it would come before this one and have a later time.
    #[inline(always)]
    pub(crate) fn record_stamped(
        self: &Arc<Self>,
        epoch_nanos: u64,
        event_type: u16,
        content_ext: [u64; 4],
        payload: &[u8],
    ) -> u64 {
        if payload.is_empty() {
            return self.record(event_type, content_ext, payload);
        }
        self.record_payload(|| Some(epoch_nanos), event_type, content_ext, payload)
    }
}
