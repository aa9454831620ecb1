//! Copying payloads out of a ring, with a check that they stayed valid.

use super::source::Source;
use crate::layout::Descriptor;
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe;

/// A payload smaller than this fits any ring, because a payload buffer is at least a page long. Such a payload is
/// copied inline.
const SMALL_PAYLOAD_BYTES: usize = 32;

/// The result of reading a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRead<'b> {
    /// The payload, copied out and checked afterwards: exactly the bytes that were recorded.
    Valid(&'b [u8]),
    /// The payload was overwritten meanwhile, or the ring's file was truncated
    /// ([`Reader::was_truncated`](super::Reader::was_truncated)): bytes after the file's new end cannot be
    /// distinguished from zeros.
    Expired,
    /// The descriptor names a payload that no ring of this size can have: the file is damaged.
    Malformed,
}

impl<'b> PayloadRead<'b> {
    /// Returns the bytes if they are valid.
    pub fn valid(self) -> Option<&'b [u8]> {
        match self {
            Self::Valid(bytes) => Some(bytes),
            Self::Expired | Self::Malformed => None,
        }
    }
}

impl Source {
    #[inline(always)]
    pub(super) fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        let bytes = descriptor.payload_size as usize;
        let is_as_long = buffer.len() == bytes;
        // There are two fast paths with the same effect. Each of them skips a check that the other needs. In a sparse
        // file, neither is taken.
        if is_as_long && self.memory.is_copied_in_line(bytes) {
            return self.copy_payload(descriptor, buffer);
        }
        if is_as_long && bytes < SMALL_PAYLOAD_BYTES && !self.memory.is_sparse() {
            return self.copy_payload(descriptor, buffer);
        }
        // Two fields are passed, because a reference to the descriptor would force the descriptor from registers into
        // memory.
        match self.payload_slow(descriptor.payload_size, descriptor.payload_buf_offset, buffer) {
            Some(true) => PayloadRead::Valid(buffer),
            Some(false) => PayloadRead::Expired,
            None => PayloadRead::Malformed,
        }
    }

    /// Copies a payload of any size. Returns true if the payload is valid, false if it has expired, and `None` if it is
    /// malformed.
    #[inline(never)]
    fn payload_slow(&self, size: u32, offset: u64, buffer: &mut Vec<u8>) -> Option<bool> {
        if u64::from(size) > self.memory.geometry().payload_buf_bytes()
            && !mutation::active(Mutation::TrustedPayloadSize)
        {
            return None;
        }
        if self.memory.is_sparse() && !self.reach_payload(offset, size) {
            return Some(false);
        }
        // `resize` zeroes only the bytes by which the buffer grows, so a buffer that is used again costs nothing.
        buffer.resize(size as usize, 0);
        let descriptor = Descriptor { payload_size: size, payload_buf_offset: offset, ..Descriptor::default() };
        Some(self.copy_payload(&descriptor, buffer).valid().is_some())
    }

    /// Fills `out`, which is as long as the payload.
    #[inline(always)]
    fn copy_payload<'b>(&self, descriptor: &Descriptor, out: &'b mut [u8]) -> PayloadRead<'b> {
        // Truncation is checked after the copy. When the file is truncated, the mapping notes this before zeros appear
        // in place of the lost pages. So zeros in the copy that come from lost pages are always noticed.
        if observe::payload(&self.memory, descriptor, out) && !self.memory.mapping().was_truncated() {
            PayloadRead::Valid(out)
        } else {
            PayloadRead::Expired
        }
    }
}
