//! Storing start records in the table of start records, if the ring has such a table.
//!
//! The table costs other events nothing. If the ring has the table, start events do not take the fast path of recording
//! (`Core::takes_fast_path`). Most callers pass the event's code as a constant, so the compiler removes the comparison
//! of the code.

use super::core::Core;
use crate::layout::extension;
use crate::layout::start_table::{START_BYTES, StartRecord};
use crate::ring::claim::Claim;
use crate::ring::commit::DescriptorFields;
use crate::ring::memory::RingMemory;
use crate::ring::start_table;

impl Core {
    /// Stores the record of a start that is about to be committed. A reader that sees the event, or a later event with
    /// its tag, also finds the record, with two exceptions: the table could not take the record (see
    /// [`start_table::put`]), or a later record has replaced it.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_start_record(&self, claim: &Claim<'_>, fields: &DescriptorFields) {
        // A payload that is too short is no payload of a start.
        if (fields.payload_bytes as usize) < START_BYTES {
            return;
        }
        let memory = self.writer.memory();
        let mut record =
            StartRecord { start_seqno: claim.seqno, start_epoch_nanos: fields.epoch_nanos, payload: [0; START_BYTES] };
        memory.load_payload(claim.payload_offset, &mut record.payload);
        if !start_table::put(memory, claim.seqno, &record.to_words()) {
            self.add_to_counter(extension::COUNT_TABLE_OVERFLOWS, 1);
        }
    }
}
