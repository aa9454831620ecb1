//! A cursor: one reader's position in a ring.

mod skip;

use super::payload::PayloadRead;
use crate::clock::Clock;
use crate::layout::Descriptor;
use crate::reader::gap::{Gap, GapCause, ReadStats};
use crate::reader::info;
use crate::reader::source::Source;
use crate::ring::observe::{self, SEQNO_MAX, Slot};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The minimum time between two checks whether the writer lives. [`Cursor::is_finished`] makes these checks. Each of
/// them is a system call.
const ASK_STATE_EVERY: Duration = Duration::from_millis(10);

/// The time for which a cursor that has read everything checks only the slot of the next event. After this time, the
/// cursor also loads the header, to find out whether the next seqno is a hole (a seqno without an event). Each load of
/// the header slows a writer down: writers store to the header's cache line for each event, and after the load, a
/// writer must fetch this line back.
const NANOS_TO_ASK: u64 = 100_000;
/// The number of calls in a row that must find no event before the cursor reads the clock.
const LOOKS_PER_TIME: u32 = 16;

/// One reader's position in a ring. A cursor is cheap; any number of cursors may read the same [`Reader`](crate::reader::Reader), each on its
/// own thread.
///
/// A cursor that went from seqno *a* to seqno *b* has returned each seqno from *a* to *b* − 1 exactly once: as an
/// event, or as part of a gap. After [`Seek::Oldest`], *a* is 1, the ring's first seqno.
#[derive(Clone)]
pub struct Cursor {
    pub(in crate::reader) source: Arc<Source>,
    next_seqno: u64,
    /// The counts of the seqnos that the cursor has passed in gaps: overwritten before it began, lost, and skipped.
    /// The field `read` of this `ReadStats` stays 0: [`Cursor::read_count`] computes how many events were read.
    missing: ReadStats,
    start: CursorStart,
    /// `next_seqno` less the number of events that were read.
    read_from: u64,
    /// The last seqno that was handed out, as far as this cursor knows. If an event up to this seqno is not in its
    /// slot, the cursor loads the header at once to find out why.
    known_last: u64,
    /// The number of calls in a row that did not find the event `idle_seqno`.
    idle_looks: u32,
    idle_seqno: u64,
    /// The time from which the cursor measures how long no event came. It is set when `idle_looks` reaches
    /// [`LOOKS_PER_TIME`], and again at each load of the header after that.
    idle_since_epoch_nanos: u64,
    /// The time at which [`Cursor::is_finished`] last asked the operating system whether the writer lives.
    state_asked: Cell<Option<Instant>>,
}

/// The state of the ring when the cursor was made or last sought. Events that were gone by that time are reported as a
/// gap before the first event is returned.
#[derive(Clone, Copy)]
struct CursorStart {
    /// The oldest seqno that had not been overwritten.
    oldest_seqno: u64,
    /// The first seqno that had not been handed out.
    end_seqno: u64,
    /// Number of events that the cursor had read before that time.
    read: u64,
    /// The cause of the gap with which the cursor reports events that were overwritten before it read its first event.
    cause: GapCause,
}

/// The result of [`Cursor::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event's descriptor, whole and validated. Its payload is fetched with [`Cursor::payload`].
    Event(Descriptor),
    /// The next event has not been committed yet.
    NotReady,
    /// A range of missing events. The cursor has passed them: its position is after the gap.
    Gap(Gap),
}

/// A position in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seek {
    /// The oldest event that is still in the ring. If earlier events were overwritten, the next call of
    /// [`Cursor::next`] returns a gap from seqno 1 on, with the cause [`GapCause::OverwrittenBefore`].
    Oldest,
    /// The position after the newest event. The cursor then returns the next event that a writer records.
    Newest,
    /// The position this many events before the end of the ring. If some of these events are gone, the next call of
    /// [`Cursor::next`] returns them as a gap with the cause [`GapCause::OverwrittenBefore`].
    Last(u64),
    /// The event with this sequence number. If it is gone, the next call of [`Cursor::next`] returns a gap that begins
    /// at this number, with the cause [`GapCause::Overwritten`].
    Seqno(u64),
    /// The event whose seqno is in an extension word of the newest event. The value is the index of this word (0 to 3).
    /// The word must be of the kind [`ExtWordKind::Seqno`](crate::schema::ExtWordKind::Seqno). If the word names no
    /// event, the position is the newest event. In EXEC rings, word 0 names the first event of the current block.
    NamedByWord(usize),
}

