//! The free cells of the span slab. Each thread has its own free list, and all threads share the *shared free list*
//! ([`shared_list`](super::shared_list)).
//!
//! A thread takes a cell from its own list and puts a freed cell into this list, without a locked instruction. If the
//! list is full, the thread moves a chain of [`CHAIN`] cells to the shared list. If the list is empty, it takes a chain
//! from the shared list, or unused cells.

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
    pub(super) len: Cell<u32>,
    indices: [Cell<u32>; LEN_MAX],
    /// True after the thread has begun to end. From then on the list is kept empty: nobody would give back the cells
    /// that were left in it.
    pub(super) has_ended: Cell<bool>,
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

    /// Returns true while the thread ends, after [`Self::end`].
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}
