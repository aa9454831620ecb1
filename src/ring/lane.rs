//! Lanes: each thread's private cursor into a ring.
//!
//! A lane says two things to other threads: which chunk it fills, and whether its thread is inside a reservation at this
//! moment. Both are plain stores by the owner; whoever would take the chunk pays for the certainty (see
//! [`super::chunk`]).

use crate::sync::{AtomicU64, Ordering, compiler_fence};

/// Index of a lane among the lanes of a ring.
pub(crate) type LaneId = u16;

/// Most lanes of one ring; further threads record through one-off chunks. (Owner words have 16 bits for a lane, with 0
/// for "free" and 65,535 for "one-off".)
pub(crate) const MAX_LANES: usize = SEGMENTS * SEGMENT_LANES;
const SEGMENTS: usize = 64;
const SEGMENT_LANES: usize = 256;

/// No chunk attached. Chunk bases are stored plus one.
pub(crate) const DETACHED: u64 = 0;

/// One thread's cursor. Padded: neighbours belong to other threads.
#[repr(align(128))]
pub(crate) struct Lane {
    /// Open reservations of the owner. Stored only by the owner.
    inside: AtomicU64,
    /// Unwrapped base of the chunk being filled plus one, or [`DETACHED`]. Stored by the owner; others may detach it.
    chunk: AtomicU64,
    /// Unwrapped offset of the next free byte in the chunk. Only the owner uses it.
    next: AtomicU64,
    /// 1 while the owner moves `next`. Only the owner uses it: a signal handler that records finds it set.
    placing: AtomicU64,
    id: LaneId,
}

impl Lane {
    fn new(id: LaneId) -> Self {
        Self {
            inside: AtomicU64::new(0),
            chunk: AtomicU64::new(DETACHED),
            next: AtomicU64::new(0),
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
    /// the chunk is looked at.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        // Relaxed load and store: only the owner stores. A signal handler in between leaves the count as it found it.
        let depth = self.inside.load(Ordering::Relaxed);
        self.inside.store(depth + 1, Ordering::Relaxed);
    }

    /// Says "no longer inside".
    #[inline(always)]
    pub(crate) fn leave(&self) {
        let depth = self.inside.load(Ordering::Relaxed);
        // Release: whoever reads the 0 and takes the chunk has our payload bytes behind it.
        self.inside.store(depth.saturating_sub(1), Ordering::Release);
    }

    /// Whether the owner's only open reservation is the one it is making now.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.inside.load(Ordering::Relaxed) == 1
    }

    /// Takes `bytes` from the chunk in hand, if it has them and `fresh` accepts its base. `None` also while the owner is
    /// interrupted inside this very function.
    #[inline(always)]
    pub(crate) fn bump(&self, bytes: u64, chunk_bytes: u64, fresh: impl FnOnce(u64) -> bool) -> Option<u64> {
        if !self.begin_placing() {
            return None;
        }
        let mut place = None;
        // Relaxed: the fence after "inside" decides whether a thief's DETACHED is seen here; see `chunk::take`.
        let chunk = self.chunk.load(Ordering::Relaxed);
        if chunk != DETACHED {
            let base = chunk - 1;
            let offset = self.next.load(Ordering::Relaxed);
            if offset + bytes <= base + chunk_bytes && fresh(base) {
                self.next.store(offset + bytes, Ordering::Relaxed);
                place = Some(offset);
            }
        }
        self.end_placing();
        place
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

    /// Attaches a chunk that the owner has just taken, with `used` bytes gone. Call between begin and end of placing.
    pub(crate) fn attach(&self, base: u64, used: u64) {
        self.next.store(base + used, Ordering::Relaxed);
        // Release: a thief that reads this base has our taking of the chunk before it.
        self.chunk.store(base + 1, Ordering::Release);
    }

    /// Lets go of the chunk, whatever it is; gives its base.
    pub(crate) fn detach_any(&self) -> Option<u64> {
        self.chunk.swap(DETACHED, Ordering::AcqRel).checked_sub(1)
    }

    /// Detaches the chunk at `base` if that is the one attached.
    pub(crate) fn detach(&self, base: u64) {
        // The result does not matter: either it is detached now, or it was another chunk (or none) already.
        let _ = self.chunk.compare_exchange(base + 1, DETACHED, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether the chunk at `base` is attached.
    pub(crate) fn has_attached(&self, base: u64) -> bool {
        self.chunk.load(Ordering::Acquire) == base + 1
    }

    /// Whether the owner is outside of any reservation. Acquire: its payload bytes are then behind us.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
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
