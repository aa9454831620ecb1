//! Keeping start records of blocks, in a ring of execution events that has a block table.
//!
//! Only BLOCK_START events come here. Their fast path stops at its first condition, the recorder's switch, which has
//! another value in a ring with a block table (`Core::takes_fast_path`). So other events cost what they cost without a
//! table.

use super::core::Core;
use crate::layout::block_table::{BLOCK_START_BYTES, BLOCK_START_CODE, StartRecord};
use crate::layout::extension;
use crate::ring::block_table;
use crate::ring::claim::Claim;
use crate::ring::commit::DescriptorFields;
use crate::ring::memory::RingMemory;
use std::sync::Arc;

impl Core {
    /// Records a BLOCK_START in a ring with a block table; returns its seqno.
    #[cold]
    #[inline(never)]
    pub(super) fn record_block_start(self: &Arc<Self>, content_ext: [u64; 4], payload: &[&[u8]]) -> u64 {
        let bytes = super::payload::total_bytes(payload);
        let Some(mut reservation) = self.reserve_in_place(BLOCK_START_CODE, content_ext, bytes) else { return 0 };
        for part in payload {
            reservation.append(part);
        }
        reservation.commit()
    }

    /// Stores the start record of a BLOCK_START that is about to be committed. So a reader that sees the event, or a
    /// later event of the block, also sees the record.
    #[cold]
    #[inline(never)]
    pub(super) fn keep_start_record(&self, claim: &Claim<'_>, fields: &DescriptorFields) {
        // A payload that is too short is no payload of BLOCK_START.
        if (fields.payload_bytes as usize) < BLOCK_START_BYTES {
            return;
        }
        let memory = self.writer.memory();
        let mut record = StartRecord {
            start_seqno: claim.seqno,
            start_epoch_nanos: fields.epoch_nanos,
            payload: [0; BLOCK_START_BYTES],
        };
        memory.load_payload(claim.payload_offset, &mut record.payload);
        if !block_table::put(memory, claim.seqno, &record.to_words()) {
            self.add_to_counter(extension::COUNT_TABLE_OVERFLOWS, 1);
        }
    }
}
