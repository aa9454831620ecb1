//! Models of payload chunks. No two writers ever write to the same bytes in the same pass through the payload buffer.
//!
//! One thread, the *owner*, holds a chunk. Another thread, the *thief*, allocates the chunk in the next pass through
//! the payload buffer. If the owner still wrote to the chunk then, it would destroy the thief's bytes.

use super::event::{
    CHUNK_BYTES, Got, PAYLOAD_BYTES, Ring, SMALL_BYTES, SentClaim, check_at_rest, count, finish, pass_by, read, record,
    record_empty, ring, ring_with_runs,
};
use super::explore::{Tally, beside, explore};
use crate::ring::memory::ControlWord;
use crate::ring::observe::{self, Observation};
use std::sync::Arc;

/// Records a payload as large as a chunk, as the thief. Meanwhile a second thread allocates `bytes` of payload memory,
/// as other writers would. In some interleavings the second thread does so after the thief has got its seqno and
/// before the thief allocates its chunk. Returns the thief's seqno.
fn thief(ring: &Arc<Ring>, bytes: u64) -> u64 {
    let others = beside(ring, move |ring| pass_by(ring, bytes));
    let seqno = record(ring, None, CHUNK_BYTES).unwrap();
    others.join().unwrap();
    seqno
}

/// Checks the event at the thief's seqno, after all threads have ended. If the thief got the owner's chunk, the event
/// must have the thief's bytes.
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
        let owner = beside(&ring, |ring| record(ring, ring.cursors().get(0), SMALL_BYTES));
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
        let owner = beside(&ring, |ring| [(); 2].map(|()| record(ring, ring.cursors().get(0), SMALL_BYTES)));
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
        let owner = beside(&ring, |ring| record(ring, None, CHUNK_BYTES));
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
        // The first event fills the chunk. The second event needs a new chunk, so it releases the first one. The thread
        // is still inside a reservation then: the reservation of the second event.
        let owner = beside(&ring, |ring| [(); 2].map(|()| record(ring, ring.cursors().get(0), SMALL_BYTES)));
        // If the owner has already taken its second chunk, the thief gets the owner's first chunk, in the second pass
        // through the buffer. Otherwise the thief gets the last chunk of the first pass.
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
        // This reservation takes the other half of the chunk. Events that are recorded while it is open go to the next
        // chunk.
        let outer = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        let owner = beside(&ring, move |ring| {
            let cursor = ring.cursors().get(0);
            let inner = ring.reserve(cursor, SMALL_BYTES);
            // The commit of `outer` frees the first chunk, while `inner` is still open in the second chunk.
            finish(ring, cursor, outer.receive(ring), SMALL_BYTES);
            finish(ring, cursor, inner, SMALL_BYTES);
        });
        // If `inner` already has its payload memory, the thief gets the owner's first chunk, in the second pass
        // through the buffer. Otherwise the thief gets the last chunk of the first pass.
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
        // Two of these events fill the first chunk. The next two chunks are one run; the other three events use three
        // quarters of it.
        (1..=5).for_each(|seqno| assert_eq!(record(&ring, cursor, SMALL_BYTES), Some(seqno)));
        assert_eq!(count(&ring, ControlWord::NextPayloadByte), 3 * CHUNK_BYTES);
        let owner = beside(&ring, |ring| record(ring, ring.cursors().get(0), SMALL_BYTES));
        // The thief gets the second chunk of that run, in the second pass through the buffer.
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
        // Both payloads are in the second chunk of a run of two chunks, and they fill this chunk. Events that are
        // recorded while these reservations are open go to the next run.
        let outer = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        let also = SentClaim::new(ring.reserve(cursor, SMALL_BYTES));
        assert_eq!(outer.payload_offset, 2 * CHUNK_BYTES);
        let owner = beside(&ring, move |ring| {
            let cursor = ring.cursors().get(0);
            let inner = ring.reserve(cursor, SMALL_BYTES);
            finish(ring, cursor, also.receive(ring), SMALL_BYTES);
            // The commit of `outer` frees both chunks of the run that holds its payload, while `inner` is still
            // open in the next run.
            finish(ring, cursor, outer.receive(ring), SMALL_BYTES);
            finish(ring, cursor, inner, SMALL_BYTES);
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
        let ending = beside(&ring, move |ring| ring.give_back(ring.cursors().get(cursor).unwrap()));
        let beginning = beside(&ring, {
            let tally = tally.clone();
            move |ring| {
                let next = ring.cursors().acquire().unwrap();
                tally.saw(if next.id() == cursor { "the same cursor" } else { "another cursor" });
                record(ring, Some(next), SMALL_BYTES)
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
        let ending = beside(&ring, {
            let cursor = cursor.id();
            // This thread also records one more event. The event's seqno may be smaller or larger than the thief's
            // seqno, so the model tries both orders.
            move |ring| {
                [finish(ring, ring.cursors().get(cursor), open.receive(ring), SMALL_BYTES), record_empty(ring).unwrap()]
            }
        });
        let beginning = beside(&ring, |ring| record(ring, ring.cursors().acquire(), SMALL_BYTES));
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert_eq!(ending.join().unwrap()[0], 1);
        assert!(beginning.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 4, 0);
    });
}
