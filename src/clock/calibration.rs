//! The relation of ticks to nanoseconds since the epoch, to be kept beside recorded times.

/// The source of a clock's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockKind {
    /// The machine's tick counter, calibrated against `CLOCK_REALTIME`.
    TickCounter,
    /// The system clock `CLOCK_REALTIME` itself.
    Realtime,
}

/// A clock's newest segment, from ticks to nanoseconds since the Unix epoch.
///
/// `epoch_nanos = epoch_nanos0 + (ticks - ticks0) * mult / 2^shift`. The segment is accurate for the half millisecond
/// for which it was made. After that time its error grows by the difference of the clocks' rates: some microseconds a
/// second, or up to 500 microseconds a second while the system's clock is being slewed.
///
/// For a [`ClockKind::Realtime`] clock a tick is a nanosecond since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calibration {
    /// The source of the clock's times.
    pub kind: ClockKind,
    /// The tick count where the segment starts.
    pub ticks0: u64,
    /// Nanoseconds since the Unix epoch where the segment starts.
    pub epoch_nanos0: u64,
    /// Nanoseconds per tick, times two to the power of `shift`. The number has 30 significant bits.
    pub mult: u32,
    /// Binary exponent of `mult`; below 64.
    pub shift: u32,
    /// Rate of the counter, measured against the real-time clock. The measurement takes a quarter of a second or more,
    /// and less only while the clock is newer than that.
    pub ticks_per_second: u64,
    /// Largest distance of a time of this segment from `CLOCK_REALTIME` while neither clock changes its rate: the width
    /// of the sample, the drift of the rate, and the remainder of earlier errors.
    pub error_bound_nanos: u64,
    /// Number of steps of `CLOCK_REALTIME` (or of the counter) that this clock has met. After a step backwards this
    /// clock runs at half the rate or less until the real-time clock has caught up.
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
    /// Returns the nanoseconds since the Unix epoch at `ticks`, which may be before `ticks0`. Saturates at 0 and
    /// [`u64::MAX`].
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
