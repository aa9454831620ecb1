//! A cursor: one reader's place in a ring.

use super::open::Reader;
use super::open::Source;
use crate::layout::Descriptor;
use crate::ring::memory::RingMemory;
use crate::ring::observe::{self, Observation, Slot};
use std::sync::Arc;

/// Holes in a row that are reported as one gap, at most: bounds the work of one call.
const HOLES_AT_ONCE: u64 = 1 << 12;

/// Of so many looks in a row that find nothing, one asks the ring's header why. The others look at the event's slot alone: the
/// header's line is the writers' busiest, and each look at it makes them fetch it back.
const LOOKS_PER_QUESTION: u32 = 16;

/// One reader's place in a ring. Cheap; any number may stand on the same [`Reader`], each on its own thread.
///
/// A cursor that went from seqno *a* to seqno *b* has returned each seqno in between exactly once: as an event, or counted
/// in a gap.
#[derive(Clone)]
pub struct Cursor {
    source: Arc<Source>,
    next_seqno: u64,
    lost: u64,
    read: u64,
    /// Looks since the last event or gap that found nothing.
    idle_looks: u32,
}

/// What [`Cursor::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event's descriptor, whole and validated. Its payload is fetched with [`Cursor::payload`].
    Event(Descriptor),
    /// The next event has not been committed yet.
    NotReady,
    /// Events are missing; the cursor stands behind them.
    Gap(Gap),
}

/// A run of sequence numbers that this reader will never see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gap {
    /// The first one missing.
    pub first_seqno: u64,
    /// How many are missing.
    pub count: u64,
    /// Why.
    pub cause: GapCause,
}

/// Why events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapCause {
    /// The reader was too slow (or started too late): the ring went round and they were overwritten.
    Overwritten,
    /// They were reserved and never committed: their writer was killed, or gave the number up because another writer was
    /// stalled in its slot (the event itself then has a later number).
    NeverCommitted,
}

/// Where to go in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seek {
    /// The oldest event that is still there.
    Oldest,
    /// Behind the newest event: the next one recorded will be returned.
    Newest,
    /// The event with this sequence number; if it is gone, the next call reports the gap.
    Seqno(u64),
    /// The first event of the block that the newest event belongs to (content type EXEC: flow tag 0 is the seqno of
    /// BLOCK_START); the newest event, if it belongs to none.
    CurrentBlock,
}

/// What became of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayloadRead<'b> {
    /// The payload, copied out and checked afterwards: exactly what was recorded.
    Valid(&'b [u8]),
    /// It was overwritten meanwhile.
    Expired,
    /// The descriptor names a payload that no ring of this size can have: the file is damaged.
    Malformed,
}

impl<'b> PayloadRead<'b> {
    /// The bytes, if they are valid.
    pub fn valid(self) -> Option<&'b [u8]> {
        match self {
            Self::Valid(bytes) => Some(bytes),
            Self::Expired | Self::Malformed => None,
        }
    }
}

impl Cursor {
    pub(super) fn new(source: Arc<Source>) -> Self {
        let next_seqno = observe::last_seqno(source.memory()).saturating_add(1);
        Self { source, next_seqno, lost: 0, read: 0, idle_looks: 0 }
    }

    /// The next event, if it is there. Never waits.
    ///
    /// That an event will never come (a gap whose cause is [`GapCause::NeverCommitted`]) is found out by the first of 16 calls
    /// in a row that have no event to give, and then again by every 16th.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a cursor waits, jumps and seeks")]
    pub fn next(&mut self) -> Next {
        match observe::slot(self.source.memory(), self.next_seqno) {
            Slot::Event(descriptor) => {
                self.next_seqno = self.next_seqno.saturating_add(1);
                self.read += 1;
                self.idle_looks = 0;
                Next::Event(descriptor)
            }
            Slot::Other(seen) if seen < self.next_seqno && self.is_short_look() => Next::NotReady,
            Slot::Other(seen) => self.absent(Some(seen)),
            Slot::Lapped => self.absent(None),
        }
    }

    /// Counts a look that found nothing; whether it can be left at that.
    #[inline(always)]
    fn is_short_look(&mut self) -> bool {
        let looks = self.idle_looks;
        self.idle_looks = (looks + 1) % LOOKS_PER_QUESTION;
        looks != 0 && !self.source.is_finished()
    }

    /// Makes the next look that finds nothing ask why.
    pub(super) fn look_closely(&mut self) {
        self.idle_looks = 0;
    }

