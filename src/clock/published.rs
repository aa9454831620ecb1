//! The line in use, shared by all threads: two lines and one word that says which.
//!
//! The word holds a count of published lines (whose lowest bit chooses the slot) and the **overrun**: how far past the
//! line's end threads have been given times while the next line was being made.
//!
//! - Readers take the slot that the word names and look at the word again. The other slot is the only one that is ever
//!   written, so a publisher that stalls half way – preempted, or interrupted by a signal handler that asks for the
//!   time – disturbs nobody. (The kernel calls the scheme a sequence count latch.)
//! - One compare-exchange publishes a line *and* closes the overrun of the line before. So a new line always starts at
//!   or above every time given before it, and a time past the old line's end is either known to the publisher or fails
//!   to be given.
//!
//! The count has 32 bits: a reader would have to sleep between two adjacent loads for exactly a multiple of 2^32 lines
//! (24 days at two lines a millisecond) to take one line for another.

use super::const_fn::const_except_in_models;
use super::line::Line;
use crate::sync::{AtomicU64, Ordering, fence};

/// The overrun is counted in steps of this many nanoseconds, rounded up: however many threads ask for the time, the
/// word changes once in a step, so that the publisher's compare-exchange cannot be kept from succeeding.
const OVERRUN_STEP_NANOS: u64 = 64;

/// The largest overrun: 274 seconds. A publisher that is kept from running for longer finds the others standing there.
const OVERRUN_STEPS_MAX: u64 = u32::MAX as u64;

const LINES_SHIFT: u32 = 32;

/// What the word said: which line, and how far its overrun has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edition(u64);

impl Edition {
    #[inline(always)]
    fn slot(self) -> usize {
        (self.0 >> LINES_SHIFT & 1) as usize
    }

    fn lines(self) -> u64 {
        self.0 >> LINES_SHIFT
    }

    /// Whether `other` is of the same line, whatever the overruns.
    pub(super) fn has_same_line_as(self, other: Self) -> bool {
        self.lines() == other.lines()
    }

    /// Nothing has been published yet: the line is the empty one.
    pub(super) fn is_first(self) -> bool {
        self.lines() == 0
    }

    /// Nanoseconds past the end of the line up to which times have been given.
    pub(super) fn overrun_nanos(self) -> u64 {
        (self.0 & OVERRUN_STEPS_MAX) * OVERRUN_STEP_NANOS
    }

    fn with_overrun_of_at_least(self, nanos: u64) -> Self {
        let steps = nanos.div_ceil(OVERRUN_STEP_NANOS).min(OVERRUN_STEPS_MAX).max(self.0 & OVERRUN_STEPS_MAX);
        Self(self.lines() << LINES_SHIFT | steps)
    }

    fn next(self) -> Self {
        Self((self.lines() + 1) << LINES_SHIFT)
    }
}

#[derive(Debug)]
struct Slot {
    ticks0: AtomicU64,
    nanos0: AtomicU64,
    mult_and_span: AtomicU64,
}

impl Slot {
    const_except_in_models! {
        fn new() -> Self {
            Self { ticks0: AtomicU64::new(0), nanos0: AtomicU64::new(0), mult_and_span: AtomicU64::new(0) }
        }
    }
}

/// See the module. All of it is one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Published {
    edition: AtomicU64,
    shift: AtomicU64,
    slots: [Slot; 2],
}

impl Published {
    const_except_in_models! {
        /// No line yet: every tick is past the end.
        pub(super) fn new() -> Self {
            Self {
                edition: AtomicU64::new(0),
                shift: AtomicU64::new(0),
                slots: [Slot::new(), Slot::new()],
            }
        }
    }

    /// The hot path: the time at `ticks()`, if the line in use has it and was not replaced during the look.
    #[inline(always)]
    pub(super) fn nanos_at(&self, ticks: impl FnOnce() -> u64) -> Option<u64> {
        let (edition, ticks0, nanos0, mult_and_span) = self.read_unconfirmed();
        if mult_and_span == 0 {
            // No line yet, or never one: reading the counter costs more than all the rest.
            return None;
        }
        let line = Line::from_words(ticks0, nanos0, mult_and_span);
        // Unconfirmed words may be of two lines; they only meet wrapping arithmetic before the confirmation.
        let nanos = line.nanos_at(ticks(), self.shift())?;
        self.confirms(edition).then_some(nanos)
    }

