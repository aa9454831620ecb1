//! Skipping seqnos whose events a cursor will never return: overwritten events and holes.

use super::Cursor;
use crate::reader::gap::{Gap, GapCause};
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe::{self, Observation};

/// The largest number of consecutive holes in one gap. The limit bounds the work of one call.
const HOLES_PER_GAP: u64 = 1 << 12;

impl Cursor {
    /// Returns the gap that begins at the next event, or `None` if the next event may still come. The caller has not
    /// found the next event in its slot. `seen` is the other seqno that the slot holds, or `None` if the event was
    /// overwritten while it was being read.
    #[cold]
    pub(super) fn absent(&mut self, seen: Option<u64>) -> Option<Gap> {
        if self.next_seqno < self.start.oldest_seqno {
            return self.skip_gone_at_start();
        }
        let memory = self.source.memory();
        self.known_last = observe::last_seqno(memory);
        match seen.map_or(Observation::Overrun, |seen| observe::absent(memory, self.next_seqno, seen)) {
            Observation::Overrun => self.skip_overwritten(),
            Observation::Hole => self.skip_holes(GapCause::Skipped),
            // The next event was not committed when `next` read its slot. There is no gap to report in two cases: the
            // event's seqno was not handed out yet, or the ring is live and the event may still come.
            Observation::NotReady | Observation::Event(_) => {
                if self.next_seqno > self.known_last || !self.source.is_finished() {
                    return None;
                }
                // The writer may have committed the event after `next` read the slot and before the ring finished. So
                // the slot is read again, now that the ring is known to have finished.
                match observe::descriptor(self.source.memory(), self.next_seqno) {
                    // The event was committed after `next` had read the slot. The next call of `next` returns it.
                    Observation::Event(_) => None,
                    Observation::Overrun => self.skip_overwritten(),
                    Observation::Hole => self.skip_holes(GapCause::Skipped),
                    Observation::NotReady => self.skip_holes(GapCause::NeverCommitted),
                }
            }
        }
    }

    /// Skips the events that were overwritten before the cursor began. Moves to the oldest event that is still in the
    /// ring.
    fn skip_gone_at_start(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let oldest = observe::oldest_seqno(memory, observe::last_seqno(memory));
        // The gap ends at the latest with the last event that existed when the cursor began (`end_seqno` is the seqno
        // after it). Later events were not gone at that time, so they do not belong to this gap.
        self.gap_up_to(oldest.max(self.start.oldest_seqno).min(self.start.end_seqno), self.start.cause)
    }

    /// Skips overwritten events. On a finished ring, moves to the oldest event. On a live ring, moves to a position an
    /// eighth of the ring after the oldest event: the writer will overwrite the oldest events next, before the cursor
    /// could read them.
    fn skip_overwritten(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        if self.next_seqno > last {
            // The slot holds a larger seqno than any that was handed out, so the file is damaged. There is nothing to
            // skip.
            return None;
        }
        let head_start = if self.source.is_finished() { 0 } else { memory.geometry().descriptor_capacity() / 8 };
        let target = (observe::oldest_seqno(memory, last) + head_start).min(last + 1);
        // A cursor that has read no event since it began was not too slow, even if a fast writer has overwritten events
        // in that time. So if the gap begins with an event that existed when the cursor began, the cause is that of the
        // cursor's start position.
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
                // A hole of a sparse file holds slots that no writer has ever written. If the cause is
                // `NeverCommitted`, all slots in such a hole are skipped together, because a file may have terabytes of
                // holes.
                if cause == GapCause::NeverCommitted {
                    target = self.source.first_slot_there(target, last);
                }
                self.source.slot_has_come(target);
                page_end = self.source.first_slot_after_page(target);
                continue;
            }
            match (observe::descriptor(memory, target), cause) {
                (Observation::Hole, GapCause::Skipped) => target += 1,
                // The caller passes the cause `NeverCommitted` only for a finished ring. There, an event that is not
                // ready will never be committed.
                (Observation::NotReady, GapCause::NeverCommitted) => target += 1,
                _ => break,
            }
        }
        self.gap_up_to(target, cause)
    }

    /// Moves the cursor to `target` and returns the skipped seqnos as a gap. Moves by at least one seqno, even if a
    /// damaged header gives a smaller target. Otherwise the cursor would stay at the same seqno for ever.
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
