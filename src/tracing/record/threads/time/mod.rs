//! The times of a thread: how long it ran, could have run, and slept.
//!
//! The kernel tells a thread without a system call whether it has left its processor (`arch/switches.rs`). At each
//! event, the recorder looks there. If the thread has kept its processor since its last event, it has run all the time.
//! Otherwise the recorder asks the kernel for the thread's times, and records them as THREAD_TIME before the event.
//!
//! Asking takes about 2 µs. A thread that has used up its budget is not asked: it records THREAD_SWITCHED instead.
//!
//! | file | idea |
//! |---|---|
//! | `budget` | what asking may cost |
//! | `share` | the share of a thread's time that the budget is, as users write it |
//! | `measured` | the state of a thread whose times are measured |
//! | `totals` | what a recorder has counted for all its threads |
//! | `unmeasured` | the same items where nothing is measured |

pub(in crate::tracing) mod share;

#[cfg(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported)))]
mod budget;
#[cfg(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported)))]
mod measured;
#[cfg(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported)))]
mod totals;
#[cfg(not(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported))))]
mod unmeasured;

#[cfg(not(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported))))]
pub(in crate::tracing::record) use unmeasured::{SwitchWord, ThreadTimes};
#[cfg(all(feature = "thread-time", target_os = "linux", not(eventring_unsupported)))]
pub(in crate::tracing::record) use {crate::arch::switches::SwitchWord, totals::ThreadTimes};

use crate::recorder::Recorder;
use crate::tracing::record::rings::core::PerfCore;
use crate::tracing::record::threads::thread::ThreadState;

impl ThreadState {
    /// Returns the time for an event of the thread. Returns `None` if the clock's fast path has none, or if the thread
    /// has perhaps left its processor: then call [`PerfCore::measure`] before the event is recorded.
    ///
    /// The clock is read first. If the thread leaves its processor after this look, it does so after the event's time.
    #[inline(always)]
    pub(in crate::tracing::record) fn try_now(&self, ring: &Recorder) -> Option<u64> {
        ring.core.try_now().filter(|_| self.switches.is_armed())
    }

    /// Returns true if the thread has nothing to record before it enters or leaves a span: it has kept its processor, and
    /// has allocated nothing.
    #[inline(always)]
    pub(in crate::tracing::record) fn has_nothing_to_report(&self) -> bool {
        self.switches.is_armed() && self.allocations.is_none()
    }
}

impl PerfCore {
    /// Records the thread's times, if the thread has left its processor since its last event, and what it has allocated
    /// since.
    #[inline(always)]
    pub(in crate::tracing::record) fn measure(&self, thread: &ThreadState, ring: &Recorder) {
        if !thread.switches.is_armed() {
            self.measure_slow(thread, ring);
        }
        self.report_allocations(thread, ring);
    }

    /// Returns the time for an event of the thread, as [`ThreadState::try_now`] does, and first records the thread's
    /// times if the thread has left its processor.
    #[inline(always)]
    pub(in crate::tracing::record) fn measured_now(&self, thread: &ThreadState, ring: &Recorder) -> Option<u64> {
        if let Some(epoch_nanos) = thread.try_now(ring) {
            return Some(epoch_nanos);
        }
        self.measure(thread, ring);
        ring.core.try_now()
    }
}
