//! Chunks: the unit in which threads take payload memory. Owner words ensure that no two threads ever write the same
//! payload bytes at the same time.
//!
//! Each physical chunk has an owner word, `lap << 16 | holder`, in the private memory of the process that writes the
//! ring:
//! - The lap is the number of the last pass through the payload buffer for which a writer took the chunk. Passes are
//!   numbered from 1. Laps only grow.
//! - The holder is 0 (free), the id of a payload cursor plus one, or [`ONE_OFF`].
//!
//! A writer may be stalled between allocating an offset and taking the chunk there. If another writer takes the chunk
//! for a later pass meanwhile, the owner word gets a newer lap, and the stalled writer does not take the chunk.

use super::cursor::{CursorId, LeftRun, PayloadCursor};
use super::cursors::PayloadCursors;
use crate::layout::Geometry;
use crate::ring::mutation::{self, Mutation};
use crate::ring::step::{self, Step};
use crate::sync::{AtomicU64, Ordering, fence};

const HOLDER_BITS: u32 = 16;
const HOLDER_MASK: u64 = (1 << HOLDER_BITS) - 1;
const FREE: u64 = 0;
/// Holder of a chunk that was taken for a single reservation. The commit of that reservation frees the chunk.
const ONE_OFF: u64 = HOLDER_MASK;

/// Bits of a pin word below the lap.
const PIN_BITS: u32 = 16;
const PIN_MASK: u64 = (1 << PIN_BITS) - 1;
/// Flag in a pin word: the chunk is not the first of its run of chunks. The bits below the flag are the number of
/// chunks between the run's start and this chunk.
const PIN_FOLLOWS: u64 = 1 << 15;
/// Largest count in the pin word of a run's first chunk. It means that at least this many reservations are open in
/// the run, so their exact number is not known.
const PIN_UNCOUNTED: u64 = PIN_FOLLOWS - 1;

