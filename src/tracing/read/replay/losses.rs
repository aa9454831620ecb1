//! The losses of rings. For each ring, this module keeps the time of the latest loss, and the threads that may have
//! recorded the lost events.

use crate::tracing::read::id_map::IdMap;
use crate::tracing::read::slice::ThreadKey;

/// Key of a ring: the number of its recorder, and the index of the shard.
type RingKey = (u32, u32);

/// The losses of all rings of one process, and the rings to which each thread has recorded.
#[derive(Clone, Debug, Default)]
pub struct RingLosses {
    rings: Vec<(RingKey, RingLoss)>,
    /// The index of each ring in `rings`.
    indices: IdMap<RingKey, usize>,
    /// The rings to which each thread has recorded. For most threads this is one ring.
    rings_of_threads: IdMap<ThreadKey, Vec<RingKey>>,
    /// The number of all rings in `rings_of_threads`.
    links: usize,
    /// True if threads that may not have ended were forgotten. Then any ring may have lost events of a thread that is
    /// not known.
    has_forgotten: bool,
    /// True if any ring has lost events.
    has_lost: bool,
    /// The ring of the last record, as an index. The next record often has the same one.
    last: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct RingLoss {
    has_records: bool,
    /// The thread of the last record. In most rings, all records have the same one.
    last_thread: Option<ThreadKey>,
    /// True if events were lost since the last record.
    is_losing: bool,
    last_record_epoch_nanos: u64,
    /// The time until which events were lost: the time of the first record that came after the last loss. It is 0 if
    /// there was no loss, or if no record has come since the first loss.
    lost_until_epoch_nanos: u64,
}

impl RingLoss {
    #[inline]
    fn record(&mut self, epoch_nanos: u64) {
        self.has_records = true;
        if self.is_losing {
            self.is_losing = false;
            let until = epoch_nanos.max(self.last_record_epoch_nanos);
            self.lost_until_epoch_nanos = self.lost_until_epoch_nanos.max(until);
        }
        self.last_record_epoch_nanos = epoch_nanos;
    }

    fn lost_until(&self, now_epoch_nanos: u64) -> u64 {
        if self.is_losing { now_epoch_nanos } else { self.lost_until_epoch_nanos }
    }
}

impl RingLosses {
    /// Returns the index of a ring in `rings`.
    #[inline]
    fn index(&mut self, ring: RingKey) -> usize {
        if self.rings.get(self.last).is_none_or(|(last, _)| *last != ring) {
            let rings = &mut self.rings;
            self.last = *self.indices.entry(ring).or_insert_with(|| {
                rings.push((ring, RingLoss::default()));
                rings.len() - 1
            });
        }
        self.last
    }

    /// Notes a record, which ends the loss of its ring.
    #[inline]
    pub fn record(&mut self, ring: RingKey, thread: ThreadKey, epoch_nanos: u64) {
        let index = self.index(ring);
        let (_, of_ring) = &mut self.rings[index];
        of_ring.record(epoch_nanos);
        if of_ring.last_thread != Some(thread) {
            of_ring.last_thread = Some(thread);
            self.link(ring, thread);
        }
    }

    /// Notes that a thread has recorded to a ring.
    fn link(&mut self, ring: RingKey, thread: ThreadKey) {
        let rings = self.rings_of_threads.entry(thread).or_default();
        if !rings.contains(&ring) {
            rings.push(ring);
            self.links += 1;
        }
    }

    /// Notes the time of an event that ends the loss of its ring.
    pub(super) fn end(&mut self, ring: RingKey, epoch_nanos: u64) {
        let index = self.index(ring);
        self.rings[index].1.record(epoch_nanos);
    }

    /// Forgets a thread that has ended. Its last ring still knows it, so events that the thread records while it ends
    /// do not bring it back.
    pub(super) fn forget_thread(&mut self, thread: ThreadKey) {
        self.links -= self.rings_of_threads.remove(&thread).map_or(0, |rings| rings.len());
    }

    pub(super) fn links(&self) -> usize {
        self.links
    }

