//! The clock, which converts a tick counter to nanoseconds since the Unix epoch.
//!
//! Every event carries its time. Reading the time from the operating system takes 20 to 30 ns, more than all other work
//! of recording an event. So [`Clock`] reads the processor's tick counter, and converts the count by a multiplication,
//! a shift and an addition.
//!
//! The numbers for the conversion are a *segment*, which is used for half a millisecond at most. The next thread that
//! asks for the time then makes a new segment from `CLOCK_REALTIME`, in half a microsecond. If calls are rare, the
//! clock reads `CLOCK_REALTIME` instead. No thread waits for another.
//!
//! `tick_clock.rs` has the algorithm, `latch.rs` shares the current segment, and `estimator.rs` computes the next
//! segment.
//!
//! Promises about a clock's times:
//!
//! - Within a thread, times never fall, whatever happens to the system's clock.
//! - Times stay within 1 µs of `CLOCK_REALTIME`, typically within 50 ns, also after any idle time, and while NTP slews
//!   `CLOCK_REALTIME` by up to 500 ppm.
//! - A thread that is preempted inside the call gets the time of some moment between call and return.
//! - After a step of `CLOCK_REALTIME` forward, times follow within half a millisecond. After a step back, times run at
//!   half the rate or less until `CLOCK_REALTIME` has caught up.
//! - Times of different threads, rings and processes on one machine agree to within about a microsecond.
//!
//! If the tick counter is not reliable ([`TickCounter`] has the reason), the clock reads `CLOCK_REALTIME` at each call.
//! The promises above still hold, but a call takes two to three times as long.
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
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub(crate) mod instructions;
#[cfg(not(all(target_os = "linux", not(eventring_unsupported))))]
#[path = "instructions/unsupported.rs"]
pub(crate) mod instructions;
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
pub(crate) use segment::TickTime;
use source::{Machine, TimeSource};
use tick_clock::TickClock;

/// A clock that gives nanoseconds since the Unix epoch.
///
/// Use [`Clock::global`] where you can. Each further clock has to be calibrated separately.
#[derive(Debug)]
pub struct Clock {
    tick_clock: TickClock<Machine>,
    /// State of the tick counter. 0 if it has not been checked yet, otherwise a [`TickCounter`] as a number that
    /// [`encode`] has made.
    tick_counter: AtomicU64,
    wanted: ClockKind,
    /// Number of times that a thread saw `CLOCK_REALTIME` go back, while this clock read `CLOCK_REALTIME` directly.
    realtime_steps: AtomicU64,
}

impl Clock {
    /// Creates a clock.
    ///
    /// With [`ClockKind::TickCounter`] the clock reads the tick counter if the counter is usable. If it is not, the
    /// clock reads `CLOCK_REALTIME`; [`Clock::kind`] returns which one it reads. With [`ClockKind::Realtime`] the
    /// clock always reads `CLOCK_REALTIME`.
    #[must_use]
    pub const fn new(kind: ClockKind) -> Self {
        Self {
            tick_clock: TickClock::new(Machine),
            tick_counter: AtomicU64::new(0),
            wanted: kind,
            realtime_steps: AtomicU64::new(0),
        }
    }

    /// Returns the clock of this process, which reads the tick counter if the counter is usable.
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

    /// Checks the tick counter and measures its rate, which takes about 50 µs. Without this call, the first call that
    /// asks for the time does this work.
    ///
    /// Nothing happens if the clock has been used already.
    pub fn init_once(&self) -> &Self {
        self.now_epoch_nanos();
        self
    }

    /// Returns the present time in nanoseconds since the Unix epoch.
    ///
    /// The time is never below a time that the same thread got before. A signal handler and a forked child may call
    /// this function.
    #[inline]
    pub fn now_epoch_nanos(&self) -> u64 {
        match self.try_now() {
            Some(time) => time.epoch_nanos(),
            None => self.now_epoch_nanos_slow(),
        }
    }

    /// Returns the present time if the current segment has it. This is the fast path, for callers that have their own
    /// slow path.
    #[inline(always)]
    pub(crate) fn try_now(&self) -> Option<TickTime> {
        self.tick_clock.try_now()
    }

    /// Returns the present time when the fast path has none: the current segment has ended, or the clock does not use
    /// the tick counter.
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
        let reading = realtime::never_falling(|| Machine.realtime_nanos());
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

    /// Returns whether the machine's tick counter is usable, and the reason if it is not.
    pub fn tick_counter(&self) -> TickCounter {
        // Relaxed: no other memory depends on the value. A thread that loads 0 checks the counter itself, and gets the
        // same result as any other thread.
        if let Some(known) = decode(self.tick_counter.load(Ordering::Relaxed)) {
            return known;
        }
        let found = TickCounter::find_out();
        // If another thread has stored `NoRate` meanwhile, the compare-exchange fails, and `NoRate` stays.
        match self.tick_counter.compare_exchange(0, encode(found), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => found,
            Err(other) => decode(other).unwrap_or(found),
        }
    }

    fn set_tick_counter(&self, found: TickCounter) {
        self.tick_counter.store(encode(found), Ordering::Relaxed);
    }

    /// Returns how ticks relate to nanoseconds at present. A recorder stores this calibration in the header of its
    /// ring.
    ///
    /// If another thread is making the clock's first calibration, this call waits until that thread is done (about 50
    /// µs). Do not call it in a signal handler.
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
