//! Tests of changing rates, steps and pauses.

use super::{calibration, largest_error, now, now_with_error, simulated};

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
fn after_a_pause_that_the_rates_error_makes_look_longer_segments_are_made_again() {
    for seed in 0..20 {
        let (simulation, clock) = simulated(2_596_150_000, seed);
        // This makes one segment. Its rate was measured over a few microseconds only, so it is not exact.
        now(clock);
        simulation.idle(5_000_000_000);
        let on_segment = (0..1_000).filter(|_| {
            simulation.idle(1_000);
            let on_segment = clock.try_now().is_some();
            now(clock);
            on_segment
        });
        assert!(on_segment.count() > 900, "seed {seed}");
    }
}

#[test]
fn a_rate_that_flips_between_ntps_extremes_stays_within_a_microsecond() {
    let (simulation, clock) = simulated(2_596_150_000, 5);
    largest_error(simulation, clock, 600_000_000, 50_000);
    for round in 0..200u64 {
        simulation.slew(if round % 2 == 0 { 500.0 } else { -500.0 });
        // In each round the pause begins at another point of a segment, and has another length.
        let error = largest_error(simulation, clock, 1_700_000 + round * 137_911, 9_973);
        assert!(error < 1_000, "{error} ns in round {round}");
    }
}

#[test]
fn a_rate_far_beyond_ntps_is_followed_after_one_segment() {
    let (simulation, clock) = simulated(2_596_150_000, 7);
    largest_error(simulation, clock, 600_000_000, 50_000);
    // This is chrony's fastest slew.
    simulation.slew(-83_333.0);
    largest_error(simulation, clock, 2_000_000_000, 50_000);
    let error = largest_error(simulation, clock, 1_000_000_000, 50_000);
    assert!(error < 1_000, "{error} ns");
    assert!(calibration(clock).steps <= 2);
}

#[test]
fn a_step_forward_is_followed_within_a_segment_and_counted() {
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
fn a_clock_that_is_seldom_asked_makes_a_segment_a_minute_and_not_more() {
    let (simulation, clock) = simulated(2_596_150_000, 23);
    largest_error(simulation, clock, 600_000_000, 50_000);
    let mut segments = 1;
    let mut last_segment = calibration(clock).ticks0;
    for round in 0..600u64 {
        simulation.idle(1_000_000_000 + round * 7);
        let (_, error) = now_with_error(simulation, clock);
        assert!(error.abs() < 100, "{error} ns");
        let segment = calibration(clock).ticks0;
        segments += u32::from(segment != last_segment);
        last_segment = segment;
    }
    assert!((10..=12).contains(&segments), "{segments} segments in ten minutes");
    now(clock);
    now(clock);
    assert_ne!(calibration(clock).ticks0, last_segment, "asked often, it makes a segment");
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
    // A laptop wakes up: the counter starts again from 0, while the real-time clock has gone on.
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
