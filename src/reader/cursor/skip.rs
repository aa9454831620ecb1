//! Skipping events that a cursor will never return: overwritten events and holes.

use super::super::gap::{Gap, GapCause};
use super::Cursor;
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe::{self, Observation};

/// The largest number of consecutive holes that are reported as one gap. The limit bounds the work of one call.
const HOLES_PER_GAP: u64 = 1 << 12;

impl Cursor {
    /// Returns the gap that begins at the next event, or `None` if the next event may still come. The next event is not
    /// in its slot: the slot holds the seqno `seen`, or `seen` is `None` because the event was overwritten while it was
    /// read.
    #[cold]
    pub(super) fn absent(&mut self, seen: Option<u64>) -> Option<Gap> {
        if self.next_seqno < self.start.oldest_seqno {
            return self.skip_gone_at_start();
        }
        let memory = self.source.memory();
        self.known_last = observe::last_seqno(memory);
        match seen.map_or(Observation::Lapped, |seen| observe::absent(memory, self.next_seqno, seen)) {
            Observation::Lapped => self.skip_overwritten(),
            Observation::Hole => self.skip_holes(GapCause::GivenUp),
            // The next event is not committed. (`next` has handled committed events.) It may still come, unless its
            // seqno was handed out and the ring has finished: then its writer was killed before the commit.
            Observation::NotReady | Observation::Event(_) => {
                if self.next_seqno > self.known_last || !self.source.is_finished() {
                    return None;
                }
                // The event may have been committed after `next` read the slot and before the ring finished. So the
                // slot is read again, now that the ring is known to have finished.
                match observe::descriptor(self.source.memory(), self.next_seqno) {
                    // The event came after `next` had read the slot. The next call finds it.
                    Observation::Event(_) => None,
                    Observation::Lapped => self.skip_overwritten(),
                    Observation::Hole => self.skip_holes(GapCause::GivenUp),
                    Observation::NotReady => self.skip_holes(GapCause::NeverCommitted),
                }
            }
        }
    }

    /// Jumps over the events that were gone when the cursor began, to the oldest event that is there.
    fn skip_gone_at_start(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let oldest = observe::oldest_seqno(memory, observe::last_seqno(memory));
        // The gap ends at the last event that existed when the cursor began: later events were not gone before the
        // cursor began, so they do not belong to this gap.
        self.gap_up_to(oldest.max(self.start.oldest_seqno).min(self.start.end_seqno), self.start.cause)
    }

    /// Jumps over overwritten events. On a finished ring, jumps to the oldest event. On a live ring, jumps to the event
    /// an eighth of the ring after the oldest, because the writer would overwrite the oldest events before they are
    /// read.
    fn skip_overwritten(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        if self.next_seqno > last {
            // The slot holds a seqno that was never handed out, so the file is damaged. There is nothing to skip.
            return None;
        }
        let head_start = if self.source.is_finished() { 0 } else { memory.geometry().descriptor_capacity() / 8 };
        let target = (observe::oldest_seqno(memory, last) + head_start).min(last + 1);
        // No event has been read since the cursor began. Then events that existed at the begin are reported with the
        // cause of the begin, even if a fast writer overwrote them only afterwards: the reader was not too slow for
        // them.
        if self.next_seqno < self.start.end_seqno && self.read_count() == self.start.read {
            return self.gap_up_to(target.min(self.start.end_seqno), self.start.cause);
        }
        self.gap_up_to(target, GapCause::Overwritten)
    }

    /// Skips consecutive holes of one cause, from `next_seqno` on.
    fn skip_holes(&mut self, cause: GapCause) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        let mut target = self.next_seqno + 1;
        let mut page_end = if memory.is_sparse() { self.next_seqno } else { u64::MAX };
        while target <= last && target - self.next_seqno < HOLES_PER_GAP {
            if target >= page_end {
                // Slots in a hole of the file were never written. All of them are skipped at once, because a file may
                // have terabytes of them.
                if cause == GapCause::NeverCommitted {
                    target = self.source.first_slot_there(target, last);
                }
                self.source.slot_has_come(target);
                page_end = self.source.first_slot_after_page(target);
                continue;
            }
            match (observe::descriptor(memory, target), cause) {
                (Observation::Hole, GapCause::GivenUp) => target += 1,
                // The caller asks for this cause only on a finished ring, so an event that is not ready is a hole.
                (Observation::NotReady, GapCause::NeverCommitted) => target += 1,
                _ => break,
            }
        }
        self.gap_up_to(target, cause)
    }

    /// Moves the cursor to `target` and returns the gap of the seqnos that it has passed. Moves by at least one seqno,
    /// because a cursor on a ring with a damaged header would otherwise stay at the same seqno for ever.
    fn gap_up_to(&mut self, target: u64, cause: GapCause) -> Option<Gap> {
        let first_seqno = self.next_seqno;
        let target = target.max(first_seqno + u64::from(!mutation::active(Mutation::HeldCursor)));
        let count = target - first_seqno - u64::from(mutation::active(Mutation::UncountedLoss));
        self.next_seqno = target;
        self.read_from = self.read_from.wrapping_add(count);
        let gap = Gap { first_seqno, count, cause };
        self.missing.count_gap(gap);
        Some(gap)
    }
}
