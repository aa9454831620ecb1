//! Losses by damage: the events of a block that cannot be read are a gap in their ring.

use super::ahead::FileBlock;
use super::columns::{BlockRecords, PlacedGap};
use super::format::BlockHeader;
use eventring::reader::{Gap, GapCause};
use std::collections::HashMap;

/// The seqnos and the time of a block: the loss of its ring if the block cannot be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockExtent {
    first_seqno: u64,
    last_seqno: u64,
    /// The first sort time.
    pub(super) first_nanos: u64,
}

impl BlockExtent {
    /// Returns what the block's own header says.
    pub(super) fn of_header(header: &BlockHeader) -> Self {
        Self { first_seqno: header.first_seqno, last_seqno: header.last_seqno, first_nanos: header.first_nanos }
    }

    /// Returns what stands for the records of the block if it cannot be read: a gap of all its seqnos. In a file that
    /// contradicts itself, the block may have no seqnos. Then there are no records.
    pub(super) fn lost_records(self) -> BlockRecords {
        let count = self.last_seqno.saturating_add(1).saturating_sub(self.first_seqno);
        let gap = Gap { first_seqno: self.first_seqno, count, cause: GapCause::Damaged };
        let gaps = if count > 0 { vec![PlacedGap { events_before: 0, gap }] } else { Vec::new() };
        BlockRecords { gaps, ..BlockRecords::default() }
    }
}

/// Corrects the extent of each block by the blocks before and after it in its ring: its own header may be damaged, too.
/// The blocks of each ring are in the order of seqnos, and no seqno is between two blocks.
pub(super) fn correct_extents(blocks: &mut [FileBlock]) {
    let mut before: HashMap<u32, u64> = HashMap::new();
    for block in blocks.iter_mut() {
        if let Some(last_seqno) = before.insert(block.ring, block.block.header.last_seqno) {
            block.extent.first_seqno = last_seqno.saturating_add(1);
        }
    }
    let mut after: HashMap<u32, BlockExtent> = HashMap::new();
    for block in blocks.iter_mut().rev() {
        if let Some(next) = after.insert(block.ring, BlockExtent::of_header(&block.block.header)) {
            block.extent.last_seqno = next.first_seqno.saturating_sub(1);
            block.extent.first_nanos = block.extent.first_nanos.min(next.first_nanos);
        }
    }
}
