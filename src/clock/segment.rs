//! A segment: a straight line from ticks to nanoseconds since the epoch, for the time in which it is accurate.

/// Width in bits of a [`Segment`]'s length (in ticks), and of its slope. The product of the two fits in 64 bits.
const WORD_BITS: u32 = 32;

/// Width in bits of the slope that a counter's measured rate gives. A segment has 32 bits for its slope, so the slope
/// can grow to four times this size before it saturates. A slope of 30 bits is at least 2^29, so rounding it to a whole
/// number changes it by less than 1 part in 1,000,000,000.
const SLOPE_BITS: u32 = 30;

/// A line `epoch_nanos(ticks) = nanos0 + ((ticks - ticks0) * mult >> shift)` for `ticks0 <= ticks < ticks0 + span`.
///
/// `shift` is a constant of the clock, see [`shift_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The count at which the segment starts.
    pub(super) ticks0: u64,
    /// The time at which the segment starts, in nanoseconds since the epoch.
    pub(super) nanos0: u64,
    /// The slope: nanoseconds per tick, times two to the `shift`.
    pub(super) mult: u32,
    /// The segment's length in ticks. Ticks at or past the end get no time from this segment.
    pub(super) span: u32,
}

/// A count of ticks on a segment. A locked instruction waits for all that stands before it. So a recorder reads the
/// count before such an instruction, and computes the time after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickTime {
    elapsed: u64,
    nanos0: u64,
    mult: u32,
    shift: u32,
}

impl TickTime {
    /// Returns the time, in nanoseconds since the epoch.
    #[inline(always)]
    pub(crate) fn epoch_nanos(self) -> u64 {
        self.nanos0.wrapping_add(scale(self.elapsed, self.mult, self.shift))
    }
}

/// Position of a tick count relative to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// Position on the segment, at this time.
    On(u64),
    /// A position shortly before the segment: the count was read on a core whose counter lags a little. The value is
    /// the time of the segment's start. This time is right for the count: times of earlier segments are not above it,
    /// and times of this segment are not below it.
    Before(u64),
    /// A position past the end, or so far before the start that the counter must have been set back.
    Off,
}

/// Largest lag of a core's counter, as a multiple of the segment's length. If a count is even further before the
/// segment's start, the counter was set back.
const LAG_SPANS: u64 = 16;

impl Segment {
    /// Returns the time at the segment's end. No time that the segment gives is above it.
    pub(super) fn end_nanos(&self, shift: u32) -> u64 {
        self.nanos0.wrapping_add(scale(u64::from(self.span), self.mult, shift))
    }

    /// Returns the count `ticks` as a place on the segment, or `None` if it is not on the segment. This is the fast
    /// path.
    #[inline(always)]
    pub(super) fn try_at(&self, ticks: u64, shift: u32) -> Option<TickTime> {
        // One unsigned comparison checks both ends. If `ticks` is before the start, `elapsed` wraps to a large number,
        // which is not below `span`.
        let elapsed = ticks.wrapping_sub(self.ticks0);
        let is_on = elapsed < u64::from(self.span);
        is_on.then_some(TickTime { elapsed, nanos0: self.nanos0, mult: self.mult, shift })
    }

    fn nanos_at(&self, ticks: u64, shift: u32) -> Option<u64> {
        self.try_at(ticks, shift).map(TickTime::epoch_nanos)
    }

    /// Returns the position of `ticks`, for the slow path.
    pub(super) fn position(&self, ticks: u64, shift: u32) -> Position {
        if let Some(nanos) = self.nanos_at(ticks, shift) {
            return Position::On(nanos);
        }
        let lag = self.ticks0.wrapping_sub(ticks);
        if lag <= u64::from(self.span) * LAG_SPANS {
            // Only the empty segment has the span 0, and it gives no time for any count. Without this check, a count
            // with the `lag` 0 would get the position `Before` of the empty segment.
            if self.span > 0 {
                return Position::Before(self.nanos0);
            }
        }
        Position::Off
    }

    /// Returns the slope in nanoseconds per tick.
    pub(super) fn nanos_per_tick(&self, shift: u32) -> f64 {
        f64::from(self.mult) / two_to_the(shift)
    }

    /// Returns the slope and the length packed into one word, so that two segments fit in one cache line.
    pub(super) fn mult_and_span(&self) -> u64 {
        u64::from(self.mult) << WORD_BITS | u64::from(self.span)
    }

    /// Creates a segment from its three words.
    #[inline(always)]
    pub(super) fn from_words(ticks0: u64, nanos0: u64, mult_and_span: u64) -> Self {
        Self { ticks0, nanos0, mult: (mult_and_span >> WORD_BITS) as u32, span: mult_and_span as u32 }
    }
}

