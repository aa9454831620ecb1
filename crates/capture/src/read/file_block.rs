//! The blocks of events of a capture. The events of a block that cannot be read become a gap in their ring.

use crate::error::CaptureError;
use crate::format::block;
use crate::format::columns::{BlockRecords, PayloadsWanted, PlacedGap};
use crate::format::header::{BlockHeader, BlockRef};
use eventring::reader::{Gap, GapCause};
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

/// A block of a file.
#[derive(Clone, Debug)]
pub(crate) struct FileBlock {
    pub(crate) file: Arc<File>,
    /// The beginning of messages about the file.
    pub(crate) label: Arc<str>,
    pub(crate) block: BlockRef,
    /// The index of its ring in the capture, or `u32::MAX` if there is no such ring. The header has the index of the
    /// ring in the file.
    pub(crate) ring: u32,
    /// The seqnos that are missing if the block cannot be read.
    pub(crate) extent: BlockExtent,
    /// False if it was left out. It still bounds the extents of the blocks beside it.
    pub(crate) is_kept: bool,
}

impl FileBlock {
    pub(crate) fn decode(&self, wanted: PayloadsWanted) -> Result<BlockRecords, CaptureError> {
        block::records(&self.file, &self.block, wanted)
    }

    /// Returns the estimated memory of the decoded block, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        const EVENT_BYTES: u64 = 72;
        self.block.header.plain_bytes + EVENT_BYTES * self.block.header.records
    }
}

/// The seqnos and the time of a block: the loss of its ring if the block cannot be read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockExtent {
    first_seqno: u64,
    last_seqno: u64,
    /// The first sort time.
    pub(crate) first_nanos: u64,
}

impl BlockExtent {
    /// Returns what the block's own header says.
    pub(crate) fn of_header(header: &BlockHeader) -> Self {
        Self { first_seqno: header.first_seqno, last_seqno: header.last_seqno, first_nanos: header.first_nanos }
    }

    /// Returns what stands for the records of the block if it cannot be read: a gap of all its seqnos. In a file that
    /// contradicts itself, the block may have no seqnos. Then there are no records.
    pub(crate) fn lost_records(self) -> BlockRecords {
        let count = self.last_seqno.saturating_add(1).saturating_sub(self.first_seqno);
        let gap = Gap { first_seqno: self.first_seqno, count, cause: GapCause::Damaged };
        let gaps = if count > 0 { vec![PlacedGap { events_before: 0, gap }] } else { Vec::new() };
        BlockRecords { gaps, ..BlockRecords::default() }
    }
}

/// Corrects the extent of each block by the blocks before and after it in its ring: its own header may be damaged, too.
/// The blocks of each ring are in the order of seqnos, and no seqno is between two blocks.
pub(crate) fn correct_extents(blocks: &mut [FileBlock]) {
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