/// Taker of a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Taker<'a> {
    /// Payload cursor. It holds the chunk for several reservations.
    Cursor(&'a PayloadCursor),
    /// Single reservation. It holds the chunk until its commit. The value is the payload cursor of the reservation's
    /// thread, or `None` if the thread has none.
    OneOff(Option<&'a PayloadCursor>),
}

impl Taker<'_> {
    /// Returns the number that stands for this taker in the holder bits of an owner word.
    fn holder(self) -> u64 {
        match self {
            Self::Cursor(cursor) => u64::from(cursor.id()) + 1,
            Self::OneOff(_) => ONE_OFF,
        }
    }

    /// Returns the payload cursor of the thread that takes the chunk, or `None` if the thread has none.
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
    /// Pin words, one for each chunk. They describe *pinned* runs: the payload cursor has stopped filling such a run,
    /// but reservations are still open in it. The first chunk's word is `lap << 16 | open`, where `open` counts these
    /// reservations. The other chunks of the run are numbered from 1. The word of chunk `n` is
    /// `lap << 16 | PIN_FOLLOWS | n`. Pin words with the lap of a run are used only by the payload cursor that took the
    /// run.
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

    /// Takes the chunk at the unwrapped offset `base`, a multiple of the chunk size. The taker has just allocated
    /// `base` from `next_payload_byte`. This function never waits.
    ///
    /// Returns false if the chunk has already been taken for a newer lap of the buffer. Also returns false if the
    /// chunk's holder may still write to the chunk. This is so if the holder is a single reservation, or a payload
    /// cursor with an open reservation. (The reservation for which we take the chunk does not count.)
    pub(crate) fn take(&self, base: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let owner = self.owner(base);
        let lap = self.lap(base);
        // Acquire here and in the exchange below, pairs with the release in `free` and `release_run`: the previous
        // holder's payload stores happen before our payload stores. So our stores are later in the modification order
        // of every byte.
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
            // The exchange needs no release. A thread that reads our name in the owner word leaves the chunk alone, or
            // it looks at our payload cursor. The accesses to the payload cursor have their own orderings.
            // If the exchange fails, the holder has freed the chunk, or another thread has taken the chunk for a later
            // lap than the lap in `seen`. This happens only a few times, so the loop ends.
            match owner.compare_exchange(seen, name, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Returns true if the *owner* will never write to the chunk again. The owner is the payload cursor that `seen`
    /// names as the chunk's holder. Call this after the taker has allocated the same chunk from `next_payload_byte`,
    /// for a later pass through the buffer.
    ///
    /// The following shows that the taker cannot miss an owner that may still write to the chunk. A run is *near* if at
    /// most an eighth of the buffer has been allocated since the run was taken.
    ///
    /// First case: the owner took the chunk in an earlier reservation. In each reservation, the owner first marks
    /// "inside". Then it executes a full fence. Then it reads `next_payload_byte`. If the run is no longer near, the
    /// owner stops filling the run. The taker has moved `next_payload_byte` a whole buffer past the chunk. Then the
    /// taker executes a full fence. Then it reads whether the owner is inside. One of the two fences comes first:
    /// - If the taker's fence comes first, the owner sees, in this and every later reservation, that the run is not
    ///   near. So the owner never writes to the chunk again.
    /// - If the owner's fence comes first, the taker sees that the owner is inside, unless the owner's reservation has
    ///   ended since. While the owner is inside, the taker leaves the chunk alone.
    ///
    /// Second case: the owner is still inside the reservation in which it took the chunk. In this reservation the owner
    /// does not check again whether the run is near. The owner executed its fence before it stored its name in the
    /// owner word. The taker read this name before it executed its own fence. So the owner's fence came first, and the
    /// taker sees that the owner is inside.
    fn is_abandoned(&self, seen: u64, taker: Taker<'_>, cursors: &PayloadCursors) -> bool {
        let holder = (seen & HOLDER_MASK) as CursorId - 1;
        if let Some(own) = taker.own_cursor()
            && own.id() == holder
        {
            // The taker's own payload cursor holds the chunk, from an earlier lap of the buffer. If the reservation
            // that is being made is the cursor's only open reservation, no other reservation has its payload in the
            // chunk. Then the taker may take the chunk again.
            return own.is_outermost();
        }
        let Some(cursor) = cursors.get(holder) else { return false };
        if !mutation::active(Mutation::MissingThiefFence) {
            fence(Ordering::SeqCst);
        }
        cursor.is_outside()
    }

    /// Frees the chunk at the unwrapped offset `base`. Has no effect if `taker` no longer holds the chunk for the lap
    /// of that offset.
    pub(crate) fn free(&self, base: u64, taker: Taker<'_>) {
        let lap = self.lap(base) << HOLDER_BITS;
        let held = lap | taker.holder();
        // Release, pairs with the acquire in `take`: our payload stores happen before the payload stores of the next
        // holder. If the exchange fails, another thread has taken the chunk from us, and nothing is to be freed.
        let _ = self.owner(base).compare_exchange(held, lap | FREE, free_order(), Ordering::Relaxed);
    }

    /// Releases a run of chunks that `cursor` has stopped filling. `run.open` says how many open reservations of the
    /// cursor have their payload in the run.
    ///
    /// If `run.open` is 0, this function frees the run. Otherwise it *pins* the run. If the last reservation in a
    /// pinned run ends while the payload cursor has other open reservations, [`Self::unpin`] frees the run. If the
    /// payload cursor has no other open reservation, nothing frees the run, but other threads can take its chunks (see
    /// [`Self::is_abandoned`]). So a reservation that is open for long, or leaked, keeps only one run from other
    /// threads. Other runs of the same payload cursor are freed.
    ///
    /// `is_kept` is true if no other thread can have taken a chunk of the run. This is certain if the payload cursor is
    /// inside a reservation, and the run was still *near* after the fence of that reservation (see
    /// [`Self::is_abandoned`]). Then plain stores free the chunks. Otherwise each chunk is freed by a
    /// compare-exchange, which fails if the cursor no longer holds the chunk.
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
        // Relaxed, as in `unpin`: only the payload cursor that took the run uses pin words with the run's lap.
        // Other threads may have taken the run's chunks although `open` is not 0: a signal handler may release the run
        // while the owner makes a reservation in it that the owner then withdraws. In this case our words may replace
        // pin words of the chunks' next holder. This does no harm, because the next holder ignores words of another
        // lap.
        let pin = |base, what| self.pins[self.index(base)].store(self.pin_word(base, what), Ordering::Relaxed);
        pin(run.base, run.open.min(PIN_UNCOUNTED));
        (1..chunks).for_each(|n| pin(self.chunk_at(run.base, n), PIN_FOLLOWS | n));
    }

    /// Ends the reservation with its payload at `offset`. [`Self::release_run`] has counted this reservation in a
    /// pinned run. If it was the last of the counted reservations, this function frees the run. The payload cursor
    /// still has other open reservations, in this run or in others.
    #[cold]
    pub(crate) fn unpin(&self, offset: u64, cursor: &PayloadCursor) {
        let Some(first) = self.first_of_run(offset >> self.chunk_shift << self.chunk_shift) else { return };
        let pins = &self.pins[self.index(first)];
        let pinned = pins.load(Ordering::Relaxed);
        let open = pinned & PIN_MASK;
        if pinned != self.pin_word(first, open) || !(1..PIN_UNCOUNTED).contains(&open) {
            // The number of open reservations in the run is not known, so we cannot tell which of them is the last. We
            // do not free the run. Other threads can take its chunks when the payload cursor has no open reservation.
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

    /// Returns the offset of the first chunk of the pinned run that contains the chunk at `base`. Returns `None` if
    /// the chunk is not pinned for the lap of `base`.
    fn first_of_run(&self, base: u64) -> Option<u64> {
        let pinned = self.pins[self.index(base)].load(Ordering::Relaxed);
        if pinned >> PIN_BITS != self.lap(base) {
            return None;
        }
        let before = if pinned & PIN_FOLLOWS == 0 { 0 } else { pinned & (PIN_FOLLOWS - 1) };
        base.checked_sub(before << self.chunk_shift)
    }

    /// Returns true if the chunk at `base` is in a pinned run, `n` chunks after the first chunk of the run.
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
