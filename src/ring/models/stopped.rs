//! A writer that stops for ever, before each of its accesses to shared words: the others go on, and readers never wait
//! for it longer than a lap.

use super::event::{Got, SMALL_BYTES, check_at_rest, count, read, record, ring};
use super::explore::explore;
use crate::checker;
use crate::ring::memory::ControlWord;
use crate::ring::observe;
use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

/// What a stopping thread unwinds with.
struct Stopped;

/// Explores a writer that stops before its access number `steps`; true if it came to its end before.
fn stop_before(steps: u64) -> bool {
    let ended = Arc::new(Mutex::new(false));
    let seen = Arc::clone(&ended);
    explore(&format!("stopped_before_{steps}"), 2, &["whole"], move |tally| {
        let ring = ring(2);
        let stopping = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                checker::interrupt_before(steps, || resume_unwind(Box::new(Stopped)));
                let end = catch_unwind(AssertUnwindSafe(|| record(&ring, ring.cursors().get(0), SMALL_BYTES)));
                checker::cancel_interrupt();
                end.is_ok()
            }
        });
        // Two laps and more, all of which find a slot and payload memory.
        for _ in 0..5 {
            let seqno =
                record(&ring, ring.cursors().get(1), SMALL_BYTES).expect("the other writer stopped, we need not");
            assert_eq!(read(ring.memory(), seqno), Got::Whole);
        }
        let ended = stopping.join().unwrap();
        *seen.lock().unwrap() |= ended;
        // It may have one seqno, or have committed it and stopped thereafter; all others are accounted for.
        let last = observe::last_seqno(ring.memory());
        let given_up = count(&ring, ControlWord::RefusedClaims) + count(&ring, ControlWord::LappedClaims);
        let others = last - 5 - given_up;
        assert!(others == 1 || others == 0 && !ended, "{others} seqnos are unaccounted for");
        for seqno in 1..=last {
            let got = read(ring.memory(), seqno);
            tally.saw(got.name());
            // Who reads an older one than the last lap's is not kept waiting.
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
    // PayloadCursor, addition, claim, place, window, two words of payload, eight of the descriptor, leaving: at the
    // least.
    assert!(all_steps.is_some_and(|steps| steps >= 25), "{all_steps:?}");
}
