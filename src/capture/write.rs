//! Writing one capture file.

use super::end::CaptureEnd;
use super::error::CaptureError;
use super::format::{
    BLOCK_BYTES_TARGET, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockRef, FOOTER_BYTES, FileHeader, HEADER_BYTES,
    encode_footer, encode_index,
};
use super::record::{GAP_BYTES, put_event, put_gap};
use super::ring::CapturedRing;
use crate::reader::{Descriptor, Gap, PayloadRead};
use std::io::Write;

/// A writer of the blocks of one file. A block can be read as soon as it is written, even if the writer fails or the
/// program dies later.
pub(super) struct CaptureWriter {
    out: Box<dyn Write>,
    compressor: zstd::bulk::Compressor<'static>,
    offset: u64,
    blocks: Vec<BlockRef>,
    events: Vec<u8>,
    records: u64,
    first_nanos: u64,
    last_nanos: u64,
}

impl CaptureWriter {
    pub(super) fn new(out: Box<dyn Write>, level: i32, header: &FileHeader) -> Result<Self, CaptureError> {
        let compressor = zstd::bulk::Compressor::new(level).and_then(|mut compressor| {
            compressor.include_checksum(true)?;
            Ok(compressor)
        });
        let mut writer = Self {
            out,
            compressor: compressor.map_err(|error| CaptureError::io("begin to compress", error))?,
            offset: 0,
            blocks: Vec::new(),
            events: Vec::new(),
            records: 0,
            first_nanos: u64::MAX,
            last_nanos: 0,
        };
        writer.write(&header.encode())?;
        Ok(writer)
    }

    /// Returns the largest possible size of the finished file with `rings` rings, if `table_bytes` bytes of tables and
    /// `event_bytes` bytes of events are added to it.
    pub(super) fn bytes_if_finished(&self, table_bytes: usize, event_bytes: usize, rings: usize) -> u64 {
        let tables = if table_bytes == 0 { 0 } else { block_bytes_max(table_bytes) };
        self.offset + tables + tail_bytes_max(self.events.len() + event_bytes, rings, self.blocks.len())
    }

    /// Returns the largest possible size of the events, the end and the index of a new file.
    pub(super) fn bytes_if_fresh(event_bytes: usize, rings: usize) -> u64 {
        tail_bytes_max(event_bytes, rings, rings)
    }

    /// Returns the present size of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }

    /// Returns true if [`Self::flush_events`] should be called now.
    pub(super) fn is_block_full(&self) -> bool {
        self.events.len() >= BLOCK_BYTES_TARGET
    }

    pub(super) fn ring(&mut self, ring: &CapturedRing) -> Result<(), CaptureError> {
        self.block(BlockKind::Ring, &ring.encode(), 1, (0, 0))
    }

    pub(super) fn tables(&mut self, bytes: &[u8], entries: u64) -> Result<(), CaptureError> {
        self.block(BlockKind::Tables, bytes, entries, (0, 0))
    }

    pub(super) fn event(&mut self, ring: u32, key: u64, descriptor: &Descriptor, payload: PayloadRead<'_>) {
        put_event(&mut self.events, ring, descriptor, payload);
        self.count(key);
    }

    pub(super) fn gap(&mut self, ring: u32, key: u64, gap: Gap) {
        put_gap(&mut self.events, ring, gap);
        self.count(key);
    }

    fn count(&mut self, key: u64) {
        self.records += 1;
        self.first_nanos = self.first_nanos.min(key);
        self.last_nanos = self.last_nanos.max(key);
    }

    /// Writes the events that wait as a block.
    pub(super) fn flush_events(&mut self) -> Result<(), CaptureError> {
        if self.records == 0 {
            return Ok(());
        }
        let events = std::mem::take(&mut self.events);
        self.block(BlockKind::Events, &events, self.records, (self.first_nanos, self.last_nanos))?;
        self.events = events;
        self.events.clear();
        (self.records, self.first_nanos, self.last_nanos) = (0, u64::MAX, 0);
        Ok(())
    }

    /// Writes the events that wait, the end, the index and the footer.
    pub(super) fn finish(&mut self, end: &CaptureEnd) -> Result<(), CaptureError> {
        self.flush_events()?;
        self.block(BlockKind::End, &end.encode(), 1, (0, 0))?;
        let index_offset = self.offset;
        let index = encode_index(&self.blocks);
        // The index fits one block, which may have 64 MiB: 100 GiB of events are about 100,000 blocks, and their index
        // has about 6 MB.
        self.block(BlockKind::Index, &index, self.blocks.len() as u64, (0, 0))?;
        let file_bytes = self.offset + FOOTER_BYTES;
        self.write(&encode_footer(index_offset, file_bytes))?;
        self.out.flush().map_err(|error| CaptureError::io_writing("write the capture", error))
    }

    fn block(&mut self, kind: BlockKind, bytes: &[u8], records: u64, range: (u64, u64)) -> Result<(), CaptureError> {
        let compressed = self.compressor.compress(bytes).map_err(|error| CaptureError::io("compress", error))?;
        let header = BlockHeader {
            kind,
            compressed_bytes: compressed.len() as u64,
            bytes: bytes.len() as u64,
            records,
            first_nanos: range.0,
            last_nanos: range.1,
        };
        self.blocks.push(BlockRef { offset: self.offset, header });
        self.write(&header.encode())?;
        self.write(&compressed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.out.write_all(bytes).map_err(|error| CaptureError::io_writing("write the capture", error))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Returns the largest possible size of a block with this many uncompressed bytes.
pub(super) fn block_bytes_max(bytes: usize) -> u64 {
    // The 4 further bytes are zstd's checksum, which `compress_bound` does not include.
    BLOCK_HEADER_BYTES + zstd::zstd_safe::compress_bound(bytes) as u64 + 4
}

/// Returns the largest possible size of all that is still to be written: the last block of events, the gaps of shards
/// that could not be opened, the end, the index and the footer.
fn tail_bytes_max(event_bytes: usize, rings: usize, blocks: usize) -> u64 {
    // The index has an entry for each existing block, and for four blocks that may follow: tables, events, the gaps of
    // shards that could not be opened, and the end.
    let index_bytes = (blocks + 4) * (8 + BLOCK_HEADER_BYTES as usize);
    let blocks = [event_bytes, rings * GAP_BYTES, CaptureEnd::encoded_bytes(rings), index_bytes];
    blocks.map(block_bytes_max).iter().sum::<u64>() + FOOTER_BYTES
}

const _: () = assert!(HEADER_BYTES == 48, "blocks begin after the header");
