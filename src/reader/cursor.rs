//! A cursor: one reader's place in a ring.

use super::gap::{Gap, GapCause, ReadStats};
use super::handle::Reader;
use super::info;
use super::payload::PayloadRead;
use super::source::Source;
use crate::clock::Clock;
use crate::layout::Descriptor;
use crate::ring::memory::RingMemory;
use crate::ring::mutation::{self, Mutation};
use crate::ring::observe::{self, Observation, SEQNO_MAX, Slot};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often [`Cursor::is_finished`] asks the operating system.
const ASK_STATE_EVERY: Duration = Duration::from_millis(10);

/// Holes in a row that are reported as one gap, at most: bounds the work of one call.
const HOLES_AT_ONCE: u64 = 1 << 12;

/// A cursor that has read everything looks at the next event's slot alone: the header's line is the writers' busiest, and each
/// look at it makes them fetch it back. After this time it asks the header why nothing comes.
const NANOS_TO_ASK: u64 = 100_000;
/// Looks in a row after which the time is looked at.
const LOOKS_PER_TIME: u32 = 16;

/// One reader's place in a ring. Cheap; any number may stand on the same [`Reader`], each on its own thread.
///
/// A cursor that went from seqno *a* to seqno *b* has returned each seqno in between exactly once: as an event, or counted
/// in a gap. From [`Seek::Oldest`] on, that is each seqno since the ring's first.
#[derive(Clone)]
pub struct Cursor {
    source: Arc<Source>,
    next_seqno: u64,
    /// Counts of the gaps so far; `read` is not kept here.
    missing: ReadStats,
    start: Start,
    /// What `next_seqno` would be if every seqno since its first place had been read: their difference is how many were.
    read_from: u64,
    /// A seqno that is known to have been handed out.
    known_last: u64,
    /// Looks that found nothing for `idle_seqno`.
    idle_looks: u32,
    idle_seqno: u64,
    /// When the header was asked last, or the [`LOOKS_PER_TIME`]th of these looks took place.
    idle_since_epoch_nanos: u64,
    /// When [`Cursor::is_finished`] asked whether the writer lives.
    state_asked: Cell<Option<Instant>>,
}

/// Where a cursor began: what was gone by then is told before its first event.
#[derive(Clone, Copy)]
struct Start {
    /// What is before this number had been overwritten already.
    oldest_seqno: u64,
    /// The first number that had not been handed out.
    end_seqno: u64,
    /// How many events had been read before.
    read: u64,
    /// What is said of numbers that are overwritten before the first event is read.
    cause: GapCause,
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

/// Where to go in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seek {
    /// The oldest event that is still there. If others were overwritten before it, the next call reports them, from 1 on, as a gap of the
    /// cause [`GapCause::OverwrittenBefore`].
    Oldest,
    /// Behind the newest event: the next one recorded will be returned.
    Newest,
    /// So many events before the end. If the first of them are gone, the next call reports these as with [`Self::Oldest`].
    Last(u64),
    /// The event with this sequence number; if it is gone, the next call reports a gap from there on, whose cause is
    /// [`GapCause::Overwritten`].
    Seqno(u64),
    /// The event whose seqno stands in the extension word with this index (0 to 3) of the newest event: a word of the kind
    /// [`ExtWordKind::Seqno`](crate::schema::ExtWordKind::Seqno). If the word names no event, the newest event. In EXEC
    /// rings, word 0 names the begin of the current block.
    NamedByWord(usize),
}

impl Cursor {
    pub(super) fn new(source: Arc<Source>) -> Self {
        let known_last = observe::last_seqno(source.memory());
        let next_seqno = known_last + 1;
        Self {
            source,
            next_seqno,
            missing: ReadStats::default(),
            start: Start { oldest_seqno: 0, end_seqno: next_seqno, read: 0, cause: GapCause::Overwritten },
            read_from: next_seqno,
            known_last,
            idle_looks: 0,
            idle_seqno: 0,
            idle_since_epoch_nanos: 0,
            state_asked: Cell::new(None),
        }
    }

