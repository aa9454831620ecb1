//! The clock: from a tick counter to nanoseconds since the Unix epoch.
//!
//! Every event carries the time of its recording. To ask the operating system for the time costs 20 to 30 ns, more than
//! all the rest of recording an event. So [`Clock`] reads the processor's tick counter and converts: multiply, shift,
//! add. The numbers for that are a *segment*, which is used for half a millisecond at most. The thread that asks for
//! the time next compares the counter with `CLOCK_REALTIME` and makes a new segment (half a microsecond of work). If
//! the time is asked for so seldom that this does not pay, the clock reads `CLOCK_REALTIME` instead. There is no
//! background thread, and no thread waits for another.
//!
//! `tick_clock.rs` has the algorithm, `latch.rs` shares the current segment, `estimator.rs` computes the next one.
//!
//! Promises about a clock's times:
//!
//! - Within a thread they never fall, whatever is done to the system's clock.
//! - They stay within 1 µs of `CLOCK_REALTIME` for as long as the program runs, also while NTP slews it by up to
//!   500 ppm, and after any idle time. (Typically within 50 ns. A thread that is preempted inside the call gets a time
//!   from between the call and the return.)
//! - When `CLOCK_REALTIME` is stepped forward, times follow within half a millisecond. When it is stepped back, they
//!   run at half the rate or less until it has caught up.
//! - Hence times of different threads, rings and processes on one machine are comparable to within a microsecond.
//!
//! Where the tick counter cannot be relied upon ([`TickCounter`] says why), the clock is `CLOCK_REALTIME` itself, read
//! through the vDSO: the same promises at two to three times the price.
//!
//! ```
//! use eventring::recorder::Clock;
//!
//! let clock = Clock::global();
//! let before = clock.now_epoch_nanos();
//! let after = clock.now_epoch_nanos();
//! assert!(before <= after);
//! println!("{:?}: {}", clock.kind(), clock.tick_counter());
//! ```

mod calibration;
mod const_fn;
mod estimator;
mod latch;
mod realtime;
mod segment;
#[cfg(test)]
mod simulation;
mod source;
mod tick_clock;
mod tick_counter;

pub use calibration::{Calibration, ClockKind};
pub use tick_counter::TickCounter;

use crate::sync::{AtomicU64, Ordering};
use source::{Machine, TimeSource};
use tick_clock::TickClock;

/// A clock that gives nanoseconds since the Unix epoch.
///
/// Use [`Clock::global`]; clocks of your own cost a calibration each.
#[derive(Debug)]
pub struct Clock {
    tick_clock: TickClock<Machine>,
    /// Findings about the tick counter: 0, or a [`TickCounter`] by [`encode`].
    tick_counter: AtomicU64,
    wanted: ClockKind,
    /// Number of steps back that threads saw in `CLOCK_REALTIME` while this clock read it.
    realtime_steps: AtomicU64,
}

impl Clock {
    /// Creates a clock.
    ///
    /// With [`ClockKind::TickCounter`] it reads the tick counter if that is usable, and `CLOCK_REALTIME` otherwise:
    /// [`Clock::kind`] tells. With [`ClockKind::Realtime`] it always reads `CLOCK_REALTIME`.
    #[must_use]
    pub const fn new(kind: ClockKind) -> Self {
        Self {
            tick_clock: TickClock::new(Machine),
            tick_counter: AtomicU64::new(0),
            wanted: kind,
            realtime_steps: AtomicU64::new(0),
        }
    }

