//! Lanes: each thread's private cursor into a ring.
//!
//! A lane fills a *run*: one chunk of payload memory, or several in a row that it took together.
//!
//! A lane says one thing to other threads: whether its thread is inside a reservation at this moment. That is a plain store
//! by the owner; whoever would take the lane's chunks pays for the certainty (see [`super::chunk`]).
//!
//! A thread that ends gives its lane back with the run that the lane fills, and the next thread goes on in that run.

use super::mutation::{self, Mutation};
use crate::segmented::SegmentedArray;
use crate::sync::{AtomicU64, Mutex, Ordering, compiler_fence, local_add, local_fetch_add};
use crossbeam_utils::CachePadded;
use std::sync::PoisonError;

/// Index of a lane among the lanes of a ring.
pub(crate) type LaneId = u16;

/// Most lanes of one ring; further threads record through one-off chunks. (Owner words have 16 bits for a lane, with 0
/// for "free" and 65,535 for "one-off".)
pub(crate) const MAX_LANES: usize = LaneArray::LEN_MAX;
/// Lanes of a block, as a shift. Models have four lanes in all.
const BLOCK_SHIFT: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 8 };
const BLOCKS: usize = if cfg!(any(loom, shuttle)) { 1 } else { 64 };

/// Instead of a base: no run is being filled. (Bases are multiples of the padding.)
const NONE: u64 = u64::MAX;
/// Instead of a next free byte, while no run is being filled: past the end of every run, also that of [`NONE`], however
/// many bytes are taken there in vain.
const FAR: u64 = 1 << 62;

/// One open reservation, in [`Lane::inside`].
const OPEN: u64 = 1;
/// One open reservation whose payload lies in the run being filled, in [`Lane::inside`].
const OPEN_HERE: u64 = 1 << 32;
const OPEN_MASK: u64 = OPEN_HERE - 1;

/// One thread's cursor.
pub(crate) struct Lane {
    /// Open reservations of the owner (low half), and how many of them have their payload in the run being filled (high
    /// half). 0 says "outside". Stored only by the owner.
    inside: AtomicU64,
    /// Unwrapped base of the run being filled, or [`NONE`]. Only the owner uses it.
    filling: AtomicU64,
    /// Unwrapped offset of the next free byte in the run, or past its end, or [`FAR`]. Only the owner uses it.
    next: AtomicU64,
    /// Bytes of the run being filled, or of the last one. Only the owner uses it.
    run_bytes: AtomicU64,
    /// 1 while the owner changes runs. Only the owner uses it: a signal handler that records finds it set.
    placing: AtomicU64,
    /// Bytes that the owner wants of its next run; 0 before the first. Only the owner uses it.
    wanted: AtomicU64,
    /// One more than the epoch in which the owner took a run last; see [`super::active`]. Only the owner uses it.
    epoch: AtomicU64,
    /// 1 after the owner has ended while a reservation was open. Only the owner uses it.
    is_orphan: AtomicU64,
    id: LaneId,
}

/// What became of the attempt to take bytes from the run being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bump {
    /// They begin at `offset`, in the run at `base`.
    Fits {
        /// Unwrapped offset.
        offset: u64,
        /// Unwrapped base of the run.
        base: u64,
    },
    /// The run at `base` has no room for them, or there is no run.
    DoesNotFit {
        /// Unwrapped base of the run, or [`NONE`].
        base: u64,
    },
}

/// The run that a lane has stopped filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftRun {
    /// Unwrapped base.
    pub(crate) base: u64,
    /// Bytes, a multiple of the chunk size.
    pub(crate) bytes: u64,
    /// How many open reservations of the lane have their payload in it.
    pub(crate) open: u64,
}

