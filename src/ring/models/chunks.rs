//! Models of payload chunks: no two writers ever write to the same bytes in the same pass through the buffer.
//!
//! One thread, the *owner*, holds a chunk. Another thread, the *thief*, allocates the same chunk one pass through the
//! payload buffer later. From then on only the thief's bytes are valid, and an owner that still wrote to the chunk
//! would destroy them.

use super::event::{
    CHUNK_BYTES, Got, PAYLOAD_BYTES, Ring, SMALL_BYTES, SentClaim, check_at_rest, count, finish, pass_by, read, record,
    record_empty, ring, ring_with_runs,
};
use super::explore::{Tally, explore};
use crate::ring::memory::ControlWord;
use crate::ring::observe::{self, Observation};
use loom::thread;
use std::sync::Arc;

/// Records a payload as large as a chunk, as the thief. Meanwhile a second thread allocates `bytes` of payload memory,
/// as other writers would. In some interleavings this allocation comes between the thief's seqno and the thief's chunk.
/// Returns the thief's seqno.
fn thief(ring: &Arc<Ring>, bytes: u64) -> u64 {
    let others = thread::spawn({
        let ring = Arc::clone(ring);
        move || pass_by(&ring, bytes)
    });
    let seqno = record(ring, None, CHUNK_BYTES).unwrap();
    others.join().unwrap();
    seqno
}

/// Checks, after all threads have ended, that the event at the thief's seqno has the thief's bytes.
fn check_theft(ring: &Ring, seqno: u64, tally: &Tally) {
    check_theft_at(ring, seqno, PAYLOAD_BYTES, tally);
}

/// Checks as [`check_theft`] does, for the chunk at `target`.
fn check_theft_at(ring: &Ring, seqno: u64, target: u64, tally: &Tally) {
    let got = read(ring.memory(), seqno);
    let Observation::Event(event) = observe::descriptor(ring.memory(), seqno) else { panic!("{seqno} is {got:?}") };
    if event.payload_buf_offset == target {
        assert!(got == Got::Whole, "the thief's payload is {got:?}");
        tally.saw("taken");
    } else if count(ring, ControlWord::SkippedChunks) > 0 {
        tally.saw("left alone");
    } else {
        tally.saw("elsewhere");
    }
}

#[test]
fn an_idle_cursors_chunk_is_taken_or_used_again_but_not_both() {
    explore("steal", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        // The payload cursor's chunk has room for one more event.
        assert_eq!(record(&ring, ring.cursors().get(0), SMALL_BYTES), Some(1));
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || record(&ring, ring.cursors().get(0), SMALL_BYTES)
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert!(owner.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_chunk_that_is_being_taken_by_its_cursor_is_not_taken_from_it() {
    explore("steal_early", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || [(); 2].map(|()| record(&ring, ring.cursors().get(0), SMALL_BYTES))
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert!(owner.join().unwrap().iter().all(Option::is_some));
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_chunk_that_was_freed_comes_with_what_was_written_to_it() {
    explore("free", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || record(&ring, None, CHUNK_BYTES)
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert!(owner.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 2, 0);
    });
}

#[test]
fn a_chunk_that_a_cursor_has_used_up_comes_with_what_was_written_to_it() {
    explore("release_run", 3, &["taken"], |tally| {
        let ring = ring(4);
        assert_eq!(record(&ring, ring.cursors().get(0), SMALL_BYTES), Some(1));
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            // The first event fills the chunk. The second event releases it, and its writer stays inside until its end.
            move || [(); 2].map(|()| record(&ring, ring.cursors().get(0), SMALL_BYTES))
        });
        // If the owner has taken its second chunk already, the thief gets the owner's first chunk, one pass later.
        // Otherwise the thief gets the last chunk of the present pass.
        let seqno = thief(&ring, PAYLOAD_BYTES - 2 * CHUNK_BYTES);
        assert!(owner.join().unwrap().iter().all(Option::is_some));
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 4, 0);
    });
}

#[test]
fn a_chunk_is_kept_while_a_reservation_in_it_is_open() {
    explore("nested", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        let cursor = ring.cursors().get(0);
        assert_eq!(record(&ring, cursor, SMALL_BYTES), Some(1));
        // The reservation takes the other half of the chunk. Events that are recorded while it is open go to the next
        // chunk.
        let outer = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let cursor = ring.cursors().get(0);
                let inner = ring.reserve(cursor, SMALL_BYTES);
                // Frees the first chunk, while the inner reservation is still open in the second.
                finish(&ring, cursor, outer.receive(&ring), SMALL_BYTES);
                finish(&ring, cursor, inner, SMALL_BYTES);
            }
        });
        // If the inner reservation has its payload memory already, the thief gets the owner's first chunk, one pass
        // later. Otherwise the thief gets the chunk before it in memory.
        let seqno = thief(&ring, PAYLOAD_BYTES - 2 * CHUNK_BYTES);
        owner.join().unwrap();
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 4, 0);
    });
}

