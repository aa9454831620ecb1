//! Tests with random sequences of happenings: pauses, slews, steps and interruptions of the machine, in any order.

use super::{Simulation, calibration, now, now_with_error, simulated};
use proptest::prelude::*;

/// An event of the machine between two readings.
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
        // Pauses from a nanosecond to over an hour. Each order of magnitude is equally likely.
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

/// Applies the happening. Returns how many readings of the clock to make afterwards, and the time between two
/// readings.
fn befall(simulation: &Simulation, happening: Happening) -> (u32, u64) {
    match happening {
        Happening::Readings { count, apart_nanos } => return (count, apart_nanos),
        Happening::Idle(nanos) => return (1, nanos),
        Happening::Slew(ppm) => simulation.slew(ppm),
        Happening::Step(nanos) => simulation.step(nanos),
    }
    (1, 0)
}

/// Generates rates of counters, from a slow aarch64 timer to a fast time stamp counter.
fn any_ticks_per_second() -> impl Strategy<Value = u64> {
    prop_oneof![Just(19_200_000u64), Just(1_000_000_000), Just(2_596_150_000), 1_000_000_000u64..6_000_000_000]
}

proptest! {
    // PROPTEST_CASES sets a larger number.
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
            let (count, apart_nanos) = befall(simulation, happening);
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
            let (count, apart_nanos) = befall(simulation, happening);
            for _ in 0..count {
                simulation.idle(apart_nanos);
                let nanos = now(clock);
                prop_assert!(last <= nanos, "fell from {last} to {nanos}");
                last = nanos;
            }
        }
    }
}
