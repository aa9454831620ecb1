//! One cell of the span slab.

use super::{INDEX_BITS, INDEX_MASK};
use crate::sync::{AtomicU64, Ordering};

/// A cell, which belongs to an open span or is free.
pub(super) struct SpanCell {
    /// The id of the cell's span, or of its last span.
    pub(super) id: AtomicU64,
    /// If the cell is in use, the call site's id (high half) and the handle count (low half), which is never 0. If the
    /// cell is free, a [`link`] to other free cells.
    pub(super) state: AtomicU64,
}

/// Makes the state of a free cell that is in the shared free list: the next cell of its chain and, in the first cell of
/// a chain, the first cell of the next chain.
pub(super) fn link(next_cell: u64, next_chain: u64) -> u64 {
    next_chain << 32 | next_cell
}

impl SpanCell {
    pub(super) const fn new() -> Self {
        Self { id: AtomicU64::new(0), state: AtomicU64::new(0) }
    }

    /// Returns the call site of the span with this id, if the span has this cell.
    #[inline(always)]
    pub(super) fn call_site_id_of(&self, id: u64) -> Option<u32> {
        (self.id.load(Ordering::Relaxed) == id).then(|| (self.state.load(Ordering::Relaxed) >> 32) as u32)
    }

    /// Begins a span with one handle in this cell, which is free. `index` is the cell's index. Returns the span's id,
    /// which has the cell's next generation.
    #[inline(always)]
    pub(super) fn begin(&self, index: u64, call_site_id: u32) -> u64 {
        // Relaxed, here and wherever no comment says otherwise. A cell passes from thread to thread only with a handle
        // of its span or through the shared free list. Either way, the stores of the first thread happen before the
        // loads of the next thread.
        let id = self.id.load(Ordering::Relaxed).wrapping_add(1 << INDEX_BITS) & !INDEX_MASK | index;
        self.id.store(id, Ordering::Relaxed);
        self.state.store(u64::from(call_site_id) << 32 | 1, Ordering::Relaxed);
        id
    }

    /// Returns the next cell of the chain. Call this only on a free cell.
    pub(super) fn next_cell(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & 0xffff_ffff
    }

    /// Returns the first cell of the next chain. Call this only on a free cell that is the first cell of its chain.
    pub(super) fn next_chain(&self) -> u64 {
        self.state.load(Ordering::Relaxed) >> 32
    }
}
