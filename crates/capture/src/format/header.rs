//! The fixed structures of a capture file.

use crate::format::filter_bits::FilterBits;
use crate::format::wire::{Bytes, put_u32, put_u64};
use eventring::internal::shm;
use eventring::recorder::Clock;
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// The first bytes of every capture file.
pub(crate) const MAGIC: [u8; 8] = *b"EVRCAPT1";
/// The last bytes of every complete capture file.
pub(crate) const FOOTER_MAGIC: [u8; 8] = *b"EVRCEND1";
/// The version of the format. No other version is read: none was published.
pub(crate) const VERSION: u32 = 5;
/// The size of the file header.
pub(crate) const HEADER_BYTES: u64 = 48;
/// The size of the footer.
pub(crate) const FOOTER_BYTES: u64 = 32;
/// The size of a block's header.
pub(crate) const BLOCK_HEADER_BYTES: u64 = 120;
/// The place of the checksum in a block's header.
const CHECKSUM_OFFSET: usize = 56;
/// The first bytes of every block.
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"EVRB");
/// The largest size of the events that are written as one block: descriptors and payloads in memory. A single event may
/// be larger.
pub(crate) const BLOCK_EVENTS_BYTES: usize = 2 << 20;
/// The largest number of events in a block, and the largest number of gaps.
pub(crate) const RECORDS_MAX: usize = 1 << 17;
/// The size of the largest payload that a capture takes. The capture leaves out a larger payload, and counts it.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// The largest size of a block's content before compression, and of the payloads of a block.
pub(crate) const BLOCK_BYTES_MAX: u64 = (PAYLOAD_BYTES_MAX + (16 << 20)) as u64;
/// The largest number of rings in a capture.
pub(crate) const RINGS_MAX: usize = 1 << 13;

/// Returns the largest number of bytes that the blocks of rings, tables and ends of a file may have together, before
/// compression: 8 MiB, and 8 bytes more for each byte of the file. Real captures stay below this limit. Without it, a
/// damaged file could use up the memory of readers: a catalog takes up to twenty times as much memory as the tables
/// from which it is made.
pub(crate) fn description_bytes_max(file_bytes: u64) -> u64 {
    const FREE: u64 = 8 << 20;
    const PER_BYTE: u64 = 8;
    file_bytes.saturating_mul(PER_BYTE).saturating_add(FREE)
}

/// Returns the number of bytes of a block that count for [`description_bytes_max`].
pub(crate) fn description_bytes(header: &BlockHeader) -> u64 {
    match header.kind {
        BlockKind::Ring | BlockKind::Tables | BlockKind::End => header.plain_bytes,
        _ => 0,
    }
}

/// The kind of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BlockKind {
    Ring = 1,
    Events = 2,
    Tables = 3,
    End = 4,
    Index = 5,
    Place = 6,
    Present = 7,
}

impl BlockKind {
    fn from_code(code: u32) -> Option<Self> {
        let all = [Self::Ring, Self::Events, Self::Tables, Self::End, Self::Index, Self::Place, Self::Present];
        all.into_iter().find(|kind| *kind as u32 == code)
    }
}

/// The file header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FileHeader {
    /// The number of the file in a rotated capture, from 1, or 0 if the capture is not rotated.
    pub(crate) part: u32,
    /// Time at which the file was begun.
    pub(crate) started_epoch_nanos: u64,
    /// CLOCK_BOOTTIME at the same moment.
    pub(crate) started_boot_nanos: u64,
    /// CLOCK_MONOTONIC at the same moment.
    pub(crate) started_monotonic_nanos: u64,
}

impl FileHeader {
    /// Makes the header of a file that is begun now.
    pub(crate) fn of_now(part: u32) -> Self {
        Self {
            part,
            started_epoch_nanos: Clock::global().now_epoch_nanos(),
            started_boot_nanos: shm::boottime_nanos(),
            started_monotonic_nanos: shm::monotonic_nanos(),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        put_u32(&mut out, VERSION);
        put_u32(&mut out, self.part);
        put_u64(&mut out, self.started_epoch_nanos);
        put_u64(&mut out, self.started_boot_nanos);
        put_u64(&mut out, self.started_monotonic_nanos);
        put_u64(&mut out, 0);
        out
    }

    /// Decodes the version and the header that follow the magic.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(u32, Self)> {
        let mut bytes = Bytes::new(bytes);
        let version = bytes.u32()?;
        let header = Self {
            part: bytes.u32()?,
            started_epoch_nanos: bytes.u64()?,
            started_boot_nanos: bytes.u64()?,
            started_monotonic_nanos: bytes.u64()?,
        };
        Some((version, header))
    }
}

