//! The buffer window: the payload offsets that have not been overwritten yet.

use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::step::{self, Step};
use crate::sync::{Ordering, fence};

/// Makes sure that the window has passed every byte that a payload ending at the unwrapped offset `end` overwrites. The
/// move of the window is ordered before all stores after this call.
///
/// The window only grows. `fetch_max` cannot lose a move to a smaller one at the same time, and a writer that is late
/// computes a smaller start and changes nothing. An `end` within the first turn of the buffer needs no move, for which
/// the subtraction saturates.
#[inline]
pub(crate) fn move_past<M: RingMemory>(memory: &M, end: u64) {
    let geometry = memory.geometry();
    let incr = geometry.window_incr_bytes();
    let window_bytes = geometry.payload_buf_bytes() - incr;
    let window_start = memory.control(ControlWord::BufferWindowStart);
    // Relaxed: only compared; a stale, smaller value causes a `fetch_max` without effect at worst.
    let seen = window_start.load(Ordering::Relaxed);
    step::at(Step::WindowSeen);
    if mutation::active(Mutation::WindowUnderflow) {
        if end.wrapping_sub(seen) > window_bytes {
            window_start.store(end.wrapping_sub(window_bytes).div_ceil(incr).wrapping_mul(incr), Ordering::Relaxed);
        }
    } else if end.saturating_sub(window_bytes) > seen {
        // Far below 2^64: `end` has been allocated from a counter that starts at 0.
        let target = (end - window_bytes).div_ceil(incr).saturating_mul(incr);
        if mutation::active(Mutation::UnretriedWindow) {
            let _ = window_start.compare_exchange(seen, target, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            // Relaxed: the fence after it orders it.
            window_start.fetch_max(target, Ordering::Relaxed);
        }
    }
    // Pairs with the acquire fence in `observe::payload`: a reader that sees one of our payload bytes also sees this
    // window, or a later one. That holds, too, if another writer had moved the window: we have read its value before
    // this fence.
    if !mutation::active(Mutation::MissingWindowFence) {
        fence(Ordering::Release);
    }
}
