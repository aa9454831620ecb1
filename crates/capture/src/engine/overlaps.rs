//! A check that refuses payloads that must overlap: the payloads of a ring have more bytes than the range in which they
//! lie. Without this check, a small damaged or hostile ring could fill the disk: each of a million descriptors could
//! name the same huge payload.

use eventring::reader::{EventBatch, Reader};

/// The range and the total size of the payloads that were taken from one ring. In a sound ring, no two payloads share a
/// byte, so their total size is at most the length of their range. A payload that would break this rule is refused. All
/// payloads that can be read lie between the start of the buffer window and one buffer length after it. So while the
/// window stays in place, the range is at most one buffer length, and the ring gives at most as many bytes as its
/// buffer has. Only a live writer moves the window.
#[derive(Debug, Default)]
pub(crate) struct PayloadExtent {
    /// The range of all payloads: the smallest offset at which one begins, and the largest at which one ends. The
    /// offsets do not begin at 0 again when the payload buffer wraps. `None` before the first payload.
    bytes: Option<(u64, u64)>,
    taken: u64,
    /// The largest offset at which a payload may end, computed when the ring's header was last read.
    end_max: u64,
    /// Number of payloads that were refused.
    pub(crate) refused: u64,
}

impl PayloadExtent {
    /// Marks the payloads of `events` that no sound ring can have. `reader` is the reader of their ring.
    pub(crate) fn check(&mut self, events: &mut EventBatch, reader: &Reader) {
        for index in 0..events.len() {
            let bytes = events.payload(index).valid().map_or(0, <[u8]>::len) as u64;
            let offset = events.descriptors()[index].payload_buf_offset;
            if bytes > 0 && !self.admits(offset, bytes, || end_max(reader)) {
                self.refused += 1;
                events.refuse_payload(index);
            }
        }
    }

    #[inline]
    fn admits(&mut self, offset: u64, bytes: u64, look: impl FnOnce() -> u64) -> bool {
        let Some(end) = offset.checked_add(bytes) else { return false };
        if end > self.end_max {
            // The payload may still be sound: a live writer may have moved the buffer window since the ring's header
            // was last read. So the header is read again.
            self.end_max = look();
        }
        let (first, last) = self.bytes.unwrap_or((offset, end));
        let (first, last) = (first.min(offset), last.max(end));
        let taken = self.taken.saturating_add(bytes);
        if end > self.end_max || taken > last - first {
            return false;
        }
        self.bytes = Some((first, last));
        self.taken = taken;
        true
    }
}

/// Returns the largest offset at which a payload may end, computed from the ring's present header. A writer moves the
/// buffer window before it writes a payload, so no payload ends after this offset.
fn end_max(reader: &Reader) -> u64 {
    let info = reader.info();
    info.buffer_window_start.saturating_add(info.geometry.payload_buf_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_beside_each_other_are_admitted_in_any_order_and_those_that_share_bytes_are_not() {
        let mut extent = PayloadExtent::default();
        let mut admits = |offset, bytes| extent.admits(offset, bytes, || 1000);
        assert!(admits(300, 100) && admits(100, 200) && admits(400, 600));
        // All bytes from 100 to 1000 are taken.
        assert!(!admits(100, 1) && !admits(300, 100) && !admits(999, 1));
        assert!(admits(0, 100));
        assert!(!admits(0, 1));
    }

    #[test]
    fn what_ends_behind_the_buffer_is_no_payload_until_the_window_has_moved() {
        let mut extent = PayloadExtent::default();
        assert!(extent.admits(0, 500, || 1000));
        assert!(!extent.admits(2000, 500, || 1000) && !extent.admits(u64::MAX - 3, 10, || 1000));
        // A refused payload has not made room for others.
        assert!(!extent.admits(0, 500, || 1000));
        assert!(extent.admits(2000, 500, || 2500));
    }
}