    /// The line in use. Repeats only when another line was published meanwhile.
    pub(super) fn read(&self) -> (Edition, Line) {
        loop {
            let (edition, ticks0, nanos0, mult_and_span) = self.read_unconfirmed();
            if self.confirms(edition) {
                return (edition, Line::from_words(ticks0, nanos0, mult_and_span));
            }
        }
    }

    #[inline(always)]
    fn read_unconfirmed(&self) -> (Edition, u64, u64, u64) {
        // Acquire: the slot's words below are at least as new as this edition's. The publisher's compare-exchange is
        // the release; an overrun's compare-exchange on top of it continues its release sequence.
        let edition = Edition(self.edition.load(Ordering::Acquire));
        let slot = &self.slots[edition.slot()];
        // Relaxed: confirmed or thrown away.
        let ticks0 = slot.ticks0.load(Ordering::Relaxed);
        let nanos0 = slot.nanos0.load(Ordering::Relaxed);
        let mult_and_span = slot.mult_and_span.load(Ordering::Relaxed);
        (edition, ticks0, nanos0, mult_and_span)
    }

    /// Whether the words loaded for `edition` were its own.
    #[inline(always)]
    fn confirms(&self, edition: Edition) -> bool {
        // Pairs with the release fence in `publish`: had one of the loads above seen a word of the line after next,
        // then this fence would make the load below see at least the edition in between.
        fence(Ordering::Acquire);
        self.edition.load(Ordering::Relaxed) == edition.0
    }

    /// The shift of every line of this clock.
    #[inline(always)]
    pub(super) fn shift(&self) -> u32 {
        // Relaxed: set once, before the first line is published, hence known to whoever acquired an edition above 0.
        // The empty line gives no time with any shift.
        self.shift.load(Ordering::Relaxed) as u32
    }

    /// Only before the first line is published, by the one thread that calibrates.
    pub(super) fn set_shift(&self, shift: u32) {
        self.shift.store(u64::from(shift), Ordering::Relaxed);
    }

