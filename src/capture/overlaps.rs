//! Payloads of one ring that name the same bytes: a damaged or hostile ring could have each of a million descriptors name one huge
//! payload, and a capture of a small file would fill the disk.

use crate::reader::{Descriptor, PayloadRead, Reader};

/// What the valid payloads of a ring have taken together. No two payloads of a ring share a byte, and none ends further behind the
/// start of the buffer window than the buffer is long. So those of a ring that nobody writes to are never more, together, than its buffer
/// holds; and those of any ring are no more than its writer has moved its window by, and a buffer.
#[derive(Debug, Default)]
pub(super) struct PayloadExtent {
    /// From the first byte of all to behind the last one, unwrapped.
    bytes: Option<(u64, u64)>,
    taken: u64,
    /// No payload ends behind this, as far as was looked.
    end_max: u64,
    /// How many were refused.
    pub(super) refused: u64,
}

impl PayloadExtent {
    /// The payload, or that it cannot be one.
    #[inline]
    pub(super) fn check<'p>(
        &mut self,
        descriptor: &Descriptor,
        payload: PayloadRead<'p>,
        reader: Option<&Reader>,
    ) -> PayloadRead<'p> {
        let bytes = payload.valid().map_or(0, <[u8]>::len) as u64;
        if bytes == 0 || self.admits(descriptor.payload_buf_offset, bytes, || reader.map_or(0, end_max)) {
            return payload;
        }
        self.refused += 1;
        PayloadRead::Malformed
    }

    fn admits(&mut self, offset: u64, bytes: u64, look: impl FnOnce() -> u64) -> bool {
        let Some(end) = offset.checked_add(bytes) else { return false };
        if end > self.end_max {
            // A live ring has moved on.
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

/// Behind what no payload ends that is there: a writer moves the window before it writes.
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
        // A refused one has not made room for others.
        assert!(!extent.admits(0, 500, || 1000));
        assert!(extent.admits(2000, 500, || 2500));
    }
}
