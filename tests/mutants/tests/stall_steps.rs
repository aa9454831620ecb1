//! A writer is parked at each named step of recording, while other writers go round the ring many times. The parked
//! writer must spoil no event of another writer, neither while it is parked nor at any step that it takes afterwards.
#![allow(dead_code, reason = "shared by several programs")]

extern crate self as eventring_stress;

#[path = "../../alone/stall/mod.rs"]
pub mod stall;
#[path = "parked/parking.rs"]
mod parking;
#[path = "parked/published.rs"]
mod published;

use eventring::step;
use parking::Plan;
use published::Published;
use stall::ring::EventRing;
use stall::seal::Random;
use stall::{Figures, Subject};

/// Returns how many laps the other writers go round the ring while a writer is parked.
fn laps() -> u64 {
    std::env::var("EVENTRING_STALL_LAPS").map_or(40, |told| told.parse().expect("a number of laps"))
}

/// For each step, makes a new ring and parks a writer at this step. Before that, parks other writers at the steps
/// that `first` returns for this step. Returns the figures of all rings together.
fn run_all<S: Subject>(
    make: impl Fn() -> S,
    steps: usize,
    names: &dyn Fn(usize) -> String,
    first: impl Fn(usize) -> Vec<usize>,
) -> Figures {
    // The environment variable can choose a single step: with `EVENTRING_STALL_STEP=Claimed`, only `Claimed` is
    // tested.
    let only = std::env::var("EVENTRING_STALL_STEP").ok().filter(|only| !only.is_empty());
    assert!(only.as_ref().is_none_or(|only| (0..steps).any(|step| names(step) == *only)), "there is no step {only:?}");
    let mut random = Random::from_time();
    let mut all = Figures::default();
    for step in (0..steps).filter(|step| only.as_ref().is_none_or(|only| names(*step) == *only)) {
        let mut steps = first(step);
        steps.push(step);
        let figures = parking::run(&make(), &Plan { steps: &steps, names, laps: laps() }, &mut random);
        println!("parked: {}: {figures} {:?}", names(step), figures.verdict.examples);
        all.add(&figures);
    }
    println!("parked: all: steps_walked={} {all}", all.stalls_inside);
    all
}

fn step_name(step: usize) -> String {
    format!("{:?}", step::ALL[step])
}

#[test]
fn a_writer_that_is_parked_at_any_step_spoils_nothing_then_and_later() {
    step::set_hook(|step| parking::at(step as usize));
    let first = |step: usize| match step::ALL[step] {
        // A writer comes to these two steps if it cannot claim its slot. So first another writer is parked inside a
        // slot that it has claimed.
        step::Step::Refused | step::Step::HolePublished => vec![step::Step::Claimed as usize],
        _ => Vec::new(),
    };
    let figures = run_all(EventRing::new, step::ALL.len(), &step_name, first);
    assert_eq!(figures.wrong(), 0, "{:#?}", figures.verdict.examples);
}

#[test]
fn the_original_c_implementation_is_torn_by_a_writer_that_is_parked() {
    let name = |step: usize| published::STEPS[step].to_owned();
    let figures = run_all(Published::new, published::STEPS.len(), &name, |_| Vec::new());
    assert!(figures.verdict.torn > 0 && figures.vanished > 0, "the harness finds nothing: {figures}");
}
