//! The count of the payload cursors that record at present. Each payload cursor holds a run of chunks of the payload
//! buffer. A fixed, small part of the buffer, divided by this count, limits the size of a cursor's next run.

use crate::sync::{AtomicU64, Ordering};

/// Number of low bits in a word of [`ActiveCursors`]. These bits hold a number of payload cursors. The bits above
/// them hold the number of the epoch.
const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Counts of the payload cursors that took a run in the present epoch, and in the epoch before it. An *epoch* is a
/// period in which the writers allocate an eighth of the payload buffer.
///
/// Only the sizes of runs depend on the counts, so the counts need not be exact, and all accesses are relaxed. If two
/// threads count themselves at the same time, one of them may be missed.
pub(super) struct ActiveCursors {
    /// One word for the newest even epoch, and one for the newest odd epoch. Each word is
    /// `epoch << COUNT_BITS | cursors`.
    counts: [AtomicU64; 2],
}

impl ActiveCursors {
    pub(super) fn new() -> Self {
        Self { counts: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Counts a payload cursor in `epoch` if `is_first` is true. The caller passes true if the cursor needs its first
    /// new run of chunks in that epoch. Returns the number of active payload cursors, which is at least 1. This is the
    /// count of `epoch` or the count of the epoch before it, whichever is larger.
    pub(super) fn count(&self, epoch: u64, is_first: bool) -> u64 {
        // Models do not count, because the words of the counts would only add interleavings to explore. A count of 1
        // allows the longest runs of chunks.
        if cfg!(any(loom, shuttle)) {
            return 1;
        }
        let word = &self.counts[(epoch & 1) as usize];
        let seen = word.load(Ordering::Relaxed);
        let now = if seen >> COUNT_BITS == epoch { seen + u64::from(is_first) } else { epoch << COUNT_BITS | 1 };
        if now != seen {
            word.store(now, Ordering::Relaxed);
        }
        let before = self.counts[(epoch & 1 ^ 1) as usize].load(Ordering::Relaxed);
        let before = if before >> COUNT_BITS == epoch.wrapping_sub(1) { before & COUNT_MASK } else { 0 };
        before.max(now & COUNT_MASK).max(1)
    }
}
