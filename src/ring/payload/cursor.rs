//! Payload cursors: each thread's private position in the payload buffer.
//!
//! A payload cursor fills a *run*: one or more neighbouring chunks of payload memory that were taken together.
//!
//! Other threads read one word of a payload cursor, `inside`: it shows whether the cursor's owner is inside a
//! reservation. The owner sets the word with plain stores. A thread that wants the cursor's chunks executes a fence
//! before it reads the word (see [`super::chunk`]).

use crate::ring::mutation::{self, Mutation};
use crate::sync::{AtomicU64, Ordering, compiler_fence, local_add, local_fetch_add};

/// Index of a payload cursor among those of a ring.
pub(crate) type CursorId = u16;

/// Value of `run_base` while no run of chunks is being filled. No run begins there, because the value is not a
/// multiple of the payload alignment.
const NO_RUN: u64 = u64::MAX;
/// Value of `next` while no run of chunks is being filled. The value lies past the end of every run, so every attempt
/// to take bytes fails. (It also lies past the end of a run with the base [`NO_RUN`].) Attempts add their bytes to
/// `next`, but far too few bytes to make `next` wrap.
const PAST_EVERY_RUN: u64 = 1 << 62;

/// Number that each open reservation adds to [`PayloadCursor::inside`].
const OPEN: u64 = 1;
/// Number that an open reservation adds to [`PayloadCursor::inside`], in addition to [`OPEN`], if its payload lies in
/// the run of chunks being filled.
const OPEN_IN_RUN: u64 = 1 << 32;
const OPEN_MASK: u64 = OPEN_IN_RUN - 1;

/// One thread's position in the payload buffer. Other threads read only the word `inside`.
pub(crate) struct PayloadCursor {
    /// The low half counts the owner's open reservations. The high half counts only the open reservations with a
    /// payload in the run being filled. If the word is 0, the owner is *outside*; otherwise it is *inside*. Only the
    /// owner stores this word.
    inside: AtomicU64,
    /// Unwrapped base of the run being filled, or [`NO_RUN`].
    run_base: AtomicU64,
    /// Unwrapped offset of the next free byte in the run. After an attempt to take too many bytes, `next` is past the
    /// run's end until the attempt is undone. Without a run, `next` is at least [`PAST_EVERY_RUN`].
    next: AtomicU64,
    /// Bytes of the run being filled, or of the last run.
    run_bytes: AtomicU64,
    /// 1 while the owner changes from one run of chunks to the next, otherwise 0. A signal handler that interrupts the
    /// change and records finds the 1, and then does not change runs.
    is_changing_run: AtomicU64,
    /// Size in bytes that the owner's next run of chunks should have; 0 before its first run.
    wanted_bytes: AtomicU64,
    /// Number of the epoch in which the owner last needed a new run of chunks, plus one; 0 before its first run.
    /// [`crate::ring::active`] defines epochs.
    epoch: AtomicU64,
    /// 1 if the owner's thread has ended while a reservation was open; otherwise 0.
    is_orphan: AtomicU64,
    id: CursorId,
}

/// Outcome of an attempt to take bytes from the run of chunks being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bump {
    /// Bytes that begin at `offset`, in the run at `base`.
    Fits {
        /// Unwrapped offset.
        offset: u64,
        /// Unwrapped base of the run.
        base: u64,
    },
    /// No bytes. The run at `base` has no room for them, or there is no run.
    DoesNotFit {
        /// Unwrapped base of the run, or [`NO_RUN`].
        base: u64,
    },
}

/// A run that its payload cursor has stopped filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftRun {
    /// Unwrapped base.
    pub(crate) base: u64,
    /// Bytes, a multiple of the chunk size.
    pub(crate) bytes: u64,
    /// Number of the cursor's open reservations that have their payload in the run.
    pub(crate) open: u64,
}

