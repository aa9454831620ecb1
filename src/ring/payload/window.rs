//! The buffer window: the range of payload offsets that have not been overwritten yet.

use crate::ring::memory::{ControlWord, RingMemory};
use crate::ring::mutation::{self, Mutation};
use crate::ring::step::{self, Step};
use crate::sync::{Ordering, fence};

/// Moves the start of the window past every old byte that the new payload will overwrite. `end` is the unwrapped
/// offset at which the new payload ends. A reader that sees a payload byte stored after this call also sees the move.
///
/// The start of the window only grows. If two writers move it at the same time, `fetch_max` keeps the larger value. A
/// writer that was stalled computes a smaller value, which changes nothing. At first `end` is less than the size of the
/// buffer less one step. Then the saturating subtraction gives 0, and the window does not move.
#[inline]
pub(crate) fn move_past<M: RingMemory>(memory: &M, end: u64) {
    let geometry = memory.geometry();
    let incr = geometry.window_incr_bytes();
    let window_bytes = geometry.payload_buf_bytes() - incr;
    let window_start = memory.control(ControlWord::BufferWindowStart);
    // Relaxed: the value is only compared. If it is stale, it is too small, and the worst effect is a `fetch_max` that
    // changes nothing.
    let seen = window_start.load(Ordering::Relaxed);
    step::at(Step::WindowSeen);
    if mutation::active(Mutation::WindowUnderflow) {
        if end.wrapping_sub(seen) > window_bytes {
            window_start.store(end.wrapping_sub(window_bytes).div_ceil(incr).wrapping_mul(incr), Ordering::Relaxed);
        }
    } else if end.saturating_sub(window_bytes) > seen {
        // `target` is far below 2^64, because `end` comes from a counter of allocated bytes that starts at 0.
        let target = (end - window_bytes).div_ceil(incr).saturating_mul(incr);
        if mutation::active(Mutation::UnretriedWindow) {
            let _ = window_start.compare_exchange(seen, target, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            // Relaxed: the release fence at the end of this function orders the move.
            window_start.fetch_max(target, Ordering::Relaxed);
        }
    }
    // Pairs with the acquire fence in `observe::payload`: a reader that sees one of our payload bytes also sees this
    // start of the window, or a later one. This also holds if another writer has moved the window, because we have
    // read that writer's value before this fence.
    if !mutation::active(Mutation::MissingWindowFence) {
        fence(Ordering::Release);
    }
}
