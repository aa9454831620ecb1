//! Where payloads lie: how a lane gets the run of chunks that it fills, and what does not go into a run.
//!
//! Payload memory is handed out in whole chunks, in the order of `next_payload_byte`, and what a lane does not use of its
//! run is lost to the others until the buffer has gone round. So runs are sized such that little is lost: they begin with a
//! chunk and grow with what the lane records, all lanes together hold a sixteenth of the buffer at most, and a payload
//! of which a run would hold few gets chunks of its own.

use super::chunk::Taker;
use super::lane::Lane;
use super::memory::{ControlWord, RingMemory};
use super::mutation::{self, Mutation};
use super::step::{self, Step};
use super::window;
use super::writer::{Claim, NO_SLOT, RingWriter};
use crate::layout::Geometry;
use crate::layout::limits::PAYLOAD_ALIGN;
use crate::sync::Ordering;

/// A run holds so many payloads or more: where the next one does not fit, less than this part of the run is lost. (Models
/// use tiny runs, of two payloads.)
const PAYLOADS_MIN: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 4 };

/// How large runs are.
#[derive(Clone, Copy)]
pub(super) struct RunSizes {
    pub(super) chunk_bytes: u64,
    /// No run is longer.
    pub(super) run_bytes_max: u64,
    /// What the runs of all lanes together should take, or twice as much if payloads are large. A lane goes on with its run
    /// while the others allocate twice that: so lanes that record by turns use up their runs before these lie far behind.
    pub(super) all_runs_bytes: u64,
}

impl RunSizes {
    pub(super) fn of(geometry: &Geometry) -> Self {
        Self {
            chunk_bytes: geometry.chunk_bytes(),
            run_bytes_max: geometry.run_bytes_max(),
            all_runs_bytes: geometry.payload_buf_bytes() / 32,
        }
    }

    /// Returns the bytes that a run should have for a lane that wants `wanted`, among `lanes` that record.
    fn goal_bytes(&self, wanted: u64, lanes: u64) -> u64 {
        let share = (self.all_runs_bytes / lanes).min(self.run_bytes_max / 2);
        wanted.min(share).max(self.chunk_bytes)
    }

    /// Returns the bytes of a run of about `goal` bytes, a multiple of the chunk size, for payloads of `rounded` bytes. `None`:
    /// less is lost if the payload gets chunks of its own.
    fn run_bytes(&self, goal: u64, rounded: u64) -> Option<u64> {
        let whole_chunks = |bytes: u64| bytes / self.chunk_bytes * self.chunk_bytes;
        if rounded.saturating_mul(PAYLOADS_MIN) <= goal {
            return Some(whole_chunks(goal));
        }
        let alone = rounded.checked_next_multiple_of(self.chunk_bytes)?;
        if (alone - rounded).saturating_mul(PAYLOADS_MIN) <= rounded && rounded > self.chunk_bytes {
            return None;
        }
        let count = whole_chunks(2 * goal).min(self.run_bytes_max) / rounded;
        (count > 1).then(|| (count * rounded).next_multiple_of(self.chunk_bytes))
    }
}

impl<M: RingMemory> RingWriter<M> {
    /// Finds payload bytes for the claimed `seqno` where the lane's run has none, is no longer ours or lies far behind.
    #[cold]
    #[inline(never)]
    pub(super) fn place_slow(&self, lane: Option<&Lane>, seqno: u64, payload_bytes: u64) -> Claim {
        let rounded = padded(payload_bytes);
        if seqno == NO_SLOT {
            return Claim { seqno, payload_offset: 0, one_off_chunks: 0, placed: false };
        }
        if let Some(payload_offset) = lane.and_then(|lane| self.place_in_run(lane, rounded)) {
            return Claim { seqno, payload_offset, one_off_chunks: 0, placed: true };
        }
        let (payload_offset, one_off_chunks, placed) = self.place_one_off(lane, rounded);
        Claim { seqno, payload_offset, one_off_chunks, placed }
    }

    /// Takes `rounded` bytes of the lane's run, or of a new one. `None`: the payload should get chunks of its own.
    fn place_in_run(&self, lane: &Lane, rounded: u64) -> Option<u64> {
        if !lane.begin_placing() {
            return None;
        }
        let offset = self.place_while_placing(lane, rounded);
        lane.end_placing();
        offset
    }

