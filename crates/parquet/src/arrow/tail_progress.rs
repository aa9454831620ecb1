//! The progress of the rings of a tail: the time until which all records have arrived.

use eventring_capture::{CaptureEnd, CaptureFile};

/// The longest time for which the spans of a process wait for a ring whose events do not come, in nanoseconds. A ring
/// stands still while a thread of its program is stopped in the middle of recording.
const WAIT_NANOS_MAX: u64 = 5_000_000_000;

/// The progress of each ring.
#[derive(Default)]
pub(crate) struct TailProgress {
    rings: Vec<RingProgress>,
}

/// The progress of one ring.
#[derive(Clone, Default)]
struct RingProgress {
    /// The time of its last event in nanoseconds since the epoch, or 0.
    last_nanos: u64,
    last_seqno: u64,
    /// True if it has events that are in no batch yet.
    is_behind: bool,
    /// The end of the last batch with which it came further, in nanoseconds since the epoch.
    moved_nanos: u64,
    /// The events of all rings in the batches since then.
    others_events: u64,
    capacity: u64,
}

impl TailProgress {
    /// Notes what is in the next batch.
    pub(crate) fn note(&mut self, batch: &CaptureFile, end: &CaptureEnd) {
        self.rings.resize(batch.rings().len().max(self.rings.len()), RingProgress::default());
        let events = end.stats.events();
        for (index, (ring, stats)) in (0..).zip(self.rings.iter_mut().zip(&end.stats.rings)) {
            ring.last_nanos = batch.last_nanos_of(index).unwrap_or(0).max(ring.last_nanos);
            ring.capacity = batch.rings()[index as usize].descriptor_capacity;
            ring.is_behind = stats.unread > 0;
            let is_new = ring.moved_nanos == 0;
            if is_new || !ring.is_behind || stats.last_seqno != ring.last_seqno {
                (ring.moved_nanos, ring.others_events) = (end.ended_epoch_nanos, 0);
            } else {
                ring.others_events = ring.others_events.saturating_add(events);
            }
            ring.last_seqno = stats.last_seqno;
        }
    }

    /// Returns the time until which all records of a process have come, in nanoseconds since the epoch. `of_process`
    /// tells for each ring whether spans of the process are recorded in it.
    pub(crate) fn complete_until(&self, end: &CaptureEnd, of_process: impl Iterator<Item = bool>) -> u64 {
        let behind =
            self.rings.iter().zip(0..).zip(of_process).filter(|((ring, _), of_process)| *of_process && ring.is_behind);
        let behind = behind.map(|((ring, index), _)| (ring, index));
        let awaited = behind.filter(|(ring, index)| !self.stands_still(ring, *index, end.ended_epoch_nanos));
        awaited.map(|(ring, _)| ring.last_nanos).min().unwrap_or(u64::MAX).min(end.ended_epoch_nanos)
    }

    /// Returns true if the ring has events that cannot be read. While other rings are copied, each as far as it goes,
    /// a ring only waits for its turn: they give at most what they hold.
    fn stands_still(&self, ring: &RingProgress, index: usize, ended_nanos: u64) -> bool {
        let others = || self.rings.iter().zip(0..).filter(|(_, other)| *other != index).map(|(other, _)| other);
        let capacity = others().fold(0_u64, |sum, other| sum.saturating_add(other.capacity));
        let had_its_turn = others().all(|other| !other.is_behind) || ring.others_events > capacity;
        had_its_turn && ended_nanos.saturating_sub(ring.moved_nanos) >= WAIT_NANOS_MAX
    }

    /// Returns the time of the last event, in nanoseconds since the epoch, or 0.
    pub(crate) fn last_event_nanos(&self) -> u64 {
        self.rings.iter().map(|ring| ring.last_nanos).max().unwrap_or(0)
    }
}
