//! The control of stall injection: the published algorithm in the same harness.

#![cfg(not(any(loom, shuttle)))]

mod stall;

use stall::{published::Published, run_rounds, seconds};
use std::time::Duration;

#[test]
fn the_published_algorithm_shows_events_that_nobody_wrote() {
    // The published algorithm has the faults, but chance decides when they show, so there are several rounds. A round
    // in which the only fault is a vanished event is repeated.
    for _ in 0..30 {
        let figures = run_rounds(Published::new, 4, seconds(3.0).min(Duration::from_secs(5)));
        println!("published: {figures} {:#?}", figures.verdict.examples);
        if figures.verdict.torn + figures.verdict.misattributed > 0 {
            return;
        }
    }
    panic!("the harness found nothing wrong with an algorithm that is known to be wrong");
}
