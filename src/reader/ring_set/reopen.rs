//! Switching to the next ring of a name.

use super::super::error::ReaderError;
use super::RingSet;
use crate::layout::Descriptor;
use crate::reader::cursors::cursor::Seek;
use crate::reader::opening::open::WAIT_INTERVAL;
use std::time::{Duration, Instant};

impl RingSet {
    /// Replaces rings that were read to their end by new rings of the same names, which a restarted program has made.
    /// Waits at most `timeout` until there is a new ring. A new ring also replaces the shards of the old ring. It is
    /// read from its first event on. The function looks for new rings 500 times a second. If a ring is made and removed
    /// between two looks, nothing tells that it has existed.
    ///
    /// Returns the index of the first new ring in [`Self::rings`], or `None` if there is no new ring. The new rings
    /// are the last ones in the set. The other rings may have smaller indices than before the call, because replaced
    /// rings were removed.
    ///
    /// # Errors
    /// Returns an error if a new ring cannot be opened; see
    /// [`ReaderOptions::open`](crate::reader::ReaderOptions::open). After an error, the set is unchanged.
    pub fn reopen(&mut self, timeout: Duration) -> Result<Option<usize>, ReaderError> {
        let start = Instant::now();
        loop {
            let found = self.reopen_now()?;
            let left = timeout.saturating_sub(start.elapsed());
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            std::thread::sleep(WAIT_INTERVAL.min(left));
        }
    }

    fn reopen_now(&mut self) -> Result<Option<usize>, ReaderError> {
        self.check_liveness();
        let mut replaced = Vec::new();
        let mut successors = Vec::new();
        for (index, ring) in self.rings.iter().enumerate().filter(|(_, ring)| ring.recorder().is_none()) {
            if let (Some(reader), true) = (ring.reader(), self.is_read_to_its_end(index))
                && let Some(successor) = reader.reopen()?
            {
                replaced.push(index);
                successors.push(successor);
            }
        }
        if successors.is_empty() {
            return Ok(None);
        }
        self.remove(&replaced);
        let first = self.rings.len();
        for successor in successors {
            self.add(successor, Seek::Seqno(1));
        }
        self.find_shards();
        Ok(Some(first))
    }

    /// Returns true if the ring and all of its shards have ended, and the set has handed out all of their events and
    /// gaps.
    fn is_read_to_its_end(&self, index: usize) -> bool {
        let mut rings = self.rings.iter().enumerate();
        self.missed.is_empty()
            && rings.all(|(at, ring)| (at != index && ring.recorder() != Some(index)) || ring.has_ended())
            && self.recorders.iter().all(|recorder| recorder.ring != index || recorder.finder.has_ended())
    }

    /// Removes rings, with their shards.
    fn remove(&mut self, removed: &[usize]) {
        let mut kept = 0;
        let indices = self.rings.iter().enumerate().map(|(index, ring)| {
            let is_kept = !removed.contains(&ring.recorder().unwrap_or(index));
            kept += usize::from(is_kept);
            is_kept.then(|| kept - 1)
        });
        let new_indices: Vec<Option<usize>> = indices.collect();
        let mut is_kept = new_indices.iter().map(Option::is_some);
        self.rings.retain(|_| is_kept.next().unwrap_or(true));
        self.rings.iter_mut().for_each(|ring| ring.move_recorder(&new_indices));
        let moves = |index: &mut usize| new_indices[*index].map(|new| *index = new).is_some();
        self.recorders.retain_mut(|recorder| moves(&mut recorder.ring));
        self.shard_errors.retain_mut(|error| moves(&mut error.recorder));
        // The ring of the last event may have been removed, so [`Self::payload`] must no longer return the payload of
        // this event.
        self.last_event = (usize::MAX, Descriptor::default());
    }
}
