//! A writer that is stopped anywhere, for any time, does not spoil the events of other writers.

use crate::stall::{ring::EventRing, run_rounds, seconds};
use eventring_stress::alone;

/// Stalls writers while others record. For a longer run: `EVENTRING_STALL_SECONDS=60 cargo test --release
/// --test alone stall_ring -- --nocapture`.
#[test]
fn no_event_is_torn_misattributed_or_unaccounted_while_writers_are_stalled() {
    alone!();
    let figures = run_rounds(EventRing::new, 4, seconds(3.0));
    println!("eventring: {figures}");
    assert_eq!(
        (figures.verdict.wrong(), figures.vanished, figures.unaccounted),
        (0, 0, 0),
        "{:#?}",
        figures.verdict.examples
    );
    // These numbers show that the run has tested something: writers were stopped while they recorded, and other
    // writers went on.
    assert!(figures.stalls_inside >= 10 && figures.laps >= 5 && figures.threads >= 12, "{figures}");
}
