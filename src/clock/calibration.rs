//! How ticks and nanoseconds since the epoch belong together, for keeping beside recorded times.

/// What a clock reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockKind {
    /// The machine's tick counter, calibrated against `CLOCK_REALTIME`.
    TickCounter,
    /// `CLOCK_REALTIME` itself.
    Realtime,
}

/// A clock's newest line from ticks to nanoseconds since the Unix epoch.
///
/// `epoch_nanos = epoch_nanos0 + (ticks - ticks0) * mult / 2^shift`. The line was made to hold for half a millisecond.
/// Beyond that it drifts by what the clocks' rates differ: some microseconds a second, or up to 500 while the system's
/// clock is being slewed.
///
/// Of a [`ClockKind::Realtime`] clock, a tick is a nanosecond since the epoch, and the line says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Calibration {
    /// What the clock reads.
    pub kind: ClockKind,
    /// The tick count where the line starts.
    pub ticks0: u64,
    /// Nanoseconds since the Unix epoch where it starts.
    pub epoch_nanos0: u64,
    /// Nanoseconds per tick, times two to the power of `shift`. 30 significant bits.
    pub mult: u32,
    /// See `mult`; below 64.
    pub shift: u32,
    /// The counter's rate by the real-time clock: measured over a quarter of a second or more, once the clock has run
    /// for that long.
    pub ticks_per_second: u64,
    /// How far a time of this line can be from `CLOCK_REALTIME` as long as neither clock changes its rate: the width of
    /// the pairing, the drift of the rate, and what is left of earlier errors.
    pub error_bound_nanos: u64,
    /// Steps of `CLOCK_REALTIME` (or of the counter) that this clock has met. After a step backwards it runs at half
    /// the rate or less until the real-time clock has caught up.
    pub steps: u64,
}

impl Calibration {
    /// Nanoseconds since the Unix epoch at `ticks`, which may be before `ticks0`. Saturates at 0 and [`u64::MAX`].
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
