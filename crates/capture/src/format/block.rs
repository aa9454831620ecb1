//! Reading and checking one block. Nothing in the file is trusted.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::columns::{BlockRecords, PayloadsWanted, decode};
use crate::format::header::{BLOCK_HEADER_BYTES, BlockRef};
use eventring::internal::shm;
use std::fs::File;

/// Returns the content of a block without events. It has exactly the size that the block's header states.
pub(crate) fn content(file: &File, block: &BlockRef) -> Result<Vec<u8>, CaptureError> {
    let stored = stored(file, block)?;
    let plain_bytes = block.header.plain_bytes as usize;
    if stored.len() == plain_bytes {
        return Ok(stored);
    }
    let bytes = zstd::bulk::decompress(&stored, plain_bytes).map_err(|error| damaged(block, &error.to_string()))?;
    if bytes.len() == plain_bytes {
        return Ok(bytes);
    }
    Err(damaged(block, &format!("it decompresses to {} bytes, expected {plain_bytes}", bytes.len())))
}

/// Returns the events and gaps of a block.
pub(crate) fn records(file: &File, block: &BlockRef, wanted: PayloadsWanted) -> Result<BlockRecords, CaptureError> {
    let stored = stored(file, block)?;
    let records = decode(&stored, block.header.ring, block.header.plain_bytes, wanted);
    let records = records.ok_or_else(|| damaged(block, "its columns contradict each other"))?;
    let (found, stated) = (records.all().len() as u64, block.header.records);
    if found == stated {
        return Ok(records);
    }
    Err(damaged(block, &format!("it holds {found} events and gaps, expected {stated}")))
}

/// Reads what follows the header of a block, and checks the checksum.
pub(crate) fn stored(file: &File, block: &BlockRef) -> Result<Vec<u8>, CaptureError> {
    // The size was checked when the header was decoded: it is bounded, and the bytes lie within the file.
    let mut stored = vec![0; block.header.stored_bytes as usize];
    shm::read_exact_at(file, &mut stored, block.offset + BLOCK_HEADER_BYTES)
        .map_err(|error| CaptureError::io("read it", error))?;
    let (found, stated) = (block.header.checksum_with(&[&stored]), block.header.checksum);
    // The fuzzer cannot find checksums, and shall get at what they protect.
    if found == stated || cfg!(fuzzing) {
        return Ok(stored);
    }
    Err(damaged(block, &format!("its checksum is {found:016x}, expected {stated:016x}")))
}

fn damaged(block: &BlockRef, problem: &str) -> CaptureError {
    let message = format!("the block at byte {} is damaged: {problem}", block.offset);
    CaptureError::new(CaptureErrorKind::Damaged, message)
}
