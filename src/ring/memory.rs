//! The memory of a ring, as words and payload bytes.
//!
//! Two rules hold for memory that another process may write at any time:
//! - Every Rust reference to the memory is an `&AtomicU64`, because an atomic may change while a reference to it
//!   exists.
//! - Bytes of the memory are copied only by atomic accesses or by the assembly of `arch::copy`.

use crate::layout::limits::DESCRIPTOR_WORDS;
use crate::layout::{Descriptor, Geometry};
use crate::sync::{AtomicU64, Ordering};

/// A word of the header section that the protocol uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlWord {
    /// Last allocated seqno.
    LastSeqno,
    /// Next payload byte to allocate, unwrapped.
    NextPayloadByte,
    /// Start of the buffer window, unwrapped.
    BufferWindowStart,
    /// Counter of refused claims.
    RefusedClaims,
    /// Counter of seqnos skipped because they were overrun.
    OverrunClaims,
    /// Counter of skipped chunks.
    SkippedChunks,
    /// Counter of RECORD_ERROR events.
    RecordErrors,
}

/// One of the tables of [holes](super::holes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoleTable {
    /// The table of all versions.
    Narrow,
    /// The table since version 1.2.
    Wide,
}

/// A ring's memory. The implementation wraps or checks every index, so no argument can reach outside of the memory.
pub(crate) trait RingMemory {
    /// Returns the sizes of the ring.
    fn geometry(&self) -> &Geometry;
    /// Returns a control word.
    fn control(&self, word: ControlWord) -> &AtomicU64;
    /// Returns the eight words of the descriptor in `slot`; `slot` is taken modulo the capacity.
    fn descriptor(&self, slot: u64) -> &[AtomicU64; DESCRIPTOR_WORDS];
    /// Returns the word at a byte offset of the context area. Returns `None` if the offset is not a multiple of 8, or
    /// if the word is not inside the area.
    fn context_word(&self, offset: u64) -> Option<&AtomicU64>;
    /// Loads a descriptor's eight words in any order, each by a relaxed load.
    fn load_descriptor(words: &[AtomicU64; DESCRIPTOR_WORDS]) -> Descriptor {
        Descriptor::from_words(words.each_ref().map(|word| word.load(Ordering::Relaxed)))
    }
    /// Returns the entry `index` of a hole table. `index` is taken modulo the number of entries.
    fn hole(&self, table: HoleTable, index: u64) -> &AtomicU64;
    /// Returns true if the ring has a hole table. Files that another program has written have none.
    fn has_holes(&self) -> bool;
    /// Returns the table in which readers look for holes.
    fn hole_table(&self) -> HoleTable;
    /// Returns true if the ring's file has been truncated, so that stores to this memory no longer reach the file.
    fn is_truncated(&self) -> bool {
        false
    }
    /// Copies `bytes` to the unwrapped payload offset `offset`. Copies nothing if `bytes` does not fit the buffer.
    fn store_payload(&self, offset: u64, bytes: &[u8]);
    /// Fills `out` from the unwrapped payload offset `offset`. At most the buffer's size is copied. Further bytes of
    /// `out` do not change.
    fn load_payload(&self, offset: u64, out: &mut [u8]);
    /// Prefetches the cache line `BYTES` bytes after the descriptor `words`, because a later event will be written
    /// there. (For the last slots of a lap, this line lies in the payload buffer. Then the prefetch is useless, but
    /// does no harm.)
    fn prefetch_after<const BYTES: usize>(&self, words: &[AtomicU64; DESCRIPTOR_WORDS]);
}

#[cfg(not(any(loom, shuttle)))]
pub(crate) use mapped::MappedMemory;

#[cfg(not(any(loom, shuttle)))]
mod mapped {
    use super::DESCRIPTOR_WORDS;
    use super::{AtomicU64, ControlWord, Geometry, HoleTable, RingMemory};
    use crate::arch;
    use crate::arch::copy::Copier;
    use crate::layout::Descriptor;
    use crate::layout::limits::HEADER_SECTION_BYTES;
    use crate::layout::{extension, header};
    use crate::shm::{Access, Mapping};
    use crate::sync::Ordering;
    use std::ptr::NonNull;

    /// A mapped ring file. The fields that are needed to record an event lie in one cache line.
    #[repr(C, align(64))]
    pub(crate) struct MappedMemory {
        header: NonNull<u8>,
        descriptors: NonNull<u64>,
        payload: NonNull<u8>,
        slot_mask: u64,
        payload_mask: u64,
        copier: Copier,
        has_holes: bool,
        is_sparse: bool,
        /// False if a reader does more for a payload than copy it.
        only_copies: bool,
        geometry: Geometry,
        mapping: Mapping,
    }