    /// The next event, if it is there. Never waits.
    ///
    /// An event that will never come (a gap whose cause is [`GapCause::NeverCommitted`] or [`GapCause::GivenUp`]) is reported at once where a later one
    /// is known of: below [`Self::lag`]'s count, or the seqno that was the newest at the last [`Self::seek`]. At the ring's end
    /// it takes some calls, and about 100 µs. In a sparse file, an event that was recorded since the last [`Self::seek`] may be found by the second
    /// call only.
    ///
    /// [`Next::NotReady`] is the end if [`Self::is_finished`] says so.
    #[inline(always)]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a cursor waits, jumps and seeks")]
    pub fn next(&mut self) -> Next {
        let seqno = self.next_seqno;
        match observe::slot(self.source.memory(), seqno) {
            Slot::Event(descriptor) => {
                self.next_seqno = seqno + 1;
                Next::Event(descriptor)
            }
            Slot::Other(seen) => self.not_in_its_slot(Some(seen)),
            Slot::Lapped => self.not_in_its_slot(None),
        }
    }

    /// What there is to say of the next event, whose slot holds `seen` (`None`: it was there, and is overwritten).
    #[inline(always)]
    pub(super) fn not_in_its_slot(&mut self, seen: Option<u64>) -> Next {
        // Never an event: where one comes from a function that is not inlined, it comes through memory, and so do all others.
        let gap = match seen {
            Some(seen) => self.absent_or_not_ready(seen),
            None => self.absent(None),
        };
        gap.map_or(Next::NotReady, Next::Gap)
    }

    /// The ring, and the place.
    #[inline(always)]
    pub(super) fn parts(&mut self) -> (&Source, &mut u64) {
        (&self.source, &mut self.next_seqno)
    }

    #[inline(never)]
    fn absent_or_not_ready(&mut self, seen: u64) -> Option<Gap> {
        // In a sparse file the slot may have come since it was mapped: the next look finds it. (Not this one: a second look here
        // would make every ordinary event slower.)
        if seen == 0 && self.source.slot_has_come(self.next_seqno) {
            self.look_closely();
            return None;
        }
        if seen < self.next_seqno && !self.is_time_to_ask() { None } else { self.absent(Some(seen)) }
    }

    /// Counts a look that found nothing; whether to ask why.
    #[inline(always)]
    fn is_time_to_ask(&mut self) -> bool {
        if self.next_seqno <= self.known_last || self.source.is_finished() {
            return true;
        }
        if self.idle_seqno != self.next_seqno {
            (self.idle_seqno, self.idle_looks) = (self.next_seqno, 0);
        }
        self.idle_looks = self.idle_looks.wrapping_add(1);
        self.idle_looks.is_multiple_of(LOOKS_PER_TIME) && self.has_been_idle()
    }

    #[cold]
    fn has_been_idle(&mut self) -> bool {
        let now = Clock::global().now_epoch_nanos();
        let is_first = self.idle_looks == LOOKS_PER_TIME;
        // A step of the clock only makes the question come early or late once.
        let asks = !is_first && now.abs_diff(self.idle_since_epoch_nanos) >= NANOS_TO_ASK;
        if is_first || asks {
            self.idle_since_epoch_nanos = now;
        }
        asks
    }

    /// Makes the next look that finds nothing ask why.
    pub(super) fn look_closely(&mut self) {
        self.known_last = self.known_last.max(self.next_seqno);
    }

    /// After a close look that found nothing: whether the next event's number is handed out, so that it is being recorded.
    pub(super) fn awaits_commit(&self) -> bool {
        self.next_seqno <= self.known_last
    }

