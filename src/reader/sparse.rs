//! Rings in sparse files: what was a hole when the file was mapped, and may have been written since.
//!
//! What is read of a hole is zero. Zero is no event in a descriptor, so it is looked for again before that is said; in a payload it could be
//! anything, so it is looked for before each copy.

use super::source::Source;
use crate::layout::limits::{DESCRIPTOR_BYTES, HEADER_SECTION_BYTES};
use crate::ring::memory::RingMemory;

impl Source {
    fn slot_offset(&self, seqno: u64) -> u64 {
        let slot = seqno.wrapping_sub(1) % self.memory().geometry().descriptor_capacity();
        HEADER_SECTION_BYTES + slot * DESCRIPTOR_BYTES
    }

    /// Whether the file is sparse, and the slot of `seqno` is there by now and was not when it was looked for last.
    #[cold]
    #[inline(never)]
    pub(super) fn slot_has_come(&self, seqno: u64) -> bool {
        self.memory().is_sparse()
            && self.memory().mapping().reach(self.slot_offset(seqno), DESCRIPTOR_BYTES) == Some(true)
    }

    /// The first number from `seqno` on whose slot is there; `last + 1` if there is none.
    #[cold]
    pub(super) fn first_slot_there(&self, seqno: u64, last: u64) -> u64 {
        let geometry = self.memory().geometry();
        let end = HEADER_SECTION_BYTES + geometry.descriptor_section_bytes();
        let mut at = seqno;
        // To the end of the descriptors, and from their begin.
        for _ in 0..2 {
            let offset = self.slot_offset(at);
            let data = self.memory().mapping().next_data(offset).unwrap_or(end).clamp(offset, end);
            at = at.saturating_add((data - offset) / DESCRIPTOR_BYTES);
            if data < end {
                break;
            }
        }
        at.min(last.saturating_add(1))
    }

    /// The first number that has its slot on another page.
    pub(super) fn first_slot_behind_the_page(&self, seqno: u64) -> u64 {
        let page_bytes = self.memory().mapping().page_bytes() as u64;
        let left = page_bytes - self.slot_offset(seqno) % page_bytes;
        seqno.saturating_add(left.div_ceil(DESCRIPTOR_BYTES))
    }

    /// Sees to it that a payload is read as it is now, where there was a hole before. False if that cannot be.
    #[cold]
    pub(super) fn reach_payload(&self, offset: u64, size: u32) -> bool {
        let geometry = self.memory().geometry();
        let start = HEADER_SECTION_BYTES + geometry.descriptor_section_bytes();
        let bytes = u64::from(size).min(geometry.payload_buf_bytes());
        let first = offset % geometry.payload_buf_bytes();
        let before_end = bytes.min(geometry.payload_buf_bytes() - first);
        let mapping = self.memory().mapping();
        mapping.reach(start + first, before_end).is_some() && mapping.reach(start, bytes - before_end).is_some()
    }

    /// Maps all that is there by now: what had been recorded before is found at the first look from then on.
    #[inline]
    pub(super) fn reach_all(&self) {
        if self.memory().is_sparse() {
            let _ = self.memory().mapping().reach(0, self.memory().geometry().file_bytes());
        }
    }
}