#[test]
fn the_second_chunk_of_a_run_is_taken_or_used_again_but_not_both() {
    explore("steal_from_a_run", 4, &["taken", "left alone"], |tally| {
        let ring = ring_with_runs(8, 2);
        let cursor = ring.cursors().get(0);
        // The first chunk is used up. The two chunks after it are one run, of which three quarters are used up.
        (1..=5).for_each(|seqno| assert_eq!(record(&ring, cursor, SMALL_BYTES), Some(seqno)));
        assert_eq!(count(&ring, ControlWord::NextPayloadByte), 3 * CHUNK_BYTES);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || record(&ring, ring.cursors().get(0), SMALL_BYTES)
        });
        // The thief gets the run's second chunk, one pass later.
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert!(owner.join().unwrap().is_some());
        check_theft_at(&ring, seqno, PAYLOAD_BYTES + 2 * CHUNK_BYTES, tally);
        check_at_rest(&ring, 7, 0);
    });
}

#[test]
fn a_run_of_several_chunks_is_kept_while_a_reservation_in_it_is_open() {
    explore("nested_in_a_run", 3, &["taken", "left alone"], |tally| {
        let ring = ring_with_runs(16, 2);
        let cursor = ring.cursors().get(0);
        (1..=4).for_each(|seqno| assert_eq!(record(&ring, cursor, SMALL_BYTES), Some(seqno)));
        // The payload is in the second chunk of a run of two. Events recorded during these reservations go to the next
        // run.
        let outer = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        let also = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        assert_eq!(outer.payload_offset, 2 * CHUNK_BYTES);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let cursor = ring.cursors().get(0);
                let inner = ring.reserve(cursor, SMALL_BYTES);
                finish(&ring, cursor, also.receive(&ring), SMALL_BYTES);
                // Frees both chunks of the first run, while the inner reservation is still open in the next.
                finish(&ring, cursor, outer.receive(&ring), SMALL_BYTES);
                finish(&ring, cursor, inner, SMALL_BYTES);
            }
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - 3 * CHUNK_BYTES);
        owner.join().unwrap();
        check_theft_at(&ring, seqno, PAYLOAD_BYTES + 2 * CHUNK_BYTES, tally);
        check_at_rest(&ring, 8, 0);
    });
}

#[test]
fn a_cursor_that_is_handed_on_takes_its_run_along() {
    explore("hand_over", 3, &["the same cursor", "another cursor", "taken", "left alone"], |tally| {
        let ring = ring(8);
        let cursor = ring.cursors().acquire().unwrap().id();
        // The payload cursor's chunk has room for one more event.
        assert_eq!(record(&ring, ring.cursors().get(cursor), SMALL_BYTES), Some(1));
        let ending = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.give_back(ring.cursors().get(cursor).unwrap())
        });
        let beginning = thread::spawn({
            let (ring, tally) = (Arc::clone(&ring), tally.clone());
            move || {
                let next = ring.cursors().acquire().unwrap();
                tally.saw(if next.id() == cursor { "the same cursor" } else { "another cursor" });
                record(&ring, Some(next), SMALL_BYTES)
            }
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        ending.join().unwrap();
        assert!(beginning.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_cursor_with_an_open_reservation_is_not_handed_on() {
    explore("open_hand_over", 3, &["taken", "left alone"], |tally| {
        let ring = ring(8);
        let cursor = ring.cursors().acquire().unwrap();
        let open = SentClaim::new(ring.reserve(Some(cursor), SMALL_BYTES));
        ring.give_back(cursor);
        let ending = thread::spawn({
            let (ring, cursor) = (Arc::clone(&ring), cursor.id());
            // One more event. Its seqno comes before or after the thief's, so that all orders of the two are tried.
            move || {
                [
                    finish(&ring, ring.cursors().get(cursor), open.receive(&ring), SMALL_BYTES),
                    record_empty(&ring).unwrap(),
                ]
            }
        });
        let beginning = thread::spawn({
            let ring = Arc::clone(&ring);
            move || record(&ring, ring.cursors().acquire(), SMALL_BYTES)
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert_eq!(ending.join().unwrap()[0], 1);
        assert!(beginning.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 4, 0);
    });
}
