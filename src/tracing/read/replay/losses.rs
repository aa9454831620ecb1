//! Losses of rings: the time until which each ring has lost events, and the threads that may have recorded these
//! events.

use super::ThreadKey;
use std::collections::HashMap;

/// One ring of a recorder: the number of the recorder, and the index of the shard.
type RingKey = (u32, u32);

/// The losses of the rings of one process, and which threads record to which rings.
#[derive(Clone, Debug, Default)]
pub(crate) struct RingLosses {
    rings: HashMap<RingKey, RingLoss>,
    /// The rings to which each thread has recorded. Most threads have recorded to one ring.
    rings_of_threads: HashMap<ThreadKey, Vec<RingKey>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RingLoss {
    has_records: bool,
    /// True if events were lost since the last record.
    is_losing: bool,
    last_record_epoch_nanos: u64,
    /// The time of the first record after the last loss, or 0 if no loss has been followed by a record.
    lost_until_epoch_nanos: u64,
}

impl RingLoss {
    fn lost_until(&self, now_epoch_nanos: u64) -> u64 {
        if self.is_losing { now_epoch_nanos } else { self.lost_until_epoch_nanos }
    }
}

impl RingLosses {
    /// Notes a record, which ends the loss of its ring.
    pub(crate) fn record(&mut self, ring: RingKey, thread: ThreadKey, epoch_nanos: u64) {
        let rings = self.rings_of_threads.entry(thread).or_default();
        if !rings.contains(&ring) {
            rings.push(ring);
        }
        let ring = self.rings.entry(ring).or_default();
        ring.has_records = true;
        if ring.is_losing {
            ring.is_losing = false;
            let until = epoch_nanos.max(ring.last_record_epoch_nanos);
            ring.lost_until_epoch_nanos = ring.lost_until_epoch_nanos.max(until);
        }
        ring.last_record_epoch_nanos = epoch_nanos;
    }

    /// Notes a loss, which lasts until the next record of the ring.
    pub(crate) fn lose(&mut self, ring: RingKey) {
        self.rings.entry(ring).or_default().is_losing = true;
    }

    /// Returns the time until which events of the process were lost, in nanoseconds since the epoch. Returns 0 if no
    /// events were lost.
    pub(crate) fn of_process(&self, now_epoch_nanos: u64) -> u64 {
        self.rings.values().map(|ring| ring.lost_until(now_epoch_nanos)).max().unwrap_or(0)
    }

    /// Returns the time until which events that the thread may have recorded were lost, in nanoseconds since the epoch.
    /// Returns 0 if no such events were lost. If a ring has no record yet, its lost events may come from any thread.
    pub(crate) fn of_thread(&self, thread: ThreadKey, now_epoch_nanos: u64) -> u64 {
        let concerned = self.rings.iter().filter(|(ring, _)| self.concerns(Some(**ring), thread));
        concerned.map(|(_, ring)| ring.lost_until(now_epoch_nanos)).max().unwrap_or(0)
    }

    /// Returns true if the thread may have recorded the events that a ring has lost. `None` means a ring that is not a
    /// perf ring.
    pub(crate) fn concerns(&self, ring: Option<RingKey>, thread: ThreadKey) -> bool {
        let Some(ring) = ring.filter(|ring| self.rings.get(ring).is_some_and(|ring| ring.has_records)) else {
            return true;
        };
        self.rings_of_threads.get(&thread).is_some_and(|rings| rings.contains(&ring))
    }
}
