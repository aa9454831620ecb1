//! Lanes: each thread's private cursor into a ring.
//!
//! A lane says one thing to other threads: whether its thread is inside a reservation at this moment. That is a plain store
//! by the owner; whoever would take the lane's chunk pays for the certainty (see [`super::chunk`]).

use super::mutation::{self, Mutation};
use crate::sync::{AtomicU64, Ordering, compiler_fence, local_add, local_fetch_add};

/// Index of a lane among the lanes of a ring.
pub(crate) type LaneId = u16;

/// Most lanes of one ring; further threads record through one-off chunks. (Owner words have 16 bits for a lane, with 0
/// for "free" and 65,535 for "one-off".)
pub(crate) const MAX_LANES: usize = SEGMENTS * SEGMENT_LANES;
const SEGMENTS: usize = 64;
const SEGMENT_LANES: usize = 256;

/// Instead of a base: no chunk is being filled. (Bases are multiples of the padding.)
const NONE: u64 = u64::MAX;
/// Instead of a next free byte, while no chunk is being filled: behind the end of every chunk, also that of [`NONE`], however
/// many bytes are taken there in vain.
const FAR: u64 = 1 << 62;

/// One open reservation, in [`Lane::inside`].
const OPEN: u64 = 1;
/// One open reservation whose payload lies in the chunk being filled, in [`Lane::inside`].
const OPEN_HERE: u64 = 1 << 32;
const OPEN_MASK: u64 = OPEN_HERE - 1;

/// One thread's cursor. Padded: neighbours belong to other threads.
#[repr(align(128))]
pub(crate) struct Lane {
    /// Open reservations of the owner (low half), and how many of them have their payload in the chunk being filled (high
    /// half). 0 says "outside". Stored only by the owner.
    inside: AtomicU64,
    /// Unwrapped base of the chunk being filled, or [`NONE`]. Only the owner uses it.
    filling: AtomicU64,
    /// Unwrapped offset of the next free byte in the chunk, or behind its end, or [`FAR`]. Only the owner uses it.
    next: AtomicU64,
    /// 1 while the owner changes chunks. Only the owner uses it: a signal handler that records finds it set.
    placing: AtomicU64,
    id: LaneId,
}

impl Lane {
    fn new(id: LaneId) -> Self {
        Self {
            inside: AtomicU64::new(0),
            filling: AtomicU64::new(NONE),
            next: AtomicU64::new(FAR),
            placing: AtomicU64::new(0),
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
            // Release: whoever reads the 0 and takes the chunk has our payload bytes behind it.
            self.inside.store(0, leave_order());
        }
        outermost
    }

    /// Ends a reservation while others are open; `in_chunk` is the offset of its payload if that lies in a chunk of this
    /// lane. True if that chunk is not the one being filled: then the caller tells [`super::chunk::Chunks::unpin`].
    pub(crate) fn leave_nested(&self, in_chunk: Option<u64>, chunk_bytes: u64) -> bool {
        let inside = self.inside.load(Ordering::Relaxed);
        // Asked once, before the store. A handler that changes chunks before this look has counted us in the old chunk, and
        // the caller undoes that. If it does so between look and store, the old chunk stays counted one too many, and the
        // new one as many as we then store: both are kept until the lane is outside, which is always safe.
        let is_here = in_chunk.is_some_and(|offset| self.is_here(offset, chunk_bytes));
        // Release: as in `leave_outermost`.
        self.inside.store(inside - OPEN - if is_here { OPEN_HERE } else { 0 }, leave_order());
        if mutation::active(Mutation::SecondLeaveLook) {
            return in_chunk.is_some_and(|offset| !self.is_here(offset, chunk_bytes));
        }
        in_chunk.is_some() && !is_here
    }

