//! The span slab: one cell of 16 bytes for each open span of a `RecorderSubscriber`.
//!
//! A cell holds the handle count of its span, because a subscriber must report when the last handle is gone. It also
//! holds the call site, because `Span::current()` asks for the metadata of a span by its id alone.
//!
//! The id of a span consists of the index of its cell (low [`INDEX_BITS`] bits) and the cell's generation (the bits
//! above). The generation counts how often the cell was used, so that no id is ever used twice. A cell whose
//! generations are used up is never used again. Ids have [`ID_BITS`] bits; ids of `RecorderLayer` have the next higher
//! bit set. An `f64`, as JSON readers use for numbers, holds both kinds of ids exactly.
//!
//! Free cells are in free lists ([`free_list`]).

mod cell;
mod free_list;
#[cfg(test)]
mod tests;

use crate::segmented::SegmentedArray;
use crate::sync::{AtomicU64, Ordering};
use cell::SpanCell;
pub(super) use free_list::FreeList;

/// Bits of a cell's index: nearly 2^24 spans can be open at a time, in 256 MiB.
const INDEX_BITS: u32 = 24;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// Bits of an id.
pub(super) const ID_BITS: u32 = 52;
/// The last generation of a cell: 2^28 uses. A thread that only makes spans needs half a minute for them.
const GENERATION_MAX: u64 = if cfg!(test) { 1000 } else { (1 << (ID_BITS - INDEX_BITS)) - 1 };
/// Bound that separates the last id of each cell from all its other ids: only the last ids are larger. (The bound does
/// not end in zeros, because the comparison would then take one instruction more. It may end in other bits, because no
/// cell has the index [`NO_CELL`].)
const BELOW_LAST_IDS: u64 = (GENERATION_MAX << INDEX_BITS) - 2;
/// Number of cells of the first block, which takes 1 MiB of addresses. In tests the block has fewer cells, because
/// tests of this module have whole slabs on the stack.
const FIRST_CELLS: u64 = 1 << FIRST_SHIFT;
const FIRST_SHIFT: u32 = if cfg!(test) { 12 } else { 16 };
/// The cells after the first block. Each of their blocks is twice as large as the block before it.
type FurtherCells = SegmentedArray<SpanCell, { FIRST_SHIFT + 1 }, 1, { (INDEX_BITS - FIRST_SHIFT - 1) as usize }>;
/// Index that means no cell.
const NO_CELL: u64 = INDEX_MASK;

/// All cells of the process.
pub(super) struct SpanSlab {
    /// First block of cells. It lies in the program's zeroed memory, whose pages take no memory until they are used.
    /// The address of its cells needs few instructions, and most programs need no other block.
    first: [SpanCell; FIRST_CELLS as usize],
    further: FurtherCells,
    /// The index of the first cell that was never used.
    unused: AtomicU64,
    /// The shared free list; see [`free_list`].
    shared_free_list: AtomicU64,
}

/// The slab of this process. All of its bytes are zero at the start, so it takes no room in the program's file.
pub(super) static SPAN_SLAB: SpanSlab = SpanSlab::new();

/// The state of a span after one of its handles was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dropped {
    /// Open span: it has other handles.
    Open,
    /// Closed span, because the dropped handle was its last handle. The value is the span's call site.
    Last(u32),
    /// Unknown id, which no open span has.
    Unknown,
}

impl SpanSlab {
    const fn new() -> Self {
        Self {
            first: [const { SpanCell::new() }; FIRST_CELLS as usize],
            further: FurtherCells::new(),
            unused: AtomicU64::new(0),
            shared_free_list: AtomicU64::new(0),
        }
    }

    /// Takes a cell for a new span with one handle, and returns the span's id. Returns `None` and changes nothing if
    /// the thread's free list is empty or its last cell is not in the first block.
    #[inline(always)]
    pub(super) fn try_create(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        let (index, len) = free.last()?;
        let cell = self.first.get(index as usize)?;
        free.truncate(len);
        Some(cell.begin(index, call_site_id))
    }

