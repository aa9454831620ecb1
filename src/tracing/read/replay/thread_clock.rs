//! The times of one thread, as its THREAD_TIME and THREAD_SWITCHED events tell them.
//!
//! A thread records such an event before its next event, if it has left its processor since the last one. So the clock
//! adds up how long the thread was *off*: not on a processor. A slice takes the difference of these sums between its
//! enter and its exit. In the rest of its time the thread ran.

use crate::schema::perf::ThreadTime;
use crate::tracing::read::slice::InnerTimes;
use crate::tracing::read::time_spent::TimeSpent;

/// The time that a thread was off, since its replay began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::tracing::read) struct Off {
    queue_nanos: u64,
    sleep_nanos: u64,
    /// The lengths of the gaps between two events in which the thread was off for a time that is not known.
    unmeasured_nanos: u64,
    /// The number of THREAD_TIME events that measure several gaps together, and of THREAD_SWITCHED events.
    merged: u64,
}

/// The clock of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadClock {
    off: Off,
    /// The time since when all THREAD_TIME events were seen. `None` before the first one.
    known_from_nanos: Option<u64>,
    /// The time of the last THREAD_TIME.
    measured_nanos: u64,
    /// The last event at which the replay looked: the gap in which the thread was off cannot have begun before.
    seen_nanos: u64,
    /// The last event before which the thread would have told that it was off.
    looked_nanos: u64,
    /// What `off.unmeasured_nanos` was at the last THREAD_TIME.
    unmeasured_before: u64,
}

impl ThreadClock {
    /// Makes the clock of a thread of which nothing was seen yet. `measures_times` says that it records all its times.
    pub(super) fn new(measures_times: bool) -> Self {
        Self { known_from_nanos: measures_times.then_some(0), ..Self::default() }
    }

    pub(super) fn off(&self) -> Off {
        self.off
    }

    /// Notes that the thread recorded an event.
    pub(super) fn see(&mut self, epoch_nanos: u64) {
        self.seen_nanos = self.seen_nanos.max(epoch_nanos);
        self.look(epoch_nanos);
    }

    /// Notes an event before which the thread has looked whether it was off.
    pub(super) fn look(&mut self, epoch_nanos: u64) {
        self.looked_nanos = self.looked_nanos.max(epoch_nanos);
    }

    /// Takes a THREAD_SWITCHED: the thread was off in the gap before it.
    pub(super) fn switched(&mut self, epoch_nanos: u64) {
        if self.seen_nanos > 0 {
            let gap_nanos = epoch_nanos.saturating_sub(self.seen_nanos);
            self.off.unmeasured_nanos = self.off.unmeasured_nanos.saturating_add(gap_nanos);
        }
        self.off.merged += 1;
        self.see(epoch_nanos);
    }

    /// Takes a THREAD_TIME. `has_queue` is true if it tells queue from sleep. `inside` are the open slices of the
    /// thread.
    pub(super) fn measured(
        &mut self,
        epoch_nanos: u64,
        times: &ThreadTime,
        has_queue: bool,
        inside: &mut [InnerTimes],
    ) {
        // Otherwise a THREAD_TIME before this one is missing.
        if times.since_epoch_nanos > self.measured_nanos {
            self.known_from_nanos = Some(times.since_epoch_nanos);
        }
        let (queue_nanos, sleep_nanos) = times.queue_and_sleep_nanos(epoch_nanos, has_queue);
        let off = match has_queue {
            true => Off { queue_nanos, sleep_nanos, ..Off::default() },
            false => Off { unmeasured_nanos: sleep_nanos, ..Off::default() },
        };
        let gaps_nanos = self.off.unmeasured_nanos.saturating_sub(self.unmeasured_before);
        let last_gap_nanos = epoch_nanos.saturating_sub(self.seen_nanos);
        let of_gaps = off.share(gaps_nanos, gaps_nanos.saturating_add(last_gap_nanos));
        if gaps_nanos > 0 {
            // A slice that began after some of the gaps has no part in what was off in these.
            for slice in inside {
                let before = slice.off_at_enter.unmeasured_nanos.saturating_sub(self.unmeasured_before);
                if before > 0 {
                    slice.off_at_enter.unmeasured_nanos -= before;
                    slice.off_at_enter = slice.off_at_enter.plus(of_gaps.share(before, gaps_nanos));
                }
            }
            self.off.unmeasured_nanos = self.unmeasured_before;
        }
        self.off = self.off.plus(off);
        self.off.merged += u64::from(times.merged > 0);
        self.unmeasured_before = self.off.unmeasured_nanos;
        self.measured_nanos = self.measured_nanos.max(epoch_nanos);
        self.see(epoch_nanos);
    }

    /// Returns the times of a slice that ends at `epoch_nanos`, when the thread recorded an event. Events of the thread
    /// may have been lost until `lost_until_nanos`.
    pub(super) fn times(&self, slice: &InnerTimes, entered: u64, epoch_nanos: u64, lost_until_nanos: u64) -> TimeSpent {
        let nanos = epoch_nanos.saturating_sub(entered);
        let is_known = self.known_from_nanos.is_some_and(|from| from <= entered);
        if !is_known || lost_until_nanos > self.measured_nanos.max(entered) {
            return TimeSpent::unmeasured(nanos);
        }
        let (now, before) = (self.off, slice.off_at_enter);
        let mut rest = nanos;
        let mut part = |now: u64, before: u64| {
            let part = now.saturating_sub(before).min(rest);
            rest -= part;
            part
        };
        let sleep_nanos = part(now.sleep_nanos, before.sleep_nanos);
        let queue_nanos = part(now.queue_nanos, before.queue_nanos);
        let unmeasured_nanos = part(now.unmeasured_nanos, before.unmeasured_nanos);
        let is_exact = now.merged == before.merged;
        TimeSpent { cpu_nanos: rest, queue_nanos, sleep_nanos, unmeasured_nanos, is_exact }
    }

    /// Returns the times of a slice that has not ended, until `now_nanos`. What the thread did since it last looked is not
    /// known.
    pub(super) fn open_times(
        &self,
        slice: &InnerTimes,
        entered: u64,
        (now_nanos, lost_until_nanos): (u64, u64),
    ) -> TimeSpent {
        let looked_nanos = self.looked_nanos.min(now_nanos);
        let since = TimeSpent::unmeasured(now_nanos.saturating_sub(looked_nanos.max(entered)));
        self.times(slice, entered, looked_nanos, lost_until_nanos).plus(since)
    }
}

impl Off {
    fn plus(self, other: Self) -> Self {
        Self {
            queue_nanos: self.queue_nanos.saturating_add(other.queue_nanos),
            sleep_nanos: self.sleep_nanos.saturating_add(other.sleep_nanos),
            unmeasured_nanos: self.unmeasured_nanos.saturating_add(other.unmeasured_nanos),
            merged: self.merged + other.merged,
        }
    }

    /// Returns the share of `part` in `whole`, which is not less.
    fn share(self, part: u64, whole: u64) -> Self {
        let share = |nanos: u64| (u128::from(nanos) * u128::from(part) / u128::from(whole.max(1))) as u64;
        Self {
            queue_nanos: share(self.queue_nanos),
            sleep_nanos: share(self.sleep_nanos),
            unmeasured_nanos: share(self.unmeasured_nanos),
            merged: 0,
        }
    }
}
