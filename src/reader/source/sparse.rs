//! Rings in sparse files. A writer may fill holes of such a file after a reader has mapped it.
//!
//! A mapped hole reads as zeros, even after a writer has filled it. So the reader asks the operating system which holes
//! were filled, and maps these holes again. It asks before it decides that a slot of zeros has no event, and before
//! each copy of a payload, because recorded bytes may be zeros.

use super::Source;
use crate::layout::limits::{DESCRIPTOR_BYTES, HEADER_SECTION_BYTES};
use crate::ring::memory::RingMemory;

impl Source {
    fn slot_offset(&self, seqno: u64) -> u64 {
        let slot = seqno.wrapping_sub(1) % self.memory().geometry().descriptor_capacity();
        HEADER_SECTION_BYTES + slot * DESCRIPTOR_BYTES
    }

    /// Returns true if the slot of `seqno` was in a hole of a sparse file, and a writer has filled the hole since the
    /// reader last asked. In this case, also maps the slot again.
    #[cold]
    #[inline(never)]
    pub(in crate::reader) fn slot_has_come(&self, seqno: u64) -> bool {
        self.memory().is_sparse()
            && self.memory().mapping().reach(self.slot_offset(seqno), DESCRIPTOR_BYTES) == Some(true)
    }

    /// Returns the first seqno, from `seqno` to `last`, that has its slot outside of all holes. Returns `last + 1` if
    /// there is none.
    #[cold]
    pub(in crate::reader) fn first_slot_there(&self, seqno: u64, last: u64) -> u64 {
        let geometry = self.memory().geometry();
        let end = HEADER_SECTION_BYTES + geometry.descriptor_section_bytes();
        let mut at = seqno;
        // The slots wrap at the end of the descriptor array. So the first round searches to the end of the array, and
        // the second round searches from its start.
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

    /// Returns the first seqno after `seqno` that has its slot on another page.
    pub(in crate::reader) fn first_slot_after_page(&self, seqno: u64) -> u64 {
        let page_bytes = self.memory().mapping().page_bytes() as u64;
        let left = page_bytes - self.slot_offset(seqno) % page_bytes;
        seqno.saturating_add(left.div_ceil(DESCRIPTOR_BYTES))
    }

    /// Maps again the holes that writers have filled in the range of a payload. Returns false if this fails.
    #[cold]
    pub(in crate::reader) fn reach_payload(&self, offset: u64, size: u32) -> bool {
        let geometry = self.memory().geometry();
        let start = HEADER_SECTION_BYTES + geometry.descriptor_section_bytes();
        let bytes = u64::from(size).min(geometry.payload_buf_bytes());
        let first = offset % geometry.payload_buf_bytes();
        let before_end = bytes.min(geometry.payload_buf_bytes() - first);
        let mapping = self.memory().mapping();
        mapping.reach(start + first, before_end).is_some() && mapping.reach(start, bytes - before_end).is_some()
    }

    /// Maps everything that writers have written until now. So a cursor finds the events that were recorded before
    /// this call.
    #[inline]
    pub(in crate::reader) fn reach_all(&self) {
        if self.memory().is_sparse() {
            let _ = self.memory().mapping().reach(0, self.memory().geometry().file_bytes());
        }
    }
}
