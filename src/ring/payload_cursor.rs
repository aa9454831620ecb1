//! Payload cursors: each thread's private position in the payload buffer.
//!
//! A payload cursor fills a *run*: one or more neighbouring chunks of payload memory that were taken together.
//!
//! Other threads read one word of a payload cursor. The word shows whether its owner is inside a reservation at this
//! moment. The owner sets the word with plain stores. In exchange, a thread that wants to take chunks from the cursor
//! executes the necessary fence (see [`super::chunk`]).

use super::mutation::{self, Mutation};
use crate::sync::{AtomicU64, Ordering, compiler_fence, local_add, local_fetch_add};

/// Index of a payload cursor among those of a ring.
pub(crate) type CursorId = u16;

/// Value of `run_base` while no run is being filled. (It is not a multiple of the payload alignment, so no run has this
/// base.)
const NO_RUN: u64 = u64::MAX;
/// Value of `next` while no run is being filled. It lies past the end of every run, also if `run_base` is [`NO_RUN`].
/// So every attempt to take bytes fails, however many attempts have added their bytes to `next` before.
const PAST_EVERY_RUN: u64 = 1 << 62;

/// Part of [`PayloadCursor::inside`] that counts one open reservation.
const OPEN: u64 = 1;
/// Part of [`PayloadCursor::inside`] that counts, in addition, one open reservation whose payload lies in the run being
/// filled.
const OPEN_IN_RUN: u64 = 1 << 32;
const OPEN_MASK: u64 = OPEN_IN_RUN - 1;

/// One thread's position in the payload buffer. Only `inside` is read by other threads.
pub(crate) struct PayloadCursor {
    /// The low half is the number of the owner's open reservations. The high half is the number of those reservations
    /// that have their payload in the run being filled. A value of 0 means that the owner is *outside*, any other value
    /// that it is *inside*. Only the owner stores this word.
    inside: AtomicU64,
    /// Unwrapped base of the run being filled, or [`NO_RUN`].
    run_base: AtomicU64,
    /// Unwrapped offset of the next free byte in the run. It is past the end of the run while an attempt to take too
    /// many bytes is being undone, and at least [`PAST_EVERY_RUN`] if there is no run.
    next: AtomicU64,
    /// Bytes of the run being filled, or of the last run.
    run_bytes: AtomicU64,
    /// 1 while the owner changes runs. A signal handler that interrupts the change and records finds this mark.
    is_changing_run: AtomicU64,
    /// Size that the owner's next run should have, in bytes; 0 before the first run.
    wanted_bytes: AtomicU64,
    /// Number of the epoch in which the owner last took a run, plus one; 0 before the first run. [`super::active`]
    /// defines epochs.
    epoch: AtomicU64,
    /// 1 if the owner's thread has ended while a reservation was open; otherwise 0.
    is_orphan: AtomicU64,
    id: CursorId,
}

/// Outcome of the attempt to take bytes from the run being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bump {
    /// Bytes that begin at `offset`, in the run at `base`.
    Fits {
        /// Unwrapped offset.
        offset: u64,
        /// Unwrapped base of the run.
        base: u64,
    },
    /// No bytes: the run at `base` has no room for them, or there is no run.
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
    /// Number of open reservations of the cursor whose payload lies in the run.
    pub(crate) open: u64,
}

