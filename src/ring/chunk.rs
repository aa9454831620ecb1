//! Chunks: the unit in which payload memory changes hands, so that no two threads ever write the same payload bytes at
//! the same time.
//!
//! Each physical chunk has an owner word in the writer's private memory (a ring has one writing process): `lap << 16 |
//! holder`. The lap is the number of the pass through the payload buffer for which the chunk was last taken, from 1.
//! The holder is 0 (free), the id of a payload cursor plus one, or [`ONE_OFF`]. Laps only grow. So a writer that was
//! stalled between allocating an offset and taking its chunk finds a newer lap in the owner word, and does not take the
//! chunk.

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
/// Flag in a pin word: the chunk is not the first of its run; the bits below hold its distance from the first in
/// chunks.
const PIN_FOLLOWS: u64 = 1 << 15;
/// Value of the count in the pin word of a run's first chunk if more reservations are open than the count's bits can
/// hold.
const PIN_UNCOUNTED: u64 = PIN_FOLLOWS - 1;

/// Taker of a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Taker<'a> {
    /// Payload cursor, which holds the chunk for several reservations.
    Cursor(&'a PayloadCursor),
    /// Single reservation, which holds the chunk until its commit. The value is the payload cursor of its thread, if
    /// the thread has one.
    OneOff(Option<&'a PayloadCursor>),
}

impl Taker<'_> {
    /// Returns the number that stands for this taker in an owner word.
    fn holder(self) -> u64 {
        match self {
            Self::Cursor(cursor) => u64::from(cursor.id()) + 1,
            Self::OneOff(_) => ONE_OFF,
        }
    }

    /// Returns the payload cursor of the thread that takes the chunk.
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
    /// Pin words of the runs that payload cursors have stopped filling while reservations were open in them. The first
    /// chunk of a run has `lap << 16 | open`, where `open` counts those reservations. The chunk `n` chunks after it has
    /// `lap << 16 | PIN_FOLLOWS | n`. Only the payload cursor that took the run for that lap uses these words.
    pins: Box<[AtomicU64]>,
    chunk_shift: u32,
    payload_shift: u32,
}

impl Chunks {
    /// Creates the owner words of free chunks.
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

