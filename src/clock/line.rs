//! The straight line that turns ticks into nanoseconds since the epoch, for as long as it may be trusted.

/// The length of a [`Line`] in ticks, and its slope, have this many bits, so that their product fits in 64.
const WORD_BITS: u32 = 32;

/// A slope near the expected one has this many significant bits: it can double twice before it saturates, and one unit
/// of it is 2 parts in a thousand million.
const SLOPE_BITS: u32 = 30;

/// `epoch_nanos(ticks) = nanos0 + ((ticks - ticks0) * mult >> shift)` for `ticks0 <= ticks < ticks0 + span`.
///
/// `shift` is a constant of the clock, see [`shift_for`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The counter where the line starts.
    pub(super) ticks0: u64,
    /// Nanoseconds since the epoch where it starts.
    pub(super) nanos0: u64,
    /// The slope: nanoseconds per tick, times two to the `shift`.
    pub(super) mult: u32,
    /// The line's length in ticks. Ticks beyond it get no time from this line.
    pub(super) span: u32,
}

/// Where a tick count falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On the line, which gives this time.
    On(u64),
    /// Just before the line: the counter was read before the line was made, or on a core whose counter lags a little.
    /// The line's first nanosecond is the time: nothing later was given before the line, nothing earlier on it.
    Before(u64),
    /// Past the end, or so far before the start that the counter must have been set back.
    Off,
}

/// A counter further behind a line's start than this many line lengths was set back.
const LAG_SPANS: u64 = 16;

impl Line {
    /// The time that the line would give at its end: above everything that it does give, or equal to its last.
    pub(super) fn end_nanos(&self, shift: u32) -> u64 {
        self.nanos0.wrapping_add(scale(u64::from(self.span), self.mult, shift))
    }

    /// The hot path: the time, if `ticks` is on the line.
    #[inline(always)]
    pub(super) fn nanos_at(&self, ticks: u64, shift: u32) -> Option<u64> {
        // One unsigned comparison covers both ends.
        let elapsed = ticks.wrapping_sub(self.ticks0);
        (elapsed < u64::from(self.span)).then(|| self.nanos0.wrapping_add(scale(elapsed, self.mult, shift)))
    }

    /// The whole story, for the slow path.
    pub(super) fn place(&self, ticks: u64, shift: u32) -> Place {
        if let Some(nanos) = self.nanos_at(ticks, shift) {
            return Place::On(nanos);
        }
        let lag = self.ticks0.wrapping_sub(ticks);
        if lag <= u64::from(self.span) * LAG_SPANS {
            // `lag` is not 0 here unless the span is 0, where nothing is on the line and nothing may be before it.
            if self.span > 0 {
                return Place::Before(self.nanos0);
            }
        }
        Place::Off
    }

    /// The slope in nanoseconds per tick.
    pub(super) fn nanos_per_tick(&self, shift: u32) -> f64 {
        f64::from(self.mult) / two_to_the(shift)
    }

    /// Two of the line's words in one, so that the whole of it shares a cache line with its twin.
    pub(super) fn mult_and_span(&self) -> u64 {
        u64::from(self.mult) << WORD_BITS | u64::from(self.span)
    }

    /// The line from its three words.
    #[inline(always)]
    pub(super) fn from_words(ticks0: u64, nanos0: u64, mult_and_span: u64) -> Self {
        Self { ticks0, nanos0, mult: (mult_and_span >> WORD_BITS) as u32, span: mult_and_span as u32 }
    }
}

/// `ticks` below 2^32, so that the product cannot overflow.
#[inline(always)]
fn scale(ticks: u64, mult: u32, shift: u32) -> u64 {
    // A shift is at most 63 by `shift_for`; saying so spares the check.
    (ticks * u64::from(mult)) >> (shift & 63)
}

/// Slopes that some counter may have, in nanoseconds per tick.
const SLOPES: std::ops::RangeInclusive<f64> = 1e-3..=1e6;

/// Whether some counter may have this slope.
pub(super) fn is_possible(nanos_per_tick: f64) -> bool {
    SLOPES.contains(&nanos_per_tick)
}

/// The shift that gives a slope of `nanos_per_tick` 30 significant bits, or `None` for one that is not possible.
pub(super) fn shift_for(nanos_per_tick: f64) -> Option<u32> {
    if !is_possible(nanos_per_tick) {
        return None;
    }
    let exponent = nanos_per_tick.log2().floor() as i32;
    u32::try_from(SLOPE_BITS as i32 - 1 - exponent).ok()
}

/// Exact, and cheaper than `exp2`. A shift is below 64 by [`shift_for`].
fn two_to_the(shift: u32) -> f64 {
    (1u64 << (shift & 63)) as f64
}

/// The slope as a line's word: at least 1, so that a line never stands still for ever.
pub(super) fn mult_for(nanos_per_tick: f64, shift: u32) -> u32 {
    // `as` saturates at both ends, and gives 0 for a NaN.
    ((nanos_per_tick * two_to_the(shift)).round() as u32).max(1)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_line() -> impl Strategy<Value = (Line, u32)> {
        (0.05f64..1000.0, any::<u64>(), 0..u64::MAX / 4, 1u32..20_000_000).prop_map(
            |(nanos_per_tick, ticks0, nanos0, span)| {
                let shift = shift_for(nanos_per_tick).unwrap();
                let mult = mult_for(nanos_per_tick, shift);
                (Line { ticks0, nanos0, mult, span }, shift)
            },
        )
    }

    proptest! {
        #[test]
        fn a_line_never_falls_and_never_passes_its_end((line, shift) in any_line(), a: u32, b: u32) {
            let (a, b) = (a % line.span, b % line.span);
            let (early, late) = (a.min(b), a.max(b));
            let at = |elapsed: u32| line.nanos_at(line.ticks0.wrapping_add(u64::from(elapsed)), shift).unwrap();
            prop_assert!(line.nanos0 <= at(early));
            prop_assert!(at(early) <= at(late));
            prop_assert!(at(late) <= line.end_nanos(shift));
        }

        #[test]
        fn a_line_gives_nothing_outside_itself((line, shift) in any_line(), beyond in 0u64..1 << 40) {
            let past = line.ticks0.wrapping_add(u64::from(line.span)).wrapping_add(beyond);
            prop_assert_eq!(line.place(past, shift), Place::Off);
            let lag = beyond + 1;
            let before = line.ticks0.wrapping_sub(lag);
            let expected = if lag <= u64::from(line.span) * LAG_SPANS { Place::Before(line.nanos0) } else { Place::Off };
            prop_assert_eq!(line.place(before, shift), expected);
        }

        #[test]
        fn a_slope_is_kept_to_two_parts_in_a_thousand_million(nanos_per_tick in 1e-3f64..1e6) {
            let shift = shift_for(nanos_per_tick).unwrap();
            let kept = f64::from(mult_for(nanos_per_tick, shift)) / f64::from(shift).exp2();
            prop_assert!((kept / nanos_per_tick - 1.0).abs() < 2e-9, "{kept} for {nanos_per_tick}");
            prop_assert!(mult_for(3.9 * nanos_per_tick, shift) < u32::MAX);
        }

        #[test]
        fn a_line_survives_its_words((line, _) in any_line()) {
            prop_assert_eq!(Line::from_words(line.ticks0, line.nanos0, line.mult_and_span()), line);
        }
    }

    #[test]
    fn the_first_line_of_a_clock_has_no_place_for_any_tick() {
        let empty = Line::from_words(0, 77, 0);
        for ticks in [0, 1, u64::MAX, 1 << 63] {
            assert_eq!(empty.place(ticks, 31), Place::Off);
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
