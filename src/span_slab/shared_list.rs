//! The free list that all threads share: a stack of chains, described by one word. The low bits of the word hold the
//! index of the first chain's first cell. The high bits change with every change of the word.

use super::SpanSlab;
use super::cell::link;
use super::free_list::{CHAIN, FreeList};
use super::id::{INDEX_BITS, INDEX_MASK, NO_CELL};
use crate::sync::Ordering;

impl FreeList {
    /// Moves all cells to the shared free list, because the thread ends. Destructors that run later on the thread may
    /// still take cells and put them back. These cells are moved to the shared free list, too.
    pub(crate) fn end(&self, slab: &SpanSlab) {
        self.has_ended.set(true);
        self.release_if_ended(slab);
    }

    pub(super) fn release_if_ended(&self, slab: &SpanSlab) {
        // Whoever is interrupted in a change releases the cells after it.
        if !self.has_ended.get() || self.is_changing() {
            return;
        }
        while self.len.get() > 0 {
            slab.push_chain(self);
        }
    }
}

impl SpanSlab {
    /// Finds cells for a thread whose free list is empty: a chain from the shared free list, or cells that were never
    /// used. Returns one cell and puts the others into the thread's free list. Returns `None` if there are no such
    /// cells.
    #[cold]
    #[inline(never)]
    pub(super) fn refill(&self, free: &FreeList) -> Option<u64> {
        if let Some(first) = self.pop_chain() {
            let mut next = self.cell(first)?.next_cell();
            while next != NO_CELL {
                // Code that interrupts the thread may use a cell of the list at once, so its link is read before.
                let index = next;
                next = self.cell(index)?.next_cell();
                self.put(free, index);
            }
            return Some(first);
        }
        let first = self.unused.fetch_add(u64::from(CHAIN), Ordering::Relaxed);
        // The new chain begins at a multiple of `CHAIN`, and so does every block. So all cells of the chain lie in
        // the same block, and it is enough to make the block of `first`.
        if self.make_block_of(first).is_none() {
            self.unused.fetch_sub(u64::from(CHAIN), Ordering::Relaxed);
            return None;
        }
        for more in 1..u64::from(CHAIN) {
            self.put(free, first + more);
        }
        Some(first)
    }

    /// Puts a cell that has become free into the thread's free list. If the list is full, first moves a chain from it
    /// to the shared free list.
    #[inline(always)]
    pub(super) fn free(&self, free: &FreeList, index: u64) {
        self.put(free, index);
        free.release_if_ended(self);
    }

    #[inline(always)]
    fn put(&self, free: &FreeList, index: u64) {
        if !free.push(index) {
            self.put_slow(free, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_slow(&self, free: &FreeList, index: u64) {
        if free.is_changing() {
            return self.free(&FreeList::ended(), index);
        }
        self.push_chain(free);
        free.push(index);
    }

    /// Moves a chain of cells from a thread's free list to the shared free list: [`CHAIN`] cells, or all if the
    /// thread has fewer.
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
            // Release, pairs with the acquire in `pop_chain`: all stores to the cells of the chain, and to their
            // links, happen before another thread uses the cells.
            let new = changed(shared, first);
            match self.shared_free_list.compare_exchange_weak(shared, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => shared = now,
            }
        }
    }

    /// Takes the first chain from the shared free list. Returns the chain's first cell, or `None` if there is no
    /// chain.
    fn pop_chain(&self) -> Option<u64> {
        // Acquire, here and in the exchange below, pairs with the release in `push_chain`.
        let mut shared = self.shared_free_list.load(Ordering::Acquire);
        loop {
            let first = first_chain(shared);
            if first == NO_CELL {
                return None;
            }
            // Another thread may have taken this chain since `shared` was loaded. Then the cell may be in use, and
            // `next` may be any value. But then the number in the word has changed, so the exchange fails, and `next`
            // is not used.
            let next = self.cell(first)?.next_chain();
            let new = changed(shared, next);
            match self.shared_free_list.compare_exchange_weak(shared, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(first),
                Err(now) => shared = now,
            }
        }
    }
}

/// Returns the index of the first chain's first cell, or [`NO_CELL`] if there is no chain. `shared` is the word of the
/// shared free list. The word holds the exclusive or of the index and `NO_CELL`. So the word of a new slab, which is
/// 0, means that there is no chain.
fn first_chain(shared: u64) -> u64 {
    shared & INDEX_MASK ^ NO_CELL
}

/// Returns the new word of the shared free list. `shared` is the old word. In the new word, the first chain begins with
/// the cell `first`, and the number is one higher than in the old word.
fn changed(shared: u64, first: u64) -> u64 {
    ((shared >> INDEX_BITS) + 1) << INDEX_BITS | (first & INDEX_MASK ^ NO_CELL)
}
