//! A simulated machine – its counter, its real-time clock, what is done to that, and interruptions – and what the tick
//! clock makes of it.

use super::calibration::Calibration;
use super::source::TimeSource;
use super::tick_clock::TickClock;
use proptest::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Reading the counter takes 8 ns, the real-time clock 20, of which half before it is read.
const TICKS_COST_NANOS: u64 = 8;
const REALTIME_HALF_COST_NANOS: u64 = 10;

/// The counter of the machine that the figures are from counts in steps of 26.
const TICK_STEP: u64 = 26;

#[derive(Debug)]
struct State {
    /// Undisturbed time since the simulation began.
    nanos: u64,
    ticks_per_second: u64,
    ticks_at_start: u64,
    /// The real-time clock's present stretch: since when, from which time, how fast.
    since_nanos: u64,
    realtime0: f64,
    realtime_whole0: u64,
    slew_ppm: f64,
    /// One read in this many is interrupted, for up to so long. 0: none.
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
        self.ticks_at_start.wrapping_add(ticks - ticks % TICK_STEP)
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
        // The fraction stays small, so that it is exact.
        let whole = self.realtime0.floor();
        self.realtime_whole0 = self.realtime_whole0.wrapping_add_signed(whole as i64);
        self.realtime0 -= whole;
    }
}

/// Something that happens while the real-time clock is being read.
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

    /// The real-time clock, without the cost of reading it.
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

    fn process_id(&self) -> u64 {
        self.process.load(Ordering::Relaxed)
    }
}

type SimulatedClock = TickClock<&'static Simulation>;

/// Leaked: a few hundred bytes a test case.
fn simulated(ticks_per_second: u64, seed: u64) -> (&'static Simulation, &'static SimulatedClock) {
    let simulation: &'static Simulation = Box::leak(Box::new(Simulation::new(ticks_per_second, seed)));
    (simulation, Box::leak(Box::new(TickClock::new(simulation))))
}

/// As `Clock::now_epoch_nanos` does.
fn now(clock: &SimulatedClock) -> u64 {
    clock.nanos_on_line().unwrap_or_else(|| clock.nanos().unwrap())
}

fn calibration(clock: &SimulatedClock) -> Calibration {
    clock.calibration().unwrap()
}

/// A time, and how far it is outside of what the real-time clock said before and after the call.
fn now_with_error(simulation: &Simulation, clock: &SimulatedClock) -> (u64, i64) {
    let before = simulation.truth();
    let nanos = now(clock);
    let after = simulation.truth();
    let error = if nanos < before { nanos.wrapping_sub(before) as i64 } else { nanos.saturating_sub(after) as i64 };
    (nanos, error)
}

/// What happens to the machine between two readings.
#[derive(Clone, Debug)]
enum Happening {
    Readings { count: u32, apart_nanos: u64 },
    Idle(u64),
    Slew(f64),
    Step(i64),
}

fn undisturbed() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1u32..300, 0u64..5_000).prop_map(|(count, apart_nanos)| Happening::Readings { count, apart_nanos }),
        2 => (1u32..60, 0u64..2_000_000).prop_map(|(count, apart_nanos)| Happening::Readings { count, apart_nanos }),
        // From a nanosecond to over an hour, each order of magnitude alike.
        2 => (0u32..42, any::<u64>()).prop_map(|(bits, random)| Happening::Idle(random & ((1 << bits) - 1))),
        2 => (-500.0f64..=500.0).prop_map(Happening::Slew),
        1 => prop_oneof![Just(-500.0), Just(500.0), Just(0.0)].prop_map(Happening::Slew),
    ]
}

fn disturbed() -> impl Strategy<Value = Happening> {
    prop_oneof![
        5 => undisturbed(),
        1 => (0u32..45, any::<u64>(), any::<bool>()).prop_map(|(bits, random, back)| {
            let nanos = (random & ((1 << bits) - 1)) as i64;
            Happening::Step(if back { -nanos } else { nanos })
        }),
    ]
}

/// Counters from a slow aarch64 timer to a fast time stamp counter.
fn any_ticks_per_second() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_000_000_000u64), Just(2_596_150_000), 1_000_000_000u64..6_000_000_000]
}