    fn place_while_placing(&self, lane: &Lane, rounded: u64) -> Option<u64> {
        let is_near = lane.base().is_some_and(|base| self.is_near(base));
        if is_near && let Some(offset) = lane.try_bump(rounded) {
            return Some(offset);
        }
        let is_stale = lane.base().is_some() && !is_near;
        if is_stale {
            self.leave_run(lane, false);
        }
        let epoch = self.epoch();
        let is_first = lane.enter_epoch(epoch);
        let enough = rounded.saturating_mul(PAYLOADS_MIN);
        let (wanted, wanted_next) = match lane.wanted().max(self.run_sizes.chunk_bytes) {
            // The others were faster, and what was left of the run is lost: it shall be little the next time.
            _ if is_stale => (0, 0),
            // The run is used up: the thread records more than that.
            before if is_near => [before.saturating_mul(2).max(enough); 2].into(),
            // A lane that comes once in an epoch would lose what it takes.
            before if is_first => (before, before),
            before => (before, before.max(enough)),
        };
        lane.want(wanted_next.min(self.run_sizes.run_bytes_max));
        let goal = self.run_sizes.goal_bytes(wanted, self.active.lanes(epoch, is_first));
        if lane.room() > goal / 2 {
            return None;
        }
        let run_bytes = self.run_sizes.run_bytes(goal, rounded)?;
        self.leave_run(lane, is_near);
        step::at(Step::ChunkLetGo);
        let base = self.take_run(run_bytes / self.run_sizes.chunk_bytes, Taker::Lane(lane))?;
        lane.fill(base, run_bytes, rounded);
        Some(base)
    }

    /// Ends the lane's filling of its run, if it has one. Call between begin and end of placing, or when no handler can record.
    /// `is_kept` is that of [`Chunks::let_go`](super::chunk::Chunks::let_go).
    fn leave_run(&self, lane: &Lane, is_kept: bool) {
        if let Some(left) = lane.let_go() {
            self.chunks.let_go(left, lane, is_kept);
        }
    }

    /// Returns the number of the present stretch of payload memory: after each, every run that was not used up lies far behind.
    fn epoch(&self) -> u64 {
        self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed) / self.stale_bytes
    }

    /// Places a large payload, or one of a thread without a lane, in chunks of its own: (offset, chunks, found).
    fn place_one_off(&self, lane: Option<&Lane>, rounded: u64) -> (u64, u64, bool) {
        let chunks = rounded.div_ceil(self.run_sizes.chunk_bytes);
        match self.take_run(chunks, Taker::OneOff(lane)) {
            Some(base) => (base, chunks, true),
            None => (self.memory.control(ControlWord::NextPayloadByte).load(Ordering::Relaxed), 0, false),
        }
    }

    /// Allocates `count` chunks in a row and takes them all, trying further on where a stalled writer is in the way.
    /// `None` after about two turns of the buffer.
    fn take_run(&self, count: u64, taker: Taker<'_>) -> Option<u64> {
        let chunk_bytes = self.run_sizes.chunk_bytes;
        let run_bytes = count * chunk_bytes;
        let next = self.memory.control(ControlWord::NextPayloadByte);
        let tries = 2 * self.memory.geometry().payload_buf_bytes() / run_bytes + 2;
        for _ in 0..tries {
            // Relaxed: unique by atomicity; the owner words order everything else.
            let first = next.fetch_add(run_bytes, Ordering::Relaxed);
            step::at(Step::ChunkAllocated);
            let taken =
                (0..count).take_while(|i| self.chunks.take(first + i * chunk_bytes, taker, &self.lanes)).count() as u64;
            if taken == count {
                step::at(Step::ChunksTaken);
                window::move_past(&self.memory, first + run_bytes);
                step::at(Step::WindowMoved);
                return Some(first);
            }
            for i in 0..taken {
                self.chunks.free(first + i * chunk_bytes, taker);
                step::at(Step::ChunkFreed);
            }
            self.memory.control(ControlWord::SkippedChunks).fetch_add(1, Ordering::Relaxed);
        }
        None
    }

    /// Ends a reservation while others of the thread are open. `in_run` is the offset of its payload if that lies in a
    /// run of the lane.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_nested(&self, lane: &Lane, in_run: Option<u64>) {
        if lane.leave_nested(in_run)
            && let Some(offset) = in_run
        {
            self.chunks.unpin(offset, lane);
        }
    }

    /// Gives a thread's lane back at its end, for the next thread, with the run that it fills. No handler of the thread may
    /// record meanwhile.
    ///
    /// A lane in which a reservation is still open (in another thread-local, or forgotten) is an orphan until
    /// [`Self::give_back_orphan`]; its run is freed with the last of its reservations.
    pub(crate) fn give_back(&self, lane: &Lane) {
        if lane.is_outside() || mutation::active(Mutation::EarlyHandOver) {
            self.lanes.release(lane.id());
            return;
        }
        self.leave_run(lane, false);
        lane.orphan();
    }

    /// Gives an orphan back, if the last of its reservations has ended. To be called by who has ended one.
    pub(crate) fn give_back_orphan(&self, lane: &Lane) {
        if lane.is_outside() && lane.take_from_orphans() {
            self.lanes.release(lane.id());
        }
    }
}

/// Returns `payload_bytes` and the padding after them; at most 2^63. (In two instructions; `next_multiple_of` takes six.)
#[inline(always)]
pub(super) fn padded(payload_bytes: u64) -> u64 {
    (payload_bytes + (PAYLOAD_ALIGN - 1)) & !(PAYLOAD_ALIGN - 1)
}
