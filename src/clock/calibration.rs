//! The calibration of a clock: the relation between ticks and nanoseconds since the epoch. The header of a ring has the
//! calibration of its recorder.

/// The source of a clock's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockKind {
    /// The machine's tick counter, calibrated against `CLOCK_REALTIME`.
    TickCounter,
    /// The system clock `CLOCK_REALTIME` itself.
    Realtime,
}

/// The newest line by which a clock converts ticks to nanoseconds since the Unix epoch.
///
/// `epoch_nanos = epoch_nanos0 + (ticks - ticks0) * mult / 2^shift`. Such a line is called a *segment*. The clock uses
/// a segment for at most half a millisecond, and the segment is accurate for that time. Later its error grows, because
/// the counter and the system's clock run at different rates. The error grows by a few microseconds a second. While the
/// system slews its clock, the error grows by up to 500 microseconds a second.
///
/// For a [`ClockKind::Realtime`] clock, one tick is one nanosecond, and the count is the time since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calibration {
    /// The source of the clock's times.
    pub kind: ClockKind,
    /// The tick count where the segment starts.
    pub ticks0: u64,
    /// Nanoseconds since the Unix epoch where the segment starts.
    pub epoch_nanos0: u64,
    /// Nanoseconds per tick, multiplied by 2^`shift`. The value has about 30 significant bits.
    pub mult: u32,
    /// Binary exponent of `mult`; below 64.
    pub shift: u32,
    /// Ticks of the counter per second of the real-time clock. The clock measures this rate over a quarter of a second
    /// or more. In its first quarter of a second, it measures the rate over the time since its start.
    pub ticks_per_second: u64,
    /// The largest possible error of a time of this segment: its distance from `CLOCK_REALTIME` in nanoseconds. The
    /// bound holds as long as neither clock changes its rate. It is the sum of the error of the newest measurement,
    /// the drift of the rate, and the error that is left from earlier segments.
    pub error_bound_nanos: u64,
    /// Count of the steps of `CLOCK_REALTIME` (or of the counter) that this clock has met. After a step backwards,
    /// this clock runs at half the rate or less until the real-time clock has caught up.
    pub steps: u64,
}

impl ClockKind {
    /// Returns the code of this kind in the header of a ring.
    pub(crate) const fn header_code(self) -> u64 {
        match self {
            Self::Realtime => 1,
            Self::TickCounter => 2,
        }
    }
}

impl Calibration {
    /// Returns the time at the tick count `ticks`, in nanoseconds since the Unix epoch. `ticks` may be before
    /// `ticks0`. The result saturates at 0 and [`u64::MAX`].
    #[must_use]
    pub fn epoch_nanos(&self, ticks: u64) -> u64 {
        let elapsed = i128::from(ticks) - i128::from(self.ticks0);
        let nanos = i128::from(self.epoch_nanos0) + ((elapsed * i128::from(self.mult)) >> self.shift.min(127));
        nanos.clamp(0, i128::from(u64::MAX)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        Calibration {
            kind: ClockKind::TickCounter,
            ticks0: 1_000_000,
            epoch_nanos0: 1_700_000_000_000_000_000,
            mult: 3 << 28,
            shift: 30,
            ticks_per_second: 1_333_333_333,
            error_bound_nanos: 40,
            steps: 0,
        }
    }

    #[test]
    fn a_calibration_converts_ticks_on_either_side_of_its_start() {
        let calibration = calibration();
        assert_eq!(calibration.epoch_nanos(1_000_000), 1_700_000_000_000_000_000);
        assert_eq!(calibration.epoch_nanos(1_000_004), 1_700_000_000_000_000_003);
        assert_eq!(calibration.epoch_nanos(999_996), 1_699_999_999_999_999_997);
    }

    #[test]
    fn a_calibration_saturates_instead_of_wrapping() {
        let early = Calibration { epoch_nanos0: 5, ..calibration() };
        assert_eq!(early.epoch_nanos(0), 0);
        let late = Calibration { epoch_nanos0: u64::MAX - 5, ..calibration() };
        assert_eq!(late.epoch_nanos(u64::MAX), u64::MAX);
        let absurd_shift = Calibration { shift: u32::MAX, ..calibration() };
        assert_eq!(absurd_shift.epoch_nanos(2_000_000), absurd_shift.epoch_nanos0);
    }
}
