//! What each lock keeps beside the lock that it wraps.

use super::wait::{self, Waiting};
use crate::global::current_span_word;
use crate::now::LockMode;
use crate::sync::{AtomicU64, Ordering};
use crate::tracing::record::threads::thread;
use std::panic::Location;
use std::sync::atomic::AtomicU32;

/// The name, place and owner of a lock.
///
/// The words of the owner are for messages only. They are stored after the lock was got, so for some nanoseconds they
/// are those of the owner before. In a deadlock nobody gets a lock, so they are right.
///
/// What each lock and unlock uses comes last, next to the lock that is wrapped: often in the same cache line.
#[derive(Debug)]
#[repr(C)]
pub(super) struct LockWord {
    pub(super) name: &'static str,
    pub(super) place: &'static Location<'static>,
    /// The number of the lock, and the id of its call site; both 0 until the first wait.
    pub(super) number: AtomicU64,
    pub(super) site: AtomicU32,
    /// How many threads wait for it.
    pub(super) waiters: AtomicU32,
    /// The number of the cell that says who holds the lock; 0 if there is none.
    pub(super) held: AtomicU64,
    /// Not 0 if the lock has readers.
    has_readers: u64,
    /// The span in which the lock was taken last.
    span: AtomicU64,
    /// The thread that has taken it last, as in extension word 2 of an event, and in the low bits how.
    thread: AtomicU64,
}

/// Who has taken a lock last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub(super) span: u64,
    /// 0 if nobody has.
    pub(super) thread: u32,
    pub(super) mode: u8,
}

impl LockWord {
    #[track_caller]
    pub(super) const fn new(name: &'static str, has_readers: bool) -> Self {
        Self {
            name,
            place: Location::caller(),
            has_readers: has_readers as u64,
            span: AtomicU64::new(0),
            thread: AtomicU64::new(0),
            held: AtomicU64::new(0),
            number: AtomicU64::new(0),
            site: AtomicU32::new(0),
            waiters: AtomicU32::new(0),
        }
    }

    /// Stores the words of the calling thread.
    #[inline(always)]
    pub(super) fn set_owner(&self, mode: LockMode) {
        let id_word = thread::with(|thread| thread.own_id_word());
        // Relaxed: the words publish nothing.
        self.span.store(current_span_word(), Ordering::Relaxed);
        self.thread.store(id_word | mode as u64, Ordering::Relaxed);
    }

    pub(super) fn owner(&self) -> Owner {
        let (span, word) = (self.span.load(Ordering::Relaxed), self.thread.load(Ordering::Relaxed));
        Owner { span, thread: (word >> 32) as u32, mode: word as u8 }
    }

    /// Notes that the calling thread has got the lock without a wait.
    #[inline(always)]
    pub(super) fn taken(&self, mode: LockMode) -> Turn<'_> {
        self.set_owner(mode);
        if self.waiters.load(Ordering::Relaxed) != 0 {
            wait::show_holder(self, mode);
        }
        Turn(self)
    }

    /// Waits for the lock.
    #[cold]
    #[inline(never)]
    pub(super) fn wait<G>(&self, mode: LockMode, lock: impl FnOnce() -> G) -> (Turn<'_>, G) {
        let waiting = Waiting::begin(self, mode);
        let got = lock();
        (self.waited(waiting, mode), got)
    }

    /// Waits for the lock, and perhaps gives it up.
    #[cfg(feature = "parking_lot")]
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for<G>(&self, mode: LockMode, lock: impl FnOnce() -> Option<G>) -> Option<(Turn<'_>, G)> {
        let waiting = Waiting::begin(self, mode);
        match lock() {
            Some(got) => Some((self.waited(waiting, mode), got)),
            None => {
                waiting.into_iter().for_each(|waiting| waiting.end(false));
                None
            }
        }
    }

    /// Notes that the calling thread has got the lock after a wait.
    fn waited(&self, waiting: Option<Waiting<'_>>, mode: LockMode) -> Turn<'_> {
        self.set_owner(mode);
        waiting.into_iter().for_each(|waiting| waiting.end(true));
        Turn(self)
    }
}

/// The right of a guard. Its drop comes before that of the guard, so a cell is free before the lock is.
#[derive(Debug)]
pub(super) struct Turn<'l>(pub(super) &'l LockWord);

impl Turn<'_> {
    /// Notes that the lock is about to be free.
    #[inline(always)]
    pub(super) fn release(&self) {
        if self.0.held.load(Ordering::Relaxed) | self.0.has_readers != 0 {
            release_slow(self.0);
        }
    }

    /// Notes that the calling thread has the lock again.
    #[cfg(feature = "parking_lot")]
    pub(super) fn retake(&self, mode: LockMode) {
        std::mem::forget(self.0.taken(mode));
    }
}

/// Does what a release does beside freeing the lock. It never unwinds, so that the drop of a guard is small enough to be
/// inlined.
#[allow(improper_ctypes_definitions, reason = "only Rust calls it")]
#[inline(never)]
extern "C" fn release_slow(lock: &LockWord) {
    if lock.held.load(Ordering::Relaxed) != 0 {
        wait::hide_holder(lock);
    }
    // Other readers may keep the lock, and then this one is not its owner any more. After a writer, the next owner leaves
    // its own word.
    let word = lock.thread.load(Ordering::Relaxed);
    if word as u8 == LockMode::Read as u8 && word >> 32 == thread::with(|thread| thread.id_word()) >> 32 {
        lock.thread.store(0, Ordering::Relaxed);
    }
}

impl Drop for Turn<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.release();
    }
}