proptest! {
    // More by PROPTEST_CASES.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(300)))]

    #[test]
    fn without_steps_time_stays_within_a_microsecond_of_the_real_time_clock(
        ticks_per_second in any_ticks_per_second(),
        seed: u64,
        happenings in prop::collection::vec(undisturbed(), 1..40),
        interruption_every in prop_oneof![Just(0u64), 200u64..2_000],
        interruption_nanos in 1u64..10_000_000,
    ) {
        let (simulation, clock) = simulated(ticks_per_second, seed);
        simulation.interrupt(interruption_every, interruption_nanos);
        let mut last = 0;
        for happening in happenings {
            let (count, apart_nanos) = match happening {
                Happening::Readings { count, apart_nanos } => (count, apart_nanos),
                Happening::Idle(nanos) => (1, nanos),
                Happening::Slew(ppm) => { simulation.slew(ppm); (1, 0) }
                Happening::Step(_) => unreachable!("not among the undisturbed"),
            };
            for _ in 0..count {
                simulation.idle(apart_nanos);
                let (nanos, error) = now_with_error(simulation, clock);
                prop_assert!(error.abs() < 1_000, "{error} ns off");
                prop_assert!(last <= nanos, "fell from {last} to {nanos}");
                last = nanos;
            }
        }
        prop_assert_eq!(calibration(clock).steps, 0, "a step was counted where there was none");
    }

    #[test]
    fn time_never_falls_whatever_is_done_to_the_real_time_clock(
        ticks_per_second in any_ticks_per_second(),
        seed: u64,
        happenings in prop::collection::vec(disturbed(), 1..60),
        interruption_every in prop_oneof![Just(0u64), 5u64..500],
    ) {
        let (simulation, clock) = simulated(ticks_per_second, seed);
        simulation.interrupt(interruption_every, 10_000_000);
        let mut last = 0;
        for happening in happenings {
            let (count, apart_nanos) = match happening {
                Happening::Readings { count, apart_nanos } => (count, apart_nanos),
                Happening::Idle(nanos) => (1, nanos),
                Happening::Slew(ppm) => { simulation.slew(ppm); (1, 0) }
                Happening::Step(nanos) => { simulation.step(nanos); (1, 0) }
            };
            for _ in 0..count {
                simulation.idle(apart_nanos);
                let nanos = now(clock);
                prop_assert!(last <= nanos, "fell from {last} to {nanos}");
                last = nanos;
            }
        }
    }
}

/// Readings every `apart_nanos` for `nanos`; gives the largest error.
fn largest_error(simulation: &Simulation, clock: &SimulatedClock, nanos: u64, apart_nanos: u64) -> i64 {
    (0..nanos / apart_nanos)
        .map(|_| {
            simulation.idle(apart_nanos);
            now_with_error(simulation, clock).1.abs()
        })
        .max()
        .unwrap()
}

#[test]
fn an_undisturbed_clock_is_within_its_own_error_bound() {
    let (simulation, clock) = simulated(2_596_150_000, 3);
    largest_error(simulation, clock, 300_000_000, 50_000);
    let calibrated = calibration(clock);
    assert!(calibrated.error_bound_nanos < 100, "{calibrated:?}");
    assert!(calibrated.ticks_per_second.abs_diff(2_596_150_000) < 1_000, "{calibrated:?}");
    for _ in 0..2_000 {
        let error = largest_error(simulation, clock, 7_000, 7_000);
        assert!(error.unsigned_abs() <= calibration(clock).error_bound_nanos, "{error}: {:?}", calibration(clock));
    }
}

#[test]
fn after_a_pause_that_the_rates_error_makes_look_longer_lines_are_made_again() {
    for seed in 0..20 {
        let (simulation, clock) = simulated(2_596_150_000, seed);
        // One line, whose rate was measured over microseconds.
        now(clock);
        simulation.idle(5_000_000_000);
        let on_line = (0..1_000).filter(|_| {
            simulation.idle(1_000);
            let on_line = clock.nanos_on_line().is_some();
            now(clock);
            on_line
        });
        assert!(on_line.count() > 900, "seed {seed}");
    }
}

#[test]
fn a_rate_that_flips_between_ntps_extremes_stays_within_a_microsecond() {
    let (simulation, clock) = simulated(2_596_150_000, 5);
    largest_error(simulation, clock, 600_000_000, 50_000);
    for round in 0..200u64 {
        simulation.slew(if round % 2 == 0 { 500.0 } else { -500.0 });
        // Each time at another point of the line, and for another while.
        let error = largest_error(simulation, clock, 1_700_000 + round * 137_911, 9_973);
        assert!(error < 1_000, "{error} ns in round {round}");
    }
}

