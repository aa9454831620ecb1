//! The span slab has one cell for each open span. A cell has 16 bytes, or 40 bytes with the feature `context`.
//!
//! A cell shows whether its span is open. A closed span is no thread's current span, even if a thread has not exited
//! it.
//!
//! The cell also holds the call site, for `Span::current()`, and the number of handles of the span. A span of a
//! `RecorderSubscriber` closes when its last handle is dropped. A `RecorderLayer` holds one handle for each span, until
//! the `Registry` closes the span.
//!
//! The id of a span has two parts: the index of its cell (the low [`INDEX_BITS`] bits) and the generation of the cell
//! (the bits above). The generation is one higher for each span that uses the cell, so no id is used twice. A cell that
//! has had all generations is never used again.
//!
//! An id has [`ID_BITS`](id::ID_BITS) bits. In the id of a layer's span, [`LAYER_BIT`] is set, too. An `f64`, in which
//! many JSON readers hold numbers, can hold every id exactly.
//!
//! Free cells are in free lists ([`free_list`], [`shared_list`]). The traces of spans are in `trace`; a trace that
//! began in another process is a [`RemoteTrace`].

mod cell;
mod free_list;
mod id;
mod remote_trace;
mod shared_list;
#[cfg(test)]
mod tests;
#[cfg(feature = "context")]
mod trace;
#[cfg(feature = "context")]
mod traces;

use crate::sync::segmented::SegmentedArray;
use crate::sync::{AtomicU64, Ordering};
use cell::SpanCell;
pub(crate) use free_list::FreeList;
use id::{BELOW_LAST_IDS, CLOSED, INDEX_BITS, INDEX_MASK, LAYER_BIT};
pub use remote_trace::{RemoteTrace, TraceId};
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub(crate) use trace::TraceKey;

/// Number of cells of the first block, which takes 1 MiB of address space. In tests the block is smaller, because
/// tests of this module put whole slabs on the stack.
const FIRST_CELLS: u64 = 1 << FIRST_SHIFT;
const FIRST_SHIFT: u32 = if cfg!(test) { 12 } else { 16 };
/// The blocks of cells after the first block. Each block is twice as large as the block before it.
type FurtherCells = SegmentedArray<SpanCell, { FIRST_SHIFT + 1 }, 1, { (INDEX_BITS - FIRST_SHIFT - 1) as usize }>;

/// All cells of the process.
pub(crate) struct SpanSlab {
    /// The first block of cells; most programs need no other. It lies in the slab itself, so few instructions compute
    /// the address of a cell. It consists of zero bytes at the start, and each page takes memory only after its first
    /// use.
    first: [SpanCell; FIRST_CELLS as usize],
    further: FurtherCells,
    /// The index of the first cell that was never used.
    unused: AtomicU64,
    /// The shared free list; see [`shared_list`].
    shared_free_list: AtomicU64,
}

/// The slab of this process. It consists of zero bytes at the start, so it takes no room in the program's file.
pub(crate) static SPAN_SLAB: SpanSlab = SpanSlab::new();