/// Converts `ticks` to nanoseconds. `ticks` is below 2^32, so the product cannot overflow.
#[inline(always)]
fn scale(ticks: u64, mult: u32, shift: u32) -> u64 {
    // `shift_for` returns at most 63, so the mask changes nothing. With the mask, the compiler leaves out its check
    // for a shift that is too large.
    (ticks * u64::from(mult)) >> (shift & 63)
}

/// Possible slopes of counters, in nanoseconds per tick.
const SLOPES: std::ops::RangeInclusive<f64> = 1e-3..=1e6;

/// Returns true if a counter may have this slope.
pub(super) fn is_possible(nanos_per_tick: f64) -> bool {
    SLOPES.contains(&nanos_per_tick)
}

/// Returns the shift with which a slope of `nanos_per_tick` has 30 significant bits. Returns `None` for an impossible
/// slope.
pub(super) fn shift_for(nanos_per_tick: f64) -> Option<u32> {
    if !is_possible(nanos_per_tick) {
        return None;
    }
    let exponent = nanos_per_tick.log2().floor() as i32;
    u32::try_from(SLOPE_BITS as i32 - 1 - exponent).ok()
}

/// Returns 2^`shift`. This is exact, and cheaper than `exp2`. The shift is below 64, see [`shift_for`].
fn two_to_the(shift: u32) -> f64 {
    (1u64 << (shift & 63)) as f64
}

/// Returns the slope as the number that a segment stores in `mult`. The number is at least 1. If it were 0, time would
/// stand still for ever.
pub(super) fn mult_for(nanos_per_tick: f64, shift: u32) -> u32 {
    // The cast saturates at both ends, and turns a NaN into 0. So no check is needed before it.
    ((nanos_per_tick * two_to_the(shift)).round() as u32).max(1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_segment() -> impl Strategy<Value = (Segment, u32)> {
        (0.05f64..1000.0, any::<u64>(), 0..u64::MAX / 4, 1u32..20_000_000).prop_map(
            |(nanos_per_tick, ticks0, nanos0, span)| {
                let shift = shift_for(nanos_per_tick).unwrap();
                let mult = mult_for(nanos_per_tick, shift);
                (Segment { ticks0, nanos0, mult, span }, shift)
            },
        )
    }

    proptest! {
        #[test]
        fn a_segment_never_falls_and_never_passes_its_end((segment, shift) in any_segment(), a: u32, b: u32) {
            let (a, b) = (a % segment.span, b % segment.span);
            let (early, late) = (a.min(b), a.max(b));
            let at = |elapsed: u32| segment.nanos_at(segment.ticks0.wrapping_add(u64::from(elapsed)), shift).unwrap();
            prop_assert!(segment.nanos0 <= at(early));
            prop_assert!(at(early) <= at(late));
            prop_assert!(at(late) <= segment.end_nanos(shift));
        }

        #[test]
        fn a_segment_gives_nothing_outside_itself((segment, shift) in any_segment(), beyond in 0u64..1 << 40) {
            let past = segment.ticks0.wrapping_add(u64::from(segment.span)).wrapping_add(beyond);
            prop_assert_eq!(segment.position(past, shift), Position::Off);
            let lag = beyond + 1;
            let before = segment.ticks0.wrapping_sub(lag);
            let expected = if lag <= u64::from(segment.span) * LAG_SPANS { Position::Before(segment.nanos0) } else { Position::Off };
            prop_assert_eq!(segment.position(before, shift), expected);
        }

        #[test]
        fn a_slope_is_kept_to_two_parts_in_a_thousand_million(nanos_per_tick in 1e-3f64..1e6) {
            let shift = shift_for(nanos_per_tick).unwrap();
            let kept = f64::from(mult_for(nanos_per_tick, shift)) / f64::from(shift).exp2();
            prop_assert!((kept / nanos_per_tick - 1.0).abs() < 2e-9, "{kept} for {nanos_per_tick}");
            prop_assert!(mult_for(3.9 * nanos_per_tick, shift) < u32::MAX);
        }

        #[test]
        fn a_segment_survives_its_words((segment, _) in any_segment()) {
            prop_assert_eq!(Segment::from_words(segment.ticks0, segment.nanos0, segment.mult_and_span()), segment);
        }
    }

    #[test]
    fn no_tick_is_on_the_empty_segment_of_a_new_clock() {
        let empty = Segment::from_words(0, 77, 0);
        for ticks in [0, 1, u64::MAX, 1 << 63] {
            assert_eq!(empty.position(ticks, 31), Position::Off);
        }
        assert_eq!(empty.end_nanos(31), 77);
    }

    #[test]
    fn a_slope_that_no_counter_has_is_refused() {
        for slope in [0.0, -1.0, 1e-4, 1e7, f64::NAN, f64::INFINITY] {
            assert_eq!(shift_for(slope), None, "{slope}");
        }
    }
}
