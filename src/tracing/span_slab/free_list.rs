//! Free cells: a free list for each thread, and a shared free list.
//!
//! A thread takes cells from its own free list and puts them back there, without a locked instruction. Surplus cells go
//! to the shared free list, and a thread without cells takes some from there, in chains of [`CHAIN`] cells.

use super::cell::link;
use super::{INDEX_BITS, INDEX_MASK, NO_CELL, SpanSlab};
use crate::sync::Ordering;
use std::cell::Cell;

/// Number of cells that move together between a thread's free list and the shared free list.
pub(super) const CHAIN: u32 = 64;
/// Largest number of cells in the free list of a thread.
const LEN_MAX: usize = 2 * CHAIN as usize;

/// The free list of a thread.
#[repr(C)]
pub(in crate::tracing) struct FreeList {
    len: Cell<u32>,
    indices: [Cell<u32>; LEN_MAX],
    /// True while the thread ends. From then on its free list stays empty, because nobody would give back its cells.
    has_ended: Cell<bool>,
}

impl FreeList {
    pub(in crate::tracing) const fn new() -> Self {
        Self { len: Cell::new(0), indices: [const { Cell::new(0) }; LEN_MAX], has_ended: Cell::new(false) }
    }

    /// Returns the index of the last cell, and the length without that cell.
    #[inline(always)]
    pub(super) fn last(&self) -> Option<(u64, u32)> {
        let len = self.len.get().checked_sub(1)?;
        self.indices.get(len as usize).map(|index| (index.get().into(), len))
    }

    #[inline(always)]
    pub(super) fn truncate(&self, len: u32) {
        self.len.set(len);
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<u64> {
        let (index, len) = self.last()?;
        self.truncate(len);
        Some(index)
    }

    /// Adds a cell; returns false if there is no room.
    #[inline(always)]
    pub(super) fn push(&self, index: u64) -> bool {
        let len = self.len.get();
        let Some(last) = self.indices.get(len as usize) else { return false };
        // Indices have 24 bits, so the cast loses nothing.
        last.set(index as u32);
        self.len.set(len + 1);
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> u32 {
        self.len.get()
    }

    /// Moves all cells to the shared free list, at the thread's end. Cells that later destructors of the thread take
    /// and put back do not stay in the thread's free list either.
    pub(in crate::tracing) fn end(&self, slab: &SpanSlab) {
        self.has_ended.set(true);
        self.release_if_ended(slab);
    }

    /// Returns true while the thread ends, after [`Self::end`].
    pub(in crate::tracing) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    pub(super) fn release_if_ended(&self, slab: &SpanSlab) {
        if !self.has_ended.get() {
            return;
        }
        while self.len.get() > 0 {
            slab.push_chain(self);
        }
    }
}

/// The shared free list is a stack of chains. One word holds the first cell of the first chain (low bits), and a number
/// that changes with each change of the word (high bits).
impl SpanSlab {
    /// Finds cells for a thread that has none, in the shared free list or among the cells that were never used. Returns
    /// one cell; the other cells go to the thread's free list.
    #[cold]
    #[inline(never)]
    pub(super) fn refill(&self, free: &FreeList) -> Option<u64> {
        if let Some(first) = self.pop_chain() {
            let mut next = self.cell(first)?.next_cell();
            while next != NO_CELL {
                free.push(next);
                next = self.cell(next)?.next_cell();
            }
            return Some(first);
        }
        let first = self.unused.fetch_add(u64::from(CHAIN), Ordering::Relaxed);
        // All cells of the chain are in one block, because the sizes of chains and blocks are powers of two. So making
        // the block of the first cell is enough.
        if self.make_block_of(first).is_none() {
            self.unused.fetch_sub(u64::from(CHAIN), Ordering::Relaxed);
            return None;
        }
        for more in 1..u64::from(CHAIN) {
            free.push(first + more);
        }
        Some(first)
    }

    /// Puts a cell that has become free into the thread's free list. If that list is full, moves a chain to the shared
    /// free list first.
    #[inline(always)]
    pub(super) fn free(&self, free: &FreeList, index: u64) {
        if !free.push(index) {
            self.push_chain(free);
            free.push(index);
        }
        free.release_if_ended(self);
    }

    /// Moves up to [`CHAIN`] cells of a thread to the shared free list.
    #[cold]
    #[inline(never)]
    fn push_chain(&self, free: &FreeList) {
        let mut first = NO_CELL;
        for _ in 0..CHAIN {
            let Some(index) = free.pop() else { break };
            if let Some(cell) = self.cell(index) {
                cell.state.store(link(first, NO_CELL), Ordering::Relaxed);
                first = index;
            }
        }
        let Some(cell) = self.cell(first) else { return };
        let second = cell.next_cell();
        let mut shared = self.shared_free_list.load(Ordering::Relaxed);
        loop {
            cell.state.store(link(second, first_chain(shared)), Ordering::Relaxed);
            // Release, pairs with the acquire in `pop_chain`, so that all stores to the cells of the chain and to their
            // links happen before another thread uses the cells.
            let new = changed(shared, first);
            match self.shared_free_list.compare_exchange_weak(shared, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => shared = now,
            }
        }
    }

    /// Takes a chain from the shared free list; returns the chain's first cell.
    fn pop_chain(&self) -> Option<u64> {
        // Acquire, here and below, pairs with the release in `push_chain`.
        let mut shared = self.shared_free_list.load(Ordering::Acquire);
        loop {
            let first = first_chain(shared);
            if first == NO_CELL {
                return None;
            }
            // If another thread has taken the chain since the word was loaded, the cell may be in use, and `next` may
            // be any value. In that case the number in the word has changed, so the exchange fails and `next` is not
            // used.
            let next = self.cell(first)?.next_chain();
            let new = changed(shared, next);
            match self.shared_free_list.compare_exchange_weak(shared, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(first),
                Err(now) => shared = now,
            }
        }
    }
}

/// Returns the index of the first cell of the first chain, or [`NO_CELL`] if there is no chain. `shared` is the shared
/// free list's word. The word holds the index in an encoding in which 0 means no cell, so that the word of an empty
/// slab is 0.
fn first_chain(shared: u64) -> u64 {
    shared & INDEX_MASK ^ NO_CELL
}

/// Returns the shared free list's word after `shared`, with another first chain.
fn changed(shared: u64, first: u64) -> u64 {
    ((shared >> INDEX_BITS) + 1) << INDEX_BITS | (first & INDEX_MASK ^ NO_CELL)
}