    // SAFETY: the pointers point into `mapping`, which lives as long as this value and may be used from any thread.
    // Every access through them is atomic or an opaque copy.
    unsafe impl Send for MappedMemory {}
    // SAFETY: as above. Threads that share this value access the memory only by atomics and opaque copies.
    unsafe impl Sync for MappedMemory {}

    impl MappedMemory {
        /// Wraps `mapping` as a ring with the sizes in `geometry`. Returns `None` if the mapped sections have other
        /// sizes.
        pub(crate) fn new(mapping: Mapping, geometry: Geometry, has_holes: bool) -> Option<Self> {
            let fits = mapping.header_bytes() as u64 >= HEADER_SECTION_BYTES
                && mapping.descriptor_bytes() as u64 == geometry.descriptor_section_bytes()
                && mapping.payload_bytes() as u64 == geometry.payload_buf_bytes()
                && mapping.context_bytes() as u64 == geometry.context_area_bytes();
            let header = mapping.header();
            fits.then(|| Self {
                header,
                descriptors: mapping.descriptors().cast(),
                payload: mapping.payload(),
                slot_mask: geometry.descriptor_capacity() - 1,
                payload_mask: geometry.payload_buf_bytes() - 1,
                geometry,
                // In a sparse file, a reader must map a payload before it copies the payload. The reader's fast path
                // for copies in line does not map anything. The limit 0 switches this fast path off.
                copier: Copier::new().within(if mapping.is_sparse() {
                    0
                } else {
                    geometry.payload_buf_bytes() as usize
                }),
                has_holes,
                is_sparse: mapping.is_sparse(),
                only_copies: !mapping.is_sparse(),
                mapping,
            })
        }

        /// Switches the fast paths of readers off, because they do nothing but copy payloads.
        pub(crate) fn switch_fast_paths_off(&mut self) {
            self.copier = self.copier.within(0);
            self.only_copies = false;
        }

        /// Returns true if a reader has to do nothing for a payload but to copy it.
        #[inline(always)]
        pub(crate) fn only_copies(&self) -> bool {
            self.only_copies
        }

        /// Returns the mapping.
        pub(crate) fn mapping(&self) -> &Mapping {
            &self.mapping
        }

        /// Returns true if the file is sparse. Then some of its parts may not be mapped.
        #[inline(always)]
        pub(crate) fn is_sparse(&self) -> bool {
            self.is_sparse
        }

        /// Returns true if a payload of `bytes` bytes fits the buffer and is copied in line. If a caller checks this
        /// before the copy, the compiler generates the copy without further branches.
        #[inline(always)]
        pub(crate) fn is_copied_in_line(&self, bytes: usize) -> bool {
            self.copier.copies_in_line(bytes)
        }

        /// Returns the word at a byte offset of the header section.
        ///
        /// # Panics
        /// If `offset` is not a multiple of 8, or if the word is not inside the header section. Callers pass
        /// constants.
        #[inline(always)]
        pub(crate) fn header_word(&self, offset: usize) -> &AtomicU64 {
            assert!(offset.is_multiple_of(8) && offset + 8 <= HEADER_SECTION_BYTES as usize);
            // SAFETY: the header section has HEADER_SECTION_BYTES mapped bytes (checked in `new`), and offset + 8 is
            // not larger.
            let word = unsafe { self.header.add(offset) };
            // SAFETY: the word is 8-aligned, because the base is page-aligned and the offset is a multiple of 8. It is
            // mapped while `self` lives. Every access to it, in this and other processes, is atomic, an opaque copy,
            // or made by a program in another language.
            unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
        }

        /// Returns the value of a word of the header section, by a relaxed load. [`Self::header_word`] says which
        /// offsets are valid.
        pub(crate) fn header_value(&self, offset: usize) -> u64 {
            self.header_word(offset).load(Ordering::Relaxed)
        }

        /// Returns the value of a word of the header section. The load is acquire; it pairs with the release that
        /// stored the value.
        pub(crate) fn header_value_acquired(&self, offset: usize) -> u64 {
            self.header_word(offset).load(Ordering::Acquire)
        }