    /// The gap that begins at the next event, which is not in its slot; `None` if it is not ready. The slot holds `seen` (`None`: it
    /// was there, and is overwritten).
    #[cold]
    fn absent(&mut self, seen: Option<u64>) -> Option<Gap> {
        if self.next_seqno < self.start.oldest_seqno {
            return self.skip_gone_at_start();
        }
        let memory = self.source.memory();
        self.known_last = observe::last_seqno(memory);
        match seen.map_or(Observation::Lapped, |seen| observe::absent(memory, self.next_seqno, seen)) {
            Observation::Lapped => self.skip_overwritten(),
            Observation::Hole => self.skip_holes(GapCause::GivenUp),
            // `next` has handled events; a finished ring's holes are those of killed writers.
            Observation::NotReady | Observation::Event(_) => {
                if self.next_seqno > self.known_last || !self.source.is_finished() {
                    return None;
                }
                // Finished may have become true after the look: look again.
                match observe::descriptor(self.source.memory(), self.next_seqno) {
                    // It came between the looks. The next call finds it.
                    Observation::Event(_) => None,
                    Observation::Lapped => self.skip_overwritten(),
                    Observation::Hole => self.skip_holes(GapCause::GivenUp),
                    Observation::NotReady => self.skip_holes(GapCause::NeverCommitted),
                }
            }
        }
    }

    /// Jumps over what was gone when the cursor began, and since, to the oldest event that is there.
    fn skip_gone_at_start(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let oldest = observe::oldest_seqno(memory, observe::last_seqno(memory));
        // What was recorded after the begin was not gone before.
        self.gap_up_to(oldest.max(self.start.oldest_seqno).min(self.start.end_seqno), self.start.cause)
    }

