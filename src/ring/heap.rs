//! A ring in heap memory, for unit tests and models.

use super::memory::HoleTable;
use super::memory::{ControlWord, RingMemory};
use crate::layout::Geometry;
use crate::layout::extension;
use crate::layout::limits::DESCRIPTOR_WORDS;
use crate::sync::{AtomicU64, Ordering};

/// Size of a payload word in bytes. In models, the size of every payload is a multiple of it.
const WORD_BYTES: u64 = 8;
/// Entries of the wide hole table.
const WIDE_HOLES: usize = extension::WIDE_HOLE_SETS * extension::WIDE_HOLE_WAYS;
/// Number of entries of the narrow hole table; 0 in models, which have no narrow table.
const NARROW_HOLES: usize = if cfg!(any(loom, shuttle)) { 0 } else { extension::HOLE_ENTRIES };

/// Heap memory with the shape of a ring.
pub(crate) struct HeapMemory {
    geometry: Geometry,
    control: Vec<AtomicU64>,
    descriptors: Vec<[AtomicU64; DESCRIPTOR_WORDS]>,
    payload: Vec<AtomicU64>,
    /// The wide hole table, then the narrow hole table.
    holes: Vec<AtomicU64>,
    context: Vec<AtomicU64>,
}

impl HeapMemory {
    /// Creates zeroed memory for a ring of these sizes. The payload memory has only `payload_words` words, because
    /// loom can handle few words. Larger payload offsets wrap around to these words.
    pub(crate) fn new(geometry: Geometry, payload_words: usize) -> Self {
        let words = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self {
            geometry,
            control: words(7),
            descriptors: (0..geometry.descriptor_capacity())
                .map(|_| std::array::from_fn(|_| AtomicU64::new(0)))
                .collect(),
            payload: words(payload_words),
            holes: words(WIDE_HOLES + NARROW_HOLES),
            context: words((geometry.context_area_bytes() / WORD_BYTES) as usize),
        }
    }

    fn payload_word(&self, offset: u64) -> &AtomicU64 {
        let wrapped = offset & (self.geometry.payload_buf_bytes() - 1);
        &self.payload[(wrapped / WORD_BYTES) as usize % self.payload.len()]
    }
}

impl RingMemory for HeapMemory {
    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn control(&self, word: ControlWord) -> &AtomicU64 {
        &self.control[word as usize]
    }

    fn descriptor(&self, slot: u64) -> &[AtomicU64; DESCRIPTOR_WORDS] {
        &self.descriptors[(slot & (self.geometry.descriptor_capacity() - 1)) as usize]
    }

    fn context_word(&self, offset: u64) -> Option<&AtomicU64> {
        let index = usize::try_from(offset / WORD_BYTES).ok().filter(|_| offset.is_multiple_of(WORD_BYTES))?;
        self.context.get(index)
    }

    fn hole(&self, table: HoleTable, index: u64) -> &AtomicU64 {
        &self.holes[match table {
            HoleTable::Wide => index as usize % WIDE_HOLES,
            HoleTable::Narrow => WIDE_HOLES + index as usize % extension::HOLE_ENTRIES,
        }]
    }

    fn hole_table(&self) -> HoleTable {
        HoleTable::Wide
    }

    fn has_holes(&self) -> bool {
        true
    }

    fn store_payload(&self, offset: u64, bytes: &[u8]) {
        for (index, part) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.payload_word(offset + index as u64 * WORD_BYTES).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    fn load_payload(&self, offset: u64, out: &mut [u8]) {
        for (index, part) in out.chunks_mut(8).enumerate() {
            let word = self.payload_word(offset + index as u64 * WORD_BYTES).load(Ordering::Relaxed);
            part.copy_from_slice(&word.to_le_bytes()[..part.len()]);
        }
    }

    fn prefetch_after<const BYTES: usize>(&self, _: &[AtomicU64; DESCRIPTOR_WORDS]) {}
}