impl PayloadCursor {
    /// Creates a cursor without a run.
    pub(super) fn new(id: CursorId) -> Self {
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
    /// [`crate::sync::fetch_add_then_fence`] or a sequentially consistent fence must follow. Only after it, a load of
    /// `next_payload_byte` shows whether the run still belongs to this cursor.
    #[inline(always)]
    pub(crate) fn enter(&self) {
        // Only the owner stores.
        local_add(&self.inside, OPEN);
    }

    /// Ends a reservation if it is the owner's only open reservation. Otherwise returns false without effect; then call
    /// [`Self::leave_slow`].
    #[inline(always)]
    pub(crate) fn try_leave(&self) -> bool {
        let is_only_one = self.inside.load(Ordering::Relaxed) & OPEN_MASK <= OPEN;
        if is_only_one {
            // Release, pairs with the acquire in `is_outside`: a thread that reads this 0 may take one of the owner's
            // chunks. The owner's payload stores happen before the payload stores of that thread.
            self.inside.store(0, leave_order());
        }
        is_only_one
    }

    /// Ends a reservation while other reservations of the owner are open. `in_run` is the offset of the reservation's
    /// payload if the payload lies in a run of this cursor, otherwise `None`.
    ///
    /// Returns true if that run is no longer being filled. Then the caller calls [`super::chunk::Chunks::unpin`].
    pub(crate) fn leave_slow(&self, in_run: Option<u64>) -> bool {
        let inside = self.inside.load(Ordering::Relaxed);
        // We check once, before the store, whether our payload lies in the run being filled. If a signal handler has
        // changed runs before this check, the handler has counted our reservation in the old run, and the caller undoes
        // this count. If a handler changes runs between the check and the store, the count of the old run stays one too
        // high, and the new run gets the count that we store. Both runs are then not freed until the cursor is outside,
        // which is always safe.
        let is_in_run = in_run.is_some_and(|offset| self.is_in_run(offset));
        // Release, as in `try_leave`.
        self.inside.store(inside - OPEN - if is_in_run { OPEN_IN_RUN } else { 0 }, leave_order());
        if mutation::active(Mutation::SecondLeaveLook) {
            return in_run.is_some_and(|offset| !self.is_in_run(offset));
        }
        in_run.is_some() && !is_in_run
    }

    /// Returns true if the owner has no open reservation other than the one that it is making now.
    #[inline(always)]
    pub(crate) fn is_outermost(&self) -> bool {
        self.inside.load(Ordering::Relaxed) & OPEN_MASK == OPEN
    }

    /// Marks "inside" and takes `bytes` from the run being filled, if they fit.
    ///
    /// If the bytes fit, the caller must execute the fence, and then check that the run is still near and
    /// [`Self::is_filling`]. If so, the caller may use the bytes; if not, it must call [`Self::withdraw`]. If the bytes
    /// do not fit, the caller must call [`Self::undo_bump`].
    ///
    /// This uses only words that the owner alone stores. So the caller can call it before the locked instructions of a
    /// reservation, and the processor executes both at the same time. A signal handler of the thread may run between
    /// any two steps.
    #[inline(always)]
    pub(crate) fn enter_and_bump(&self, bytes: u64) -> Bump {
        let base = self.run_base.load(Ordering::Relaxed);
        // The addition is one instruction, so that no signal handler can interrupt it half way. If the new end is past
        // the run's end, the bytes are not used. Then later attempts fail as well, until the addition is undone or the
        // next run begins. Without a run every attempt fails: see `PAST_EVERY_RUN`.
        let offset = local_fetch_add(&self.next, bytes);
        // If a handler changed runs after the load of `base`, the offset is in the new run and may pass this
        // comparison. It is not used: the caller then notices that the run at `base` is not being filled any more.
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            self.enter();
            return Bump::DoesNotFit { base };
        }
        local_add(&self.inside, OPEN + OPEN_IN_RUN);
        Bump::Fits { offset, base }
    }

    /// Gives back the `bytes` that did not fit into the run at `base`, so that smaller payloads find the rest of the
    /// run.
    pub(crate) fn undo_bump(&self, base: u64, bytes: u64) {
        // The subtraction is right only if the bytes were added to the `next` of the present run. After
        // `begin_run_change` no handler changes runs. If the run at `base` is still being filled, it was also being
        // filled when the bytes were added, because a cursor never fills the same run again. Handlers that added bytes
        // meanwhile found no room in the run, or got bytes in the rest of the run. Neither is disturbed by the
        // subtraction.
        if self.begin_run_change() {
            if self.is_filling(base) {
                local_add(&self.next, bytes.wrapping_neg());
            }
            self.end_run_change();
        }
    }

