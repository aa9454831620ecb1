//! The payload of THREAD_TIME.

use crate::schema::payload::EventPayload;

/// What a thread did in a *period*: from its last THREAD_TIME, or from its first event, until this one.
///
/// The rest of the period, in which the thread neither ran nor could have run, it slept: it waited for something.
#[derive(EventPayload, Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[event(name = "ThreadTime")]
pub struct ThreadTime {
    /// The begin of the period, nanoseconds since the epoch. The period ends at the time of the event.
    pub since_epoch_nanos: u64,
    /// How long the thread ran on a processor, in nanoseconds.
    pub cpu_nanos: u64,
    /// How long the thread could have run, but had no processor, in nanoseconds. 0 if the kernel does not say: the event
    /// then has the flag [`NO_QUEUE`](super::flags::NO_QUEUE).
    pub queue_nanos: u64,
    /// How often the thread got a processor.
    pub slices: u32,
    /// How many THREAD_SWITCHED events the thread has recorded in the period.
    pub merged: u32,
    /// How often it left its processor to wait for something.
    pub voluntary_switches: u32,
    /// How often the kernel took its processor away.
    pub involuntary_switches: u32,
    /// Page faults that the kernel served without reading from a disk.
    pub minor_faults: u32,
    /// Page faults for which the kernel read from a disk.
    pub major_faults: u32,
}

impl ThreadTime {
    /// Returns how long the thread was without a processor in the period, which ends at `epoch_nanos`: what it waited for
    /// a processor, and what it slept. If `has_queue` is false, the two are not told apart, and the sum counts as sleep.
    #[must_use]
    pub fn queue_and_sleep_nanos(&self, epoch_nanos: u64, has_queue: bool) -> (u64, u64) {
        let off_nanos = epoch_nanos.saturating_sub(self.since_epoch_nanos).saturating_sub(self.cpu_nanos);
        // A thread that has not left its processor by itself has not slept: it could have run. What the kernel does not
        // count as its queue, a hypervisor or interrupts took. (Without any count of switches, nobody can tell.)
        let has_slept = self.voluntary_switches > 0 || self.involuntary_switches == 0 && self.slices > 0;
        let queue_nanos = match has_queue {
            true if has_slept => self.queue_nanos.min(off_nanos),
            true => off_nanos,
            false => 0,
        };
        (queue_nanos, off_nanos - queue_nanos)
    }
}