    /// Takes a cell for a new span with one handle, and returns the span's id. Returns `None` if the largest number of
    /// spans is open.
    #[inline(always)]
    pub(super) fn create(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        match self.try_create(free, call_site_id) {
            Some(id) => Some(id),
            None => self.create_slow(free, call_site_id),
        }
    }

    #[inline(never)]
    fn create_slow(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        let index = match free.pop() {
            Some(index) => index,
            None => self.refill(free)?,
        };
        free.release_if_ended(self);
        Some(self.cell(index)?.begin(index, call_site_id))
    }

    /// Returns the call site of an open span; `None` if there is no such span, or its cell is not in the first block.
    #[inline(always)]
    pub(super) fn try_call_site_id(&self, id: u64) -> Option<u32> {
        self.first.get((id & INDEX_MASK) as usize)?.call_site_id_of(id)
    }

    /// Returns the call site of the open span with this id, or 0 if there is no such span.
    #[inline(always)]
    pub(super) fn call_site_id(&self, id: u64) -> u32 {
        self.cell(id & INDEX_MASK).and_then(|cell| cell.call_site_id_of(id)).unwrap_or(0)
    }

    /// Counts another handle of an open span.
    #[inline]
    pub(super) fn add_handle(&self, id: u64) {
        if let Some(cell) = self.cell(id & INDEX_MASK)
            && cell.id.load(Ordering::Relaxed) == id
        {
            cell.state.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts down the handles of a span, and frees the cell of the span if the handle was the last handle.
    #[inline(always)]
    pub(super) fn drop_handle(&self, free: &FreeList, id: u64) -> Dropped {
        let index = id & INDEX_MASK;
        let Some(cell) = self.cell(index) else { return Dropped::Unknown };
        if cell.id.load(Ordering::Relaxed) != id {
            return Dropped::Unknown;
        }
        // Acquire, pairs with the release in the decrement below. So everything that other threads did before they
        // dropped their handles happens before this thread closes the span.
        let mut state = cell.state.load(Ordering::Acquire);
        if state as u32 > 1 {
            // Other threads may drop handles at the same time, so the count is decremented atomically, and the thread
            // that takes the count to 0 dropped the last handle. If the count is 1, this branch is not needed: no other
            // thread has a handle, and a handle can only be made from a handle.
            state = cell.state.fetch_sub(1, Ordering::AcqRel);
        }
        match state as u32 {
            0 => Dropped::Unknown,
            1 => {
                cell.state.store(0, Ordering::Relaxed);
                if id <= BELOW_LAST_IDS {
                    self.free(free, index);
                }
                Dropped::Last((state >> 32) as u32)
            }
            _ => Dropped::Open,
        }
    }

    /// Drops the only handle of a span, and returns its call site. Returns `None` and changes nothing if there are
    /// other handles, if the cell is not in the first block, or if the thread's free list has no room for the cell.
    #[inline(always)]
    pub(super) fn try_drop_only_handle(&self, free: &FreeList, id: u64) -> Option<u32> {
        let index = id & INDEX_MASK;
        let cell = self.first.get(index as usize)?;
        if cell.id.load(Ordering::Relaxed) != id {
            return None;
        }
        // Acquire, as in `drop_handle`.
        let state = cell.state.load(Ordering::Acquire);
        if state as u32 != 1 || id > BELOW_LAST_IDS || !free.push(index) {
            return None;
        }
        cell.state.store(0, Ordering::Relaxed);
        Some((state >> 32) as u32)
    }

    #[inline(always)]
    fn cell(&self, index: u64) -> Option<&SpanCell> {
        self.first.get(index as usize).or_else(|| self.further_cell(index))
    }

    #[inline(never)]
    fn further_cell(&self, index: u64) -> Option<&SpanCell> {
        self.further.get(index.checked_sub(FIRST_CELLS)? as usize)
    }

    /// Makes the block that holds the cell with this index, if the block does not exist. Returns `None` if the slab has
    /// no such cell.
    fn make_block_of(&self, index: u64) -> Option<()> {
        let Some(further) = index.checked_sub(FIRST_CELLS) else { return Some(()) };
        self.further.get_or_make(further as usize, |_| SpanCell::new()).map(|_| ())
    }
}
