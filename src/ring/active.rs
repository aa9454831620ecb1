//! Count of the payload cursors that record at present. The size of a cursor's run of chunks is limited to a fixed
//! part of the buffer divided by this count. So the runs of all cursors together take no more than that part.

use crate::sync::{AtomicU64, Ordering};

/// Number of low bits of a word that count payload cursors; the bits above hold the epoch.
const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Counts of the payload cursors that took a run in the present epoch, and in the epoch before it. An *epoch* is a
/// period in which the writers allocate an eighth of the payload buffer.
///
/// Only the sizes of runs depend on the counts, so the counts need not be exact. All accesses are relaxed. A count may
/// miss threads that count themselves at the same time.
pub(super) struct ActiveCursors {
    /// One word for the newest even epoch, and one for the newest odd epoch. Each word is
    /// `epoch << COUNT_BITS | cursors`.
    counts: [AtomicU64; 2],
}

impl ActiveCursors {
    pub(super) fn new() -> Self {
        Self { counts: [AtomicU64::new(0), AtomicU64::new(0)] }
    }

    /// Counts a payload cursor in `epoch`, if it takes its first run of chunks of that epoch (`is_first`). Returns the
    /// number of active payload cursors, at least 1.
    pub(super) fn count(&self, epoch: u64, is_first: bool) -> u64 {
        // Models do not count. With a count of 1 the runs of chunks are as large as possible, which is right for
        // models. The words of the counts would only add interleavings for the models to explore.
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