    /// Jumps to the oldest event that is safely there: on a live ring with an eighth of the ring as a head start.
    fn skip_overwritten(&mut self) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        if self.next_seqno > last {
            // A slot that holds a seqno which was never handed out: the file is damaged. There is nothing to skip.
            return None;
        }
        let head_start = if self.source.is_finished() { 0 } else { memory.geometry().descriptor_capacity() / 8 };
        let target = (observe::oldest_seqno(memory, last) + head_start).min(last + 1);
        // Beside a fast writer, what was the oldest event at the begin is gone before it is read.
        if self.next_seqno < self.start.end_seqno && self.read_count() == self.start.read {
            return self.gap_up_to(target.min(self.start.end_seqno), self.start.cause);
        }
        self.gap_up_to(target, GapCause::Overwritten)
    }

    /// Skips holes of one cause that lie behind one another; `next_seqno` is the first.
    fn skip_holes(&mut self, cause: GapCause) -> Option<Gap> {
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        let mut target = self.next_seqno + 1;
        let mut page_end = if memory.is_sparse() { self.next_seqno } else { u64::MAX };
        while target <= last && target - self.next_seqno < HOLES_AT_ONCE {
            if target >= page_end {
                // Whatever lies between, and may be most of a file of terabytes, was never written.
                if cause == GapCause::NeverCommitted {
                    target = self.source.first_slot_there(target, last);
                }
                self.source.slot_has_come(target);
                page_end = self.source.first_slot_behind_the_page(target);
                continue;
            }
            match (observe::descriptor(memory, target), cause) {
                (Observation::Hole, GapCause::GivenUp) => target += 1,
                // Only a finished ring has any.
                (Observation::NotReady, GapCause::NeverCommitted) => target += 1,
                _ => break,
            }
        }
        self.gap_up_to(target, cause)
    }

    /// Moves to `target`, at least one further (a damaged header cannot hold the cursor).
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

    /// Copies the payload of `descriptor` (an event of this ring) into `buffer` and checks that it was still valid
    /// afterwards. `buffer` becomes as long as the payload, at most the payload buffer's size.
    #[inline(always)]
    pub fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        self.source.payload(descriptor, buffer)
    }

    /// Whether the payload of `descriptor` could still be read now.
    pub fn payload_is_valid(&self, descriptor: &Descriptor) -> bool {
        observe::payload_is_valid(self.source.memory(), descriptor)
    }

    /// Goes to another place.
    pub fn seek(&mut self, to: Seek) {
        self.source.reach_all();
        let memory = self.source.memory();
        let last = observe::last_seqno(memory);
        let read = self.read_count();
        let (next_seqno, cause) = match to {
            Seek::Oldest => (1, GapCause::OverwrittenBefore),
            Seek::Newest => (last + 1, GapCause::Overwritten),
            Seek::Last(count) => ((last + 1).saturating_sub(count), GapCause::OverwrittenBefore),
            Seek::Seqno(seqno) => (seqno, GapCause::Overwritten),
            Seek::NamedByWord(index) => (super::named_event::seqno_in_word(memory, last, index), GapCause::Overwritten),
        };
        self.next_seqno = next_seqno.clamp(1, SEQNO_MAX + 1);
        self.start = Start { oldest_seqno: observe::oldest_seqno(memory, last), end_seqno: last + 1, read, cause };
        self.read_from = self.next_seqno.wrapping_sub(read);
        self.known_last = last;
    }

    /// Passes the next event, which is not ready, and with it those up to `last_seqno` that lie in the same hole of a sparse file. Says how many;
    /// none if it may be ready by now.
    pub fn pass_unready(&mut self, last_seqno: u64) -> u64 {
        let first = self.next_seqno;
        let mut target = first.saturating_add(1);
        if let Slot::Event(_) = observe::slot(self.source.memory(), first) {
            return 0;
        }
        if self.source.memory().is_sparse() {
            target = target.max(self.source.first_slot_there(first, last_seqno));
        }
        self.seek(Seek::Seqno(target));
        self.next_seqno - first
    }

    /// The sequence number that [`Self::next`] will look at.
    pub fn next_seqno(&self) -> u64 {
        self.next_seqno
    }

    /// How many events have been handed out and not been looked at by this cursor.
    pub fn lag(&self) -> u64 {
        (observe::last_seqno(self.source.memory()) + 1).saturating_sub(self.next_seqno)
    }

    /// Whether the ring has ended and this cursor has come to its end: nothing will come any more. After
    /// [`Next::NotReady`], this says whether to go on asking; [`Follower`](super::Follower) also waits in between.
    ///
    /// Asks the operating system whether the writer lives, if its end is not known, and at most every 10 ms.
    pub fn is_finished(&self) -> bool {
        // First the end, then the place: an event that is recorded in between is seen.
        self.has_ended() && self.lag() == 0
    }

    fn has_ended(&self) -> bool {
        if self.source.is_finished() {
            return true;
        }
        let is_due = self.state_asked.get().is_none_or(|asked| asked.elapsed() >= ASK_STATE_EVERY);
        if !is_due && !info::is_ended(self.source.memory()) {
            return false;
        }
        self.state_asked.set(Some(Instant::now()));
        self.reader().state();
        self.source.is_finished()
    }

    /// As [`Self::is_finished`], as far as somebody has asked for the reader's state. Asks nobody.
    pub(super) fn is_known_to_be_finished(&self) -> bool {
        self.source.is_finished() && self.lag() == 0
    }

    /// Events returned so far.
    pub fn read_count(&self) -> u64 {
        self.next_seqno.wrapping_sub(self.read_from)
    }

    /// Returns how many sequence numbers were counted in gaps so far, whatever the cause: also those that were gone before
    /// the start ([`GapCause::OverwrittenBefore`]) and those that stand for no event ([`GapCause::GivenUp`]).
    /// `read_count + lost_count` is the way that the cursor has gone.
    pub fn lost_count(&self) -> u64 {
        self.missing.missing()
    }

    /// Returns the counts of all sequence numbers that the cursor has passed, by what became of them.
    pub fn stats(&self) -> ReadStats {
        ReadStats { read: self.read_count(), ..self.missing }
    }

    /// Goes back to the event that [`Self::next`] has returned last.
    pub(super) fn step_back(&mut self) {
        self.next_seqno -= 1;
    }

    /// The reader whose ring this is.
    pub fn reader(&self) -> Reader {
        Reader::from_source(self.source.clone())
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("next_seqno", &self.next_seqno).field("stats", &self.stats()).finish()
    }
}
