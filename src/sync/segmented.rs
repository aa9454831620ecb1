//! An array that grows by blocks. Elements never move, and a lookup takes no lock.

use crate::sync::locked_section::LockedSection;
use once_cell::race::OnceBox;
// Models use this mutex of `std`, too. The model checker does not see the mutex. This does no harm, because models make
// all blocks before they start threads.
use std::sync::{Mutex, PoisonError};

/// An array of at most `BLOCKS` blocks. Each block is made when it is first needed and lives as long as the array.
///
/// The first block has `1 << FIRST_SHIFT` elements. Every further block has `1 << GROWTH_SHIFT` times as many elements
/// as the block before it. If `GROWTH_SHIFT` is 0, all blocks have the same length.
///
/// As long as an array has no blocks, all its bytes are zero. So a `static` array takes no space in the program's
/// file.
pub(crate) struct SegmentedArray<T, const FIRST_SHIFT: u32, const GROWTH_SHIFT: u32, const BLOCKS: usize> {
    blocks: [OnceBox<Box<[T]>>; BLOCKS],
    /// Lock that a thread holds while it makes a block. So if several threads need the same new block, only one of
    /// them allocates it, unless one of them is inside a locked section.
    making: Mutex<()>,
}

impl<T, const FIRST_SHIFT: u32, const GROWTH_SHIFT: u32, const BLOCKS: usize>
    SegmentedArray<T, FIRST_SHIFT, GROWTH_SHIFT, BLOCKS>
{
    /// Number of elements of an array that has all its blocks. Every index is below this number.
    pub(crate) const LEN_MAX: usize = Self::block_start(BLOCKS);

    /// Creates an array without blocks.
    pub(crate) const fn new() -> Self {
        Self { blocks: [const { OnceBox::new() }; BLOCKS], making: Mutex::new(()) }
    }

    /// Returns the number of elements of the block.
    #[inline(always)]
    pub(crate) const fn block_len(block: usize) -> usize {
        1 << (FIRST_SHIFT + GROWTH_SHIFT * block as u32)
    }

    /// Returns the index of the block's first element in the array.
    pub(crate) const fn block_start(block: usize) -> usize {
        let (mut start, mut before) = (0, 0);
        while before < block {
            start += Self::block_len(before);
            before += 1;
        }
        start
    }

    /// Returns the block, or `None` if it has not been made. Everything that the maker of the block did before it
    /// published the block happens before this call returns.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> Option<&[T]> {
        self.blocks.get(block)?.get().map(|elements| &**elements)
    }

    /// Returns the block, and first makes it if it does not exist. `new` returns the element for each index in the
    /// array.
    ///
    /// Returns `None` if the array has no such block.
    pub(crate) fn get_or_make_block(&self, block: usize, new: impl Fn(usize) -> T) -> Option<&[T]> {
        match self.block(block) {
            Some(elements) => Some(elements),
            None => self.make_block(block, new),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_block(&self, block: usize, new: impl Fn(usize) -> T) -> Option<&[T]> {
        // A thread that is inside a locked section already waits for no other thread. It makes the block, too, and one
        // of the two blocks stays.
        let section = LockedSection::enter();
        // A poisoned lock may be used: a thread that panicked in `new` has put no block into the array.
        let _making = section.as_ref().map(|_| self.making.lock().unwrap_or_else(PoisonError::into_inner));
        let start = Self::block_start(block);
        let elements = || Box::new((start..start + Self::block_len(block)).map(new).collect());
        self.blocks.get(block).map(|made| &**made.get_or_init(elements))
    }

    /// Returns the element with this index in the array, or `None` if its block has not been made.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        let (block, within) = Self::position(index)?;
        self.block(block)?.get(within)
    }

    /// Returns the element with this index in the array. First makes its block if the block does not exist.
    ///
    /// Returns `None` if the index is not below [`Self::LEN_MAX`].
    pub(crate) fn get_or_make(&self, index: usize, new: impl Fn(usize) -> T) -> Option<&T> {
        let (block, within) = Self::position(index)?;
        self.get_or_make_block(block, new)?.get(within)
    }

    /// Returns the block in which the element lies, and the element's index in that block. Returns `None` if the array
    /// has no element with this index.
    #[inline]
    pub(crate) fn position(index: usize) -> Option<(usize, usize)> {
        let mut within = index;
        for block in 0..BLOCKS {
            match within.checked_sub(Self::block_len(block)) {
                None => return Some((block, within)),
                Some(rest) => within = rest,
            }
        }
        None
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn elements_have_their_index_and_do_not_move_when_blocks_are_added() {
        let array = SegmentedArray::<usize, 2, 1, 4>::new();
        assert_eq!(array.get(0), None);
        let first = array.get_or_make(3, |index| index).unwrap();
        for index in (0..60).rev() {
            assert_eq!(array.get_or_make(index, |index| index), Some(&index));
            assert_eq!(array.get(index), Some(&index));
        }
        assert!(std::ptr::eq(first, array.get(3).unwrap()));
        assert_eq!(array.get_or_make(60, |_| panic!("past the last block")), None);
    }

    #[test]
    fn blocks_have_the_lengths_that_the_shifts_say() {
        type Equal = SegmentedArray<u8, 8, 0, 64>;
        type Eightfold = SegmentedArray<u8, 12, 3, 4>;
        assert_eq!((Equal::LEN_MAX, Equal::position(16_383)), (16_384, Some((63, 255))));
        assert_eq!((0..4).map(Eightfold::block_len).collect::<Vec<_>>(), [1 << 12, 1 << 15, 1 << 18, 1 << 21]);
        assert_eq!(Eightfold::position((1 << 12) + (1 << 15)), Some((2, 0)));
        assert_eq!(Eightfold::position(Eightfold::LEN_MAX), None);
    }

    #[test]
    fn threads_that_need_a_block_at_the_same_time_get_the_same_and_make_it_once() {
        let array = SegmentedArray::<usize, 4, 1, 8>::new();
        let made = AtomicUsize::new(0);
        let new = |index| {
            made.fetch_add(1, Ordering::Relaxed);
            index
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|index| assert_eq!(array.get_or_make(index, new), Some(&index))));
            }
        });
        assert_eq!(made.into_inner(), SegmentedArray::<usize, 4, 1, 8>::block_start(6));
    }
}
