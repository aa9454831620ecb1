//! A process-wide list, which signal handlers and exit handlers can iterate.
//!
//! The list only grows, and its entries never move. So a handler needs no lock for the iteration.

use crate::sync::locked_section::get_or_make;
use std::sync::OnceLock;

/// An entry of a [`HandlerList`].
pub(in crate::shm::linux) trait ListEntry: Sync + 'static {
    /// A free entry.
    const EMPTY: Self;

    /// Takes the entry if it is free. Returns true if it was free.
    fn try_claim(&self) -> bool;
}

/// Number of entries in a block. The number is small, because the program's file stores the whole first block. (The
/// first block lies in a static with an empty `OnceLock`, which is not all zeros.)
const BLOCK_ENTRIES: usize = 8;

/// A list of entries in blocks. A full block gets a successor.
pub(in crate::shm::linux) struct HandlerList<S: 'static> {
    block: [S; BLOCK_ENTRIES],
    next: OnceLock<Box<HandlerList<S>>>,
}

impl<S: ListEntry> HandlerList<S> {
    pub(in crate::shm::linux) const fn new() -> Self {
        Self { block: [const { S::EMPTY }; BLOCK_ENTRIES], next: OnceLock::new() }
    }

    /// Takes a free entry and returns it.
    pub(in crate::shm::linux) fn claim(&'static self) -> &'static S {
        let mut list = self;
        loop {
            if let Some(slot) = list.block.iter().find(|slot| slot.try_claim()) {
                return slot;
            }
            list = &**get_or_make(&list.next, || Box::new(Self::new()));
        }
    }

    /// Returns all entries, including free ones. Takes no lock and allocates no memory.
    pub(in crate::shm::linux) fn iter(&'static self) -> impl Iterator<Item = &'static S> {
        std::iter::successors(Some(self), |list| list.next.get().map(|next| &**next)).flat_map(|list| &list.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Flag(AtomicBool);

    impl ListEntry for Flag {
        const EMPTY: Self = Self(AtomicBool::new(false));

        fn try_claim(&self) -> bool {
            !self.0.swap(true, Ordering::Relaxed)
        }
    }

    #[test]
    fn no_place_is_given_out_twice_and_a_freed_one_is_used_again() {
        static LIST: HandlerList<Flag> = HandlerList::new();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| (0..100).map(|_| std::ptr::from_ref(LIST.claim()).addr()).collect::<Vec<_>>())
            })
            .collect();
        let mut places: Vec<_> = threads.into_iter().flat_map(|t| t.join().unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 400);
        assert_eq!(LIST.iter().count(), 400usize.next_multiple_of(BLOCK_ENTRIES));

        let third = LIST.iter().nth(2).unwrap();
        third.0.store(false, Ordering::Relaxed);
        assert!(std::ptr::eq(LIST.claim(), third));
    }
}