    /// Says from which time overruns of the empty line before the first are counted, unless that was said before.
    ///
    /// For the outcome, read the line again: by now there may be another.
    pub(super) fn place_empty_line(&self, nanos: u64) {
        // Relaxed: the value stands alone. It is not zero from here on, so that this cannot hit a later line's word.
        let word = &self.slots[0].nanos0;
        let _ = word.compare_exchange(0, nanos.max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Gives a time past the end of the line of `edition`: `wanted`, or the end of the step if one in the same step or
    /// later was given already.
    ///
    /// `None` if a new line was published meanwhile.
    pub(super) fn overrun(&self, mut edition: Edition, end_nanos: u64, wanted: u64) -> Option<u64> {
        loop {
            let grown = edition.with_overrun_of_at_least(wanted.saturating_sub(end_nanos));
            if grown == edition {
                // Known to the publisher already. If a new line was published after `edition` was read, it starts
                // above this time; and nothing of it was given to this thread, which read `edition` last.
                return Some(end_nanos + edition.overrun_nanos());
            }
            // Relaxed: nothing is published but the word itself. (Being a read-modify-write, it continues the release
            // sequence of the publisher, so that readers who acquire it have the line.)
            match self.edition.compare_exchange(edition.0, grown.0, Ordering::Relaxed, Ordering::Relaxed) {
                // At its largest, the overrun ends below what is wanted.
                Ok(_) => return Some(wanted.min(end_nanos + grown.overrun_nanos())),
                Err(found) if Edition(found).lines() == edition.lines() => edition = Edition(found),
                Err(_) => return None,
            }
        }
    }

    /// Publishes the line that `make` gives for the lowest time at which it may start. Only by the one thread that
    /// calibrates.
    pub(super) fn publish(&self, mut make: impl FnMut(u64) -> Line) -> Line {
        let (mut edition, old) = self.read();
        let end_nanos = old.end_nanos(self.shift());
        loop {
            let line = make(end_nanos + edition.overrun_nanos());
            let next = edition.next();
            // Pairs with the acquire fence in `confirms`: whoever sees a word stored below also sees that the edition
            // moved on from the one that used this slot last. (That was stored by this thread, or by one that handed
            // the right to calibrate on by release and acquire.)
            fence(Ordering::Release);
            let slot = &self.slots[next.slot()];
            slot.ticks0.store(line.ticks0, Ordering::Relaxed);
            slot.nanos0.store(line.nanos0, Ordering::Relaxed);
            slot.mult_and_span.store(line.mult_and_span(), Ordering::Relaxed);
            // Release: who acquires the edition has the slot's words. Fails if the overrun grew.
            match self.edition.compare_exchange(edition.0, next.0, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return line,
                Err(found) => edition = Edition(found),
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn line(ticks0: u64, nanos0: u64) -> Line {
        Line { ticks0, nanos0, mult: 1 << 20, span: 1000 }
    }

    fn published() -> Published {
        let published = Published::new();
        published.set_shift(20);
        published.place_empty_line(500);
        published.place_empty_line(700);
        published.publish(|lowest| {
            assert_eq!(lowest, 500);
            line(10, 1000)
        });
        published
    }

    #[test]
    fn all_of_it_is_one_cache_line() {
        assert_eq!(size_of::<Published>(), 64);
    }

    #[test]
    fn the_line_in_use_gives_the_time_and_nothing_before_or_after_it() {
        let published = published();
        assert_eq!(published.nanos_at(|| 9), None);
        assert_eq!(published.nanos_at(|| 10), Some(1000));
        assert_eq!(published.nanos_at(|| 1009), Some(1999));
        assert_eq!(published.nanos_at(|| 1010), None);
        assert_eq!(published.read().1, line(10, 1000));
    }

    #[test]
    fn a_line_starts_above_every_overrun_given_before_it() {
        let published = published();
        let (edition, old) = published.read();
        let end = old.end_nanos(20);
        assert_eq!(published.overrun(edition, end, end + 100), Some(end + 100));
        assert_eq!(
            published.overrun(edition, end, end + 20),
            Some(end + 128),
            "an earlier wish gets the end of the step"
        );
        let next = published.publish(|lowest| line(2000, lowest));
        assert_eq!(next.nanos0, end + 128);
        assert_eq!(published.overrun(edition, end, end + 500), None, "the line it would run past is gone");
    }

    #[test]
    fn an_overrun_during_the_making_of_a_line_makes_it_again() {
        let published = published();
        let (edition, old) = published.read();
        let end = old.end_nanos(20);
        let mut lowest_asked = Vec::new();
        published.publish(|lowest| {
            lowest_asked.push(lowest);
            if lowest_asked.len() == 1 {
                assert_eq!(published.overrun(edition, end, end + 64), Some(end + 64));
            }
            line(2000, lowest)
        });
        assert_eq!(lowest_asked, [end, end + 64]);
        assert_eq!(published.nanos_at(|| 2000), Some(end + 64));
    }

    #[test]
    fn an_overrun_stands_at_its_largest() {
        let published = published();
        let (edition, old) = published.read();
        let end = old.end_nanos(20);
        let largest = OVERRUN_STEPS_MAX * OVERRUN_STEP_NANOS;
        assert_eq!(published.overrun(edition, end, u64::MAX), Some(end + largest));
        assert_eq!(published.read().0.lines(), 1, "the overrun does not spill into the count");
    }

    #[test]
    fn readers_find_the_line_in_use_while_another_is_being_written() {
        let published = published();
        published.publish(|lowest| {
            assert_eq!(published.nanos_at(|| 10), Some(1000));
            line(2000, lowest)
        });
        assert_eq!(published.nanos_at(|| 10), None);
    }
}
