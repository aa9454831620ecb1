//! Skipping events that a cursor will never return: overwritten events and holes.

use super::super::gap::{Gap, GapCause};
use super::Cursor;
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe::{self, Observation};

/// The largest number of consecutive holes that are reported as one gap. Bounds the work of one call.
const HOLES_PER_GAP: u64 = 1 << 12;

impl Cursor {
    /// Returns the gap that begins at the next event, which is not in its slot; `None` if that event is not ready yet.
    /// The slot holds the seqno `seen`; `None` if the event was overwritten while it was read.
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
            // `next` has handled events. On a finished ring, an event that is not ready belongs to a killed writer.
            Observation::NotReady | Observation::Event(_) => {
                if self.next_seqno > self.known_last || !self.source.is_finished() {
                    return None;
                }
                // The ring may have finished after the look at the slot, so the slot is looked at again.
                match observe::descriptor(self.source.memory(), self.next_seqno) {
                    // The event came between the two looks. The next call finds it.
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
        // Events that were recorded after the cursor began were not gone before.
        self.gap_up_to(oldest.max(self.start.oldest_seqno).min(self.start.end_seqno), self.start.cause)
    }

    /// Jumps to the oldest event that is safely there: on a live ring, an eighth of the ring after the oldest.
    fn skip_overwritten(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        if self.next_seqno > last {
            // The slot holds a seqno that was never handed out, so the file is damaged. There is nothing to skip.
            return None;
        }
        let head_start = if self.source.is_finished() { 0 } else { memory.geometry().descriptor_capacity() / 8 };
        let target = (observe::oldest_seqno(memory, last) + head_start).min(last + 1);
        // A fast writer may overwrite the event that was the oldest at the start before it is read.
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
                // The slots in a hole of the file were never written. They may be most of a file of terabytes.
                if cause == GapCause::NeverCommitted {
                    target = self.source.first_slot_there(target, last);
                }
                self.source.slot_has_come(target);
                page_end = self.source.first_slot_after_page(target);
                continue;
            }
            match (observe::descriptor(memory, target), cause) {
                (Observation::Hole, GapCause::GivenUp) => target += 1,
                // Only a finished ring has such holes.
                (Observation::NotReady, GapCause::NeverCommitted) => target += 1,
                _ => break,
            }
        }
        self.gap_up_to(target, cause)
    }

    /// Moves to `target`, at least one seqno further, so that a damaged header cannot hold the cursor.
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
