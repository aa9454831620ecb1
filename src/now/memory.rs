//! The mapped file with the *tables of the present* (which list what is open now), as words and cells.
//!
//! As in `ring::memory`, every reference into the memory is a reference to atomics, because the writer may change the
//! memory at any time.

use super::lock_cell::LockCells;
use crate::layout::now as layout;
use crate::layout::now::{CELL_BYTES, CELL_WORDS, TASK_BYTES, TASK_WORDS};
use crate::shm::Mapping;
use crate::sync::{AtomicU64, AtomicUsize, Ordering};
use std::ptr::NonNull;

/// A cell of a span, thread or lock.
pub(super) type Cell = [AtomicU64; CELL_WORDS];
/// A cell of a task.
pub(super) type TaskCell = [AtomicU64; TASK_WORDS];

/// The mapped file.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NowMemory {
    words: NonNull<u8>,
    spans: NonNull<Cell>,
    /// Number of span cells that may be looked at; at most `capacity`.
    span_cells: AtomicUsize,
    /// Number of span cells, and of task cells.
    capacity: usize,
    mapping: Mapping,
}

// SAFETY: the pointers point into `mapping`, which lives as long as this value and may be used from any thread. Every
// access through them is atomic.
unsafe impl Send for NowMemory {}
// SAFETY: as above.
unsafe impl Sync for NowMemory {}

impl LockCells for NowMemory {
    fn lock(&self, index: usize) -> &Cell {
        self.in_header(layout::LOCKS_OFFSET, index % layout::LOCK_CELLS)
    }
}

impl NowMemory {
    /// Returns the sections of a file with this many span cells: words, threads and locks are the header section, span
    /// and task cells the context area.
    pub(super) fn sections(capacity: usize) -> crate::shm::Sections {
        crate::shm::Sections {
            header_bytes: layout::SPANS_OFFSET as u64,
            descriptor_bytes: 0,
            payload_bytes: 0,
            context_bytes: layout::file_bytes(capacity) - layout::SPANS_OFFSET as u64,
        }
    }

    /// Wraps the mapping of a file with this many span cells. Returns `None` if its sections have other sizes.
    pub(super) fn new(mapping: Mapping, capacity: usize) -> Option<Self> {
        let fits = capacity <= layout::SPAN_CELLS_MAX
            && mapping.header_bytes() == layout::SPANS_OFFSET
            && mapping.context_bytes() == capacity * (CELL_BYTES + TASK_BYTES);
        let (spans, words) = (mapping.context().cast(), mapping.header());
        fits.then_some(Self { words, spans, span_cells: AtomicUsize::new(capacity), capacity, mapping })
    }

    /// Returns the number of span cells that may be looked at.
    #[inline(always)]
    pub(super) fn span_cells(&self) -> usize {
        self.span_cells.load(Ordering::Relaxed)
    }

    /// Sets how many span cells may be looked at: those that have memory behind them. Before, it is all cells.
    pub(super) fn set_span_cells(&self, cells: usize) {
        // Relaxed: the memory is the kernel's doing, and needs no ordering.
        self.span_cells.store(cells.min(self.capacity), Ordering::Relaxed);
    }

    /// Returns the number of span cells, which is also that of task cells.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the mapping.
    pub(super) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// Returns the word at this offset of the header.
    ///
    /// # Panics
    /// If the offset is not that of a word before the thread cells. Callers pass constants.
    #[inline(always)]
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < layout::THREADS_OFFSET);
        // SAFETY: the offset was checked to be inside of the header section, whose size `new` has checked.
        let word = unsafe { self.words.add(offset) };
        // SAFETY: the word is aligned, because the section begins with a page and the offset is a multiple of 8. It is
        // mapped while `self` lives, and everybody accesses it by atomics.
        unsafe { AtomicU64::from_ptr(word.as_ptr().cast()) }
    }

    /// Returns the cell of the thread with this id. Other threads may have the same cell.
    #[inline(always)]
    pub(super) fn thread(&self, thread_id: u32) -> &Cell {
        self.in_header(layout::THREADS_OFFSET, thread_id as usize % layout::THREAD_CELLS)
    }

    #[inline(always)]
    fn in_header(&self, offset: usize, index: usize) -> &Cell {
        debug_assert!(offset + (index + 1) * CELL_BYTES <= layout::SPANS_OFFSET);
        // SAFETY: both callers pass the offset of an array and an index in it, and the arrays lie inside of the header
        // section (asserted in `layout`), whose size `new` has checked.
        let cell = unsafe { self.words.add(offset + index * CELL_BYTES) };
        // SAFETY: the cell is aligned, because the section begins with a page and all offsets are multiples of 64. It
        // is mapped while `self` lives, everybody accesses it by atomics, and any bytes are valid for atomics.
        unsafe { cell.cast().as_ref() }
    }

    /// Returns the span cell with this index, if there is one that may be looked at.
    #[inline(always)]
    pub(super) fn span(&self, index: usize) -> Option<&Cell> {
        if index >= self.span_cells() {
            return None;
        }
        // SAFETY: the index was checked: `span_cells` is never more than `capacity`, and the context area begins with
        // `capacity` cells, which `new` has checked.
        let cell = unsafe { self.spans.add(index) };
        // SAFETY: as in `in_header`; the context area begins with a page, too.
        Some(unsafe { cell.as_ref() })
    }

    /// Returns the task cell with this index, if there is one.
    #[inline(always)]
    pub(super) fn task(&self, index: usize) -> Option<&TaskCell> {
        if index >= self.capacity {
            return None;
        }
        // SAFETY: in the context area `capacity` task cells follow `capacity` span cells, which `new` has checked.
        let tasks = unsafe { self.spans.add(self.capacity) }.cast::<TaskCell>();
        // SAFETY: the index was checked.
        let cell = unsafe { tasks.add(index) };
        // SAFETY: as in `in_header`: the context area begins with a page, and the cells before have whole words.
        Some(unsafe { cell.as_ref() })
    }
}
