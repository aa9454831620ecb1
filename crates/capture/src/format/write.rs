//! Writing one capture file.

use crate::error::CaptureError;
use crate::format::columns::{BlockRecords, EncodedBlock, RecordRange};
use crate::format::end::CaptureEnd;
use crate::format::header::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockRef, FOOTER_BYTES, FileHeader, HEADER_BYTES,
    description_bytes, description_bytes_max, encode_footer, encode_index,
};
use crate::format::record::SortKey;
use crate::format::ring::CapturedRing;
use std::io::Write;

/// The level at which blocks without events are compressed.
const DESCRIPTIONS_LEVEL: i32 = 3;
/// The largest size of a block with one gap and no event, without its header.
const GAP_BLOCK_BYTES_MAX: usize = 100;
/// The largest number of blocks whose index fits one block.
const INDEXED_BLOCKS_MAX: usize = (BLOCK_BYTES_MAX / (8 + BLOCK_HEADER_BYTES)) as usize;

/// A writer of the blocks of one file. A block can be read as soon as it is written, even if the writer fails or the
/// program dies later.
pub(crate) struct CaptureWriter {
    out: Box<dyn Write>,
    compressor: zstd::bulk::Compressor<'static>,
    offset: u64,
    blocks: Vec<BlockRef>,
    /// The bytes of the blocks without events that readers keep in memory, before compression.
    description_bytes: u64,
    /// The number of blocks up to which the file gets an index.
    pub(crate) indexed_blocks_max: usize,
    /// The schema hashes of the rings that are described, by index.
    schema_hashes: Vec<[u8; 32]>,
}

/// The numbers of rings on which the size of a finished file depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingCounts {
    pub(crate) all: usize,
    /// The shards that could not be opened, whose gaps are not written yet.
    pub(crate) missing: usize,
}

impl CaptureWriter {
    pub(crate) fn new(out: Box<dyn Write>, header: &FileHeader) -> Result<Self, CaptureError> {
        let compressor = zstd::bulk::Compressor::new(DESCRIPTIONS_LEVEL);
        let compressor = compressor.map_err(|error| CaptureError::io("begin to compress", error))?;
        let (blocks, schema_hashes) = (Vec::new(), Vec::new());
        let indexed_blocks_max = INDEXED_BLOCKS_MAX;
        let mut writer =
            Self { out, compressor, offset: 0, blocks, description_bytes: 0, indexed_blocks_max, schema_hashes };
        writer.write(&header.encode())?;
        Ok(writer)
    }

    /// Makes a writer that goes on after these blocks of a file, which describe these rings.
    pub(crate) fn after(
        out: Box<dyn Write>,
        blocks: Vec<BlockRef>,
        rings: &[CapturedRing],
    ) -> Result<Self, CaptureError> {
        let compressor = zstd::bulk::Compressor::new(DESCRIPTIONS_LEVEL);
        let compressor = compressor.map_err(|error| CaptureError::io("begin to compress", error))?;
        let offset = blocks.last().map_or(HEADER_BYTES, BlockRef::end);
        let schema_hashes = rings.iter().map(|ring| ring.schema_hash).collect();
        let description_bytes = blocks.iter().fold(0, |sum, block| sum + description_bytes(&block.header));
        let indexed_blocks_max = INDEXED_BLOCKS_MAX;
        Ok(Self { out, compressor, offset, blocks, description_bytes, indexed_blocks_max, schema_hashes })
    }

    /// Returns the largest possible size of the finished file with these rings, if `table_bytes` bytes of tables and
    /// a block of events of `block_bytes` bytes (without its header) are added to it.
    pub(crate) fn bytes_if_finished(&self, table_bytes: usize, block_bytes: usize, rings: RingCounts) -> u64 {
        let more = [table_bytes, block_bytes].into_iter().filter(|bytes| *bytes > 0);
        let more: u64 = more.map(block_bytes_max).sum();
        self.offset + more + tail_bytes_max(rings, self.blocks.len())
    }

