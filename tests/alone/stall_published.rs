//! The control for the tests that stall writers: the same harness runs the algorithm of the original C
//! implementation.

use crate::stall::{published::Published, run_rounds, seconds};
use eventring_stress::alone;
use std::time::Duration;

#[test]
fn the_original_c_implementation_shows_events_that_nobody_wrote() {
    alone!();
    // The algorithm has known faults, but chance decides whether a fault shows in a round. So the test runs several
    // rounds, until an event is torn or has the payload of another one. A vanished event alone is not enough.
    for _ in 0..30 {
        let figures = run_rounds(Published::new, 4, seconds(3.0).min(Duration::from_secs(5)));
        println!("published: {figures} {:#?}", figures.verdict.examples);
        if figures.verdict.torn + figures.verdict.misattributed > 0 {
            return;
        }
    }
    panic!("the harness found nothing wrong with an algorithm that is known to be wrong");
}
