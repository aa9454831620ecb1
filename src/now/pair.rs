//! Two words of a cell that change together: a time, and a word with bits that are computed from the time.

use crate::sync::{AtomicU64, Ordering, compiler_fence};

/// Number of times that a pair is stored. It is stored again only if something else has changed it meanwhile.
const TRIES: usize = if cfg!(loom) { 2 } else { 100 };

/// Stores a time and the word that belongs to it. `between` stores what a change of the pair changes, too.
///
/// Code that interrupts the thread may store a pair of its own between the two stores, whose time would then stay with
/// the word of this call. So the thread looks afterwards, and stores its pair again. Whoever interrupts it later leaves
/// a whole pair.
#[inline(always)]
pub(super) fn store(time: &AtomicU64, epoch_nanos: u64, word: &AtomicU64, value: u64, between: impl Fn()) {
    if !try_store(time, epoch_nanos, word, value, &between) {
        store_again(time, epoch_nanos, word, value, between);
    }
}

#[cold]
#[inline(never)]
fn store_again(time: &AtomicU64, epoch_nanos: u64, word: &AtomicU64, value: u64, between: impl Fn()) {
    let _ = (1..TRIES).any(|_| try_store(time, epoch_nanos, word, value, &between));
}

/// Stores the pair once. Returns false if another pair was stored in the middle, whose time stays with this word.
#[inline(always)]
fn try_store(time: &AtomicU64, epoch_nanos: u64, word: &AtomicU64, value: u64, between: &impl Fn()) -> bool {
    time.store(epoch_nanos, Ordering::Relaxed);
    between();
    // A handler of the thread sees the stores in their order, if the compiler keeps this order.
    compiler_fence(Ordering::SeqCst);
    word.store(value, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let is_own = word.load(Ordering::Relaxed) == value;
    compiler_fence(Ordering::SeqCst);
    !is_own || time.load(Ordering::Relaxed) == epoch_nanos
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_pair_is_whole_after_others_were_stored_in_the_middle() {
        for interruptions in 0_u64..4 {
            let (time, word) = (AtomicU64::new(0), AtomicU64::new(0));
            let left = Cell::new(interruptions);
            // A handler stores a whole pair of its own.
            let handler = || {
                if left.replace(left.get().saturating_sub(1)) > 0 {
                    store(&time, 100 + left.get(), &word, 1100 + left.get(), || ());
                }
            };
            store(&time, 7, &word, 1007, handler);
            assert_eq!((time.load(Ordering::Relaxed), word.load(Ordering::Relaxed)), (7, 1007), "{interruptions}");
        }
    }
}
