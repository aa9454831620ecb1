//! The latch, which publishes the current segment to all threads.
//!
//! The latch holds two segments and one word. The word has a count of published segments, whose lowest bit is the index
//! of the current segment, and the **overshoot**.
//!
//! If the current segment has ended and the next one is not published yet, a thread gets a time past the segment's end.
//! The overshoot is the distance from this end to the latest such time that any thread got.
//!
//! - A reader loads the segment that the word names, and then the word again. If a segment was published meanwhile, the
//!   reader repeats both loads.
//! - A publisher writes only to the segment that the word does not name. So readers can read while a publisher is
//!   stalled (a *sequence count latch* in the Linux kernel).
//!
//! A new segment starts at or above every time that a thread got before, because one compare-exchange of the word
//! publishes the segment *and* ends the overshoot of the old segment:
//!
//! - If another thread raises the overshoot first, the publisher's exchange fails, and the publisher makes a segment
//!   that starts later.
//! - If the publisher is first, the other thread's exchange fails, and that thread uses the new segment.
//!
//! The count of published segments has 32 bits and can wrap. A reader would mistake a new segment for an old one only
//! if exactly 2^32 segments (or a multiple) are published between two of its loads. At two segments a millisecond, this
//! takes 24 days.

use super::const_fn::const_except_in_models;
use super::segment::{Segment, TickTime};
use crate::sync::{AtomicU64, Ordering, fence};

/// Step in which the overshoot is counted, in nanoseconds. (The overshoot is the distance from the segment's end to the
/// highest time that a thread got.) Overshoots are rounded up to whole steps. So the latch's word changes at most once
/// in 64 ns, even if many threads ask for the time. This leaves time for the publisher's compare-exchange, which
/// fails if the word changes.
const OVERSHOOT_STEP_NANOS: u64 = 64;

/// Largest overshoot, in steps: 274 seconds. If no new segment is published for longer than 274 seconds after a
/// segment's end, all threads get the same time, which is 274 seconds past this end.
const OVERSHOOT_STEPS_MAX: u64 = u32::MAX as u64;

const SEGMENTS_SHIFT: u32 = 32;

/// A value of the latch's word: the count, which names the current segment, and the overshoot of this segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edition(u64);

impl Edition {
    /// Returns the index of the edition's segment.
    #[inline(always)]
    fn index(self) -> usize {
        (self.0 >> SEGMENTS_SHIFT & 1) as usize
    }

    fn segments(self) -> u64 {
        self.0 >> SEGMENTS_SHIFT
    }

    /// Returns true if both editions name the same segment. Their overshoots may differ.
    pub(super) fn has_same_segment_as(self, other: Self) -> bool {
        self.segments() == other.segments()
    }

    /// Returns true if no segment has been published yet. Then the current segment is the empty segment that a new
    /// latch has.
    pub(super) fn is_first(self) -> bool {
        self.segments() == 0
    }

    /// Returns the overshoot: the distance in nanoseconds from the segment's end to the highest time that a thread got.
    pub(super) fn overshoot_nanos(self) -> u64 {
        (self.0 & OVERSHOOT_STEPS_MAX) * OVERSHOOT_STEP_NANOS
    }

    fn with_overshoot_of_at_least(self, nanos: u64) -> Self {
        let steps = nanos.div_ceil(OVERSHOOT_STEP_NANOS).min(OVERSHOOT_STEPS_MAX).max(self.0 & OVERSHOOT_STEPS_MAX);
        Self(self.segments() << SEGMENTS_SHIFT | steps)
    }

    fn next(self) -> Self {
        Self((self.segments() + 1) << SEGMENTS_SHIFT)
    }
}

/// The words of a segment.
#[derive(Debug)]
struct SegmentWords {
    ticks0: AtomicU64,
    nanos0: AtomicU64,
    mult_and_span: AtomicU64,
}

