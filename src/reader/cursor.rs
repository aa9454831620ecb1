//! A cursor: one reader's position in a ring.

mod skip;

use super::gap::{Gap, GapCause, ReadStats};
use super::handle::Reader;
use super::info;
use super::payload::PayloadRead;
use super::source::Source;
use crate::clock::Clock;
use crate::layout::Descriptor;
use crate::ring::observe::{self, SEQNO_MAX, Slot};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest time between two system calls by which [`Cursor::is_finished`] asks whether the writer lives.
const ASK_STATE_EVERY: Duration = Duration::from_millis(10);

/// The time for which a cursor that has read everything checks only the next event's slot. After this time, the cursor
/// loads the header, which says whether the next event is a hole. The header is loaded rarely, because writers store to
/// its cache line for each event, and each load by a reader makes them fetch the line back.
const NANOS_TO_ASK: u64 = 100_000;
/// Number of calls in a row that find no event before the cursor reads the clock.
const LOOKS_PER_TIME: u32 = 16;

/// One reader's position in a ring. A cursor is cheap; any number of cursors may read the same [`Reader`], each on its
/// own thread.
///
/// A cursor that went from seqno *a* to seqno *b* has returned each seqno in between exactly once: as an event, or
/// counted in a gap. After [`Seek::Oldest`], *a* is the ring's first seqno.
#[derive(Clone)]
pub struct Cursor {
    source: Arc<Source>,
    next_seqno: u64,
    /// Counts of the gaps so far. The field `read` is not used: [`Cursor::read_count`] computes it.
    missing: ReadStats,
    start: CursorStart,
    /// `next_seqno` less the number of events that were read.
    read_from: u64,
    /// The last seqno that was handed out, as far as this cursor knows. If the next event's seqno is not larger, the
    /// cursor asks the header at once when it does not find the event.
    known_last: u64,
    /// Number of calls in a row that did not find the event `idle_seqno`.
    idle_looks: u32,
    idle_seqno: u64,
    /// The time at which the cursor last asked the header, or the time of the [`LOOKS_PER_TIME`]th call of those in
    /// `idle_looks`.
    idle_since_epoch_nanos: u64,
    /// The time at which [`Cursor::is_finished`] last asked whether the writer lives.
    state_asked: Cell<Option<Instant>>,
}

/// The state of the ring when the cursor began or last sought. Before the cursor returns its first event, it reports
/// the events that were gone by that time as a gap.
#[derive(Clone, Copy)]
struct CursorStart {
    /// The oldest seqno that had not been overwritten.
    oldest_seqno: u64,
    /// The first seqno that had not been handed out.
    end_seqno: u64,
    /// Number of events that the cursor had read before that time.
    read: u64,
    /// The cause of the gap that reports seqnos which were overwritten before the first event is read.
    cause: GapCause,
}

/// The result of [`Cursor::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next event's descriptor, whole and validated. Its payload is fetched with [`Cursor::payload`].
    Event(Descriptor),
    /// The next event has not been committed yet.
    NotReady,
    /// Events are missing. The cursor's position is after the missing events.
    Gap(Gap),
}