/// The header of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockHeader {
    pub(crate) kind: BlockKind,
    /// The size of what follows the header.
    pub(crate) stored_bytes: u64,
    /// The size of the content before compression. For a block of events, the size of all columns before compression.
    pub(crate) plain_bytes: u64,
    /// The number of events and gaps, or of entries.
    pub(crate) records: u64,
    /// The index of the ring to which the events belong.
    pub(crate) ring: u32,
    /// The smallest and the largest sort time in the block. A record's sort time is the largest time stamp among the
    /// record and the earlier records of its ring.
    pub(crate) first_nanos: u64,
    pub(crate) last_nanos: u64,
    /// The first and the last seqno of the block, including those of gaps.
    pub(crate) first_seqno: u64,
    pub(crate) last_seqno: u64,
    /// XXH3 (64 bits) of the header with 0 in place of the checksum, and of what follows the header.
    pub(crate) checksum: u64,
    pub(crate) filter: FilterBits,
}

impl BlockHeader {
    /// Makes the header of a block that holds no events.
    pub(crate) fn new(kind: BlockKind, stored_bytes: usize, plain_bytes: usize, records: u64) -> Self {
        Self {
            kind,
            stored_bytes: stored_bytes as u64,
            plain_bytes: plain_bytes as u64,
            records,
            ring: 0,
            first_nanos: 0,
            last_nanos: 0,
            first_seqno: 0,
            last_seqno: 0,
            checksum: 0,
            filter: FilterBits::default(),
        }
    }

    /// Returns the checksum of the header and the parts of the content that follow it.
    pub(crate) fn checksum_with(&self, content: &[&[u8]]) -> u64 {
        let mut hasher = XxHash3_64::new();
        hasher.write(&Self { checksum: 0, ..*self }.encode());
        content.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(BLOCK_HEADER_BYTES as usize);
        put_u32(&mut out, BLOCK_MAGIC);
        put_u32(&mut out, self.kind as u32);
        // These numbers fit 32 bits: no block is larger than `BLOCK_BYTES_MAX` and a little.
        for number in [self.stored_bytes, self.plain_bytes, self.records] {
            put_u32(&mut out, number as u32);
        }
        put_u32(&mut out, self.ring);
        for word in [self.first_nanos, self.last_nanos, self.first_seqno, self.last_seqno] {
            put_u64(&mut out, word);
        }
        debug_assert_eq!(out.len(), CHECKSUM_OFFSET);
        put_u64(&mut out, self.checksum);
        let FilterBits { types, call_sites, threads } = self.filter;
        [types].into_iter().chain(call_sites).chain(threads).for_each(|word| put_u64(&mut out, word));
        out
    }

    /// Decodes the header of a block. Returns `None` if the bytes are not a block header, or if the header states
    /// sizes that no block can have.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        if bytes.u32()? != BLOCK_MAGIC {
            return None;
        }
        let header = Self {
            kind: BlockKind::from_code(bytes.u32()?)?,
            stored_bytes: bytes.u32()?.into(),
            plain_bytes: bytes.u32()?.into(),
            records: bytes.u32()?.into(),
            ring: bytes.u32()?,
            first_nanos: bytes.u64()?,
            last_nanos: bytes.u64()?,
            first_seqno: bytes.u64()?,
            last_seqno: bytes.u64()?,
            checksum: bytes.u64()?,
            filter: FilterBits {
                types: bytes.u64()?,
                call_sites: [bytes.u64()?, bytes.u64()?, bytes.u64()?, bytes.u64()?],
                threads: [bytes.u64()?, bytes.u64()?],
            },
        };
        // The columns of a block of events are never larger than before compression, and their list is small.
        let stored_bytes_max = BLOCK_BYTES_MAX + (BLOCK_BYTES_MAX >> 2);
        let is_sound = header.stored_bytes <= stored_bytes_max && header.plain_bytes <= BLOCK_BYTES_MAX;
        (is_sound && (header.kind != BlockKind::Events || header.records <= 2 * RECORDS_MAX as u64)).then_some(header)
    }
}

/// A block's header and offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockRef {
    pub(crate) offset: u64,
    pub(crate) header: BlockHeader,
}