impl SegmentWords {
    const_except_in_models! {
        fn new() -> Self {
            Self { ticks0: AtomicU64::new(0), nanos0: AtomicU64::new(0), mult_and_span: AtomicU64::new(0) }
        }
    }
}

/// The current segment, shared by all threads. See the [module](self). The latch is one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Latch {
    edition: AtomicU64,
    shift: AtomicU64,
    segments: [SegmentWords; 2],
}

impl Latch {
    const_except_in_models! {
        /// Creates a latch with the empty segment. No tick is on this segment: every tick is past its end.
        pub(super) fn new() -> Self {
            Self {
                edition: AtomicU64::new(0),
                shift: AtomicU64::new(0),
                segments: [SegmentWords::new(), SegmentWords::new()],
            }
        }
    }

    /// Returns the count `ticks()` as a place on the current segment. This is the fast path. Returns `None` if the
    /// count is not on the current segment, or if another segment was published meanwhile.
    #[inline(always)]
    pub(super) fn try_at(&self, ticks: impl FnOnce() -> u64) -> Option<TickTime> {
        let (edition, ticks0, nanos0, mult_and_span) = self.read_unconfirmed();
        if mult_and_span == 0 {
            // This is the empty segment, which gives no time for any count. Returning here avoids a read of the tick
            // counter, which costs more than all other work of this function.
            return None;
        }
        let segment = Segment::from_words(ticks0, nanos0, mult_and_span);
        // If a segment was published meanwhile, the words of `segment` may belong to two segments. `confirms` below
        // detects this. Until then the words are used only in wrapping arithmetic, which cannot panic.
        let at = segment.try_at(ticks(), self.shift())?;
        self.confirms(edition).then_some(at)
    }

    /// Returns the time at the count `ticks()`, as [`Self::try_at`] does.
    #[cfg(test)]
    pub(super) fn try_nanos_at(&self, ticks: impl FnOnce() -> u64) -> Option<u64> {
        self.try_at(ticks).map(TickTime::epoch_nanos)
    }

    /// Returns the current segment and its edition. Repeats the loads only if another segment was published meanwhile.
    pub(super) fn read(&self) -> (Edition, Segment) {
        loop {
            let (edition, ticks0, nanos0, mult_and_span) = self.read_unconfirmed();
            if self.confirms(edition) {
                return (edition, Segment::from_words(ticks0, nanos0, mult_and_span));
            }
        }
    }

    #[inline(always)]
    fn read_unconfirmed(&self) -> (Edition, u64, u64, u64) {
        // Acquire, pairs with the release of the compare-exchange in `publish`: the loads below return words of this
        // edition or of a later one. This holds even if a compare-exchange in `overshoot` has stored the loaded value.
        // That exchange is a read-modify-write, so it continues the release sequence of the exchange in `publish`.
        let edition = Edition(self.edition.load(Ordering::Acquire));
        let words = &self.segments[edition.index()];
        // Relaxed: the caller confirms the words or discards them.
        let ticks0 = words.ticks0.load(Ordering::Relaxed);
        let nanos0 = words.nanos0.load(Ordering::Relaxed);
        let mult_and_span = words.mult_and_span.load(Ordering::Relaxed);
        (edition, ticks0, nanos0, mult_and_span)
    }

    /// Returns true if the words that the caller has loaded for `edition` all belong to it.
    #[inline(always)]
    fn confirms(&self, edition: Edition) -> bool {
        // Acquire fence, pairs with the release fence in `publish`. Say `edition` names segment N. The publisher writes
        // segment N + 1 to the other words, publishes segment N + 1, executes the release fence, and then writes
        // segment N + 2 over the words that the caller has loaded. If a load before this fence returned a word of
        // segment N + 2, the load after this fence sees that segment N + 1 or a later one was published. The loaded
        // edition then differs from `edition`, and this function returns false.
        fence(Ordering::Acquire);
        self.edition.load(Ordering::Relaxed) == edition.0
    }