    /// If more than `links_max` pairs of a thread and a ring are kept, forgets the threads for which `is_needed`
    /// returns false. If the others are too many, too, forgets all.
    pub(super) fn keep_in_bounds(&mut self, links_max: usize, is_needed: impl Fn(ThreadKey) -> bool) {
        if self.links <= links_max {
            return;
        }
        self.has_forgotten = true;
        self.rings_of_threads.retain(|thread, _| is_needed(*thread));
        self.links = self.rings_of_threads.values().map(Vec::len).sum();
        if self.links > links_max / 2 {
            self.rings_of_threads = IdMap::default();
            self.links = 0;
        }
    }

    /// Returns the threads that have recorded.
    pub(super) fn known_threads(&self) -> impl Iterator<Item = ThreadKey> {
        self.rings_of_threads.keys().copied()
    }

    /// Returns the number of threads that have recorded.
    pub fn threads(&self) -> usize {
        self.rings_of_threads.len()
    }

    /// Notes a loss, which lasts until the next record of the ring.
    pub fn lose(&mut self, ring: RingKey) {
        let index = self.index(ring);
        self.rings[index].1.is_losing = true;
        self.has_lost = true;
    }

    /// Returns the time until which any ring of the process has lost events, in nanoseconds since the epoch. This is
    /// `now_epoch_nanos` if a ring is losing events at present, and 0 if no events were lost.
    pub fn of_process(&self, now_epoch_nanos: u64) -> u64 {
        self.rings.iter().map(|(_, ring)| ring.lost_until(now_epoch_nanos)).max().unwrap_or(0)
    }

    /// Returns the time until which events of `thread` may have been lost, in nanoseconds since the epoch. Returns 0 if
    /// none were lost. The result covers the rings to which the thread has recorded, and the rings without any record:
    /// these may have lost events of any thread.
    pub fn of_thread(&self, thread: ThreadKey, now_epoch_nanos: u64) -> u64 {
        let lost = self.rings.iter().map(|(ring, loss)| (ring, loss.lost_until(now_epoch_nanos)));
        // Most rings have lost nothing, so this is asked first.
        let concerned = lost.filter(|(ring, until)| *until > 0 && self.concerns(Some(**ring), thread));
        concerned.map(|(_, until)| until).max().unwrap_or(0)
    }

    /// Returns the time until which rings to which `thread` has recorded have lost events, in nanoseconds since the
    /// epoch. A thread records its times to the ring that has its other events.
    pub(super) fn of_own_rings(&self, thread: ThreadKey, now_epoch_nanos: u64) -> u64 {
        // Most processes have lost nothing, so this is asked first.
        if !self.has_lost {
            return 0;
        }
        let Some(rings) = self.rings_of_threads.get(&thread) else { return self.of_thread(thread, now_epoch_nanos) };
        let lost = |ring: &RingKey| Some(self.rings[*self.indices.get(ring)?].1.lost_until(now_epoch_nanos));
        rings.iter().filter_map(lost).max().unwrap_or(0)
    }

    /// Returns true if `thread` may have recorded the events that `ring` has lost. Also returns true if `ring` is
    /// `None`, or if no record of `ring` is known: then any thread may have recorded the lost events.
    pub fn concerns(&self, ring: Option<RingKey>, thread: ThreadKey) -> bool {
        let has_records = |ring: &RingKey| self.indices.get(ring).is_some_and(|index| self.rings[*index].1.has_records);
        let Some(ring) = ring.filter(has_records) else {
            return true;
        };
        self.rings_of_threads.get(&thread).map_or(self.has_forgotten, |rings| rings.contains(&ring))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_was_forgotten_may_have_recorded_the_lost_events_of_any_ring() {
        let thread = |thread_id| ThreadKey { recorder: 0, thread_id };
        let mut losses = RingLosses::default();
        losses.record((0, 1), thread(100), 1);
        (0..20).for_each(|id| losses.record((0, 0), thread(id), 2));
        let concerned = |losses: &RingLosses| [1, 2].map(|id| losses.concerns(Some((0, 1)), thread(id)));
        losses.keep_in_bounds(21, |_| false);
        assert_eq!(concerned(&losses), [false, false]);
        losses.keep_in_bounds(20, |kept| kept == thread(2));
        assert_eq!((concerned(&losses), losses.links()), ([true, false], 1));
        (0..20).for_each(|id| losses.record((0, 0), thread(id), 3));
        losses.keep_in_bounds(10, |_| true);
        assert_eq!((concerned(&losses), losses.links()), ([true, true], 0));
    }
}