    /// Returns the clock of this process, which reads the tick counter where that is usable.
    #[inline]
    pub fn global() -> &'static Self {
        static GLOBAL: Clock = Clock::new(ClockKind::TickCounter);
        &GLOBAL
    }

    /// Returns the clock of this process that always reads `CLOCK_REALTIME`.
    #[inline]
    pub fn realtime() -> &'static Self {
        static REALTIME: Clock = Clock::new(ClockKind::Realtime);
        &REALTIME
    }

    /// Returns the clock of this process that has `kind`.
    pub(crate) fn shared(kind: ClockKind) -> &'static Self {
        match kind {
            ClockKind::TickCounter => Self::global(),
            ClockKind::Realtime => Self::realtime(),
        }
    }

    /// Finds out about the tick counter and measures its rate, which the first use of the clock would do otherwise
    /// (some 50 µs).
    ///
    /// Nothing happens if the clock has been used already.
    pub fn init_once(&self) -> &Self {
        self.now_epoch_nanos();
        self
    }

    /// Returns the present time in nanoseconds since the Unix epoch.
    ///
    /// The time is never below one that the same thread got before. May be called in a signal handler, and in a forked
    /// child.
    #[inline]
    pub fn now_epoch_nanos(&self) -> u64 {
        match self.try_now_epoch_nanos() {
            Some(nanos) => nanos,
            None => self.now_epoch_nanos_slow(),
        }
    }

    /// Returns the present time if the current segment has it. The fast path, for callers that have a slow path of
    /// their own.
    #[inline(always)]
    pub(crate) fn try_now_epoch_nanos(&self) -> Option<u64> {
        self.tick_clock.try_nanos()
    }

    /// Returns the present time where the current segment has ended or the clock has no segments.
    #[cold]
    #[inline(never)]
    fn now_epoch_nanos_slow(&self) -> u64 {
        match self.kind() {
            ClockKind::TickCounter => match self.tick_clock.nanos() {
                Ok(nanos) => return nanos,
                Err(tick_clock::NoRate) => self.set_tick_counter(TickCounter::NoRate),
            },
            ClockKind::Realtime => {}
        }
        let reading = realtime::never_falling(Machine.realtime_nanos());
        if reading.stepped_back {
            // Relaxed: a count.
            self.realtime_steps.fetch_add(1, Ordering::Relaxed);
        }
        reading.nanos
    }

    /// Returns the source of the clock's times.
    pub fn kind(&self) -> ClockKind {
        match self.wanted {
            ClockKind::TickCounter if self.tick_counter().is_usable() => ClockKind::TickCounter,
            ClockKind::TickCounter | ClockKind::Realtime => ClockKind::Realtime,
        }
    }

    /// Returns whether the machine's tick counter is usable, and if not, why.
    pub fn tick_counter(&self) -> TickCounter {
        // Relaxed: every thread that finds nothing finds out the same.
        if let Some(known) = decode(self.tick_counter.load(Ordering::Relaxed)) {
            return known;
        }
        let found = TickCounter::find_out();
        // A compare-exchange: it must not overwrite a `NoRate` that another thread found out meanwhile.
        match self.tick_counter.compare_exchange(0, encode(found), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => found,
            Err(other) => decode(other).unwrap_or(found),
        }
    }

    fn set_tick_counter(&self, found: TickCounter) {
        self.tick_counter.store(encode(found), Ordering::Relaxed);
    }

    /// Returns the current relation of ticks to nanoseconds, to be kept beside recorded events.
    ///
    /// If another thread is in the middle of the clock's first calibration, this call waits for it (some 50 µs). Do not
    /// call it in a signal handler.
    pub fn calibration(&self) -> Calibration {
        self.init_once();
        loop {
            match self.kind() {
                ClockKind::Realtime => {
                    return Calibration {
                        kind: ClockKind::Realtime,
                        ticks0: 0,
                        epoch_nanos0: 0,
                        mult: 1,
                        shift: 0,
                        ticks_per_second: 1_000_000_000,
                        error_bound_nanos: 0,
                        steps: self.realtime_steps.load(Ordering::Relaxed),
                    };
                }
                ClockKind::TickCounter => {
                    if let Some(calibration) = self.tick_clock.calibration() {
                        return calibration;
                    }
                }
            }
            std::thread::yield_now();
        }
    }
}

const fn encode(found: TickCounter) -> u64 {
    found as u64 + 1
}

fn decode(word: u64) -> Option<TickCounter> {
    [
        TickCounter::Usable,
        TickCounter::Unknown,
        TickCounter::Forbidden,
        TickCounter::NotInvariant,
        TickCounter::MarkedUnstable,
        TickCounter::NoRate,
    ]
    .into_iter()
    .find(|&kind| encode(kind) == word)
}