    /// Returns the shift of every segment of this clock.
    #[inline(always)]
    pub(super) fn shift(&self) -> u32 {
        // Relaxed: the calibrating thread stores the shift once, before it publishes the first segment with release.
        // So every thread that has read a published segment with an acquire load also sees the shift. A thread that
        // still reads the empty segment may not see the shift yet. The empty segment gives no time, so the shift does
        // not matter.
        self.shift.load(Ordering::Relaxed) as u32
    }

    /// Sets the shift. Only the calibrating thread may call this, before the first segment is published.
    pub(super) fn set_shift(&self, shift: u32) {
        self.shift.store(u64::from(shift), Ordering::Relaxed);
    }

    /// Sets the time at which the empty segment starts and ends. Changes nothing if this time is set already. Until the
    /// first segment is published, threads get times past the end of the empty segment.
    ///
    /// The caller must read the current segment again afterwards, because another thread may have published a segment.
    pub(super) fn set_empty_segment_start(&self, nanos: u64) {
        // Relaxed: no other memory depends on the value. The word is 0 only until the first call. After that it holds
        // the start of the empty segment, or the start of a published segment. Neither is 0, so a call that comes late
        // changes nothing.
        let word = &self.segments[0].nanos0;
        let _ = word.compare_exchange(0, nanos.max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Returns a time past the end of the segment of `edition`, and raises the overshoot to this time. The time is
    /// `wanted`, unless the overshoot reaches `wanted` already. Then another thread may have got a time later than
    /// `wanted`, and the returned time is the end of the overshoot.
    ///
    /// Returns `None` if a new segment was published meanwhile.
    pub(super) fn overshoot(&self, mut edition: Edition, end_nanos: u64, wanted: u64) -> Option<u64> {
        loop {
            let grown = edition.with_overshoot_of_at_least(wanted.saturating_sub(end_nanos));
            if grown == edition {
                // The overshoot reaches the wanted time already and need not be raised. This thread has got no time of
                // a later segment, because `edition` is the newest edition that it has read. Every time that it got
                // from this segment or an earlier one is at or below the end of the overshoot. So time does not fall
                // for this thread. Later segments start at or above the end of the overshoot, because their publisher
                // sees the overshoot.
                return Some(end_nanos + edition.overshoot_nanos());
            }
            // Relaxed: the new overshoot is in the word itself, and this thread has stored nothing else that readers
            // need. (A read-modify-write continues the publisher's release sequence. So a reader that acquires the new
            // value still sees the words of the segment.)
            match self.edition.compare_exchange(edition.0, grown.0, Ordering::Relaxed, Ordering::Relaxed) {
                // The overshoot has a maximum. At the maximum, its end may be below the wanted time.
                Ok(_) => return Some(wanted.min(end_nanos + grown.overshoot_nanos())),
                Err(found) if Edition(found).segments() == edition.segments() => edition = Edition(found),
                Err(_) => return None,
            }
        }
    }

    /// Publishes the new segment that `make` returns. `make` gets the lowest time at which the segment may start. If a
    /// thread raises the overshoot meanwhile, `make` is called again with a higher time. Only the calibrating thread
    /// may call this function.
    pub(super) fn publish(&self, mut make: impl FnMut(u64) -> Segment) -> Segment {
        let (mut edition, old) = self.read();
        let end_nanos = old.end_nanos(self.shift());
        loop {
            let segment = make(end_nanos + edition.overshoot_nanos());
            let next = edition.next();
            // Release fence, pairs with the acquire fence in `confirms`. Say segment N is current. The stores below
            // overwrite the words of segment N - 1. The edition of segment N was stored before this fence: by this
            // thread, or by another thread that held the right to calibrate (`Right`) earlier. In the second case, the
            // release and the acquire of the right order the store of the edition before this fence. So a reader that
            // sees one of the new words also sees that the edition of segment N - 1 is no longer current.
            fence(Ordering::Release);
            let words = &self.segments[next.index()];
            words.ticks0.store(segment.ticks0, Ordering::Relaxed);
            words.nanos0.store(segment.nanos0, Ordering::Relaxed);
            words.mult_and_span.store(segment.mult_and_span(), Ordering::Relaxed);
            // Release, pairs with the acquire in `read_unconfirmed`: the stores above happen before the loads of a
            // reader that acquires the new edition. The exchange fails if another thread has raised the overshoot.
            match self.edition.compare_exchange(edition.0, next.0, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return segment,
                Err(found) => edition = Edition(found),
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn segment(ticks0: u64, nanos0: u64) -> Segment {
        Segment { ticks0, nanos0, mult: 1 << 20, span: 1000 }
    }

    fn latch() -> Latch {
        let latch = Latch::new();
        latch.set_shift(20);
        latch.set_empty_segment_start(500);
        latch.set_empty_segment_start(700);
        latch.publish(|lowest| {
            assert_eq!(lowest, 500);
            segment(10, 1000)
        });
        latch
    }

    #[test]
    fn all_of_it_is_one_cache_segment() {
        assert_eq!(size_of::<Latch>(), 64);
    }

    #[test]
    fn the_segment_in_use_gives_the_time_and_nothing_before_or_after_it() {
        let latch = latch();
        assert_eq!(latch.try_nanos_at(|| 9), None);
        assert_eq!(latch.try_nanos_at(|| 10), Some(1000));
        assert_eq!(latch.try_nanos_at(|| 1009), Some(1999));
        assert_eq!(latch.try_nanos_at(|| 1010), None);
        assert_eq!(latch.read().1, segment(10, 1000));
    }

    #[test]
    fn a_segment_starts_above_every_overshoot_given_before_it() {
        let latch = latch();
        let (edition, old) = latch.read();
        let end = old.end_nanos(20);
        assert_eq!(latch.overshoot(edition, end, end + 100), Some(end + 100));
        assert_eq!(
            latch.overshoot(edition, end, end + 20),
            Some(end + 128),
            "an earlier time gets the end of the step"
        );
        let next = latch.publish(|lowest| segment(2000, lowest));
        assert_eq!(next.nanos0, end + 128);
        assert_eq!(latch.overshoot(edition, end, end + 500), None, "the segment it would run past is gone");
    }

    #[test]
    fn an_overshoot_during_the_making_of_a_segment_makes_it_again() {
        let latch = latch();
        let (edition, old) = latch.read();
        let end = old.end_nanos(20);
        let mut lowest_asked = Vec::new();
        latch.publish(|lowest| {
            lowest_asked.push(lowest);
            if lowest_asked.len() == 1 {
                assert_eq!(latch.overshoot(edition, end, end + 64), Some(end + 64));
            }
            segment(2000, lowest)
        });
        assert_eq!(lowest_asked, [end, end + 64]);
        assert_eq!(latch.try_nanos_at(|| 2000), Some(end + 64));
    }

    #[test]
    fn an_overshoot_stands_at_its_largest() {
        let latch = latch();
        let (edition, old) = latch.read();
        let end = old.end_nanos(20);
        let largest = OVERSHOOT_STEPS_MAX * OVERSHOOT_STEP_NANOS;
        assert_eq!(latch.overshoot(edition, end, u64::MAX), Some(end + largest));
        assert_eq!(latch.read().0.segments(), 1, "the overshoot does not spill into the count");
    }

    #[test]
    fn readers_find_the_segment_in_use_while_another_is_being_written() {
        let latch = latch();
        latch.publish(|lowest| {
            assert_eq!(latch.try_nanos_at(|| 10), Some(1000));
            segment(2000, lowest)
        });
        assert_eq!(latch.try_nanos_at(|| 10), None);
    }
}