impl BlockRef {
    /// Returns the offset of the next block or of the footer.
    pub(crate) fn end(&self) -> u64 {
        self.offset + BLOCK_HEADER_BYTES + self.header.stored_bytes
    }
}

/// Encodes the index: all blocks before it.
pub(crate) fn encode_index(blocks: &[BlockRef]) -> Vec<u8> {
    let mut out = Vec::new();
    for block in blocks {
        put_u64(&mut out, block.offset);
        out.extend(block.header.encode());
    }
    out
}

/// Decodes the index of a file. `end` is the offset of the block that holds the index. Returns `None` if the blocks in
/// the index do not follow one another directly, from the file header to `end`.
pub(crate) fn decode_index(bytes: &[u8], end: u64) -> Option<Vec<BlockRef>> {
    let mut bytes = Bytes::new(bytes);
    let mut blocks = Vec::new();
    let mut expected = HEADER_BYTES;
    while !bytes.is_empty() {
        let offset = bytes.u64()?;
        let header = BlockHeader::decode(bytes.take(BLOCK_HEADER_BYTES as usize)?)?;
        let block = BlockRef { offset, header };
        if offset != expected {
            return None;
        }
        expected = block.end();
        blocks.push(block);
    }
    (expected == end).then_some(blocks)
}

/// Encodes the footer: the offset of the index, and the size of the file.
pub(crate) fn encode_footer(index_offset: u64, file_bytes: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(FOOTER_BYTES as usize);
    put_u64(&mut out, index_offset);
    put_u64(&mut out, file_bytes);
    put_u64(&mut out, 0);
    out.extend(FOOTER_MAGIC);
    out
}

/// Returns the offset of the index if `bytes` are the footer of a file of `file_bytes` bytes, and otherwise `None`.
pub(crate) fn decode_footer(bytes: &[u8], file_bytes: u64) -> Option<u64> {
    let mut bytes = Bytes::new(bytes);
    let (index_offset, stated_bytes, _) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
    let is_whole = bytes.take(8)? == FOOTER_MAGIC && stated_bytes == file_bytes;
    (is_whole && index_offset >= HEADER_BYTES && index_offset < file_bytes).then_some(index_offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(offset: u64, stored_bytes: u64) -> BlockRef {
        let mut filter = FilterBits::default();
        filter.add_type(5);
        filter.add_call_site(7);
        filter.add_thread(9);
        let header = BlockHeader {
            ring: 3,
            first_nanos: 5,
            last_nanos: 9,
            first_seqno: 1,
            last_seqno: 2,
            checksum: 4,
            filter,
            ..BlockHeader::new(BlockKind::Events, stored_bytes as usize, 100, 2)
        };
        BlockRef { offset, header }
    }

    #[test]
    fn structures_have_their_documented_sizes_and_come_back() {
        let header = FileHeader { part: 3, started_epoch_nanos: 1, started_boot_nanos: 2, started_monotonic_nanos: 4 };
        let bytes = header.encode();
        assert_eq!(bytes.len() as u64, HEADER_BYTES);
        assert_eq!(FileHeader::decode(&bytes[8..]), Some((VERSION, header)));
        let bytes = block(48, 10).header.encode();
        assert_eq!(bytes.len() as u64, BLOCK_HEADER_BYTES);
        assert_eq!(BlockHeader::decode(&bytes), Some(block(48, 10).header));
        assert_eq!(encode_footer(48, 99).len() as u64, FOOTER_BYTES);
        assert_eq!(decode_footer(&encode_footer(48, 99), 99), Some(48));
        assert_eq!(decode_footer(&encode_footer(48, 99), 98), None);
    }

    #[test]
    fn an_index_that_leaves_bytes_out_or_counts_them_twice_is_refused() {
        let first = block(HEADER_BYTES, 10);
        let second = block(first.end(), 20);
        let blocks = vec![first, second];
        assert_eq!(decode_index(&encode_index(&blocks), second.end()), Some(blocks.clone()));
        assert_eq!(decode_index(&encode_index(&blocks), second.end() + 1), None);
        assert_eq!(decode_index(&encode_index(&[first, first]), first.end()), None);
        assert_eq!(decode_index(&encode_index(&[second]), second.end()), None);
    }

    #[test]
    fn a_block_that_would_decompress_to_too_much_is_no_block() {
        let mut header = block(48, 10).header;
        header.plain_bytes = BLOCK_BYTES_MAX + 1;
        assert_eq!(BlockHeader::decode(&header.encode()), None);
    }
}
