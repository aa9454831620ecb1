//! The bytes of a block's column of values: pages of keys, a head and a trailer. The column is at the end of the block,
//! where a reader finds the trailer without reading the rest. The reader does not trust the bytes. If the column is
//! damaged, the reader reads the whole block.

use super::collect::ValueCollector;
use super::losses::BlockLoss;
use super::pages::{self, PageSizes, checksum};
use crate::format::header::{BLOCK_HEADER_BYTES, BlockRef};
use crate::format::varint::{put_varint, take_varint};
use crate::format::wire::{Bytes, put_u32, put_u64};
use eventring::internal::shm;
use std::fs::File;

/// The last bytes of the column.
const MAGIC: u64 = u64::from_le_bytes(*b"EVRVALUE");
/// The bytes after the head: its size, that of the column, the checksum of head and sizes, the magic.
const TRAILER_BYTES: usize = 24;
/// The bytes at the end of a block that are read at first. Most heads are smaller.
const TAIL_BYTES: u64 = 1024;
/// Flags of a name.
mod flag {
    /// It has numbers, and their range follows.
    pub(super) const NUMBERS: u64 = 1;
    /// Not all of its values are in the pages.
    pub(super) const OTHERS: u64 = 2;
}

impl ValueCollector {
    /// Appends the column. The names with the most values lose their keys if there is no room for all. Returns false if
    /// there is not even room for the names.
    pub(crate) fn put(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> bool {
        let mut head = Vec::new();
        let width = loop {
            head.clear();
            let count = self.names.list.iter().map(|values| values.keys.len()).sum::<usize>();
            self.put_names(&mut head);
            let Some(left) = bytes_max.checked_sub(head.len() + TRAILER_BYTES + 8) else { return false };
            match pages::width_within(count, left) {
                Some(width) => break width,
                None if count == 0 => break 0,
                None => {
                    if let Some(most) = self.names.list.iter_mut().max_by_key(|values| values.keys.len()) {
                        most.leave_out();
                    }
                }
            }
        };
        let mut keys: Vec<u64> = self.names.list.iter().flat_map(|values| values.keys.iter().copied()).collect();
        // Those of each name are in order already.
        keys.sort();
        keys.dedup();
        let start = out.len();
        let sizes = pages::put(&keys, width, out);
        put_varint(&mut head, sizes.width as u64);
        put_varint(&mut head, sizes.thirds.len() as u64);
        sizes.thirds.iter().for_each(|third| put_varint(&mut head, *third as u64));
        out.extend(&head);
        let sizes_at = out.len();
        put_u32(out, head.len() as u32);
        put_u32(out, (sizes_at - start + TRAILER_BYTES) as u32);
        let checksum = checksum(&out[sizes_at - head.len()..]);
        put_u64(out, checksum);
        put_u64(out, MAGIC);
        true
    }

    /// Appends the part of the head that does not depend on the pages.
    fn put_names(&self, head: &mut Vec<u8>) {
        head.push(self.levels);
        put_varint(head, self.losses.len() as u64);
        for loss in &self.losses {
            head.push(loss.cause);
            [loss.count, loss.from_nanos, loss.to_nanos].into_iter().for_each(|number| put_varint(head, number));
        }
        let list = || self.names.list.iter().filter(|values| !values.is_empty());
        put_varint(head, list().count() as u64);
        for values in list() {
            put_u32(head, values.short());
            let has = |flag: u64, is_set: bool| if is_set { flag } else { 0 };
            put_varint(head, has(flag::NUMBERS, values.range.is_some()) | has(flag::OTHERS, values.has_others));
            if let Some((least, most)) = values.range {
                put_u64(head, least.to_bits());
                put_u64(head, most.to_bits());
            }
        }
    }
}

/// What is known of a block's values without its pages, and access to these.
#[derive(Debug)]
pub(crate) struct BlockValues<'f> {
    file: &'f File,
    /// The offset of the column in the file.
    offset: u64,
    pub(crate) levels: u8,
    pub(crate) losses: Vec<BlockLoss>,
    /// In ascending order of their keys.
    names: Vec<NameRange>,
    sizes: PageSizes,
}

/// What the head says of a name.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct NameRange {
    key: u32,
    /// The smallest and the largest number, if there are numbers.
    pub(crate) range: Option<(f64, f64)>,
    /// True if not all values are in the pages.
    pub(crate) has_others: bool,
}