#[test]
fn a_rate_far_beyond_ntps_is_followed_after_one_line() {
    let (simulation, clock) = simulated(2_596_150_000, 7);
    largest_error(simulation, clock, 600_000_000, 50_000);
    // chrony's fastest slew.
    simulation.slew(-83_333.0);
    largest_error(simulation, clock, 2_000_000_000, 50_000);
    let error = largest_error(simulation, clock, 1_000_000_000, 50_000);
    assert!(error < 1_000, "{error} ns");
    assert!(calibration(clock).steps <= 2);
}

#[test]
fn a_step_forward_is_followed_within_a_line_and_counted() {
    let (simulation, clock) = simulated(2_596_150_000, 9);
    largest_error(simulation, clock, 600_000_000, 50_000);
    simulation.step(3_600_000_000_000);
    simulation.idle(500_000);
    for _ in 0..2 {
        let (_, error) = now_with_error(simulation, clock);
        assert!(error.abs() < 1_000, "{error} ns");
    }
    assert_eq!(calibration(clock).steps, 1);
    assert!(largest_error(simulation, clock, 600_000_000, 50_000) < 1_000);
    assert_eq!(calibration(clock).steps, 1, "one step is counted once");
}

#[test]
fn a_step_back_is_caught_up_with_in_twice_its_length() {
    let (simulation, clock) = simulated(2_596_150_000, 11);
    largest_error(simulation, clock, 600_000_000, 50_000);
    let before = now(clock);
    simulation.step(-1_000_000_000);
    let mut last = before;
    for _ in 0..20_100 {
        simulation.idle(100_000);
        let nanos = now(clock);
        assert!(nanos > last, "time goes on while the real-time clock catches up");
        last = nanos;
    }
    assert_eq!(calibration(clock).steps, 1);
    let error = largest_error(simulation, clock, 600_000_000, 50_000);
    assert!(error < 1_000, "{error} ns");
}

#[test]
fn a_clock_that_is_seldom_asked_makes_a_line_a_minute_and_not_more() {
    let (simulation, clock) = simulated(2_596_150_000, 23);
    largest_error(simulation, clock, 600_000_000, 50_000);
    let mut lines = 1;
    let mut last_line = calibration(clock).ticks0;
    for round in 0..600u64 {
        simulation.idle(1_000_000_000 + round * 7);
        let (_, error) = now_with_error(simulation, clock);
        assert!(error.abs() < 100, "{error} ns");
        let line = calibration(clock).ticks0;
        lines += u32::from(line != last_line);
        last_line = line;
    }
    assert!((10..=12).contains(&lines), "{lines} lines in ten minutes");
    now(clock);
    now(clock);
    assert_ne!(calibration(clock).ticks0, last_line, "asked often, it makes a line");
}

#[test]
fn a_clock_that_is_seldom_asked_catches_up_with_a_step_back() {
    let (simulation, clock) = simulated(2_596_150_000, 31);
    largest_error(simulation, clock, 600_000_000, 50_000);
    let mut last = now(clock);
    simulation.step(-10_000_000_000);
    for _ in 0..25 {
        simulation.idle(1_000_000_000);
        let nanos = now(clock);
        assert!(nanos >= last, "fell from {last} to {nanos}");
        last = nanos;
    }
    let (_, error) = now_with_error(simulation, clock);
    assert!(error.abs() < 1_000, "{error} ns");
}

#[test]
fn a_counter_that_is_set_back_is_survived() {
    let (simulation, clock) = simulated(2_596_150_000, 1 << 50);
    largest_error(simulation, clock, 600_000_000, 50_000);
    let before = now(clock);
    // A laptop wakes up: the counter starts again, the real-time clock has gone on.
    simulation.change(|state| state.ticks_at_start = 0);
    simulation.step(60_000_000_000);
    let (nanos, error) = now_with_error(simulation, clock);
    assert!(nanos > before);
    assert!(error.abs() < 1_000, "{error} ns");
    assert!(largest_error(simulation, clock, 600_000_000, 50_000) < 1_000);
    assert_eq!(calibration(clock).steps, 1);
}

#[test]
fn a_counter_that_stands_still_is_given_up() {
    let (_, clock) = simulated(0, 1);
    assert!(clock.nanos().is_err());
    assert!(clock.calibration().is_none());
}

