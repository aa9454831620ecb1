//! The counts of threads.
//!
//! Each thread takes a slot with its first instruction, and gives the slot back at its end. Slots are reused and never
//! freed, because a guest may read its slot as plain memory.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The count of a thread. Only its thread writes the count; the size keeps slots of two threads in different cache
/// lines.
#[repr(C, align(128))]
pub struct Slot {
    /// The number of instructions since the beginning of the thread.
    count: AtomicU64,
    /// The part of the count that belongs to the parent process, after a fork.
    before_fork: AtomicU64,
}

impl Slot {
    /// Returns the instructions of the thread since its beginning.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns the instructions of the thread in this process.
    fn in_this_process(&self) -> u64 {
        self.count() - self.before_fork.load(Ordering::Relaxed)
    }

    fn clear(&self) {
        self.count.store(0, Ordering::Relaxed);
        self.before_fork.store(0, Ordering::Relaxed);
    }
}

/// The slots of the process.
pub struct Threads {
    running: Vec<&'static Slot>,
    free: Vec<&'static Slot>,
    /// The sum of the counts of ended threads.
    ended: u64,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads { running: Vec::new(), free: Vec::new(), ended: 0 });

/// Returns the slots, locked.
pub fn threads() -> MutexGuard<'static, Threads> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// Returns the number of instructions of all threads of this process.
    pub fn total(&self) -> u64 {
        self.ended + self.running.iter().map(|slot| slot.in_this_process()).sum::<u64>()
    }

    fn take(&mut self) -> &'static Slot {
        let slot = self
            .free
            .pop()
            .unwrap_or_else(|| Box::leak(Box::new(Slot { count: AtomicU64::new(0), before_fork: AtomicU64::new(0) })));
        self.running.push(slot);
        slot
    }

    fn give_back(&mut self, slot: &'static Slot) {
        self.ended += slot.in_this_process();
        self.running.retain(|other| !ptr::eq(*other, slot));
        slot.clear();
        self.free.push(slot);
    }

    /// Forgets the threads of the parent process, and the instructions that the calling thread executed there.
    pub fn begin_child(&mut self) {
        let own = MINE.get();
        let (own, others) =
            self.running.drain(..).partition(|slot| Some(ptr::from_ref(*slot)) == own.map(ptr::from_ref));
        let others: Vec<&'static Slot> = others;
        self.running = own;
        self.running.iter().for_each(|slot| slot.before_fork.store(slot.count(), Ordering::Relaxed));
        others.iter().for_each(|slot| slot.clear());
        self.free.extend(others);
        self.ended = 0;
    }
}

thread_local! {
    /// The slot of this thread.
    static MINE: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    /// The value whose destructor gives the slot back.
    static AT_END: AtEnd = const { AtEnd };
}

/// A value that lives as long as its thread.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(slot) = MINE.take() {
            threads().give_back(slot);
        }
    }
}

/// Adds to the count of this thread.
#[inline]
pub fn add(number: u64) {
    let slot = mine();
    // No other thread writes the count, so the addition needs no locked instruction.
    slot.count.store(slot.count() + number, Ordering::Relaxed);
}

/// Returns the slot of this thread.
#[inline]
pub fn mine() -> &'static Slot {
    MINE.get().unwrap_or_else(take)
}

#[cold]
fn take() -> &'static Slot {
    let slot = threads().take();
    MINE.set(Some(slot));
    // The access registers the destructor. A thread that already ran its destructors keeps the slot.
    let _ = AT_END.try_with(|_| ());
    slot
}
