//! The owner of entries of span stacks: a subscriber or layer.

use crate::sync::{AtomicUsize, Ordering};
use crate::tracing::record::macro_sites::active::Counted;
use crate::tracing::record::threads::stack::{NUMBER_MASK, OF_PERF};

/// What is in the entries of a subscriber or layer, and distinguishes them from the entries of others: a number, and
/// whether it records to `PERF`.
#[derive(Debug)]
pub(in crate::tracing::record) struct Owner {
    tag: AtomicUsize,
    /// Whether it is counted among those that record to `PERF`.
    pub(in crate::tracing::record) counted: Counted,
}

impl Owner {
    /// Returns an owner with a new number.
    pub(in crate::tracing::record) fn new(is_of_perf: bool) -> Self {
        static NEXT_OWNER: AtomicUsize = AtomicUsize::new(1);
        // After 2^28 owners the numbers begin again. It is very unlikely that two owners with the same number are in
        // use at the same time.
        let number = NEXT_OWNER.fetch_add(1, Ordering::Relaxed) & NUMBER_MASK as usize;
        let owner = Self { tag: AtomicUsize::new(number), counted: Counted::not() };
        if is_of_perf {
            owner.set_of_perf();
        }
        owner
    }

    #[inline(always)]
    pub(in crate::tracing::record) fn get(&self) -> u32 {
        // Relaxed: the word is all that there is.
        self.tag.load(Ordering::Relaxed) as u32
    }

    /// Returns true if both have the same number.
    pub(in crate::tracing::record) fn is(&self, owner: u32) -> bool {
        (self.get() ^ owner) & NUMBER_MASK == 0
    }

    /// Notes that the owner records to `PERF`.
    pub(in crate::tracing::record) fn set_of_perf(&self) {
        self.tag.fetch_or(OF_PERF as usize, Ordering::Relaxed);
    }
}