impl Cursor {
    pub(in crate::reader) fn new(source: Arc<Source>) -> Self {
        let known_last = observe::last_seqno(source.memory());
        let next_seqno = known_last + 1;
        Self {
            source,
            next_seqno,
            missing: ReadStats::default(),
            start: CursorStart { oldest_seqno: 0, end_seqno: next_seqno, read: 0, cause: GapCause::Overwritten },
            read_from: next_seqno,
            known_last,
            idle_looks: 0,
            idle_seqno: 0,
            idle_since_epoch_nanos: 0,
            state_asked: Cell::new(None),
        }
    }

    /// Returns the next event if it is there. Never waits.
    ///
    /// If the cursor can no longer get the next event, returns a gap. If the event was overwritten, the cause is
    /// [`GapCause::Overwritten`] or [`GapCause::OverwrittenBefore`]. If a writer skipped the seqno, the cause is
    /// [`GapCause::Skipped`]. If the ring has ended before the event was committed, the cause is
    /// [`GapCause::NeverCommitted`].
    ///
    /// A gap with the cause [`GapCause::Skipped`] comes at once if the cursor knows that the seqno was handed out, for
    /// example because a newer event existed at the last [`Self::seek`]. Otherwise the first calls return
    /// [`Next::NotReady`], until about 100 µs have passed. The cursor reads the clock only at every 16th call that
    /// finds no event, and the 100 µs begin at the first of these readings.
    ///
    /// In a sparse file, an event that was recorded since the last [`Self::seek`] may need a second call to be found.
    ///
    /// After [`Next::NotReady`], call [`Self::is_finished`] to find out whether another event can come.
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
            Slot::Overrun => self.not_in_its_slot(None),
        }
    }

    /// Returns the result for a next event that is not in its slot. `seen` is the other seqno that the slot holds, or
    /// `None` if the event was overwritten while it was being read.
    #[inline(always)]
    pub(in crate::reader) fn not_in_its_slot(&mut self, seen: Option<u64>) -> Next {
        // The two functions below are not inlined, so they return their results through memory. Therefore they return
        // only a gap. If they could also return an event, the compiler would pass all events of `next` through
        // memory.
        let gap = match seen {
            Some(seen) => self.absent_or_not_ready(seen),
            None => self.absent(None),
        };
        gap.map_or(Next::NotReady, Next::Gap)
    }

    /// Returns the ring and the position.
    #[inline(always)]
    pub(in crate::reader) fn parts(&mut self) -> (&Source, &mut u64) {
        (&self.source, &mut self.next_seqno)
    }

    #[inline(never)]
    fn absent_or_not_ready(&mut self, seen: u64) -> Option<Gap> {
        // In a sparse file, a writer may have filled the slot since the file was mapped. In this case, this call
        // returns "not ready", and the next call finds the event. (If this call checked the slot a second time, all
        // other events would become slower.)
        if seen == 0 && self.source.slot_has_come(self.next_seqno) {
            self.probe();
            return None;
        }
        if seen < self.next_seqno && !self.is_time_to_ask() { None } else { self.absent(Some(seen)) }
    }

    /// Counts a call that found no event. Returns true if it is time to load the header to find out why there is no
    /// event.
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
        // If somebody sets the clock, the cursor loads the header once too early or too late. This does no other harm.
        let asks = !is_first && now.abs_diff(self.idle_since_epoch_nanos) >= NANOS_TO_ASK;
        if is_first || asks {
            self.idle_since_epoch_nanos = now;
        }
        asks
    }

    /// Makes the next call of [`Self::next`] load the header if it finds no event, to find out why there is none.
    pub fn probe(&mut self) {
        self.known_last = self.known_last.max(self.next_seqno);
    }

    /// Returns true if the next event is being recorded: a writer has its seqno and has not committed the event. The
    /// answer is right only after [`Self::probe`] and a following call of [`Self::next`] that found no event.
    pub(in crate::reader) fn awaits_commit(&self) -> bool {
        self.next_seqno <= self.known_last
    }

    /// Copies the payload of `descriptor` (an event of this ring) into `buffer`. After the copy, checks that no writer
    /// has overwritten the payload meanwhile. If the payload is valid, `buffer` holds exactly the payload. (If the ring
    /// was opened with [`compatible`](crate::reader::ReaderOptions::compatible), this is the payload as the reader's version of
    /// the schema has it.)
    #[inline(always)]
    pub fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        self.source.payload(descriptor, buffer)
    }

    /// Copies a payload as it was recorded, whatever schema the reader has.
    #[cfg(feature = "snapshot")]
    pub(in crate::reader) fn recorded_payload<'b>(
        &self,
        descriptor: &Descriptor,
        buffer: &'b mut Vec<u8>,
    ) -> PayloadRead<'b> {
        self.source.recorded_payload(descriptor, buffer)
    }

    /// Returns true if the payload of `descriptor` has not been overwritten yet.
    pub fn payload_is_valid(&self, descriptor: &Descriptor) -> bool {
        observe::payload_is_valid(self.source.memory(), descriptor)
    }

    /// Goes to another position.
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
            Seek::NamedByWord(index) => {
                (crate::reader::named_event::seqno_in_word(memory, last, index), GapCause::Overwritten)
            }
        };
        self.next_seqno = next_seqno.clamp(1, SEQNO_MAX + 1);
        self.start =
            CursorStart { oldest_seqno: observe::oldest_seqno(memory, last), end_seqno: last + 1, read, cause };
        self.read_from = self.next_seqno.wrapping_sub(read);
        self.known_last = last;
    }

    /// Skips the next event, which is not ready, without waiting for it. In a sparse file, the slot of this event may
    /// lie in a hole of the file. Then the function also skips the following events whose slots lie in the same hole,
    /// up to `last_seqno`. Returns how many events it skipped. Returns 0 and skips nothing if the next event is ready
    /// by now.
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

    /// Returns the sequence number that the cursor reads next.
    pub fn next_seqno(&self) -> u64 {
        self.next_seqno
    }

    /// Returns how many sequence numbers were handed out that the cursor has not passed yet.
    pub fn lag(&self) -> u64 {
        (observe::last_seqno(self.source.memory()) + 1).saturating_sub(self.next_seqno)
    }

    /// Returns true if the ring has ended and this cursor has passed its last event. [`Self::next`] will then never
    /// return another event. Call this after [`Next::NotReady`]. (A [`Follower`](crate::reader::Follower) calls both functions
    /// for you, and waits between the calls.)
    ///
    /// While the ring is not known to have ended, this asks the operating system whether the writer lives, at most
    /// every 10 ms.
    pub fn is_finished(&self) -> bool {
        // `has_ended` is called before `lag`. In the other order, a writer could record an event and end between the
        // two calls, and the cursor would miss this event.
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
        self.source.state();
        self.source.is_finished()
    }

    /// Returns true if the ring is known to have ended and the cursor has passed its last event. Makes no system call,
    /// so it may return false although the ring has ended.
    pub fn is_known_to_be_finished(&self) -> bool {
        self.source.is_finished() && self.lag() == 0
    }

    /// Returns how many events this cursor has returned.
    pub fn read_count(&self) -> u64 {
        self.next_seqno.wrapping_sub(self.read_from)
    }

    /// Returns how many sequence numbers this cursor has passed in gaps, of all causes. Among them are events that
    /// were gone before the cursor began ([`GapCause::OverwrittenBefore`]), and numbers that stand for no event
    /// ([`GapCause::Skipped`]). `read_count + lost_count` is the number of sequence numbers that the cursor has
    /// passed.
    pub fn lost_count(&self) -> u64 {
        self.missing.missing()
    }

    /// Returns how many sequence numbers the cursor has passed, in four counts: read, overwritten before the cursor
    /// began, lost, and skipped.
    pub fn stats(&self) -> ReadStats {
        ReadStats { read: self.read_count(), ..self.missing }
    }

    /// Goes back by one, to the event that [`Self::next`] has returned last.
    pub(in crate::reader) fn step_back(&mut self) {
        self.next_seqno -= 1;
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("next_seqno", &self.next_seqno).field("stats", &self.stats()).finish()
    }
}