impl<'f> BlockValues<'f> {
    /// Reads the head of a block's column. Returns `None` if the block has no column, or a damaged one.
    pub(crate) fn read(file: &'f File, block: &BlockRef) -> Option<Self> {
        let stored_bytes = block.header.stored_bytes;
        let read = |offset: u64, bytes: u64| {
            let mut read = vec![0; usize::try_from(bytes).ok()?];
            shm::read_exact_at(file, &mut read, offset).ok().map(|()| read)
        };
        let tail_bytes = TAIL_BYTES.min(stored_bytes);
        let mut tail = read(block.end() - tail_bytes, tail_bytes)?;
        let (rest, trailer) = tail.split_last_chunk::<TRAILER_BYTES>()?;
        let mut trailer = Bytes::new(trailer);
        let (head_bytes, column_bytes) = (trailer.u32()?, trailer.u32()?);
        let (stated, magic) = (trailer.u64()?, trailer.u64()?);
        if magic != MAGIC || u64::from(column_bytes) > stored_bytes {
            return None;
        }
        // The checksum is of the head and of the sizes after it.
        let checked_bytes = u64::from(head_bytes) + 8;
        let pages_bytes = u64::from(column_bytes).checked_sub(u64::from(head_bytes) + TRAILER_BYTES as u64)?;
        if rest.len() < head_bytes as usize {
            tail = read(block.end() - checked_bytes - 16, checked_bytes + 16)?;
        }
        let checked = tail.get(tail.len().checked_sub(checked_bytes as usize + 16)?..tail.len() - 16)?;
        if checksum(checked) != stated && !cfg!(fuzzing) {
            return None;
        }
        let offset = block.offset + BLOCK_HEADER_BYTES + stored_bytes - u64::from(column_bytes);
        let values = Self::of_head(file, offset, &checked[..head_bytes as usize])?;
        (values.sizes.bytes() as u64 == pages_bytes).then_some(values)
    }

    fn of_head(file: &'f File, offset: u64, mut head: &[u8]) -> Option<Self> {
        // Nothing in the head is smaller than a byte, so its size bounds the memory.
        let take_count = |head: &mut &[u8]| {
            let count = usize::try_from(take_varint(head)?).ok()?;
            Some(count).filter(|count| *count <= head.len())
        };
        let levels = take_u8(&mut head)?;
        let losses = (0..take_count(&mut head)?).map(|_| {
            let cause = take_u8(&mut head)?;
            let [count, from_nanos, to_nanos] = [(); 3].map(|()| take_varint(&mut head));
            Some(BlockLoss { cause, count: count?, from_nanos: from_nanos?, to_nanos: to_nanos? })
        });
        let losses = losses.collect::<Option<Vec<_>>>()?;
        let names = (0..take_count(&mut head)?).map(|_| NameRange::take(&mut head));
        let mut names = names.collect::<Option<Vec<_>>>()?;
        names.sort_unstable_by_key(|name| name.key);
        let width = usize::try_from(take_varint(&mut head)?).ok().filter(|width| *width <= 16)?;
        let thirds = (0..take_count(&mut head)?).map(|_| take_varint(&mut head)?.try_into().ok());
        // A third has at most so many fingerprints as there are bits in the largest block.
        let thirds = thirds.collect::<Option<Vec<usize>>>()?;
        let is_sound = thirds.iter().all(|third| (1..=1 << 28).contains(third)) && (thirds.is_empty() || width > 0);
        let sizes = PageSizes { width, thirds };
        (is_sound && head.is_empty()).then_some(Self { file, offset, levels, losses, names, sizes })
    }

    /// Returns what the head says of a name, or `None` if no event of the block has it.
    pub(crate) fn name(&self, key: u32) -> Option<&NameRange> {
        let found = self.names.binary_search_by_key(&key, |name| name.key);
        found.ok().map(|index| &self.names[index])
    }

    /// Returns false if no event of the block has a value with this key. Reads a page. If it cannot be read or is
    /// damaged, any key may be there.
    pub(crate) fn may_have_key(&self, key: u64) -> bool {
        if self.sizes.thirds.is_empty() {
            return false;
        }
        let has = || {
            let (place, bytes) = self.sizes.page(pages::page_of(key, self.sizes.thirds.len()))?;
            let mut page = vec![0; bytes];
            shm::read_exact_at(self.file, &mut page, self.offset + place as u64).ok()?;
            self.sizes.has(&page, key)
        };
        has().unwrap_or(true)
    }
}

impl NameRange {
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (key, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        let flags = take_varint(bytes)?;
        let mut take_f64 = || {
            let (number, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some(f64::from_le_bytes(*number))
        };
        let range = if flags & flag::NUMBERS != 0 { Some((take_f64()?, take_f64()?)) } else { None };
        Some(Self { key: u32::from_le_bytes(*key), range, has_others: flags & flag::OTHERS != 0 })
    }
}

fn take_u8(bytes: &mut &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*first)
}