    /// Takes the chunk at the unwrapped offset `base`, a multiple of the chunk size that the taker has just allocated
    /// from `next_payload_byte`. Never waits.
    ///
    /// Returns false if the chunk has already been taken for a newer lap, or if its holder is inside a reservation now
    /// and may still write to it.
    pub(crate) fn take(&self, base: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let owner = self.owner(base);
        let lap = self.lap(base);
        // Acquire here and below, pairs with the release in `free` and `release_run`: the previous holder's payload
        // stores happen before our payload stores. So our stores are later in the modification order of every byte.
        let mut seen = owner.load(Ordering::Acquire);
        loop {
            if seen >> HOLDER_BITS >= lap && !mutation::active(Mutation::MissingLapCheck) {
                return false;
            }
            let held_by = seen & HOLDER_MASK;
            if !mutation::active(Mutation::MissingChunkClaim)
                && held_by != FREE
                && (held_by == ONE_OFF || !self.is_abandoned(seen, taker, cursors))
            {
                return false;
            }
            step::at(Step::OwnerSeen);
            let name = lap << HOLDER_BITS | taker.holder();
            // No release is needed: a thread that reads our name here and wants the chunk then reads our payload
            // cursor, which has orderings of its own. If the exchange fails, another thread has taken the chunk for a
            // newer lap or the holder has freed it. Both happen a few times at most, so the loop ends.
            match owner.compare_exchange(seen, name, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Returns true if the payload cursor that holds the chunk (the owner) will never write to it again. The taker has
    /// allocated the same chunk, for a later pass through the buffer, from `next_payload_byte`.
    ///
    /// A run is *near* if at most an eighth of the buffer has been allocated since the run was taken. The owner, in
    /// each reservation, marks "inside", executes a full fence, reads `next_payload_byte`, and stops filling its run if
    /// the run is no longer near. The taker has moved `next_payload_byte` a whole buffer past the chunk; it executes a
    /// full fence and reads whether the owner is inside. One of the two fences comes first. If the taker's fence comes
    /// first, the owner sees that its run is not near, now and ever after. If the owner's fence comes first, the taker
    /// sees that the owner is inside and leaves the chunk alone. (The taker has read the owner's name from the owner
    /// word. So the fence of the reservation in which the owner took the chunk came before the taker's fence.)
    fn is_abandoned(&self, seen: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let holder = (seen & HOLDER_MASK) as CursorId - 1;
        if let Some(own) = taker.own_cursor()
            && own.id() == holder
        {
            // The taker itself holds the chunk, from an earlier lap. If the taker has no open reservation other than
            // the present one, none of its open reservations has its payload in the chunk, and it may take the chunk
            // again.
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
        // Release, pairs with the acquire in `take`: our payload stores happen before the payload stores of the next
        // holder. If the exchange fails, another thread has taken the chunk from us.
        let _ = self.owner(base).compare_exchange(held, lap | FREE, free_order(), Ordering::Relaxed);
    }

    /// Releases a run that `cursor` has stopped filling. `run.open` is the number of the cursor's open reservations
    /// that have their payload in the run.
    ///
    /// If there are none, the run is freed at once. Otherwise the run is *pinned*: the last of these reservations to
    /// end frees the run (see [`Self::unpin`]), or other threads take its chunks when the payload cursor has no open
    /// reservation. So a reservation that is open for long, or leaked, withholds only one run from other threads, not
    /// every run that its thread fills meanwhile.
    ///
    /// `is_kept` means that no other thread can have taken a chunk of the run, because the payload cursor is inside and
    /// the run was near after the cursor's fence. Then a plain store can free the chunks. Otherwise a compare-exchange
    /// must check that the cursor still holds them.
    pub(crate) fn release_run(&self, run: LeftRun, cursor: &PayloadCursor, is_kept: bool) {
        let chunks = run.bytes >> self.chunk_shift;
        if run.open == 0 || mutation::active(Mutation::MissingPin) {
            for base in (0..chunks).map(|n| self.chunk_at(run.base, n)) {
                if is_kept {
                    // Release, as in `free`.
                    self.owner(base).store(self.lap(base) << HOLDER_BITS | FREE, free_order());
                } else {
                    self.free(base, Taker::Cursor(cursor));
                }
            }
            return;
        }
        // Relaxed, as in `unpin`: only the holder uses these words. Each word also has the lap, because `open` may be
        // too high for a run whose chunks other threads have taken. (If a signal handler interrupts the owner before it
        // notices the loss, the handler counts a reservation that the owner then withdraws.) The next holder of the
        // chunk ignores such a word, because the word has a lap other than its own.
        let pin = |base, what| self.pins[self.index(base)].store(self.pin_word(base, what), Ordering::Relaxed);
        pin(run.base, run.open.min(PIN_UNCOUNTED));
        (1..chunks).for_each(|n| pin(self.chunk_at(run.base, n), PIN_FOLLOWS | n));
    }

    /// Ends one of the reservations that [`Self::release_run`] counted in the run of `offset`, while other reservations
    /// of the same payload cursor are open. Frees the run if this was the last reservation in it.
    #[cold]
    pub(crate) fn unpin(&self, offset: u64, cursor: &PayloadCursor) {
        let Some(first) = self.first_of_run(offset >> self.chunk_shift << self.chunk_shift) else { return };
        let pins = &self.pins[self.index(first)];
        let pinned = pins.load(Ordering::Relaxed);
        let open = pinned & PIN_MASK;
        if pinned != self.pin_word(first, open) || !(1..PIN_UNCOUNTED).contains(&open) {
            // The number of open reservations is not known, so we cannot tell which of them is the last. The run is not
            // freed here. Other threads can take its chunks when the payload cursor has no open reservation.
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

    /// Returns the base of the first chunk of the pinned run in which the chunk at `base` lies. Returns `None` if the
    /// chunk was not pinned for this lap.
    fn first_of_run(&self, base: u64) -> Option<u64> {
        let pinned = self.pins[self.index(base)].load(Ordering::Relaxed);
        if pinned >> PIN_BITS != self.lap(base) {
            return None;
        }
        let before = if pinned & PIN_FOLLOWS == 0 { 0 } else { pinned & (PIN_FOLLOWS - 1) };
        base.checked_sub(before << self.chunk_shift)
    }

    /// Returns true if the chunk at `base` is pinned as the chunk that is `n` chunks after the first chunk of its run.
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
