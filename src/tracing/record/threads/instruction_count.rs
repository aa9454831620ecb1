//! Counts of the instructions that the program executes. The instructions of recording do not count.
//!
//! A thread that counts instructions takes only slow paths, which first pause the count. So the fast paths have no code
//! for counting. They need the ring to which the thread has recorded last, and a counting thread does not remember this
//! ring.

use crate::clock::instructions::InstructionCounter;
use crate::sync::interrupted::Mark;
use crate::sync::{AtomicUsize, Ordering, compiler_fence};
use crate::tracing::record::threads::thread::{self, Counting, ThreadState};
use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;

/// A source of instruction counts. A recorder puts the count of a thread into the events of its spans
/// (`docs/ICOUNT.md`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(usize)]
pub enum InstructionSource {
    /// No source: nothing is counted.
    Off = 1,
    /// The plugin of QEMU, if the program runs under QEMU with this plugin. Otherwise nothing is counted, and there is
    /// no cost. This is the default.
    #[default]
    Plugin = 2,
    /// The plugin, or the processor's counter (perf_event_open(2)), if the processor has one and the kernel allows its
    /// use. Otherwise nothing is counted. Each event reads the counter twice, which takes system calls where the
    /// program may not read the counter by itself. The counts vary by a few instructions with each interrupt. A forked
    /// child does not count on.
    Hardware = 3,
}

/// The source for threads that have not recorded yet.
static SOURCE: AtomicUsize = AtomicUsize::new(InstructionSource::Plugin as usize);

impl InstructionSource {
    /// Makes this the source for all threads of the process that have not recorded yet.
    pub(in crate::tracing::record) fn choose(self) {
        // Relaxed: a thread that sees the old value counts as it was told before.
        SOURCE.store(self as usize, Ordering::Relaxed);
    }

    fn counter() -> Option<InstructionCounter> {
        let source = SOURCE.load(Ordering::Relaxed);
        if source == Self::Off as usize {
            return None;
        }
        let hardware = || if source == Self::Hardware as usize { InstructionCounter::of_hardware() } else { None };
        InstructionCounter::of_plugin().or_else(hardware)
    }
}

thread_local! {
    static COUNT: ThreadCount = const {
        ThreadCount {
            is_opening: Mark::new(),
            counter: OnceCell::new(),
            depth: Cell::new(0),
            paused_at: Cell::new(0),
            skipped: Cell::new(0),
        }
    };
}

/// The count of a thread.
struct ThreadCount {
    /// Mark of the time in which the counter is opened.
    is_opening: Mark,
    counter: OnceCell<Option<InstructionCounter>>,
    /// The number of slow paths that the thread is in. A value's `Debug` code may record an event inside another one.
    depth: Cell<u32>,
    /// The counter's value at the last pause.
    paused_at: Cell<u64>,
    /// The instructions of all pauses so far.
    skipped: Cell<u64>,
}

/// A pause of the thread's count, and of the counts of its allocations. They go on when it is dropped.
pub(in crate::tracing::record) struct PausedCount {
    is_counting: bool,
    // A pause belongs to one thread.
    _not_send: PhantomData<*const ()>,
}

impl ThreadState {
    /// Pauses the count of the thread, if it has one. Each slow path begins with this.
    #[inline(always)]
    pub(in crate::tracing::record) fn pause_count(&self) -> PausedCount {
        self.allocations.pause();
        let is_counting = self.counting.get() != Counting::No && self.pause_count_slow();
        PausedCount { is_counting, _not_send: PhantomData }
    }

    #[cold]
    #[inline(never)]
    fn pause_count_slow(&self) -> bool {
        let is_counting = COUNT.try_with(|count| {
            if self.counting.get() == Counting::Unknown {
                // Opening a counter may allocate, and the allocator may record and come here, too; and a signal handler
                // may come here while the counter is set. What they record has no count.
                if count.is_opening.is_set() {
                    return false;
                }
                count.is_opening.during(|| {
                    if count.counter.get().is_none() {
                        let _ = count.counter.set(InstructionSource::counter());
                    }
                });
                let is_counting = count.counter.get().is_some_and(Option::is_some);
                self.counting.set(if is_counting { Counting::Yes } else { Counting::No });
            }
            let Some(Some(counter)) = count.counter.get() else { return false };
            // Code that interrupts the thread after this line finds that the count is paused already.
            if count.depth.replace(count.depth.get() + 1) == 0 {
                compiler_fence(Ordering::SeqCst);
                count.paused_at.set(counter.count());
            }
            true
        });
        is_counting.unwrap_or(false)
    }

    /// Returns the instructions that the program has executed on this thread, without recording. Returns 0 if they are
    /// not counted. The count must be paused.
    #[inline(always)]
    pub(in crate::tracing::record) fn instructions(&self) -> u64 {
        if self.counting.get() != Counting::Yes {
            return 0;
        }
        COUNT.try_with(|count| count.paused_at.get().saturating_sub(count.skipped.get())).unwrap_or(0)
    }
}

impl Drop for PausedCount {
    #[inline(always)]
    fn drop(&mut self) {
        if self.is_counting {
            resume();
        }
        thread::with(|thread| thread.allocations.resume());
    }
}

#[cold]
#[inline(never)]
fn resume() {
    let _ = COUNT.try_with(|count| {
        let Some(Some(counter)) = count.counter.get() else { return };
        let depth = count.depth.get().saturating_sub(1);
        if depth == 0 {
            let recording = counter.count().saturating_sub(count.paused_at.get());
            count.skipped.set(count.skipped.get().saturating_add(recording));
        }
        // Until here the count is paused, so code that interrupts the thread changes neither of the words above.
        compiler_fence(Ordering::SeqCst);
        count.depth.set(depth);
    });
}