    /// Whether the owner's only open reservation is the one it is making now.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.inside.load(Ordering::Relaxed) & OPEN_MASK == OPEN
    }

    /// Says "inside" and takes `bytes` from the chunk being filled, if they fit: gives their offset and the chunk's base.
    /// They may be used if behind the fence [`Self::is_filling`] that chunk and it does not lie far behind; if not,
    /// [`Self::withdraw`]. `None`: only "inside" was said.
    ///
    /// All this uses only what the owner alone stores, so that it can stand before the locked instructions and be done
    /// while they wait. A signal handler of the thread may come in between any two steps.
    #[inline(always)]
    pub(crate) fn enter_and_bump(&self, bytes: u64, chunk_bytes: u64) -> Option<(u64, u64)> {
        let base = self.filling.load(Ordering::Relaxed);
        // One step against signal handlers. Past the chunk's end it is no place, and everything after it is none either,
        // until the next chunk is filled. Nor is it one if there is no chunk: see `FAR`.
        let offset = local_fetch_add(&self.next, bytes);
        // Also against a handler that changed chunks after the look above: the offset is then in that one, unused.
        if offset.wrapping_sub(base) > chunk_bytes - bytes {
            self.enter();
            return None;
        }
        local_add(&self.inside, OPEN + OPEN_HERE);
        Some((offset, base))
    }

    /// Whether the chunk at `base` is still the one being filled: no handler has changed chunks.
    #[inline(always)]
    pub(crate) fn is_filling(&self, base: u64) -> bool {
        self.filling.load(Ordering::Relaxed) == base
    }

    /// Takes back that the reservation being made has its payload at `offset`.
    ///
    /// If a handler has changed chunks meanwhile, we cannot know whether it counted us in the old one or we ourselves in the
    /// new one. We leave it so: that chunk is then kept until its lane is outside, which is always safe.
    pub(crate) fn withdraw(&self, offset: u64, chunk_bytes: u64) {
        if self.begin_placing() {
            if self.is_here(offset, chunk_bytes) {
                self.inside.store(self.inside.load(Ordering::Relaxed) - OPEN_HERE, Ordering::Relaxed);
            }
            self.end_placing();
        }
    }

    /// Whether `offset` is in the chunk being filled.
    fn is_here(&self, offset: u64, chunk_bytes: u64) -> bool {
        let filling = self.filling.load(Ordering::Relaxed);
        filling != NONE && offset.wrapping_sub(filling) < chunk_bytes
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

    /// Begins to fill a chunk that the owner has just taken, with `used` bytes gone to the reservation it is making. Call
    /// between begin and end of placing, after [`Self::let_go`].
    pub(crate) fn fill(&self, base: u64, used: u64) {
        // In this order: a handler in between finds `FAR`, as before.
        self.filling.store(base, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.next.store(base + used, Ordering::Relaxed);
        self.inside.store(self.inside.load(Ordering::Relaxed) + OPEN_HERE, Ordering::Relaxed);
    }

    /// Stops filling; gives the chunk's base and how many open reservations have their payload in it. Call between begin
    /// and end of placing, or when no handler can record.
    pub(crate) fn let_go(&self) -> Option<(u64, u64)> {
        let base = self.filling.load(Ordering::Relaxed);
        // In this order: a handler in between must not find the offset of one chunk beside the base of none.
        self.next.store(FAR, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.filling.store(NONE, Ordering::Relaxed);
        let inside = self.inside.load(Ordering::Relaxed);
        self.inside.store(inside & OPEN_MASK, Ordering::Relaxed);
        (base != NONE).then_some((base, inside / OPEN_HERE))
    }

    /// Whether the owner is outside of any reservation. Acquire: its payload bytes are then behind us.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
}

fn leave_order() -> Ordering {
    if mutation::active(Mutation::RelaxedLeave) { Ordering::Relaxed } else { Ordering::Release }
}

/// The lanes of one ring, made a segment at a time.
pub(crate) struct Lanes {
    #[cfg(not(any(loom, shuttle)))]
    segments: Box<[std::sync::OnceLock<Box<[Lane]>>]>,
    #[cfg(any(loom, shuttle))]
    lanes: Vec<Lane>,
    #[cfg(not(any(loom, shuttle)))]
    free: std::sync::Mutex<FreeLanes>,
}

#[cfg(not(any(loom, shuttle)))]
#[derive(Default)]
struct FreeLanes {
    returned: Vec<LaneId>,
    used: usize,
}

#[cfg(not(any(loom, shuttle)))]
impl Lanes {
    /// No lanes yet.
    pub(crate) fn new() -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| std::sync::OnceLock::new()).collect(),
            free: std::sync::Mutex::default(),
        }
    }

    /// A lane for a thread, or `None` when all are in use. Takes a lock: once per thread and ring.
    pub(crate) fn acquire(&self) -> Option<&Lane> {
        let id = {
            let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            match free.returned.pop() {
                Some(id) => id,
                None if free.used < MAX_LANES => {
                    free.used += 1;
                    (free.used - 1) as LaneId
                }
                None => return None,
            }
        };
        let segment = self.segments[id as usize / SEGMENT_LANES].get_or_init(|| {
            let first = id as usize / SEGMENT_LANES * SEGMENT_LANES;
            (first..first + SEGMENT_LANES).map(|id| Lane::new(id as LaneId)).collect()
        });
        segment.get(id as usize % SEGMENT_LANES)
    }

    /// Gives a lane back; its thread will not use it any more.
    pub(crate) fn release(&self, id: LaneId) {
        self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner).returned.push(id);
    }

    /// The lane with this index, if it was ever made.
    pub(crate) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.segments.get(id as usize / SEGMENT_LANES)?.get()?.get(id as usize % SEGMENT_LANES)
    }
}

#[cfg(any(loom, shuttle))]
impl Lanes {
    /// A few lanes, one for each modelled thread.
    pub(crate) fn new() -> Self {
        Self { lanes: (0..4).map(Lane::new).collect() }
    }

    /// The lane with this index.
    pub(crate) fn get(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id as usize)
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
