//! Models of a writer that stops for ever. Before each access of the writer to a shared word, one model stops the
//! writer. The other writers continue, and no reader waits for the stopped writer longer than a lap.

use super::event::{Got, SMALL_BYTES, check_at_rest, count, read, record, ring};
use super::explore::{beside, explore};
use crate::checker;
use crate::ring::memory::ControlWord;
use crate::ring::observe;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

/// Panic payload of a stopping thread.
struct Stopped;

/// Explores a writer that makes `steps` accesses to shared words and then stops for ever. Returns true if, in some
/// execution, the writer ended without stopping.
fn stop_before(steps: u64) -> bool {
    let ended = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&ended);
    explore(&format!("stopped_before_{steps}"), 2, &["whole"], move |tally| {
        let ring = ring(2);
        let stopping = beside(&ring, move |ring| {
            checker::interrupt_before(steps, || resume_unwind(Box::new(Stopped)));
            let end = catch_unwind(AssertUnwindSafe(|| record(ring, ring.cursors().get(0), SMALL_BYTES)));
            checker::cancel_interrupt();
            end.is_ok()
        });
        // These events are more than two laps of the ring. Each of them must find a slot and payload memory.
        for _ in 0..5 {
            let seqno =
                record(&ring, ring.cursors().get(1), SMALL_BYTES).expect("the other writer stopped, we need not");
            assert_eq!(read(ring.memory(), seqno), Got::Whole);
        }
        let ended = stopping.join().unwrap();
        *seen.lock().unwrap() |= ended;
        // The stopped writer may have one seqno, committed or not. Every other seqno must be a recorded event or a
        // seqno that was skipped.
        let last = observe::last_seqno(ring.memory());
        let skipped = count(&ring, ControlWord::RefusedClaims) + count(&ring, ControlWord::OverrunClaims);
        let others = last - 5 - skipped;
        assert!(others == 1 || others == 0 && !ended, "{others} seqnos are unaccounted for");
        for seqno in 1..=last {
            let got = read(ring.memory(), seqno);
            tally.saw(got.name());
            // A seqno before the last lap must not be `NotReady`, because a reader would wait for it.
            assert!(got != Got::NotReady || seqno + 2 > last);
        }
        if ended {
            check_at_rest(&ring, 6, 0);
        } else {
            check_at_rest(&ring, 5, others);
        }
    });
    *ended.lock().unwrap()
}

#[test]
fn a_writer_that_stops_at_any_step_stops_nobody_else() {
    let all_steps = (0..).find(|steps| stop_before(*steps));
    // Checks that the models stopped the writer before each of its accesses. A writer makes at least 25 accesses.
    // Among them are the mark in its payload cursor, the addition that gives the seqno, the claim, the allocation of
    // payload memory, the load of the window's start, two words of payload, eight words of the descriptor, and the
    // end of its reservation.
    assert!(all_steps.is_some_and(|steps| steps >= 25), "{all_steps:?}");
}
