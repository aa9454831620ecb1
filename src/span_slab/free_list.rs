//! The free cells of the span slab. Each thread has a free list of its own, and all threads share one further list, the
//! *shared free list*.
//!
//! A thread takes a cell from its own free list and returns the cell to this list, without a locked instruction. If the
//! list gets too long, the thread moves a chain of [`CHAIN`] cells to the shared free list. If the list is empty, the
//! thread takes a chain from the shared free list.

use super::SpanSlab;
use super::cell::link;
use super::id::{INDEX_BITS, INDEX_MASK, NO_CELL};
use crate::sync::{Ordering, compiler_fence};
use std::cell::Cell;

/// Length of a chain: how many cells move together between a thread's free list and the shared free list.
pub(super) const CHAIN: u32 = 64;
/// Largest number of cells in the free list of a thread.
const LEN_MAX: usize = 2 * CHAIN as usize;

/// Bit of the length of a list that is being changed. No index of the list is so large.
const CHANGING: u32 = 1 << 31;

/// The place in a list at which a cell is added.
#[derive(Clone, Copy)]
pub(super) struct Place<'l> {
    index: &'l Cell<u32>,
    len: u32,
}

/// The free list of a thread.
#[repr(C)]
pub(crate) struct FreeList {
    /// The length; with [`CHANGING`] during a change. Code that interrupts a change uses a list of its own
    /// ([`FreeList::ended`]).
    len: Cell<u32>,
    indices: [Cell<u32>; LEN_MAX],
    /// True after the thread has begun to end. From then on the list is kept empty: nobody would give back the cells
    /// that were left in it.
    has_ended: Cell<bool>,
}

impl FreeList {
    pub(crate) const fn new() -> Self {
        Self { len: Cell::new(0), indices: [const { Cell::new(0) }; LEN_MAX], has_ended: Cell::new(false) }
    }

    /// Makes a list that keeps no cell, for code that has interrupted a change of the thread's list.
    pub(super) fn ended() -> Self {
        let list = Self::new();
        list.has_ended.set(true);
        list
    }

    /// Returns true if the thread has been interrupted in the middle of a change of this list.
    #[inline(always)]
    pub(super) fn is_changing(&self) -> bool {
        self.len.get() & CHANGING != 0
    }

    /// Removes the last cell and returns its index, if `is_wanted` returns true for it. Returns `None` and changes
    /// nothing if the list is empty, or is being changed.
    #[inline(always)]
    pub(super) fn pop_if(&self, is_wanted: impl FnOnce(u64) -> bool) -> Option<u64> {
        let len = self.len.get();
        // No index is so large if the list is empty, or is being changed.
        let last = self.indices.get(len.wrapping_sub(1) as usize)?;
        self.begin_change(len);
        let index = last.get().into();
        let is_wanted = is_wanted(index);
        self.end_change(if is_wanted { len - 1 } else { len });
        is_wanted.then_some(index)
    }

    /// Marks the list of this length as being changed.
    #[inline(always)]
    fn begin_change(&self, len: u32) {
        self.len.set(len | CHANGING);
        // A signal handler sees the stores of its thread in their order, if the compiler keeps this order.
        compiler_fence(Ordering::SeqCst);
    }

    /// Sets the length after a change.
    #[inline(always)]
    fn end_change(&self, len: u32) {
        compiler_fence(Ordering::SeqCst);
        self.len.set(len);
    }

    #[inline(always)]
    pub(super) fn pop(&self) -> Option<u64> {
        self.pop_if(|_| true)
    }

    /// Adds a cell. Returns false and changes nothing if there is no room, or if the list is being changed.
    #[inline(always)]
    pub(super) fn push(&self, index: u64) -> bool {
        let place = self.try_begin_push();
        place.into_iter().for_each(|place| self.end_push(place, index));
        place.is_some()
    }

    /// Begins a change that adds a cell. Returns `None` and changes nothing if there is no room, or if the list is
    /// already being changed by the code that this call interrupts. Otherwise close the cell, and then call
    /// [`Self::end_push`] with what was returned. (Two functions, because the compiler makes a closure a function of
    /// its own.)
    #[inline(always)]
    pub(super) fn try_begin_push(&self) -> Option<Place<'_>> {
        let len = self.len.get();
        let index = self.indices.get(len as usize)?;
        self.begin_change(len);
        Some(Place { index, len })
    }

    /// Adds the index of a cell at the place that [`Self::try_begin_push`] has returned.
    #[inline(always)]
    pub(super) fn end_push(&self, place: Place<'_>, index: u64) {
        // Indices have 24 bits, so the cast loses nothing.
        place.index.set(index as u32);
        self.end_change(place.len + 1);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> u32 {
        self.len.get()
    }

    /// Moves all cells to the shared free list, because the thread ends. Destructors that run later on the thread may
    /// still take cells and put them back. These cells are moved to the shared free list, too.
    pub(crate) fn end(&self, slab: &SpanSlab) {
        self.has_ended.set(true);
        self.release_if_ended(slab);
    }

    /// Returns true while the thread ends, after [`Self::end`].
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
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

/// The shared free list is a stack of chains, described by one word. The low bits hold the index of the first chain's
/// first cell. The high bits hold a number that changes with every change of the word.
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
