//! Tests of the tick clock on a simulated machine. The machine has a counter, a real-time clock with steps and slews,
//! and interruptions.

mod any_course;
mod interruption;
mod rate_and_step;

use super::calibration::Calibration;
use super::segment::TickTime;
use super::source::TimeSource;
use super::tick_clock::TickClock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time that a read of the counter takes. A read of the real-time clock takes 20 ns: 10 ns before the machine takes
/// the time, and 10 ns after.
const TICKS_COST_NANOS: u64 = 8;
const REALTIME_HALF_COST_NANOS: u64 = 10;

/// The count of a fast counter grows in steps of this many ticks, as on the machine on which the figures in eventring's
/// documents were measured.
const FAST_TICK_STEP: u64 = 26;

#[derive(Debug)]
struct State {
    /// The true time of the simulation: nanoseconds since the simulation began.
    nanos: u64,
    ticks_per_second: u64,
    ticks_at_start: u64,
    /// The true time of the last change of the real-time clock's course. At that time the clock showed
    /// `realtime_whole0` plus the fraction `realtime0`. Since then, the clock's rate differs from the true rate by
    /// `slew_ppm`.
    since_nanos: u64,
    realtime0: f64,
    realtime_whole0: u64,
    slew_ppm: f64,
    /// On average, one of this many reads is interrupted; 0 if no read is interrupted. `interruption_nanos` is the
    /// longest interruption.
    interruption_every: u64,
    interruption_nanos: u64,
    random: u64,
}

impl State {
    fn random(&mut self) -> u64 {
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn pass(&mut self, nanos: u64) {
        self.nanos += nanos;
        if self.interruption_every > 0 && self.random().is_multiple_of(self.interruption_every) {
            self.nanos += self.random() % self.interruption_nanos;
        }
    }

    fn ticks(&self) -> u64 {
        let ticks = (u128::from(self.nanos) * u128::from(self.ticks_per_second) / 1_000_000_000) as u64;
        let step = if self.ticks_per_second < 1_000_000_000 { 1 } else { FAST_TICK_STEP };
        self.ticks_at_start.wrapping_add(ticks - ticks % step)
    }

    fn realtime(&self) -> f64 {
        self.realtime0 + (self.nanos - self.since_nanos) as f64 * (1.0 + self.slew_ppm * 1e-6)
    }

    fn realtime_nanos(&self) -> u64 {
        self.realtime_whole0.wrapping_add_signed(self.realtime().floor() as i64)
    }

    fn begin_stretch(&mut self) {
        self.realtime0 = self.realtime();
        self.since_nanos = self.nanos;
        // The fraction stays small, so it is exact.
        let whole = self.realtime0.floor();
        self.realtime_whole0 = self.realtime_whole0.wrapping_add_signed(whole as i64);
        self.realtime0 -= whole;
    }
}

/// An action during a read of the real-time clock.
type Intruder = Box<dyn Fn() + Send + Sync>;

struct Simulation {
    state: Mutex<State>,
    process: AtomicU64,
    intruder: Mutex<Option<std::sync::Arc<dyn Fn() + Send + Sync>>>,
}

const START_NANOS: u64 = 1_700_000_000_123_456_789;

impl Simulation {
    fn new(ticks_per_second: u64, seed: u64) -> Self {
        Self {
            state: Mutex::new(State {
                nanos: 0,
                ticks_per_second,
                ticks_at_start: seed,
                since_nanos: 0,
                realtime0: 0.0,
                realtime_whole0: START_NANOS,
                slew_ppm: 0.0,
                interruption_every: 0,
                interruption_nanos: 1,
                random: seed | 1,
            }),
            process: AtomicU64::new(1),
            intruder: Mutex::new(None),
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    fn interrupt(&self, every: u64, nanos: u64) {
        self.change(|state| {
            state.interruption_every = every;
            state.interruption_nanos = nanos;
        });
    }

    fn idle(&self, nanos: u64) {
        self.change(|state| state.nanos += nanos);
    }

    fn slew(&self, ppm: f64) {
        self.change(|state| {
            state.begin_stretch();
            state.slew_ppm = ppm;
        });
    }

    fn step(&self, nanos: i64) {
        self.change(|state| state.realtime_whole0 = state.realtime_whole0.wrapping_add_signed(nanos));
    }

    /// Returns the time of the real-time clock. The call takes no simulated time.
    fn truth(&self) -> u64 {
        self.change(|state| state.realtime_nanos())
    }

    fn intrude(&self, intruder: Intruder) {
        *self.intruder.lock().unwrap() = Some(intruder.into());
    }
}

impl TimeSource for &'static Simulation {
    fn ticks(&self) -> u64 {
        self.change(|state| {
            state.pass(TICKS_COST_NANOS);
            state.ticks()
        })
    }

    fn ticks_after_loads(&self) -> u64 {
        self.ticks()
    }

    fn realtime_nanos(&self) -> u64 {
        let intruder = self.intruder.lock().unwrap().clone();
        if let Some(intruder) = intruder {
            intruder();
        }
        self.change(|state| {
            state.pass(REALTIME_HALF_COST_NANOS);
            let nanos = state.realtime_nanos();
            state.pass(REALTIME_HALF_COST_NANOS);
            nanos
        })
    }

    fn process_number(&self) -> u64 {
        self.process.load(Ordering::Relaxed)
    }
}

type SimulatedClock = TickClock<&'static Simulation>;

/// Returns a simulated machine and a clock that reads it. Both are leaked, which costs a few hundred bytes for each
/// test case.
fn simulated(ticks_per_second: u64, seed: u64) -> (&'static Simulation, &'static SimulatedClock) {
    let simulation: &'static Simulation = Box::leak(Box::new(Simulation::new(ticks_per_second, seed)));
    (simulation, Box::leak(Box::new(TickClock::new(simulation))))
}

/// Returns the time as `Clock::now_epoch_nanos` does.
fn now(clock: &SimulatedClock) -> u64 {
    clock.try_now().map(TickTime::epoch_nanos).unwrap_or_else(|| clock.nanos().unwrap())
}

fn calibration(clock: &SimulatedClock) -> Calibration {
    clock.calibration().unwrap()
}

/// Returns a time of the clock, and its error. The error is 0 if the time lies between the real-time clock's times
/// before and after the call. Otherwise it is the distance from the nearer of the two.
fn now_with_error(simulation: &Simulation, clock: &SimulatedClock) -> (u64, i64) {
    let before = simulation.truth();
    let nanos = now(clock);
    let after = simulation.truth();
    let error = if nanos < before { nanos.wrapping_sub(before) as i64 } else { nanos.saturating_sub(after) as i64 };
    (nanos, error)
}

/// Reads the clock every `apart_nanos`, for `nanos` in total. Returns the largest error.
fn largest_error(simulation: &Simulation, clock: &SimulatedClock, nanos: u64, apart_nanos: u64) -> i64 {
    (0..nanos / apart_nanos)
        .map(|_| {
            simulation.idle(apart_nanos);
            now_with_error(simulation, clock).1.abs()
        })
        .max()
        .unwrap()
}
