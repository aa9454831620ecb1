//! One cell of the span slab.

use super::id::{CLOSED, GENERATION_MASK, INDEX_BITS, INDEX_MASK, LAYER_BIT};
use crate::sync::{AtomicU64, Ordering};

/// A cell, which belongs to an open span or is free.
pub(super) struct SpanCell {
    /// The id of the cell's open span. In a free cell: the id of its last span with the bit [`CLOSED`], or 0.
    pub(super) id: AtomicU64,
    /// In a cell that is in use: the id of the call site (high half) and the number of the span's handles (low half),
    /// which is never 0. In a free cell of the shared free list: a [`link`] to the next free cells. In any other free
    /// cell: any value.
    pub(super) state: AtomicU64,
    /// The trace of the cell's span.
    #[cfg(feature = "context")]
    pub(super) trace: super::trace::CellTrace,
}

/// Makes the state of a free cell of the shared free list, in which free cells form chains. `next_cell` is the next
/// cell of the same chain. In the first cell of a chain, `next_chain` is the first cell of the next chain.
pub(super) fn link(next_cell: u64, next_chain: u64) -> u64 {
    LINK | next_chain << 32 | next_cell
}

/// Bit of the state that only links have: ids of call sites are smaller.
const LINK: u64 = 1 << 63;

impl SpanCell {
    pub(super) const fn new() -> Self {
        Self {
            id: AtomicU64::new(0),
            state: AtomicU64::new(0),
            #[cfg(feature = "context")]
            trace: super::trace::CellTrace::new(),
        }
    }

    /// Returns the call site of the span with this id. Returns `None` if this cell does not belong to that span, or the
    /// span is closed.
    #[inline(always)]
    pub(super) fn call_site_id_of(&self, id: u64) -> Option<u32> {
        (self.id.load(Ordering::Relaxed) == id).then(|| (self.state.load(Ordering::Relaxed) >> 32) as u32)
    }

    /// Returns the id and the call site of the cell's span. Returns `None` if the cell is free. Another thread may
    /// open or close a span meanwhile: then this is what the cell held before or after.
    pub(super) fn open_span(&self) -> Option<(u64, u32)> {
        let (id, state) = (self.id.load(Ordering::Relaxed), self.state.load(Ordering::Relaxed));
        (id & CLOSED == 0 && Self::with_another_handle(state).is_some()).then_some((id, (state >> 32) as u32))
    }

    /// Returns the state of an open span with one handle more. Returns `None` if `state` is that of a free cell.
    pub(super) fn with_another_handle(state: u64) -> Option<u64> {
        (state & LINK == 0 && state as u32 != 0).then_some(state + 1)
    }

    /// Begins a new span in this free cell, with one handle. `index` is the index of the cell. Returns the span's id,
    /// which has the cell's next generation, and [`LAYER_BIT`] if the span is one of a layer.
    #[inline(always)]
    pub(super) fn begin<const LAYER: bool>(&self, index: u64, call_site_id: u32) -> u64 {
        // Relaxed, here and in all places where no comment names another ordering. A cell passes from one thread to
        // another in two ways only: with a handle of its span, or through the shared free list. Both ways make the
        // stores of the first thread happen before the loads of the second.
        let plain = self.id.load(Ordering::Relaxed).wrapping_add(1 << INDEX_BITS) & GENERATION_MASK | index;
        let id = if LAYER { plain | LAYER_BIT } else { plain };
        self.id.store(id, Ordering::Relaxed);
        self.state.store(u64::from(call_site_id) << 32 | 1, Ordering::Relaxed);
        id
    }

    /// Returns the next cell of the same chain. Call this only on a free cell.
    pub(super) fn next_cell(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & 0xffff_ffff
    }

    /// Returns the first cell of the next chain. Call this only on a free cell that is the first cell of its chain.
    pub(super) fn next_chain(&self) -> u64 {
        self.state.load(Ordering::Relaxed) >> 32 & INDEX_MASK
    }
}