/// A position in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seek {
    /// The oldest event that is still there. If earlier events were overwritten, the next call reports them, from seqno
    /// 1 on, as a gap with the cause [`GapCause::OverwrittenBefore`].
    Oldest,
    /// After the newest event: the next event that is recorded will be returned.
    Newest,
    /// This many events before the end. If the first of these events are gone, the next call reports them as it does
    /// after [`Self::Oldest`].
    Last(u64),
    /// The event with this sequence number. If it is gone, the next call reports a gap that begins with it, with the
    /// cause [`GapCause::Overwritten`].
    Seqno(u64),
    /// The event whose seqno stands in the extension word with this index (0 to 3) of the newest event. The word has
    /// the kind [`ExtWordKind::Seqno`](crate::schema::ExtWordKind::Seqno). If the word names no event, the position is
    /// the newest event itself. In EXEC rings, word 0 names the begin of the current block.
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
    /// An event that will never come (a gap with the cause [`GapCause::NeverCommitted`] or [`GapCause::GivenUp`]) is
    /// reported immediately if the cursor knows of a later event, for example because that event was the newest at the
    /// last [`Self::seek`]. Otherwise it is reported only after some calls and about 100 µs. In a sparse file, an event
    /// that was recorded since the last [`Self::seek`] may need a second call to be found.
    ///
    /// After [`Next::NotReady`], [`Self::is_finished`] returns true if this is the end.
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

    /// Returns the result for a next event that is not in its slot. The slot holds the seqno `seen`; `None` if the
    /// event was overwritten while it was read.
    #[inline(always)]
    pub(super) fn not_in_its_slot(&mut self, seen: Option<u64>) -> Next {
        // The slow functions return a gap, never an event: an event that a function returns without being inlined would
        // come through memory, and then the compiler would pass all events through memory.
        let gap = match seen {
            Some(seen) => self.absent_or_not_ready(seen),
            None => self.absent(None),
        };
        gap.map_or(Next::NotReady, Next::Gap)
    }

    /// Returns the ring and the position.
    #[inline(always)]
    pub(super) fn parts(&mut self) -> (&Source, &mut u64) {
        (&self.source, &mut self.next_seqno)
    }

    #[inline(never)]
    fn absent_or_not_ready(&mut self, seen: u64) -> Option<Gap> {
        // In a sparse file, the slot may have been written since the file was mapped. Then this call returns "not
        // ready", and the next call finds the event. (If this call checked the slot a second time, all other events
        // would become slower.)
        if seen == 0 && self.source.slot_has_come(self.next_seqno) {
            self.look_closely();
            return None;
        }
        if seen < self.next_seqno && !self.is_time_to_ask() { None } else { self.absent(Some(seen)) }
    }

    /// Counts a call that found no event. Returns true if it is time to ask the header why there is no event.
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
        // If somebody sets the clock, the header is asked once too early or too late. This does no other harm.
        let asks = !is_first && now.abs_diff(self.idle_since_epoch_nanos) >= NANOS_TO_ASK;
        if is_first || asks {
            self.idle_since_epoch_nanos = now;
        }
        asks
    }

    /// Makes the next call of [`Self::next`] ask the header why there is no event, if it finds none.
    pub(super) fn look_closely(&mut self) {
        self.known_last = self.known_last.max(self.next_seqno);
    }

    /// Returns true if the next event is being recorded: its seqno is handed out, and the event is not committed. Call
    /// this after [`Self::look_closely`] and a call of [`Self::next`] that found no event.
    pub(super) fn awaits_commit(&self) -> bool {
        self.next_seqno <= self.known_last
    }

    /// Copies the payload of `descriptor` (an event of this ring) into `buffer`, and checks afterwards that the payload
    /// was still valid. `buffer` becomes as long as the payload, at most the payload buffer's size.
    #[inline(always)]
    pub fn payload<'b>(&self, descriptor: &Descriptor, buffer: &'b mut Vec<u8>) -> PayloadRead<'b> {
        self.source.payload(descriptor, buffer)
    }

    /// Returns true if the payload of `descriptor` could still be read now.
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
            Seek::NamedByWord(index) => (super::named_event::seqno_in_word(memory, last, index), GapCause::Overwritten),
        };
        self.next_seqno = next_seqno.clamp(1, SEQNO_MAX + 1);
        self.start =
            CursorStart { oldest_seqno: observe::oldest_seqno(memory, last), end_seqno: last + 1, read, cause };
        self.read_from = self.next_seqno.wrapping_sub(read);
        self.known_last = last;
    }

    /// Skips the next event, which is not ready, without waiting for it. If the ring's file is sparse and the event's
    /// slot lies in a hole of the file, also skips the further events up to `last_seqno` whose slots lie in this hole.
    /// Returns how many events were skipped. Returns 0 and skips nothing if the next event is ready by now.
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

    /// Returns the sequence number of the event that [`Self::next`] will read.
    pub fn next_seqno(&self) -> u64 {
        self.next_seqno
    }

    /// Returns how many sequence numbers were handed out that this cursor has not passed yet.
    pub fn lag(&self) -> u64 {
        (observe::last_seqno(self.source.memory()) + 1).saturating_sub(self.next_seqno)
    }

    /// Returns true if the ring has ended and this cursor has passed its last event, so that [`Self::next`] will never
    /// return another event. Call this after [`Next::NotReady`]. (A [`Follower`](super::Follower) does so, and waits
    /// between its calls.)
    ///
    /// If the end is not known, this asks the operating system whether the writer lives, at most every 10 ms.
    pub fn is_finished(&self) -> bool {
        // The end is checked before the position. In the other order, an event could be recorded between the two checks
        // and be missed.
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

    /// Returns true if [`Self::is_finished`] would return true without a system call. May return false although the
    /// ring has ended.
    pub(super) fn is_known_to_be_finished(&self) -> bool {
        self.source.is_finished() && self.lag() == 0
    }

    /// Returns how many events this cursor has returned.
    pub fn read_count(&self) -> u64 {
        self.next_seqno.wrapping_sub(self.read_from)
    }

    /// Returns how many sequence numbers were counted in gaps so far, whatever the cause. The number includes events
    /// that were gone before the start ([`GapCause::OverwrittenBefore`]), and sequence numbers that stand for no event
    /// ([`GapCause::GivenUp`]). `read_count + lost_count` is the number of sequence numbers that the cursor has passed.
    pub fn lost_count(&self) -> u64 {
        self.missing.missing()
    }

    /// Returns the counts of all sequence numbers that the cursor has passed: read, overwritten before, lost, given up.
    pub fn stats(&self) -> ReadStats {
        ReadStats { read: self.read_count(), ..self.missing }
    }

    /// Goes back to the event that [`Self::next`] has returned last.
    pub(super) fn step_back(&mut self) {
        self.next_seqno -= 1;
    }

    /// Returns the reader of the cursor's ring.
    pub fn reader(&self) -> Reader {
        Reader::from_source(self.source.clone())
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cursor").field("next_seqno", &self.next_seqno).field("stats", &self.stats()).finish()
    }
}
