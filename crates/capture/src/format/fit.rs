//! Finds the part of a block that fits into the space that is left in a file with a size limit. The size of a part is
//! known only after the part is encoded, so several parts are tried.

use crate::error::CaptureError;
use crate::format::columns::{BlockEncoder, BlockRecords, EncodedBlock, RecordRange, RingLayout};
use std::io;

/// The largest number of parts that are tried for one file.
const TRIES: u32 = 16;

/// A finder of parts that fit.
pub(crate) struct PartFinder {
    encoder: BlockEncoder,
}

impl PartFinder {
    pub(crate) fn new(level: i32) -> Result<Self, CaptureError> {
        let mut encoder = BlockEncoder::new();
        encoder.set_level(level).map_err(no_encoding)?;
        Ok(Self { encoder })
    }

    /// Encodes a part of `records`.
    pub(crate) fn encode(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        layout: &RingLayout,
        block: &mut EncodedBlock,
    ) -> Result<(), CaptureError> {
        self.encoder.encode(records, part, layout, block).map_err(no_encoding)
    }

    /// Finds a part from the start of `part` whose block has at most `room` bytes, and encodes it. `block` holds all of
    /// `part`, which has no room. Returns `None` if not even one event fits.
    pub(crate) fn fit(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        layout: &RingLayout,
        room: u64,
        block: &mut EncodedBlock,
    ) -> Result<Option<RecordRange>, CaptureError> {
        let mut events = part.events.len();
        for _ in 0..TRIES {
            if events <= 1 {
                break;
            }
            // The events of a block are alike, so its size is nearly in proportion to their number. The part is tried
            // a little smaller, because a smaller part compresses less.
            let in_proportion = (events as u64).saturating_mul(room) / block.bytes().max(1) as u64;
            events = ((in_proportion - in_proportion / 32) as usize).clamp(1, events - 1);
            let tried = records.part(part.events.start..part.events.start + events);
            self.encode(records, &tried, layout, block)?;
            if block.bytes() as u64 <= room {
                return Ok(Some(tried));
            }
        }
        Ok(None)
    }

    /// Encodes the smallest part from the start of `part`: one event with the gaps before it.
    pub(crate) fn first(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        layout: &RingLayout,
        block: &mut EncodedBlock,
    ) -> Result<RecordRange, CaptureError> {
        let end = part.events.end.min(part.events.start + 1);
        let one = records.part(part.events.start..end);
        self.encode(records, &one, layout, block)?;
        Ok(one)
    }
}

/// Makes the error that a block could not be encoded.
pub(crate) fn no_encoding(error: io::Error) -> CaptureError {
    CaptureError::io("compress", error)
}