impl Lane {
    fn new(id: LaneId) -> Self {
        Self {
            inside: AtomicU64::new(0),
            filling: AtomicU64::new(NONE),
            next: AtomicU64::new(FAR),
            run_bytes: AtomicU64::new(0),
            placing: AtomicU64::new(0),
            wanted: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            is_orphan: AtomicU64::new(0),
            id,
        }
    }

    /// Index of this lane.
    #[inline(always)]
    pub(crate) fn id(&self) -> LaneId {
        self.id
    }

    /// Says "inside". Must be followed by [`crate::sync::fetch_add_then_fence`] or a sequentially consistent fence before
    /// `next_payload_byte` is read, to see whether the chunk is still ours.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        // Only the owner stores.
        local_add(&self.inside, OPEN);
    }

    /// Ends the only open reservation; false, and nothing happens, if others are open: then [`Self::leave_nested`].
    #[inline(always)]
    pub(crate) fn leave_outermost(&self) -> bool {
        let outermost = self.inside.load(Ordering::Relaxed) & OPEN_MASK <= OPEN;
        if outermost {
            // Release: whoever reads the 0 and takes a chunk of ours: our payload bytes happen before that.
            self.inside.store(0, leave_order());
        }
        outermost
    }

    /// Ends a reservation while others are open; `in_run` is the offset of its payload if that lies in a run of this
    /// lane. Returns true if that run is not the one being filled: then the caller tells [`super::chunk::Chunks::unpin`].
    pub(crate) fn leave_nested(&self, in_run: Option<u64>) -> bool {
        let inside = self.inside.load(Ordering::Relaxed);
        // Asked once, before the store. A handler that changes runs before this look has counted us in the old run, and
        // the caller undoes that. If it does so between look and store, the old run stays counted one too many, and the
        // new one as many as we then store: both are kept until the lane is outside, which is always safe.
        let is_here = in_run.is_some_and(|offset| self.is_here(offset));
        // Release: as in `leave_outermost`.
        self.inside.store(inside - OPEN - if is_here { OPEN_HERE } else { 0 }, leave_order());
        if mutation::active(Mutation::SecondLeaveLook) {
            return in_run.is_some_and(|offset| !self.is_here(offset));
        }
        in_run.is_some() && !is_here
    }

    /// Whether the owner's only open reservation is the one it is making now.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.inside.load(Ordering::Relaxed) & OPEN_MASK == OPEN
    }

    /// Says "inside" and takes `bytes` from the run being filled, if they fit. If they do, they may be used if, after the
    /// fence, [`Self::is_filling`] that run and it does not lie far behind; otherwise [`Self::withdraw`]. If they do not fit,
    /// [`Self::undo_bump`].
    ///
    /// All this uses only what the owner alone stores, so that it can stand before the locked instructions and be done
    /// while they wait. A signal handler of the thread may come in between any two steps.
    #[inline(always)]
    pub(crate) fn enter_and_bump(&self, bytes: u64) -> Bump {
        let base = self.filling.load(Ordering::Relaxed);
        // One step against signal handlers. Past the run's end it is no place, and everything after it is none either,
        // until this is undone or the next run is filled. Nor is it one if there is no run: see `FAR`.
        let offset = local_fetch_add(&self.next, bytes);
        // If a handler changed runs after the look above, the offset is in the new run, unused, and may pass this look:
        // the caller finds out that the run at `base` is not being filled any more.
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            self.enter();
            return Bump::DoesNotFit { base };
        }
        local_add(&self.inside, OPEN + OPEN_HERE);
        Bump::Fits { offset, base }
    }

    /// Gives back the `bytes` that did not fit into the run at `base`, so that smaller payloads find what is left of it.
    pub(crate) fn undo_bump(&self, base: u64, bytes: u64) {
        // While we are placing, no handler changes runs. If the run is still that at `base`, it has been since before the
        // bump: runs do not come back. So the bytes were taken from this `next`, and handlers that took some meanwhile
        // found them past the end, too, or have them in what is left.
        if self.begin_placing() {
            if self.is_filling(base) {
                local_add(&self.next, bytes.wrapping_neg());
            }
            self.end_placing();
        }
    }

    /// Takes `bytes` from the run being filled for the reservation that is being made, if they fit: returns their offset.
    /// Call between begin and end of placing.
    pub(crate) fn try_bump(&self, bytes: u64) -> Option<u64> {
        if self.room() < bytes {
            return None;
        }
        let offset = local_fetch_add(&self.next, bytes);
        // A handler may have taken the room meanwhile. (It does not change runs while we are placing.)
        let base = self.filling.load(Ordering::Relaxed);
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            return None;
        }
        local_add(&self.inside, OPEN_HERE);
        Some(offset)
    }

    /// Returns how many bytes of the run being filled are free; 0 if there is no run.
    pub(crate) fn room(&self) -> u64 {
        let Some(base) = self.base() else { return 0 };
        let used = self.next.load(Ordering::Relaxed).wrapping_sub(base);
        self.run_bytes.load(Ordering::Relaxed).saturating_sub(used)
    }

    /// Returns the base of the run being filled.
    pub(crate) fn base(&self) -> Option<u64> {
        let base = self.filling.load(Ordering::Relaxed);
        (base != NONE).then_some(base)
    }

    /// Whether the run at `base` is still the one being filled: no handler has changed runs.
    #[inline(always)]
    pub(crate) fn is_filling(&self, base: u64) -> bool {
        self.filling.load(Ordering::Relaxed) == base
    }

    /// Takes back that the reservation being made has its payload at `offset`.
    ///
    /// If a handler has changed runs meanwhile, we cannot know whether it counted us in the old one or we ourselves in the
    /// new one. We leave it so: that run is then kept until its lane is outside, which is always safe.
    pub(crate) fn withdraw(&self, offset: u64) {
        if self.begin_placing() {
            if self.is_here(offset) {
                self.inside.store(self.inside.load(Ordering::Relaxed) - OPEN_HERE, Ordering::Relaxed);
            }
            self.end_placing();
        }
    }

    /// Whether `offset` is in the run being filled.
    fn is_here(&self, offset: u64) -> bool {
        self.base().is_some_and(|base| offset.wrapping_sub(base) < self.run_bytes.load(Ordering::Relaxed))
    }

    /// Returns how many bytes the owner wants of its next run; 0 before the first.
    pub(crate) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Says that the owner comes for a run in this epoch; returns whether it does for the first time.
    pub(super) fn enter_epoch(&self, epoch: u64) -> bool {
        let is_new = self.epoch.load(Ordering::Relaxed) != epoch + 1;
        self.epoch.store(epoch + 1, Ordering::Relaxed);
        is_new
    }

    /// Says that the owner has ended while a reservation was open.
    pub(super) fn orphan(&self) {
        self.is_orphan.store(1, Ordering::Relaxed);
    }

    /// Returns whether the owner had ended; it is no orphan from then on.
    pub(super) fn take_from_orphans(&self) -> bool {
        let is_orphan = self.is_orphan.load(Ordering::Relaxed) == 1;
        if is_orphan {
            self.is_orphan.store(0, Ordering::Relaxed);
        }
        is_orphan
    }

    /// Says how many bytes the owner wants of its next run.
    pub(crate) fn want(&self, bytes: u64) {
        self.wanted.store(bytes, Ordering::Relaxed);
    }

    /// Marks that the owner is about to move `next`; false if it already was (we are a signal handler on top of it).
    #[inline(always)]
    pub(crate) fn begin_placing(&self) -> bool {
        if self.placing.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.placing.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// Ends what [`Self::begin_placing`] began.
    #[inline(always)]
    pub(crate) fn end_placing(&self) {
        compiler_fence(Ordering::SeqCst);
        self.placing.store(0, Ordering::Relaxed);
    }

    /// Begins to fill the run of `run_bytes` at `base`, which the owner has just taken, with `used` bytes gone to the
    /// reservation it is making. Call between begin and end of placing, after [`Self::let_go`].
    pub(crate) fn fill(&self, base: u64, run_bytes: u64, used: u64) {
        // In this order: a handler in between finds `FAR`, as before.
        self.filling.store(base, Ordering::Relaxed);
        self.run_bytes.store(run_bytes, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.next.store(base + used, Ordering::Relaxed);
        self.inside.store(self.inside.load(Ordering::Relaxed) + OPEN_HERE, Ordering::Relaxed);
    }

    /// Stops filling; returns the run. Call between begin and end of placing, or when no handler can record.
    pub(crate) fn let_go(&self) -> Option<LeftRun> {
        let base = self.filling.load(Ordering::Relaxed);
        // In this order: a handler in between must not find the offset of one run beside the base of none.
        self.next.store(FAR, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.filling.store(NONE, Ordering::Relaxed);
        let inside = self.inside.load(Ordering::Relaxed);
        self.inside.store(inside & OPEN_MASK, Ordering::Relaxed);
        let bytes = self.run_bytes.load(Ordering::Relaxed);
        (base != NONE).then_some(LeftRun { base, bytes, open: inside / OPEN_HERE })
    }

    /// Whether the owner is outside of any reservation. Acquire: its payload bytes then happen before what the caller does.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
}

fn leave_order() -> Ordering {
    if mutation::active(Mutation::RelaxedLeave) { Ordering::Relaxed } else { Ordering::Release }
}

/// Padded: neighbours belong to other threads.
type LaneArray = SegmentedArray<CachePadded<Lane>, BLOCK_SHIFT, 0, BLOCKS>;

/// The lanes of one ring.
pub(crate) struct Lanes {
    lanes: LaneArray,
    free: Mutex<FreeLanes>,
}

#[derive(Default)]
struct FreeLanes {
    returned: Vec<LaneId>,
    used: usize,
}

impl Lanes {
    /// Creates the set without lanes; in models, with all of them.
    pub(crate) fn new() -> Self {
        let lanes = Self { lanes: SegmentedArray::new(), free: Mutex::new(FreeLanes::default()) };
        if cfg!(any(loom, shuttle)) {
            lanes.get_or_make(0);
        }
        lanes
    }

    /// Returns a lane for a thread, or `None` when all are in use. Takes a lock: once per thread and ring.
    ///
    /// The lane that was given back last comes first, with the run that it fills: who gave it back stored all of the lane's
    /// words before the lock was released, and the new owner has the lock after that.
    pub(crate) fn acquire(&self) -> Option<&Lane> {
        let id = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            match free.returned.pop() {
                Some(id) => id,
                None if free.used < MAX_LANES => {
                    free.used += 1;
                    (free.used - 1) as LaneId
                }
                None => return None,
            }
        };
        self.get_or_make(id)
    }

    /// Gives a lane back; its thread will not use it any more.
    pub(crate) fn release(&self, id: LaneId) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).returned.push(id);
    }

    fn get_or_make(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get_or_make(id.into(), |id| CachePadded::new(Lane::new(id as LaneId))).map(|lane| &**lane)
    }

    /// Returns the lane with this index, if it was ever made.
    pub(crate) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id.into()).map(|lane| &**lane)
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn there_are_lanes_for_16_384_threads_and_one_that_is_given_back_is_used_again() {
        let lanes = Lanes::new();
        let taken: std::collections::HashSet<LaneId> =
            std::iter::from_fn(|| lanes.acquire()).map(|lane| lane.id()).collect();
        println!("{} lanes", taken.len());
        assert_eq!((taken.len(), taken.len()), (MAX_LANES, 16_384));
        lanes.release(77);
        assert_eq!((lanes.acquire().map(Lane::id), lanes.acquire().map(Lane::id)), (Some(77), None));
    }
}
