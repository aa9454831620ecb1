//! Payload memory changes hands in chunks, so that no two threads ever write the same payload bytes.
//!
//! Each physical chunk has an owner word in the writer's private memory (a ring has one writing process): `lap << 16 |
//! holder`. The lap is the turn of the payload buffer for which the chunk was last taken, from 1. The holder is 0
//! (free), a payload cursor plus one, or [`ONE_OFF`]. Laps only grow, so that a writer which allocated an offset long
//! ago and comes late finds a newer lap and takes nothing.

use super::mutation::{self, Mutation};
use super::payload_cursor::{CursorId, LeftRun, PayloadCursor};
use super::payload_cursors::PayloadCursors;
use super::step::{self, Step};
use crate::layout::Geometry;
use crate::sync::{AtomicU64, Ordering, fence};

const HOLDER_BITS: u32 = 16;
const HOLDER_MASK: u64 = (1 << HOLDER_BITS) - 1;
const FREE: u64 = 0;
/// Holder of a chunk that was taken for one reservation and is freed by its commit.
const ONE_OFF: u64 = HOLDER_MASK;

/// Bits of a pin word below the lap.
const PIN_BITS: u32 = 16;
const PIN_MASK: u64 = (1 << PIN_BITS) - 1;
/// In a pin word: the chunk is not the first of its run; the bits below say by how many chunks.
const PIN_FOLLOWS: u64 = 1 << 15;
/// In the pin word of a run's first chunk: too many open reservations to count.
const PIN_UNCOUNTED: u64 = PIN_FOLLOWS - 1;

/// Who asks for a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Taker<'a> {
    /// A thread, to keep the chunk in its payload cursor.
    Cursor(&'a PayloadCursor),
    /// One reservation, of the thread of this payload cursor if it has one.
    OneOff(Option<&'a PayloadCursor>),
}

impl Taker<'_> {
    /// How an owner word names it.
    fn holder(self) -> u64 {
        match self {
            Self::Cursor(cursor) => u64::from(cursor.id()) + 1,
            Self::OneOff(_) => ONE_OFF,
        }
    }

    /// The payload cursor of the thread that asks.
    fn own_cursor(&self) -> Option<&PayloadCursor> {
        match self {
            Self::Cursor(cursor) => Some(cursor),
            Self::OneOff(cursor) => *cursor,
        }
    }
}

fn free_order() -> Ordering {
    if mutation::active(Mutation::RelaxedFree) { Ordering::Relaxed } else { Ordering::Release }
}

/// The owner words of a ring's chunks.
pub(crate) struct Chunks {
    owners: Box<[AtomicU64]>,
    /// `lap << 16 | open` for the first chunk of a run that its payload cursor has stopped filling: how many
    /// reservations are open in the run. `lap << 16 | PIN_FOLLOWS | n` for the chunk `n` chunks further on. Only the
    /// payload cursor that took the run for that lap uses them, and only if reservations were open in the run when it
    /// was left.
    pins: Box<[AtomicU64]>,
    chunk_shift: u32,
    payload_shift: u32,
}

