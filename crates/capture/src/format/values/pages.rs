//! Xor filters of keys, in pages. A reader that searches for a key reads only one page.
//!
//! The crate `xorf` makes the filters, with fingerprints of 16 bits. A file holds only as many low bits of each
//! fingerprint as there is room for. `xorf` cannot test such a filter for a key, so this module does.

use crate::format::wire::{Bytes, put_u64};
use twox_hash::XxHash3_64;
use xorf::Xor16;

/// The number of keys for which a page is made, about.
const PAGE_KEYS: usize = 1024;
/// The bytes of a page before the fingerprints: the checksum and the seed.
const PAGE_HEAD_BYTES: usize = 16;
/// The least number of bits of a fingerprint: one of four blocks is then read in vain.
const WIDTH_MIN: usize = 2;
/// The largest number.
const WIDTH_MAX: usize = 16;

/// The part of a block that the column may take: 29 of 1,000 bytes.
const PART: [usize; 2] = [29, 1000];
/// A smaller block has no column: it is read as fast as one.
const BLOCK_BYTES_MIN: usize = 4096;

/// The sizes of the pages of a block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct PageSizes {
    /// The number of bits of a fingerprint.
    pub(super) width: usize,
    /// For each page, a third of the number of its fingerprints.
    pub(super) thirds: Vec<usize>,
}

/// Returns the size that the column of a block may have, or `None` if the block has none.
pub(crate) fn bytes_max(block_bytes: usize) -> Option<usize> {
    (block_bytes >= BLOCK_BYTES_MIN).then_some(block_bytes * PART[0] / PART[1])
}

/// Returns the page of a key.
pub(super) fn page_of(key: u64, pages: usize) -> usize {
    (((key >> 32) * pages as u64) >> 32) as usize
}

/// Returns the number of bits of a fingerprint with which pages of so many keys have at most this size, or `None` if
/// they cannot have it.
pub(super) fn width_within(keys: usize, bytes: usize) -> Option<usize> {
    let pages = keys.div_ceil(PAGE_KEYS);
    // A page has 32 fingerprints more than 1.23 for each key, and three bytes in the list.
    let fingerprints = keys * 123 / 100 + 33 * pages;
    let left = bytes.checked_sub(pages * (PAGE_HEAD_BYTES + 4))?;
    Some((left * 8 / fingerprints.max(1)).min(WIDTH_MAX)).filter(|width| *width >= WIDTH_MIN)
}

/// Returns the number of keys for which so many bytes may have room.
pub(super) fn keys_max(bytes: usize) -> usize {
    bytes * 8 * 100 / 123 / WIDTH_MIN
}

/// Appends pages of keys, which are in ascending order, and each of which is there once.
pub(super) fn put(keys: &[u64], width: usize, out: &mut Vec<u8>) -> PageSizes {
    let pages = keys.len().div_ceil(PAGE_KEYS);
    let mut rest = keys;
    let thirds = (0..pages).map(|page| {
        let (of_page, others) = rest.split_at(rest.partition_point(|key| page_of(*key, pages) <= page));
        rest = others;
        let Xor16 { seed, block_length, fingerprints } = Xor16::from(of_page);
        let mut page = Vec::with_capacity(PAGE_HEAD_BYTES + page_bytes(width, block_length));
        put_u64(&mut page, seed);
        let (mut bits, mut count) = (0_u64, 0);
        for fingerprint in fingerprints {
            bits |= (u64::from(fingerprint) & mask(width)) << count;
            count += width;
            while count >= 8 {
                page.push(bits as u8);
                (bits, count) = (bits >> 8, count - 8);
            }
        }
        if count > 0 {
            page.push(bits as u8);
        }
        put_u64(out, checksum(&page));
        out.extend(page);
        block_length
    });
    PageSizes { width, thirds: thirds.collect() }
}

impl PageSizes {
    /// Returns the place of a page among the bytes of all, and its size.
    pub(super) fn page(&self, page: usize) -> Option<(usize, usize)> {
        let bytes = |third: &usize| PAGE_HEAD_BYTES + page_bytes(self.width, *third);
        Some((self.thirds.get(..page)?.iter().map(bytes).sum(), bytes(self.thirds.get(page)?)))
    }

    /// Returns the size of all pages.
    pub(super) fn bytes(&self) -> usize {
        self.page(self.thirds.len().wrapping_sub(1)).map_or(0, |(place, bytes)| place + bytes)
    }

    /// Returns false if the page does not have the key. Returns `None` if the page is damaged.
    pub(super) fn has(&self, page: &[u8], key: u64) -> Option<bool> {
        let third = *self.thirds.get(page_of(key, self.thirds.len()))?;
        let mut bytes = Bytes::new(page);
        if bytes.u64()? != checksum(bytes.rest()) && !cfg!(fuzzing) {
            return None;
        }
        let hash = mix(key.wrapping_add(bytes.u64()?));
        let mut found = (hash ^ hash >> 32) & mask(self.width);
        for number in 0..3 {
            let place = (u64::from(hash.rotate_left(21 * number) as u32) * third as u64) >> 32;
            let bit = (third * number as usize + place as usize) * self.width;
            let from = bytes.rest().get(bit / 8..(bit + self.width).div_ceil(8))?;
            let word = from.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            found ^= word >> (bit % 8) & mask(self.width);
        }
        Some(found == 0)
    }
}

fn page_bytes(width: usize, third: usize) -> usize {
    (3 * third * width).div_ceil(8)
}

fn mask(width: usize) -> u64 {
    (1 << width) - 1
}

/// Returns the checksum of a page or head.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The last step of MurmurHash3.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