/// As a signal handler would: the thread that is calibrating asks for the time in the middle of it. The same holds for
/// any other thread that comes meanwhile.
#[test]
fn whoever_comes_during_a_calibration_gets_the_truth_and_never_waits() {
    let (simulation, clock) = simulated(2_596_150_000, 13);
    static INSIDE: AtomicBool = AtomicBool::new(false);
    static GIVEN: Mutex<Vec<(u64, i64)>> = Mutex::new(Vec::new());
    static READS: AtomicU64 = AtomicU64::new(0);
    simulation.intrude(Box::new(|| {
        // Now and then: a sample is taken again if it was interrupted, but not for ever.
        if !READS.fetch_add(1, Ordering::Relaxed).is_multiple_of(3) || INSIDE.swap(true, Ordering::Relaxed) {
            return;
        }
        for _ in 0..3 {
            // The calibrating thread is held up for long.
            simulation.idle(700_000);
            let given = now_with_error(simulation, clock);
            GIVEN.lock().unwrap().push(given);
        }
        INSIDE.store(false, Ordering::Relaxed);
    }));
    for _ in 0..200 {
        simulation.idle(600_000);
        // The second one finds the line ended just now, and makes a new one.
        for _ in 0..2 {
            let given = now_with_error(simulation, clock);
            GIVEN.lock().unwrap().push(given);
        }
    }
    let given = GIVEN.lock().unwrap();
    assert!(given.len() > 600, "{} times: no calibration was interrupted", given.len());
    assert!(given.is_sorted_by_key(|&(nanos, _)| nanos), "time fell");
    let largest = given.iter().map(|&(_, error)| error.abs()).max().unwrap();
    assert!(largest < 1_000, "{largest} ns");
}

/// A thread looks before there is a line, and looks away until there are two.
#[test]
fn a_thread_that_sleeps_through_the_first_lines_gets_the_truth_when_it_wakes() {
    use std::sync::mpsc::channel;

    let (simulation, clock) = simulated(2_596_150_000, 29);
    let (calibrating, first_is_calibrating) = channel();
    let (asleep, second_is_asleep) = channel::<()>();
    let (published, two_lines_are_published) = channel::<()>();
    thread_local! {
        /// What the thread does when it next reads the real-time clock.
        static NEXT: std::cell::Cell<Option<Box<dyn FnOnce()>>> = const { std::cell::Cell::new(None) };
    }
    simulation.intrude(Box::new(|| NEXT.take().into_iter().for_each(|next| next())));

    let second = std::thread::spawn(move || {
        first_is_calibrating.recv().unwrap();
        // It has times beyond the empty line entered.
        now(clock);
        simulation.idle(2_000_000);
        now(clock);
        NEXT.set(Some(Box::new(move || {
            asleep.send(()).unwrap();
            two_lines_are_published.recv().unwrap();
        })));
        now_with_error(simulation, clock).1
    });
    NEXT.set(Some(Box::new(move || {
        calibrating.send(()).unwrap();
        second_is_asleep.recv().unwrap();
    })));
    now(clock);
    simulation.idle(1_000_000);
    now(clock);
    now(clock);
    published.send(()).unwrap();
    let error = second.join().unwrap();
    assert!(error.abs() < 1_000, "{error} ns");
}

#[test]
fn a_child_forked_during_a_calibration_of_its_parent_calibrates_itself() {
    let (simulation, clock) = simulated(2_596_150_000, 17);
    largest_error(simulation, clock, 600_000_000, 50_000);
    // In the middle of a calibration the process becomes another one, and the thread that calibrated is gone.
    static FORKED: AtomicBool = AtomicBool::new(false);
    simulation.intrude(Box::new(|| {
        if FORKED.swap(true, Ordering::Relaxed) {
            return;
        }
        simulation.process.store(2, Ordering::Relaxed);
        let lines_before = calibration(clock).ticks0;
        for _ in 0..10_000 {
            simulation.idle(30_000);
            let (_, error) = now_with_error(simulation, clock);
            assert!(error.abs() < 1_000, "{error} ns");
        }
        assert!(calibration(clock).ticks0 > lines_before, "the child makes lines of its own");
        assert!(calibration(clock).error_bound_nanos < 100, "{:?}", calibration(clock));
    }));
    simulation.idle(500_000);
    now(clock);
    now(clock);
    assert!(FORKED.load(Ordering::Relaxed));
}

#[test]
fn many_threads_each_see_time_that_never_falls() {
    let (simulation, clock) = simulated(2_596_150_000, 19);
    simulation.interrupt(300, 300_000);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = 0;
                for _ in 0..20_000 {
                    let (nanos, error) = now_with_error(simulation, clock);
                    assert!(last <= nanos, "fell from {last} to {nanos}");
                    assert!(error.abs() < 1_000, "{error} ns");
                    last = nanos;
                }
            });
        }
        scope.spawn(|| {
            for round in 0..2_000u64 {
                simulation.slew([500.0, -500.0, 0.0][(round % 3) as usize]);
                // Seldom enough that a sample finds a quiet moment in its tries.
                simulation.idle(round * 100);
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
    });
}