    /// Returns the largest possible size of a block of events, the end and the index of a new file.
    pub(crate) fn bytes_if_fresh(block_bytes: usize, rings: RingCounts) -> u64 {
        block_bytes_max(block_bytes) + tail_bytes_max(rings, rings.all)
    }

    /// Returns true if readers take a file with so many more bytes of descriptions, and with an end of so many rings.
    pub(crate) fn has_room_for(&self, more_bytes: u64, rings: usize) -> bool {
        let more = more_bytes.saturating_add(CaptureEnd::encoded_bytes(rings) as u64);
        self.description_bytes.saturating_add(more) <= description_bytes_max(self.offset)
    }

    /// Returns the present size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.offset
    }

    /// Describes the next ring. The schema text of a shard is left out if it is that of the recorder's shard 0.
    pub(crate) fn ring(&mut self, ring: &CapturedRing) -> Result<(), CaptureError> {
        let shard0 = ring.shard0(self.schema_hashes.len() as u32) as usize;
        let is_known = self.schema_hashes.get(shard0) == Some(&ring.schema_hash);
        self.schema_hashes.push(ring.schema_hash);
        match is_known {
            true => {
                self.block(BlockKind::Ring, &CapturedRing { schema_text: String::new(), ..ring.clone() }.encode(), 1)
            }
            false => self.block(BlockKind::Ring, &ring.encode(), 1),
        }
    }

    pub(crate) fn tables(&mut self, bytes: &[u8], entries: u64) -> Result<(), CaptureError> {
        self.block(BlockKind::Tables, bytes, entries)
    }

    /// Writes the image of the tables of the present of a recorder, whose shard 0 is this ring, as they were at a time.
    pub(crate) fn present(&mut self, ring: u32, epoch_nanos: u64, image: &[u8]) -> Result<(), CaptureError> {
        let header = BlockHeader::new(BlockKind::Present, 0, 0, 1);
        let header = BlockHeader { ring, first_nanos: epoch_nanos, last_nanos: epoch_nanos, ..header };
        self.block_with(header, image)
    }

    /// Writes a part of `records`, which was encoded as `block`. `key` is the sort key of their ring.
    pub(crate) fn events(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        block: &EncodedBlock,
        key: &mut SortKey,
    ) -> Result<(), CaptureError> {
        let descriptors = &records.events.descriptors()[part.events.clone()];
        let gaps = &records.gaps[part.gaps.clone()];
        let is_gap_first = gaps.first().is_some_and(|gap| gap.events_before == part.events.start);
        let first_nanos = match descriptors.first().filter(|_| !is_gap_first) {
            Some(first) => key.event(first.record_epoch_nanos),
            None => key.gap(),
        };
        let newest = descriptors.iter().map(|descriptor| descriptor.record_epoch_nanos).max();
        let last_nanos = newest.map_or(first_nanos, |newest| key.event(newest));
        let seqnos = || {
            let of_gaps = gaps
                .iter()
                .map(|gap| (gap.gap.first_seqno, gap.gap.first_seqno.saturating_add(gap.gap.count.saturating_sub(1))));
            let ends = [descriptors.first(), descriptors.last()].into_iter().flatten();
            of_gaps.chain(ends.map(|descriptor| (descriptor.seqno, descriptor.seqno)))
        };
        let mut filter = block.filter;
        if !gaps.is_empty() {
            filter.add_gaps();
        }
        let header = BlockHeader {
            ring: records.ring,
            first_nanos,
            last_nanos,
            first_seqno: seqnos().map(|(first, _)| first).min().unwrap_or(0),
            last_seqno: seqnos().map(|(_, last)| last).max().unwrap_or(0),
            filter,
            plain_bytes: block.column_bytes,
            ..BlockHeader::new(BlockKind::Events, block.bytes(), 0, part.len() as u64)
        };
        self.write_block(header, &[&block.head, &block.data])
    }

    /// Writes the end, the index and the footer.
    pub(crate) fn finish(&mut self, end: &CaptureEnd) -> Result<(), CaptureError> {
        self.block(BlockKind::End, &end.encode(), 1)?;
        let index_offset = self.offset;
        // The index must fit one block. 100 GiB of events are about 100,000 blocks, and their index has about 13 MB.
        // But a receiver writes small blocks. Readers find the blocks of a file with an empty index one by one.
        let indexed = if self.blocks.len() > self.indexed_blocks_max { &[] } else { &self.blocks[..] };
        let (index, count) = (encode_index(indexed), indexed.len() as u64);
        self.block(BlockKind::Index, &index, count)?;
        let file_bytes = self.offset + FOOTER_BYTES;
        self.write(&encode_footer(index_offset, file_bytes))?;
        self.out.flush().map_err(|error| CaptureError::io_writing("write the capture", error))
    }

    /// Writes a block of events of another file, with this header.
    pub(crate) fn copied(&mut self, header: BlockHeader, stored: &[u8]) -> Result<(), CaptureError> {
        self.write_block(header, &[stored])
    }

    /// Writes a block that says how far a stream was received, and hands everything to the operating system.
    pub(crate) fn place(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.block(BlockKind::Place, bytes, 1)?;
        self.out.flush().map_err(|error| CaptureError::io_writing("write the capture", error))
    }

    /// Writes a block without events. It is compressed if that makes it smaller.
    fn block(&mut self, kind: BlockKind, bytes: &[u8], records: u64) -> Result<(), CaptureError> {
        self.block_with(BlockHeader::new(kind, 0, 0, records), bytes)
    }

    fn block_with(&mut self, header: BlockHeader, bytes: &[u8]) -> Result<(), CaptureError> {
        let compressed = self.compressor.compress(bytes).map_err(|error| CaptureError::io("compress", error))?;
        let stored = if compressed.len() < bytes.len() { &compressed } else { bytes };
        let (stored_bytes, plain_bytes) = (stored.len() as u64, bytes.len() as u64);
        self.write_block(BlockHeader { stored_bytes, plain_bytes, ..header }, &[stored])
    }

    fn write_block(&mut self, header: BlockHeader, content: &[&[u8]]) -> Result<(), CaptureError> {
        let header = BlockHeader { checksum: header.checksum_with(content), ..header };
        self.description_bytes += description_bytes(&header);
        self.blocks.push(BlockRef { offset: self.offset, header });
        self.write(&header.encode())?;
        content.iter().try_for_each(|part| self.write(part))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CaptureError> {
        self.out.write_all(bytes).map_err(|error| CaptureError::io_writing("write the capture", error))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

/// Returns the largest possible size of a block whose content has this many bytes before compression. What compression
/// would make larger is not compressed.
pub(crate) fn block_bytes_max(bytes: usize) -> u64 {
    BLOCK_HEADER_BYTES + bytes as u64
}

/// Returns the largest possible size of all that follows the last block of events: the gaps of shards that could not be
/// opened, the end, the index and the footer.
fn tail_bytes_max(rings: RingCounts, blocks: usize) -> u64 {
    // The index has an entry for each existing block, and for the blocks that may follow: tables, events, the gaps of
    // shards that could not be opened, and the end.
    let index_bytes = (blocks + rings.missing + 3) * (8 + BLOCK_HEADER_BYTES as usize);
    let blocks = [CaptureEnd::encoded_bytes(rings.all), index_bytes].map(block_bytes_max);
    blocks.iter().sum::<u64>() + rings.missing as u64 * block_bytes_max(GAP_BLOCK_BYTES_MAX) + FOOTER_BYTES
}

const _: () = assert!(HEADER_BYTES == 48, "blocks begin after the header");
