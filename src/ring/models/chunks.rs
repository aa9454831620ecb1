//! Payload chunks: no two writers ever write to the same bytes in the same turn of the buffer.
//!
//! The thief of these models allocates the same chunk as the owner, a turn of the payload buffer later. The bytes that are
//! then valid are the thief's; an owner that still wrote would spoil them.

use super::event::{
    CHUNK_BYTES, Got, PAYLOAD_BYTES, Ring, SMALL_BYTES, check_at_rest, count, finish, pass_by, read, record, ring,
};
use super::explore::{Tally, explore};
use crate::ring::memory::ControlWord;
use crate::ring::observe::{self, Observation};
use loom::thread;
use std::sync::Arc;

/// Records a payload as large as a chunk, `bytes` further on, while other writers allocate those. (A thread of their own:
/// they do so between the thief's seqno and its chunk.)
fn thief(ring: &Arc<Ring>, bytes: u64) -> u64 {
    let others = thread::spawn({
        let ring = Arc::clone(ring);
        move || pass_by(&ring, bytes)
    });
    let seqno = record(ring, None, CHUNK_BYTES).unwrap();
    others.join().unwrap();
    seqno
}

/// Checks the thief's event when all is done.
fn check_theft(ring: &Ring, seqno: u64, tally: &Tally) {
    let got = read(ring.memory(), seqno);
    let Observation::Event(event) = observe::descriptor(ring.memory(), seqno) else { panic!("{seqno} is {got:?}") };
    if event.payload_buf_offset == PAYLOAD_BYTES {
        assert!(got == Got::Whole, "the thief's payload is {got:?}");
        tally.saw("taken");
    } else if count(ring, ControlWord::SkippedChunks) > 0 {
        tally.saw("left alone");
    } else {
        tally.saw("elsewhere");
    }
}

#[test]
fn an_idle_lanes_chunk_is_taken_or_used_again_but_not_both() {
    explore("steal", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        // The lane's chunk has room for one more.
        assert_eq!(record(&ring, ring.lanes().get(0), SMALL_BYTES), Some(1));
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || record(&ring, ring.lanes().get(0), SMALL_BYTES)
        });
        let seqno = thief(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        assert!(owner.join().unwrap().is_some());
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_chunk_that_is_being_taken_by_its_lane_is_not_taken_from_it() {
    explore("steal_early", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || [(); 2].map(|()| record(&ring, ring.lanes().get(0), SMALL_BYTES))
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
fn a_chunk_is_kept_while_a_reservation_in_it_is_open() {
    explore("nested", 4, &["taken", "left alone"], |tally| {
        let ring = ring(4);
        let lane = ring.lanes().get(0);
        assert_eq!(record(&ring, lane, SMALL_BYTES), Some(1));
        // The other half of the chunk; what is recorded inside of it goes to the next chunk.
        let outer = ring.reserve(lane, SMALL_BYTES);
        let owner = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let lane = ring.lanes().get(0);
                let inner = ring.reserve(lane, SMALL_BYTES);
                // Frees the first chunk, while the inner one is still open in the second.
                finish(&ring, lane, outer, SMALL_BYTES);
                finish(&ring, lane, inner, SMALL_BYTES);
            }
        });
        // The first chunk's next turn, if the inner one has its place already; else the one before.
        let seqno = thief(&ring, PAYLOAD_BYTES - 2 * CHUNK_BYTES);
        owner.join().unwrap();
        check_theft(&ring, seqno, tally);
        check_at_rest(&ring, 4, 0);
    });
}