        /// Returns the value of a word of the context area. Returns `None` if the offset is not a multiple of 8, or if
        /// the word is not inside the area. The load is acquire; it pairs with the release that stored the value.
        pub(crate) fn context_value_acquired(&self, offset: u64) -> Option<u64> {
            self.context_word(offset).map(|word| word.load(Ordering::Acquire))
        }

        /// Copies `bytes` into the header section at `offset`. Returns false if they do not fit, or if the mapping is
        /// read-only.
        pub(crate) fn store_header_bytes(&self, offset: usize, bytes: &[u8]) -> bool {
            let fits = offset.checked_add(bytes.len()).is_some_and(|end| end <= HEADER_SECTION_BYTES as usize);
            if !fits || self.mapping.access() != Access::ReadWrite {
                return false;
            }
            // SAFETY: the range was checked to be inside the header section.
            let to = unsafe { self.header.add(offset) };
            // SAFETY: `bytes` is private and readable. The target is mapped writable, and others read it atomically.
            unsafe { self.copier.write_shared(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
            true
        }

        /// Copies from the header section into `out`. Returns false if the range is not inside of the section.
        pub(crate) fn load_header_bytes(&self, offset: usize, out: &mut [u8]) -> bool {
            if offset.checked_add(out.len()).is_none_or(|end| end > HEADER_SECTION_BYTES as usize) {
                return false;
            }
            // SAFETY: the range was checked to be inside the header section.
            let from = unsafe { self.header.add(offset) };
            // SAFETY: `out` is exclusively ours. The source is mapped readable.
            unsafe { self.copier.read_shared(out.as_mut_ptr(), from.as_ptr(), out.len()) };
            true
        }

        /// Copies `bytes` into the context area at `offset`. Returns false if they do not fit, or if the mapping is
        /// read-only.
        pub(crate) fn store_context_bytes(&self, offset: u64, bytes: &[u8]) -> bool {
            let end = offset.checked_add(bytes.len() as u64);
            let Some(end) = end else { return false };
            let context = self.mapping.context();
            if end > self.geometry.context_area_bytes() || self.mapping.access() != Access::ReadWrite {
                return false;
            }
            // SAFETY: the range was checked to be inside the context area.
            let to = unsafe { context.add(offset as usize) };
            // SAFETY: `bytes` is private and readable. The target is mapped writable, and others read it atomically.
            unsafe { self.copier.write_shared(to.as_ptr(), bytes.as_ptr(), bytes.len()) };
            true
        }

        /// Copies from the context area into `out`. Returns false if the range is not inside of the area.
        pub(crate) fn load_context_bytes(&self, offset: u64, out: &mut [u8]) -> bool {
            let end = offset.checked_add(out.len() as u64);
            let Some(end) = end else { return false };
            let context = self.mapping.context();
            if end > self.geometry.context_area_bytes() {
                return false;
            }
            // SAFETY: the range was checked to be inside the context area.
            let from = unsafe { context.add(offset as usize) };
            // SAFETY: `out` is exclusively ours. The source is mapped readable.
            unsafe { self.copier.read_shared(out.as_mut_ptr(), from.as_ptr(), out.len()) };
            true
        }
    }

    impl RingMemory for MappedMemory {
        #[inline(always)]
        fn geometry(&self) -> &Geometry {
            &self.geometry
        }

        #[inline(always)]
        fn control(&self, word: ControlWord) -> &AtomicU64 {
            self.header_word(match word {
                ControlWord::LastSeqno => header::LAST_SEQNO,
                ControlWord::NextPayloadByte => header::NEXT_PAYLOAD_BYTE,
                ControlWord::BufferWindowStart => header::BUFFER_WINDOW_START,
                ControlWord::RefusedClaims => extension::COUNT_REFUSED_CLAIMS,
                ControlWord::OverrunClaims => extension::COUNT_OVERRUN_CLAIMS,
                ControlWord::SkippedChunks => extension::COUNT_SKIPPED_CHUNKS,
                ControlWord::RecordErrors => extension::COUNT_RECORD_ERRORS,
            })
        }

        fn context_word(&self, offset: u64) -> Option<&AtomicU64> {
            let end = offset.checked_add(8)?;
            if !offset.is_multiple_of(8) || end > self.geometry.context_area_bytes() {
                return None;
            }
            let context = self.mapping.context();
            // SAFETY: offset + 8 is within the context area (checked above), and the area is mapped (checked in
            // `new`).
            let word = unsafe { context.add(offset as usize) };
            // SAFETY: the word is 8-aligned, mapped while `self` lives, and accessed only by atomics and opaque
            // copies.
            Some(unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) })
        }

