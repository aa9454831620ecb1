//! Payload memory changes hands in chunks, so that no two threads ever write the same payload bytes.
//!
//! Each physical chunk has an owner word in the writer's private memory (a ring has one writing process):
//! `lap << 16 | holder`. The lap is the turn of the payload buffer for which the chunk was last taken, from 1. The holder
//! is 0 (free), a lane plus one, or [`ONE_OFF`]. Laps only grow, so that a writer which allocated an offset long ago and
//! comes late finds a newer lap and takes nothing.

use super::lane::{Lane, LaneId, Lanes};
use super::mutation::{self, Mutation};
use crate::layout::Geometry;
use crate::sync::{AtomicU64, Ordering, fence};

const HOLDER_BITS: u32 = 16;
const HOLDER_MASK: u64 = (1 << HOLDER_BITS) - 1;
const FREE: u64 = 0;
/// Holder of a chunk that was taken for one reservation and is freed by its commit.
const ONE_OFF: u64 = HOLDER_MASK;

/// Who asks for a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Taker<'a> {
    /// A thread, to keep the chunk in its lane.
    Lane(&'a Lane),
    /// One reservation.
    OneOff,
}

/// The owner words of a ring's chunks.
pub(crate) struct Chunks {
    owners: Box<[AtomicU64]>,
    chunk_shift: u32,
    payload_shift: u32,
}

impl Chunks {
    /// All chunks free.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            owners: (0..geometry.chunk_count()).map(|_| AtomicU64::new(FREE)).collect(),
            chunk_shift: geometry.chunk_bytes().trailing_zeros(),
            payload_shift: geometry.payload_buf_bytes().trailing_zeros(),
        }
    }

    /// Bytes of a chunk.
    #[inline(always)]
    pub(crate) fn chunk_bytes(&self) -> u64 {
        1 << self.chunk_shift
    }

    fn owner(&self, base: u64) -> &AtomicU64 {
        &self.owners[(base >> self.chunk_shift) as usize & (self.owners.len() - 1)]
    }

    fn lap(&self, base: u64) -> u64 {
        (base >> self.payload_shift) + 1
    }

    /// Takes the chunk at the unwrapped offset `base` (a multiple of the chunk size that the taker has just allocated from
    /// `next_payload_byte`). False: a newer lap has it, or a thread that is inside it now. Never waits.
    pub(crate) fn take(&self, base: u64, taker: Taker<'_>, lanes: &Lanes) -> bool {
        let owner = self.owner(base);
        let lap = self.lap(base);
        let holder = match taker {
            Taker::Lane(lane) => u64::from(lane.id()) + 1,
            Taker::OneOff => ONE_OFF,
        };
        // Acquire here and below: with a free word come the previous holder's payload stores, so that ours are later in
        // the modification order of every byte.
        let mut seen = owner.load(Ordering::Acquire);
        loop {
            if seen >> HOLDER_BITS >= lap {
                return false;
            }
            let held_by = seen & HOLDER_MASK;
            if !mutation::active(Mutation::MissingChunkClaim)
                && held_by != FREE
                && (held_by == ONE_OFF || !self.part_from(base, seen, taker, lanes))
            {
                return false;
            }
            // AcqRel: release so that a thief that reads our name also sees that we are inside.
            match owner.compare_exchange(seen, lap << HOLDER_BITS | holder, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether the lane that holds the chunk can no longer write to it.
    ///
    /// The owner says "inside", then a full fence, then reads which chunk is attached. We detach, then a full fence, then
    /// read whether it is inside. One of the two fences comes first: either the owner sees that it has been detached, or we
    /// see that it is inside, and leave the chunk alone. The last look is for an owner that attached this chunk after we
    /// looked first and has left again: its leaving, which we have read, has the attachment behind it.
    fn part_from(&self, base: u64, seen: u64, taker: Taker<'_>, lanes: &Lanes) -> bool {
        let holder = (seen & HOLDER_MASK) as LaneId - 1;
        let Some(lane) = lanes.get(holder) else { return false };
        if let Taker::Lane(own) = taker
            && own.id() == holder
        {
            // Our own, from an earlier lap. Nothing of ours is open in it if this reservation is the only one.
            return own.is_outermost() && !own.has_attached(self.held_base(base, seen));
        }
        let held_base = self.held_base(base, seen);
        lane.detach(held_base);
        if !mutation::active(Mutation::MissingLaneFence) {
            fence(Ordering::SeqCst);
        }
        lane.is_outside() && !lane.has_attached(held_base)
    }

    /// The unwrapped base that the holder in the owner word `seen` knows for the chunk at `base`.
    fn held_base(&self, base: u64, seen: u64) -> u64 {
        let within = base & ((1 << self.payload_shift) - 1);
        (((seen >> HOLDER_BITS) - 1) << self.payload_shift) + within
    }

    /// Frees the chunk at `base` if `taker` still holds it for that lap.
    pub(crate) fn free(&self, base: u64, taker: Taker<'_>) {
        let holder = match taker {
            Taker::Lane(lane) => u64::from(lane.id()) + 1,
            Taker::OneOff => ONE_OFF,
        };
        let lap = self.lap(base) << HOLDER_BITS;
        // Release: our payload stores are behind whoever takes it next. If it fails, somebody has taken it from us.
        let _ = self.owner(base).compare_exchange(lap | holder, lap | FREE, Ordering::Release, Ordering::Relaxed);
    }
}
