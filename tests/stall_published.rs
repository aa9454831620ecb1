//! The positive control of stall injection: the published algorithm in the same harness.

#![cfg(not(any(loom, shuttle)))]

mod stall;

use stall::{published::Published, run, seconds};
use std::time::Duration;

#[test]
fn the_published_algorithm_shows_events_that_nobody_wrote() {
    // Chance decides when; it has some time.
    for round in 1..=20 {
        let figures = run(&Published::new(), 4, seconds(3.0).min(Duration::from_secs(5)));
        println!("published, round {round}: {figures}");
        if figures.verdict.torn + figures.verdict.misattributed > 0 {
            println!("{:#?}", figures.verdict.examples);
            return;
        }
    }
    panic!("the harness found nothing wrong with an algorithm that is known to be wrong");
}