        #[inline(always)]
        fn descriptor(&self, slot: u64) -> &[AtomicU64; DESCRIPTOR_WORDS] {
            let index = (slot & self.slot_mask) as usize * DESCRIPTOR_WORDS;
            // SAFETY: the mask makes the slot smaller than the capacity. So the words are inside the descriptor
            // section.
            let words = unsafe { self.descriptors.add(index) };
            // SAFETY: the eight words are inside the section, 64-aligned, mapped while `self` lives, and accessed only
            // atomically. `AtomicU64` has the layout of u64, and an array has no padding.
            unsafe { words.cast().as_ref() }
        }

        #[inline(always)]
        fn load_descriptor(words: &[AtomicU64; DESCRIPTOR_WORDS]) -> Descriptor {
            // SAFETY: these are eight words that others store only atomically, so we may load them at any time. They
            // are aligned to 64 bytes, because `descriptor` returns words with this alignment.
            let words = unsafe { arch::copy::words_from_shared(words.as_ptr().cast()) };
            if cfg!(target_endian = "big") {
                return Descriptor::from_words(words);
            }
            // The words are transmuted and not stored field by field. Otherwise a later load of the whole descriptor
            // would have to wait until the stores of all fields have ended. SAFETY: `Descriptor` has the layout of the
            // eight words (a test of its module checks this), and is made of integers.
            unsafe { std::mem::transmute::<[u64; DESCRIPTOR_WORDS], Descriptor>(words) }
        }

        #[inline]
        fn hole(&self, table: HoleTable, index: u64) -> &AtomicU64 {
            let (start, entries) = match table {
                HoleTable::Narrow => (extension::HOLES, extension::HOLE_ENTRIES),
                HoleTable::Wide => (extension::WIDE_HOLES, extension::WIDE_HOLE_SETS * extension::WIDE_HOLE_WAYS),
            };
            self.header_word(start + (index as usize % entries) * 8)
        }

        fn hole_table(&self) -> HoleTable {
            // Relaxed: the word never changes after the file was made.
            let is_wide = self.header_value(extension::HOLE_TABLE) == extension::WIDE_HOLES as u64;
            if is_wide { HoleTable::Wide } else { HoleTable::Narrow }
        }

        fn has_holes(&self) -> bool {
            self.has_holes
        }

        fn is_truncated(&self) -> bool {
            self.mapping.was_truncated()
        }

        #[inline(always)]
        fn store_payload(&self, offset: u64, bytes: &[u8]) {
            // We check the length and do not use `min`, so that a constant length stays constant for the compiler.
            let len = bytes.len();
            if len as u64 > self.payload_mask {
                return;
            }
            // SAFETY: let S be the buffer's size. The wrapped offset is below S, and 2·S bytes are mapped, because the
            // buffer is mapped twice in a row.
            let to = unsafe { self.payload.add((offset & self.payload_mask) as usize) };
            // SAFETY: with S as the buffer's size, the wrapped offset is below S, and len < S (checked above). So the
            // target ends within the 2·S bytes of the two mappings. `bytes` is private and readable. Others access
            // the target by atomic or opaque copies. It is mapped writable, because only writers call this function.
            unsafe { self.copier.write_shared(to.as_ptr(), bytes.as_ptr(), len) };
        }

        #[inline(always)]
        fn load_payload(&self, offset: u64, out: &mut [u8]) {
            // If `copies_in_line` returns true, the length fits the buffer, because `new` limits the copier to the
            // buffer's size.
            let fits = self.copier.copies_in_line(out.len());
            let len = if fits { out.len() } else { out.len().min(self.geometry.payload_buf_bytes() as usize) };
            // SAFETY: let S be the buffer's size. The wrapped offset is below S, and 2·S bytes are mapped, because the
            // buffer is mapped twice in a row.
            let from = unsafe { self.payload.add((offset & self.payload_mask) as usize) };
            // SAFETY: with S as the buffer's size, the wrapped offset is below S, and len <= S (by the computation of
            // `len`). So the source ends within the 2·S bytes of the two mappings. `out` is exclusively ours.
            unsafe { self.copier.read_shared(out.as_mut_ptr(), from.as_ptr(), len) };
        }

        #[inline(always)]
        fn prefetch_after<const BYTES: usize>(&self, words: &[AtomicU64; DESCRIPTOR_WORDS]) {
            arch::prefetch::for_write::<BYTES>(words.as_ptr().cast());
        }
    }
}