    /// Takes `bytes` from the run being filled, for the reservation that is being made. Returns their offset, or `None`
    /// if they do not fit.
    ///
    /// Call this between [`Self::begin_run_change`] and [`Self::end_run_change`].
    pub(crate) fn try_bump(&self, bytes: u64) -> Option<u64> {
        if self.free_bytes() < bytes {
            return None;
        }
        let offset = local_fetch_add(&self.next, bytes);
        // A handler may have taken the free bytes meanwhile. (It does not change runs during our run change.)
        let base = self.run_base.load(Ordering::Relaxed);
        if offset.wrapping_sub(base).wrapping_add(bytes) > self.run_bytes.load(Ordering::Relaxed) {
            return None;
        }
        local_add(&self.inside, OPEN_IN_RUN);
        Some(offset)
    }

    /// Returns the number of free bytes in the run being filled; 0 if there is no run.
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

    /// Returns true if the run at `base` is still being filled, because no handler has changed runs.
    #[inline(always)]
    pub(crate) fn is_filling(&self, base: u64) -> bool {
        self.run_base.load(Ordering::Relaxed) == base
    }

    /// Undoes the count of the reservation that is being made in the run of `offset`, because the reservation gets
    /// other payload memory.
    ///
    /// If a handler has changed runs meanwhile, either the handler counted our reservation in the old run, or we
    /// counted it in the new run. We cannot know which. So we leave the counts as they are. The run whose count is one
    /// too high is then not freed until the cursor is outside, which is always safe.
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

    /// Returns the size in bytes that the owner's next run should have. Returns 0 before the first run.
    pub(crate) fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes.load(Ordering::Relaxed)
    }

    /// Sets the size in bytes that the owner's next run should have.
    pub(crate) fn want_bytes(&self, bytes: u64) {
        self.wanted_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that the owner needs a new run in this epoch. Returns true if the owner has not needed a new run in this
    /// epoch before.
    pub(super) fn enter_epoch(&self, epoch: u64) -> bool {
        let is_new = self.epoch.load(Ordering::Relaxed) != epoch + 1;
        self.epoch.store(epoch + 1, Ordering::Relaxed);
        is_new
    }

    /// Marks the cursor as an orphan: its owner has ended while a reservation was open.
    pub(super) fn make_orphan(&self) {
        self.is_orphan.store(1, Ordering::Relaxed);
    }

    /// Removes the orphan's mark. Returns true if the cursor was an orphan.
    pub(super) fn take_orphan_mark(&self) -> bool {
        let is_orphan = self.is_orphan.load(Ordering::Relaxed) == 1;
        if is_orphan {
            self.is_orphan.store(0, Ordering::Relaxed);
        }
        is_orphan
    }

    /// Marks that the owner is about to change runs. Returns false if the mark was set already. Then the caller is in a
    /// signal handler that interrupted a run change, and it must not change runs.
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

    /// Begins to fill the run of `run_bytes` at `base`, which the owner has just taken. The reservation that is being
    /// made gets its first `used` bytes.
    ///
    /// Call this between [`Self::begin_run_change`] and [`Self::end_run_change`], after [`Self::end_run`].
    pub(crate) fn begin_run(&self, base: u64, run_bytes: u64, used: u64) {
        // `next` is stored last. Until then a handler finds `PAST_EVERY_RUN`, as if there were no run.
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
        // `next` is stored first, because a handler must not find an offset of this run together with `NO_RUN`.
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
    /// Acquire, pairs with the release in [`Self::try_leave`]: the owner's payload stores happen before this call
    /// returns.
    pub(crate) fn is_outside(&self) -> bool {
        self.inside.load(Ordering::Acquire) == 0
    }
}

fn leave_order() -> Ordering {
    if mutation::active(Mutation::RelaxedLeave) { Ordering::Relaxed } else { Ordering::Release }
}
