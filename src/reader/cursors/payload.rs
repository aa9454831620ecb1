//! Copying payloads out of a ring, with a check that they stayed valid.

use crate::layout::Descriptor;
use crate::reader::source::Source;
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe;

/// The sizes below this limit take the second fast path in [`Source::payload`]. A payload of such a size fits every
/// ring, because a payload buffer has at least the size of a page.
const SMALL_PAYLOAD_BYTES: usize = 32;

/// The result of reading a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRead<'b> {
    /// The payload. A check after the copy has shown that these are exactly the bytes that were recorded.
    Valid(&'b [u8]),
    /// The payload was overwritten before the copy ended, or a part of the ring's file could not be read
    /// ([`Reader::lost_pages`](crate::reader::Reader::lost_pages)). In the second case, the copy may hold zeros in place of
    /// the payload.
    Expired,
    /// The descriptor names a payload that is larger than the payload buffer: the file is damaged. Also a payload that
    /// does not fit the schema of its ring, if the ring has another version of the schema than its reader
    /// ([`ReaderOptions::compatible`](crate::reader::ReaderOptions::compatible)).
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
    pub(in crate::reader) fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        let bytes = descriptor.payload_size as usize;
        let is_as_long = buffer.len() == bytes;
        // Two fast paths need fewer checks than `payload_slow`. The first is for payloads of 32 bytes and more. It
        // relies on `is_copied_in_line`, which returns false if the payload does not fit the buffer, if the file
        // is sparse, or if payloads are resolved. The second is for smaller payloads, which fit every buffer.
        if is_as_long && self.memory.is_copied_in_line(bytes) {
            return self.copy_payload(descriptor, buffer);
        }
        if is_as_long && bytes < SMALL_PAYLOAD_BYTES && self.memory.only_copies() {
            return self.copy_payload(descriptor, buffer);
        }
        // The call passes three fields, not a reference to the descriptor. A reference would force the compiler to
        // move the descriptor from registers into memory.
        match self.payload_slow(descriptor.event_type, descriptor.payload_size, descriptor.payload_buf_offset, buffer) {
            Some(true) => PayloadRead::Valid(buffer),
            Some(false) => PayloadRead::Expired,
            None => PayloadRead::Malformed,
        }
    }

    /// Copies a payload as it was recorded, even if the reader has another version of the schema.
    pub(in crate::reader) fn recorded_payload<'b>(
        &self,
        descriptor: &Descriptor,
        buffer: &'b mut Vec<u8>,
    ) -> PayloadRead<'b> {
        match self.copy_payload_slow(descriptor.payload_size, descriptor.payload_buf_offset, buffer) {
            Some(true) => PayloadRead::Valid(buffer),
            Some(false) => PayloadRead::Expired,
            None => PayloadRead::Malformed,
        }
    }

    /// Returns true if a payload of this size fits the payload buffer.
    #[inline(always)]
    pub(in crate::reader) fn can_have_payload(&self, size: u32) -> bool {
        u64::from(size) <= self.memory.geometry().payload_buf_bytes() || mutation::active(Mutation::TrustedPayloadSize)
    }

    /// Returns true if the file is sparse. Then [`Self::payload`] must copy each payload, because it first maps the
    /// holes that writers have filled.
    pub(in crate::reader) fn is_sparse(&self) -> bool {
        self.memory.is_sparse()
    }

    /// Fills `out` with the bytes from `offset` on, which may belong to several payloads. Returns the first offset of
    /// the bytes that have not expired: a payload in `out` is valid if it begins at or after this offset.
    pub(in crate::reader) fn copy_payload_bytes(&self, offset: u64, out: &mut [u8]) -> u64 {
        let valid_from = observe::payload_bytes(&self.memory, offset, out);
        // The check for truncation comes after the copy, as in `copy_payload`.
        if self.memory.mapping().was_truncated() { u64::MAX } else { valid_from }
    }

    /// Copies a payload of any size, and resolves it if the ring has another version of the schema. Returns
    /// `Some(true)` if the payload is valid, `Some(false)` if it has expired, and `None` if it is malformed.
    #[inline(never)]
    fn payload_slow(&self, code: u16, size: u32, offset: u64, buffer: &mut Vec<u8>) -> Option<bool> {
        let is_valid = self.copy_payload_slow(size, offset, buffer)?;
        match &self.resolution {
            Some(resolution) if is_valid => resolution.resolve(code, buffer).then_some(true),
            _ => Some(is_valid),
        }
    }

    /// Copies a payload of any size. The result is that of [`Self::payload_slow`].
    fn copy_payload_slow(&self, size: u32, offset: u64, buffer: &mut Vec<u8>) -> Option<bool> {
        if !self.can_have_payload(size) {
            return None;
        }
        if self.memory.is_sparse() && !self.reach_payload(offset, size) {
            return Some(false);
        }
        // `resize` writes zeros only where the buffer grows. So a caller that uses its buffer again loses no time
        // here.
        buffer.resize(size as usize, 0);
        let descriptor = Descriptor { payload_size: size, payload_buf_offset: offset, ..Descriptor::default() };
        Some(self.copy_payload(&descriptor, buffer).valid().is_some())
    }

    /// Fills `out`, which is as long as the payload.
    #[inline(always)]
    fn copy_payload<'b>(&self, descriptor: &Descriptor, out: &'b mut [u8]) -> PayloadRead<'b> {
        // The check for truncation comes after the copy. If the file is truncated, the mapping notes this before a
        // lost page reads as zeros. So if the copy holds zeros of a lost page, `was_truncated` returns true.
        if observe::payload(&self.memory, descriptor, out) && !self.memory.mapping().was_truncated() {
            PayloadRead::Valid(out)
        } else {
            PayloadRead::Expired
        }
    }
}