impl PayloadCursor {
    /// Creates a cursor without a run.
    pub(in crate::ring) fn new(id: CursorId) -> Self {
        Self {
            inside: AtomicU64::new(0),
            run_base: AtomicU64::new(NO_RUN),
            next: AtomicU64::new(PAST_EVERY_RUN),
            run_bytes: AtomicU64::new(0),
            is_changing_run: AtomicU64::new(0),
            wanted_bytes: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            is_orphan: AtomicU64::new(0),
            id,
        }
    }

    /// Returns the index of this cursor among those of its ring.
    #[inline(always)]
    pub(crate) fn id(&self) -> CursorId {
        self.id
    }

    /// Marks that a reservation begins: the owner is inside.
    ///
    /// A full fence must follow: [`crate::sync::fetch_add_then_fence`], or a sequentially consistent fence. Only a
    /// load of `next_payload_byte` after the fence shows whether the run still belongs to this cursor.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        // Only the owner stores.
        local_add(&self.inside, OPEN);
    }

    /// Ends a reservation, if it is the owner's only open reservation. Otherwise has no effect and returns false; then
    /// the caller must call [`Self::leave_slow`].
    #[inline(always)]
    pub(crate) fn try_leave(&self) -> bool {
        let is_only_one = self.inside.load(Ordering::Relaxed) & OPEN_MASK <= OPEN;
        if is_only_one {
            // Release, pairs with the acquire in `is_outside`. A thread that reads this 0 may take one of the owner's
            // chunks. The owner's payload stores happen before that thread's payload stores.
            self.inside.store(0, leave_order());
        }
        is_only_one
    }

    /// Ends a reservation while other reservations of the owner are open. `in_run` is the offset of the reservation's
    /// payload, if the payload lies in a run of this cursor. Otherwise `in_run` is `None`.
    ///
    /// Returns true if the payload lies in a run of chunks that is no longer being filled. The caller must then call
    /// [`super::chunk::Chunks::unpin`].
    pub(crate) fn leave_slow(&self, in_run: Option<u64>) -> bool {
        let inside = self.inside.load(Ordering::Relaxed);
        // We check once, before the store, whether our payload lies in the run of chunks being filled. A signal handler
        // may change runs meanwhile. Then it counts our reservation as open in the old run:
        // - If the change comes before the check, the caller undoes this count.
        // - If the change comes between the check and the store, this count stays one too high.
        // If the change comes after the load of `inside`, our store also gives the new run the old run's count, which
        // may be too high. A run with too high a count is not freed until the cursor is outside. This is always safe.
        let is_in_run = in_run.is_some_and(|offset| self.is_in_run(offset));
        // Release, as in `try_leave`.
        self.inside.store(inside - OPEN - if is_in_run { OPEN_IN_RUN } else { 0 }, leave_order());
        if mutation::active(Mutation::SecondLeaveLook) {
            return in_run.is_some_and(|offset| !self.is_in_run(offset));
        }
        in_run.is_some() && !is_in_run
    }

    /// Returns true if the reservation that the owner is making now is its only open reservation.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.inside.load(Ordering::Relaxed) & OPEN_MASK == OPEN
    }

    /// Marks "inside", and takes `bytes` bytes from the run of chunks being filled, if they fit.
    ///
    /// If the bytes fit, the caller must execute a full fence. Then it must check that the run is still near
    /// (`RingWriter::is_near`) and that [`Self::is_filling`] returns true. If both hold, the caller may use the bytes;
    /// otherwise it must call [`Self::withdraw`]. If the bytes do not fit, the caller must call [`Self::undo_bump`].
    ///
    /// This function uses only words that the owner alone stores. Call it before the locked instructions of a
    /// reservation. Then the processor can execute this function and the locked instructions at the same time. A signal
    /// handler of the thread may run between any two steps of this function.
    #[inline(always)]
    pub(crate) fn enter_and_bump(&self, bytes: u64) -> Bump {
        let base = self.run_base.load(Ordering::Relaxed);
        // The addition is one instruction, so no signal handler can interrupt it half way. It adds the bytes even if
        // they do not fit. In that case later attempts fail, too, until the addition is undone or the next run begins.
        // Without a run, every attempt fails: see `PAST_EVERY_RUN`.
        let offset = local_fetch_add(&self.next, bytes);
        // A handler may have changed runs after the load of `base`. Then the offset is in the new run and may pass
        // this comparison. The offset is still not used, because the caller notices that the run at `base` is not
        // being filled any more.
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            self.enter();
            return Bump::DoesNotFit { base };
        }
        local_add(&self.inside, OPEN + OPEN_IN_RUN);
        Bump::Fits { offset, base }
    }

    /// Gives back the `bytes` bytes that did not fit into the run of chunks at `base`. So smaller payloads can use the
    /// rest of the run.
    pub(crate) fn undo_bump(&self, base: u64, bytes: u64) {
        // We may subtract only if the present run is the run to whose `next` we added the bytes. `is_filling` shows
        // this, because a cursor never fills the same run twice. After `begin_run_change` no handler changes runs, so
        // the result of `is_filling` stays valid.
        // A handler that took bytes before our addition has bytes that come before ours. A handler that tried after our
        // addition found no room. So no handler has the bytes that we give back.
        if self.begin_run_change() {
            if self.is_filling(base) {
                local_add(&self.next, bytes.wrapping_neg());
            }
            self.end_run_change();
        }
    }

    /// Takes `bytes` bytes from the run of chunks being filled, for the reservation that is being made. Returns their
    /// offset, or `None` if they do not fit.
    ///
    /// Call this between [`Self::begin_run_change`] and [`Self::end_run_change`].
    pub(crate) fn try_bump(&self, bytes: u64) -> Option<u64> {
        if self.free_bytes() < bytes {
            return None;
        }
        let offset = local_fetch_add(&self.next, bytes);
        // A handler may have taken the free bytes since the check above. (It cannot have changed runs during our run
        // change.)
        let base = self.run_base.load(Ordering::Relaxed);
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            return None;
        }
        local_add(&self.inside, OPEN_IN_RUN);
        Some(offset)
    }

    /// Returns the number of free bytes in the run of chunks being filled. Returns 0 if there is no run.
    pub(crate) fn free_bytes(&self) -> u64 {
        let Some(base) = self.run_base() else { return 0 };
        let used = self.next.load(Ordering::Relaxed).wrapping_sub(base);
        self.run_bytes.load(Ordering::Relaxed).saturating_sub(used)
    }

    /// Returns the base of the run being filled.
    pub(crate) fn run_base(&self) -> Option<u64> {
        let base = self.run_base.load(Ordering::Relaxed);
        (base != NO_RUN).then_some(base)
    }

    /// Returns true if the run of chunks at `base` is still being filled. Returns false if a handler has changed runs.
    #[inline(always)]
    pub(crate) fn is_filling(&self, base: u64) -> bool {
        self.run_base.load(Ordering::Relaxed) == base
    }

    /// Subtracts the reservation that is being made from the number of open reservations in the run of chunks that
    /// contains `offset`. The reservation will get other payload memory.
    ///
    /// If this run is no longer being filled, a handler has changed runs. Then our reservation is counted in one of two
    /// runs: the handler has counted it in the old run, or we have counted it in the new run. We cannot know in which.
    /// So we leave both counts as they are, and one of them stays too high. A run with too high a count is not freed
    /// until the cursor is outside. This is always safe.
    pub(crate) fn withdraw(&self, offset: u64) {
        if self.begin_run_change() {
            if self.is_in_run(offset) {
                self.inside.store(self.inside.load(Ordering::Relaxed) - OPEN_IN_RUN, Ordering::Relaxed);
            }
            self.end_run_change();
        }
    }

    /// Returns true if `offset` lies in the run being filled.
    fn is_in_run(&self, offset: u64) -> bool {
        self.run_base().is_some_and(|base| offset.wrapping_sub(base) < self.run_bytes.load(Ordering::Relaxed))
    }

    /// Returns the size in bytes that the owner's next run of chunks should have. Returns 0 before the first run.
    pub(crate) fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes.load(Ordering::Relaxed)
    }

    /// Sets the size in bytes that the owner's next run of chunks should have.
    pub(crate) fn want_bytes(&self, bytes: u64) {
        self.wanted_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that the owner needs a new run of chunks in `epoch`. Returns true if this is its first new run in this
    /// epoch.
    pub(in crate::ring) fn enter_epoch(&self, epoch: u64) -> bool {
        let is_new = self.epoch.load(Ordering::Relaxed) != epoch + 1;
        self.epoch.store(epoch + 1, Ordering::Relaxed);
        is_new
    }

    /// Marks the cursor as an orphan: its owner has ended while a reservation was open.
    pub(in crate::ring) fn make_orphan(&self) {
        self.is_orphan.store(1, Ordering::Relaxed);
    }

    /// Removes the orphan mark. Returns true if the cursor had the mark.
    pub(in crate::ring) fn take_orphan_mark(&self) -> bool {
        let is_orphan = self.is_orphan.load(Ordering::Relaxed) == 1;
        if is_orphan {
            self.is_orphan.store(0, Ordering::Relaxed);
        }
        is_orphan
    }

    /// Marks that the owner is about to change from one run of chunks to the next. Returns false if the mark is
    /// already set. Then the caller is in a signal handler that has interrupted a run change. In this case the caller
    /// must not change runs.
    #[inline(always)]
    pub(crate) fn begin_run_change(&self) -> bool {
        if self.is_changing_run.load(Ordering::Relaxed) != 0 {
            return false;
        }
        self.is_changing_run.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        true
    }

    /// Ends the change that [`Self::begin_run_change`] began.
    #[inline(always)]
    pub(crate) fn end_run_change(&self) {
        compiler_fence(Ordering::SeqCst);
        self.is_changing_run.store(0, Ordering::Relaxed);
    }

    /// Begins to fill the run of chunks at `base`, which the owner has just taken. The run has `run_bytes` bytes. Its
    /// first `used` bytes go to the reservation that is being made.
    ///
    /// Call this between [`Self::begin_run_change`] and [`Self::end_run_change`], after [`Self::end_run`].
    pub(crate) fn begin_run(&self, base: u64, run_bytes: u64, used: u64) {
        // We store `next` after the other words of the run. Until then, a handler that wants bytes finds
        // `PAST_EVERY_RUN` and gets none, as if there were no run.
        self.run_base.store(base, Ordering::Relaxed);
        self.run_bytes.store(run_bytes, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.next.store(base + used, Ordering::Relaxed);
        self.inside.store(self.inside.load(Ordering::Relaxed) + OPEN_IN_RUN, Ordering::Relaxed);
    }

    /// Stops filling the run, and returns it.
    ///
    /// Call this between [`Self::begin_run_change`] and [`Self::end_run_change`], or when no handler can record.
    pub(crate) fn end_run(&self) -> Option<LeftRun> {
        let base = self.run_base.load(Ordering::Relaxed);
        // We store `next` first. Otherwise a handler could find an offset of this run in `next` while `run_base` is
        // `NO_RUN`.
        self.next.store(PAST_EVERY_RUN, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.run_base.store(NO_RUN, Ordering::Relaxed);
        let inside = self.inside.load(Ordering::Relaxed);
        self.inside.store(inside & OPEN_MASK, Ordering::Relaxed);
        let bytes = self.run_bytes.load(Ordering::Relaxed);
        (base != NO_RUN).then_some(LeftRun { base, bytes, open: inside / OPEN_IN_RUN })
    }

    /// Returns true if the owner is outside of any reservation.
    ///
    /// Acquire, pairs with the release in [`Self::try_leave`]: if this returns true, the owner's payload stores happen
    /// before everything that the caller does next.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
}

fn leave_order() -> Ordering {
    if mutation::active(Mutation::RelaxedLeave) { Ordering::Relaxed } else { Ordering::Release }
}
