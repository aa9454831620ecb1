//! The buffer window: the payload offsets that have not been overwritten yet.

use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::step::{self, Step};
use crate::sync::{Ordering, fence};

/// Moves the start of the window past every old byte that a payload ending at the unwrapped offset `end` will
/// overwrite. A reader that sees a payload byte stored after this call also sees the move.
///
/// The window only grows. `fetch_max` cannot lose a move to a smaller one at the same time, and a writer that was
/// stalled computes a smaller start, which changes nothing. In the first pass through the buffer nothing is overwritten
/// and no move is needed. The subtraction saturates for this case.
#[inline]
pub(crate) fn move_past<M: RingMemory>(memory: &M, end: u64) {
    let geometry = memory.geometry();
    let incr = geometry.window_incr_bytes();
    let window_bytes = geometry.payload_buf_bytes() - incr;
    let window_start = memory.control(ControlWord::BufferWindowStart);
    // Relaxed: the value is only compared. A stale, smaller value causes at worst a `fetch_max` without effect.
    let seen = window_start.load(Ordering::Relaxed);
    step::at(Step::WindowSeen);
    if mutation::active(Mutation::WindowUnderflow) {
        if end.wrapping_sub(seen) > window_bytes {
            window_start.store(end.wrapping_sub(window_bytes).div_ceil(incr).wrapping_mul(incr), Ordering::Relaxed);
        }
    } else if end.saturating_sub(window_bytes) > seen {
        // `target` is far below 2^64, because `end` has been allocated from a counter that starts at 0.
        let target = (end - window_bytes).div_ceil(incr).saturating_mul(incr);
        if mutation::active(Mutation::UnretriedWindow) {
            let _ = window_start.compare_exchange(seen, target, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            // Relaxed: the release fence at the end of this function orders the move.
            window_start.fetch_max(target, Ordering::Relaxed);
        }
    }
    // Pairs with the acquire fence in `observe::payload`: a reader that sees one of our payload bytes also sees this
    // window, or a later one. This also holds if another writer has moved the window, because we have read its value
    // before this fence.
    if !mutation::active(Mutation::MissingWindowFence) {
        fence(Ordering::Release);
    }
}
