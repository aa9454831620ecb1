//! State of a thread that may be accessed between any two instructions of the thread, for example by a signal handler
//! that records.
//!
//! Code that runs between two instructions of a thread *interrupts* the thread, and ends before the thread continues.
//! There are two ways to keep the state consistent:
//!
//! - The state is one word ([`OwnedWord`]), so it always has either its old value or its new value.
//! - The thread sets a [`Mark`] while it changes the state in several steps. Code that finds the mark set does not
//!   change the state, or undoes its changes before it ends.
//!
//! `docs/ORDERING.md`, section 10, lists all such state.

use crate::sync::{AtomicPtr, Ordering, compiler_fence};
use std::cell::Cell;
use std::ptr;

/// A mark that a thread sets while it changes some of its state.
#[derive(Debug)]
pub(crate) struct Mark(Cell<bool>);

impl Mark {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(false))
    }

    /// Returns true if the thread has been interrupted in the middle of a change.
    #[inline(always)]
    pub(crate) fn is_set(&self) -> bool {
        self.0.get()
    }

    /// Calls `change` with the mark set.
    #[inline(always)]
    pub(crate) fn during<R>(&self, change: impl FnOnce() -> R) -> R {
        // Code that interrupts this function between two of its lines leaves the mark as it was.
        let before = self.0.replace(true);
        // A handler of the same thread sees the stores of the thread in their order, if the compiler keeps this order.
        compiler_fence(Ordering::SeqCst);
        let result = change();
        compiler_fence(Ordering::SeqCst);
        self.0.set(before);
        result
    }
}

/// Number of bits of a pointer that are 0 in all addresses of programs. They hold an owner's number.
const TAG_BITS: u32 = 16;
const SHIFT: u32 = usize::BITS - TAG_BITS;

/// The number of an owner, in the bits of an [`OwnedWord`] that hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OwnerTag(usize);

impl OwnerTag {
    /// The tag that no owner has, and no word.
    pub(crate) const NOBODY: Self = Self(usize::MAX << SHIFT);
    /// The tag of all owners whose numbers are too large. No word has it.
    const TOO_LARGE: Self = Self((usize::MAX - 1) << SHIFT);

    /// Returns the tag of the owner with this number, which is not 0. No two owners have the same number.
    ///
    /// Numbers above 65,533 have no tag of their own. What belongs to such an owner is found without a word.
    pub(crate) const fn from_number(number: u64) -> Self {
        if number == 0 || number >= (Self::TOO_LARGE.0 >> SHIFT) as u64 {
            return Self::TOO_LARGE;
        }
        Self((number as usize) << SHIFT)
    }

    /// Returns the place of the owner among `places`.
    #[inline(always)]
    pub(crate) fn place(self, places: usize) -> usize {
        (self.0 >> SHIFT) % places
    }

    /// Returns the tag as a word, and the tag of such a word.
    #[inline(always)]
    pub(crate) const fn to_bits(self) -> usize {
        self.0
    }

    #[inline(always)]
    pub(crate) const fn from_bits(bits: usize) -> Self {
        Self(bits)
    }
}

/// The address of what belongs to an owner, and the owner's number, or nothing.
#[derive(Debug)]
pub(crate) struct Owned<T>(*mut T);

impl<T> Clone for Owned<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Owned<T> {}

impl<T> Owned<T> {
    /// Nothing. It belongs to nobody, because each tag has a bit.
    pub(crate) const NOTHING: Self = Self(ptr::null_mut());

    /// Returns the address of `target`, which belongs to the owner with this tag. Returns nothing if the two do not fit
    /// a word.
    pub(crate) fn new(owner: OwnerTag, target: &T) -> Self {
        let pointer = ptr::from_ref(target).cast_mut();
        let fits = pointer.addr() >> SHIFT == 0 && owner != OwnerTag::TOO_LARGE && owner != OwnerTag::NOBODY;
        if fits { Self(pointer.map_addr(|addr| addr | owner.0)) } else { Self::NOTHING }
    }

    /// Returns the address, if it is of something that belongs to `owner`. It is the address that [`Self::new`] got.
    #[inline(always)]
    pub(crate) fn of(self, owner: OwnerTag) -> Option<*const T> {
        // The address follows from this word alone. So the processor need not wait for the owner's tag, which it must
        // load from farther away.
        let pointer = self.0.map_addr(|addr| addr & (usize::MAX >> TAG_BITS));
        ((self.0.addr() ^ owner.0) >> SHIFT == 0).then_some(pointer.cast_const())
    }

    pub(crate) fn is_nothing(self) -> bool {
        self.0.is_null()
    }
}

/// A word of a thread with an [`Owned`].
#[derive(Debug)]
pub(crate) struct OwnedWord<T>(AtomicPtr<T>);

impl<T> OwnedWord<T> {
    pub(crate) const fn nothing() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    // Relaxed, here and in `set`: only one thread uses the word.
    #[inline(always)]
    pub(crate) fn get(&self) -> Owned<T> {
        Owned(self.0.load(Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn set(&self, owned: Owned<T>) {
        self.0.store(owned.0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn only_its_owner_gets_the_address() {
        let target = 7_u64;
        let numbers = [1, 2, 3, 255, 256, 65_533];
        let tags: Vec<OwnerTag> = numbers.map(OwnerTag::from_number).into();
        let others = [0, 65_534, 65_535, 65_536, 65_537, 1 << 20, u64::MAX].map(OwnerTag::from_number);
        let nobodies = [OwnerTag::NOBODY].into_iter().chain(others).collect::<Vec<_>>();
        for owner in &tags {
            let word = OwnedWord::nothing();
            assert!(word.get().is_nothing() && word.get().of(*owner).is_none());
            word.set(Owned::new(*owner, &target));
            for tag in tags.iter().chain(&nobodies) {
                let expected = (tag == owner).then_some(ptr::from_ref(&target));
                assert_eq!(word.get().of(*tag), expected, "{owner:?} {tag:?}");
            }
        }
        for nobody in nobodies {
            assert!(Owned::new(nobody, &target).is_nothing() && Owned::<u64>::NOTHING.of(nobody).is_none());
        }
    }

    #[test]
    fn a_mark_within_a_mark_leaves_it_set() {
        let mark = Mark::new();
        mark.during(|| {
            mark.during(|| assert!(mark.is_set()));
            assert!(mark.is_set());
        });
        assert!(!mark.is_set());
    }
}