    /// Why the next event is not in its slot, which holds `seen` (`None`: it was there, and is overwritten).
    #[cold]
    fn absent(&mut self, seen: Option<u64>) -> Next {
        let memory = self.source.memory();
        match seen.map_or(Observation::Lapped, |seen| observe::absent(memory, self.next_seqno, seen)) {
            Observation::Lapped => self.skip_overwritten(),
            Observation::Hole => self.skip_holes(),
            // `next` has handled events; a finished ring's holes are those of killed writers.
            Observation::NotReady | Observation::Event(_) => {
                let last = observe::last_seqno(self.source.memory());
                if self.next_seqno > last || !self.source.is_finished() {
                    return Next::NotReady;
                }
                // Finished may have become true after the look: look again.
                match observe::descriptor(self.source.memory(), self.next_seqno) {
                    Observation::Event(descriptor) => {
                        self.next_seqno = self.next_seqno.saturating_add(1);
                        self.read += 1;
                        Next::Event(descriptor)
                    }
                    Observation::Lapped => self.skip_overwritten(),
                    Observation::Hole | Observation::NotReady => self.skip_holes(),
                }
            }
        }
    }

    /// Jumps to the oldest event that is safely there: on a live ring with an eighth of the ring as a head start.
    fn skip_overwritten(&mut self) -> Next {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        let head_start = if self.source.is_finished() { 0 } else { memory.geometry().descriptor_capacity() / 8 };
        let target = observe::oldest_seqno(memory, last).saturating_add(head_start).min(last.saturating_add(1));
        self.gap_up_to(target, GapCause::Overwritten)
    }

    /// Skips holes that lie behind one another.
    fn skip_holes(&mut self) -> Next {
        let memory = self.source.memory();
        let finished = self.source.is_finished();
        let last = observe::last_seqno(memory);
        let mut target = self.next_seqno.saturating_add(1);
        while target <= last && target < u64::MAX && target - self.next_seqno < HOLES_AT_ONCE {
            match observe::descriptor(memory, target) {
                Observation::Hole => target += 1,
                Observation::NotReady if finished => target += 1,
                _ => break,
            }
        }
        self.gap_up_to(target, GapCause::NeverCommitted)
    }

    /// Moves to `target`, at least one further (a damaged header cannot hold the cursor).
    fn gap_up_to(&mut self, target: u64, cause: GapCause) -> Next {
        let first_seqno = self.next_seqno;
        let target = target.max(first_seqno.saturating_add(1));
        self.next_seqno = target;
        // At the very last seqno there is nowhere to go; the numbers of a real ring never come near.
        let count = (target - first_seqno).max(1);
        self.lost = self.lost.saturating_add(count);
        self.idle_looks = 0;
        Next::Gap(Gap { first_seqno, count, cause })
    }

    /// Copies the payload of `descriptor` (an event of this ring) into `buffer` and checks that it was still valid
    /// afterwards. `buffer` is grown as needed, at most to the payload buffer's size; it may be longer than the payload, which is
    /// what is returned.
    #[inline]
    pub fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        self.source.payload(descriptor, buffer)
    }

    /// Whether the payload of `descriptor` could still be read now.
    pub fn payload_is_valid(&self, descriptor: &Descriptor) -> bool {
        observe::payload_is_valid(self.source.memory(), descriptor)
    }

    /// Goes to another place.
    pub fn seek(&mut self, to: Seek) {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        self.next_seqno = match to {
            Seek::Oldest => observe::oldest_seqno(memory, last),
            Seek::Newest => last.saturating_add(1),
            Seek::Seqno(seqno) => seqno.max(1),
            Seek::CurrentBlock => super::blocks::start_of_current_block(memory, last),
        };
    }

    /// The sequence number that [`Self::next`] will look at.
    pub fn next_seqno(&self) -> u64 {
        self.next_seqno
    }

    /// How many events have been handed out and not been looked at by this cursor.
    pub fn lag(&self) -> u64 {
        observe::last_seqno(self.source.memory()).saturating_add(1).saturating_sub(self.next_seqno)
    }

    /// Whether the ring is known to have ended: nothing will be recorded any more. Asks nobody; see [`Reader::state`].
    pub fn is_finished(&self) -> bool {
        self.source.is_finished()
    }

    /// Events returned so far.
    pub fn read_count(&self) -> u64 {
        self.read
    }

    /// Events counted in gaps so far.
    pub fn lost_count(&self) -> u64 {
        self.lost
    }

    /// The reader whose ring this is.
    pub fn reader(&self) -> Reader {
        Reader::from_source(self.source.clone())
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor")
            .field("next_seqno", &self.next_seqno)
            .field("read", &self.read)
            .field("lost", &self.lost)
            .finish()
    }
}