impl Chunks {
    /// All chunks free.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        let words = || (0..geometry.chunk_count()).map(|_| AtomicU64::new(FREE)).collect();
        Self {
            owners: words(),
            pins: words(),
            chunk_shift: geometry.chunk_bytes().trailing_zeros(),
            payload_shift: geometry.payload_buf_bytes().trailing_zeros(),
        }
    }

    fn index(&self, base: u64) -> usize {
        (base >> self.chunk_shift) as usize & (self.owners.len() - 1)
    }

    fn owner(&self, base: u64) -> &AtomicU64 {
        &self.owners[self.index(base)]
    }

    fn lap(&self, base: u64) -> u64 {
        (base >> self.payload_shift) + 1
    }

    /// Takes the chunk at the unwrapped offset `base` (a multiple of the chunk size that the taker has just allocated
    /// from `next_payload_byte`). False: a newer lap has it, or a thread that is inside it now. Never waits.
    pub(crate) fn take(&self, base: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let owner = self.owner(base);
        let lap = self.lap(base);
        // Acquire here and below: with a free word come the previous holder's payload stores, so that ours are later in
        // the modification order of every byte.
        let mut seen = owner.load(Ordering::Acquire);
        loop {
            if seen >> HOLDER_BITS >= lap && !mutation::active(Mutation::MissingLapCheck) {
                return false;
            }
            let held_by = seen & HOLDER_MASK;
            if !mutation::active(Mutation::MissingChunkClaim)
                && held_by != FREE
                && (held_by == ONE_OFF || !self.part_from(seen, taker, cursors))
            {
                return false;
            }
            step::at(Step::OwnerSeen);
            let name = lap << HOLDER_BITS | taker.holder();
            // Nothing to release: a thief that reads our name asks our payload cursor. A failure means that the word
            // has gone on to a newer lap or was freed, which happens a few times at most.
            match owner.compare_exchange(seen, name, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether the payload cursor that holds the chunk will never write to it again, seen by a taker that has allocated
    /// the chunk's next turn from `next_payload_byte`.
    ///
    /// The owner says "inside", then a full fence, then reads `next_payload_byte`, and leaves a chunk alone that lies
    /// far behind. We have moved `next_payload_byte` a whole turn past the chunk; then a full fence, then we read
    /// whether the owner is inside. One of the two fences comes first: either the owner sees that its chunk lies far
    /// behind, now and ever after, or we see that it is inside, and leave the chunk alone. (That it took the chunk at
    /// all we have read from the owner word; so the fence of the reservation in which it did came before ours.)
    fn part_from(&self, seen: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let holder = (seen & HOLDER_MASK) as CursorId - 1;
        if let Some(own) = taker.own_cursor()
            && own.id() == holder
        {
            // Our own, from an earlier lap. Nothing of ours is open in it if this reservation is the only one.
            return own.is_outermost();
        }
        let Some(cursor) = cursors.get(holder) else { return false };
        if !mutation::active(Mutation::MissingThiefFence) {
            fence(Ordering::SeqCst);
        }
        cursor.is_outside()
    }

    /// Frees the chunk at `base` if `taker` still holds it for that lap.
    pub(crate) fn free(&self, base: u64, taker: Taker<'_>) {
        let lap = self.lap(base) << HOLDER_BITS;
        let held = lap | taker.holder();
        // Release: our payload stores happen before those of whoever takes it next. If it fails, somebody has taken it
        // from us.
        let _ = self.owner(base).compare_exchange(held, lap | FREE, free_order(), Ordering::Relaxed);
    }

    /// Ends `cursor`'s filling of `run`, in which `run.open` of its reservations still have their payload.
    ///
    /// The last of them frees it (see [`Self::unpin`]); or thieves take its chunks when the payload cursor is outside.
    /// So one reservation that is kept open for long, or leaked, keeps one run, and not all that its thread fills
    /// meanwhile.
    ///
    /// `is_kept` says that nobody can have taken a chunk of it: the payload cursor is inside, and the run was near
    /// after the fence. Whoever would take a chunk leaves it alone then, so that no exchange is needed.
    pub(crate) fn release_run(&self, run: LeftRun, cursor: &PayloadCursor, is_kept: bool) {
        let chunks = run.bytes >> self.chunk_shift;
        if run.open == 0 || mutation::active(Mutation::MissingPin) {
            for base in (0..chunks).map(|n| self.chunk_at(run.base, n)) {
                if is_kept {
                    // Release: as in `free`.
                    self.owner(base).store(self.lap(base) << HOLDER_BITS | FREE, free_order());
                } else {
                    self.free(base, Taker::Cursor(cursor));
                }
            }
            return;
        }
        // Relaxed, as in `unpin`: the holder's own. With the lap, for `open` may be wrong about a run of which chunks
        // have been taken from the payload cursor (a handler that came before the payload cursor noticed counts what
        // will be withdrawn): the next holder then finds a lap that is not its own.
        let pin = |base, what| self.pins[self.index(base)].store(self.pin_word(base, what), Ordering::Relaxed);
        pin(run.base, run.open.min(PIN_UNCOUNTED));
        (1..chunks).for_each(|n| pin(self.chunk_at(run.base, n), PIN_FOLLOWS | n));
    }

    /// Ends one of the reservations that [`Self::release_run`] counted in the run of `offset`, while others of its
    /// payload cursor are open.
    #[cold]
    pub(crate) fn unpin(&self, offset: u64, cursor: &PayloadCursor) {
        let Some(first) = self.first_of_run(offset >> self.chunk_shift << self.chunk_shift) else { return };
        let pins = &self.pins[self.index(first)];
        let pinned = pins.load(Ordering::Relaxed);
        let open = pinned & PIN_MASK;
        if pinned != self.pin_word(first, open) || !(1..PIN_UNCOUNTED).contains(&open) {
            // Not known: kept until the payload cursor is outside.
            return;
        }
        pins.store(pinned - 1, Ordering::Relaxed);
        if open == 1 {
            self.free(first, Taker::Cursor(cursor));
            (1..PIN_FOLLOWS)
                .map(|n| (n, self.chunk_at(first, n)))
                .take_while(|(n, base)| self.follows(*base, *n))
                .for_each(|(_, base)| self.free(base, Taker::Cursor(cursor)));
        }
    }

    /// Returns the base of the first chunk of the pinned run in which the chunk at `base` lies; `None` if it was not
    /// pinned for this lap.
    fn first_of_run(&self, base: u64) -> Option<u64> {
        let pinned = self.pins[self.index(base)].load(Ordering::Relaxed);
        if pinned >> PIN_BITS != self.lap(base) {
            return None;
        }
        let before = if pinned & PIN_FOLLOWS == 0 { 0 } else { pinned & (PIN_FOLLOWS - 1) };
        base.checked_sub(before << self.chunk_shift)
    }

    /// Whether the chunk at `base` is pinned as the one `n` chunks after the first of its run.
    fn follows(&self, base: u64, n: u64) -> bool {
        self.pins[self.index(base)].load(Ordering::Relaxed) == self.pin_word(base, PIN_FOLLOWS | n)
    }

    fn pin_word(&self, base: u64, what: u64) -> u64 {
        self.lap(base) << PIN_BITS | what
    }

    fn chunk_at(&self, base: u64, n: u64) -> u64 {
        base + (n << self.chunk_shift)
    }
}