/// The state of a span after one of its handles was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Dropped {
    /// Open span: it has other handles.
    Open,
    /// Closed span: the dropped handle was its last handle. The value is the id of the span's call site.
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

    /// Takes a free cell for a new span, which has one handle. Returns the span's id. Returns `None` and changes
    /// nothing if the thread's free list is empty, or if the last cell of the list is not in the first block.
    #[inline(always)]
    pub(crate) fn try_create<const LAYER: bool>(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        let index = free.pop_if(|index| index < FIRST_CELLS)?;
        Some(self.first.get(index as usize)?.begin::<LAYER>(index, call_site_id))
    }

    /// Takes a free cell for a new span, which has one handle. `LAYER` says whether the span is one of a layer. Returns
    /// the span's id, or `None` if no cell is free.
    #[inline(always)]
    pub(crate) fn create<const LAYER: bool>(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        match self.try_create::<LAYER>(free, call_site_id) {
            Some(id) => Some(id),
            None => self.create_slow::<LAYER>(free, call_site_id),
        }
    }

    #[inline(never)]
    fn create_slow<const LAYER: bool>(&self, free: &FreeList, call_site_id: u32) -> Option<u64> {
        let own;
        let free = if free.is_changing() {
            own = FreeList::ended();
            &own
        } else {
            free
        };
        let index = match free.pop() {
            Some(index) => index,
            None => self.refill(free)?,
        };
        free.release_if_ended(self);
        Some(self.cell(index)?.begin::<LAYER>(index, call_site_id))
    }

    /// Gives a new span the trace of its parent, if traces are kept. A `parent` of 0 means that there is none.
    #[inline(always)]
    pub(crate) fn set_parent(&self, id: u64, parent: u64) {
        #[cfg(feature = "context")]
        self.inherit_trace(id, parent);
        #[cfg(not(feature = "context"))]
        let _ = (self, id, parent);
    }

    /// Returns the call site of an open span. Returns `None` if no open span has this id, or if the span's cell is
    /// not in the first block.
    #[inline(always)]
    pub(crate) fn try_call_site_id(&self, id: u64) -> Option<u32> {
        self.first.get((id & INDEX_MASK) as usize)?.call_site_id_of(id)
    }

    /// Returns the call site of the open span with this id. Returns 0 if no open span has this id.
    #[inline(always)]
    pub(crate) fn call_site_id(&self, id: u64) -> u32 {
        self.cell(id & INDEX_MASK).and_then(|cell| cell.call_site_id_of(id)).unwrap_or(0)
    }

    /// Counts a new handle of an open span. Does nothing if no open span has this id.
    #[inline]
    pub(crate) fn add_handle(&self, id: u64) {
        if let Some(cell) = self.cell(id & INDEX_MASK)
            && cell.id.load(Ordering::Relaxed) == id
        {
            // The caller may have no handle: `Span::current()` makes a handle of the thread's current span, which
            // another thread may close at this moment. A cell that has become free stays as it is.
            let _ = cell.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, SpanCell::with_another_handle);
        }
    }

    /// Drops a handle of a span: lowers the handle count by one. If this was the last handle, frees the cell.
    #[inline(always)]
    pub(crate) fn drop_handle(&self, free: &FreeList, id: u64) -> Dropped {
        self.drop_handle_and(free, id, || ())
    }

    /// Drops a handle of a span like [`Self::drop_handle`]. If this was the last handle, calls `ended` before
    /// another span may have the cell.
    #[inline(always)]
    pub(crate) fn drop_handle_and(&self, free: &FreeList, id: u64, ended: impl FnOnce()) -> Dropped {
        let index = id & INDEX_MASK;
        let Some(cell) = self.cell(index) else { return Dropped::Unknown };
        if cell.id.load(Ordering::Relaxed) != id {
            return Dropped::Unknown;
        }
        // Acquire, pairs with the release in the decrement below. What other threads did before they dropped their
        // handles happens before this thread closes the span.
        let mut state = cell.state.load(Ordering::Acquire);
        if state as u32 > 1 {
            // Other threads may drop handles at the same time, so the count is lowered atomically. The thread that
            // lowers the count from 1 has dropped the last handle. If the loaded count was 1, the count need not be
            // lowered: this thread has the only handle, and a new handle can only be made from a handle.
            state = cell.state.fetch_sub(1, Ordering::AcqRel);
        }
        match state as u32 {
            0 => Dropped::Unknown,
            1 => {
                let call_site_id = (state >> 32) as u32;
                cell.id.store(id | CLOSED, Ordering::Relaxed);
                ended();
                if id & !LAYER_BIT <= BELOW_LAST_IDS {
                    self.free(free, index);
                }
                Dropped::Last(call_site_id)
            }
            _ => Dropped::Open,
        }
    }

    /// Drops the handle of a span that has only one handle, and frees its cell. Returns the call site of the span.
    /// Returns `None` and changes nothing in any other case: there are other handles, the cell is not in the first
    /// block, the cell has had its last generation, or the thread's free list has no room. Calls `ended` before
    /// another span may have the cell.
    #[inline(always)]
    pub(crate) fn try_drop_only_handle(&self, free: &FreeList, id: u64, ended: impl FnOnce()) -> Option<u32> {
        let index = id & INDEX_MASK;
        let cell = self.first.get(index as usize)?;
        if cell.id.load(Ordering::Relaxed) != id {
            return None;
        }
        // Acquire, as in `drop_handle`.
        let state = cell.state.load(Ordering::Acquire);
        let call_site_id = (state >> 32) as u32;
        if state as u32 != 1 || id > BELOW_LAST_IDS {
            return None;
        }
        let place = free.try_begin_push()?;
        cell.id.store(id | CLOSED, Ordering::Relaxed);
        ended();
        free.end_push(place, index);
        Some(call_site_id)
    }

    /// Closes an open span of a layer, and frees its cell. Returns false and changes nothing if the cell is not in the
    /// first block or has had its last generation, or if the thread's free list has no room. Calls `ended` before
    /// another span may have the cell.
    #[inline(always)]
    pub(crate) fn try_close_of_layer(&self, free: &FreeList, id: u64, ended: impl FnOnce()) -> bool {
        let index = id & INDEX_MASK;
        let Some(cell) = self.first.get(index as usize) else { return false };
        let place = if id & !LAYER_BIT > BELOW_LAST_IDS { None } else { free.try_begin_push() };
        let Some(place) = place else { return false };
        cell.id.store(id | CLOSED, Ordering::Relaxed);
        ended();
        free.end_push(place, index);
        true
    }

    /// Returns true if the span with this id is open. Another thread may close the span at any time, unless the caller
    /// has a handle.
    #[inline(always)]
    pub(crate) fn is_open(&self, id: u64) -> bool {
        self.cell(id & INDEX_MASK).is_some_and(|cell| cell.id.load(Ordering::Relaxed) == id)
    }

    /// Returns true if the span with this id is open and its cell is in the first block.
    #[inline(always)]
    pub(crate) fn try_is_open(&self, id: u64) -> bool {
        self.first.get((id & INDEX_MASK) as usize).is_some_and(|cell| cell.id.load(Ordering::Relaxed) == id)
    }

    /// Calls `f` with the id and the call site of each open span of a subscriber. If a span opens or closes during the
    /// call, `f` may or may not get it.
    pub(crate) fn for_each_open(&self, mut f: impl FnMut(u64, u32)) {
        let end = self.unused.load(Ordering::Relaxed);
        let cells = (0..end).filter_map(|index| self.cell(index));
        let open = cells.filter_map(SpanCell::open_span).filter(|(id, _)| id & LAYER_BIT == 0);
        open.for_each(|(id, call_site_id)| f(id, call_site_id));
    }

    #[inline(always)]
    fn cell(&self, index: u64) -> Option<&SpanCell> {
        self.first.get(index as usize).or_else(|| self.further_cell(index))
    }

    #[inline(never)]
    fn further_cell(&self, index: u64) -> Option<&SpanCell> {
        self.further.get(index.checked_sub(FIRST_CELLS)? as usize)
    }

    /// Makes the block of the cell with this index if the block does not exist yet. Returns `None` if the slab can
    /// have no such cell.
    fn make_block_of(&self, index: u64) -> Option<()> {
        let Some(further) = index.checked_sub(FIRST_CELLS) else { return Some(()) };
        self.further.get_or_make(further as usize, |_| SpanCell::new()).map(|_| ())
    }
}
