//! Models of the buffer window. A reader never accepts a payload that is being overwritten.

use super::event::{
    CHUNK_BYTES, Got, PAYLOAD_BYTES, bound_payload, check_at_rest, commit, count, pass_by, read, record, ring,
};
use super::explore::{beside, explore};
use crate::ring::memory::ControlWord;

#[test]
fn a_payload_that_is_overwritten_is_whole_or_expired() {
    explore("overwritten_payload", 4, &["whole", "expired"], |tally| {
        let ring = ring(4);
        // The payload of event 1 is in the first chunk. The writer's payload will overwrite that chunk.
        assert_eq!(record(&ring, None, CHUNK_BYTES), Some(1));
        pass_by(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        let writer = beside(&ring, |ring| record(ring, None, CHUNK_BYTES));
        tally.saw(read(ring.memory(), 1).name());
        assert_eq!(writer.join().unwrap(), Some(2));
        assert_eq!([1, 2].map(|seqno| read(ring.memory(), seqno)), [Got::Expired, Got::Whole]);
    });
}

#[test]
fn a_window_that_another_writer_has_moved_protects_as_well() {
    explore("window_moved_by_another", 2, &["whole", "expired"], |tally| {
        let ring = ring(4);
        assert_eq!(record(&ring, None, CHUNK_BYTES), Some(1));
        pass_by(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        // One writer overwrites the first chunk, which holds the payload of event 1. The other writer may move the
        // window first. That move is already far enough for both writers.
        let writers = [(); 2].map(|()| beside(&ring, |ring| record(ring, None, CHUNK_BYTES)));
        tally.saw(read(ring.memory(), 1).name());
        for writer in writers {
            assert!(writer.join().unwrap().is_some());
        }
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_large_and_a_small_writer_cannot_lose_each_others_window_move() {
    const LARGE_BYTES: u64 = 8 * CHUNK_BYTES;
    explore("window_race", 3, &["whole", "expired"], |tally| {
        let ring = ring(4);
        // This event's payload is the fifth chunk.
        pass_by(&ring, 4 * CHUNK_BYTES);
        assert_eq!(record(&ring, None, CHUNK_BYTES), Some(1));
        // After this allocation, every further payload moves the window. If the large payload is allocated first, it
        // overwrites the first six chunks. If the small payload is allocated first, it moves the window by one step,
        // and the large payload overwrites the first seven chunks.
        pass_by(&ring, PAYLOAD_BYTES - 7 * CHUNK_BYTES);
        let large = beside(&ring, |ring| {
            let claim = ring.reserve(None, LARGE_BYTES);
            // To keep the model small, we fill only the part of the payload that falls on the fifth chunk.
            let at = PAYLOAD_BYTES + 4 * CHUNK_BYTES - claim.payload_offset;
            ring.fill(&claim, at, &bound_payload(claim.seqno, CHUNK_BYTES));
            commit(ring, None, claim, LARGE_BYTES);
        });
        let small = beside(&ring, |ring| record(ring, None, CHUNK_BYTES));
        tally.saw(read(ring.memory(), 1).name());
        large.join().unwrap();
        assert!(small.join().unwrap().is_some());
        assert_eq!(read(ring.memory(), 1), Got::Expired);
    });
}

#[test]
fn a_writer_that_comes_late_neither_moves_the_window_back_nor_takes_a_chunk_that_has_gone_on() {
    explore("late_writer", 3, &["whole", "late"], |tally| {
        let ring = ring(4);
        let slow = beside(&ring, |ring| record(ring, None, CHUNK_BYTES));
        // If the thread `slow` has already allocated its chunk (the first), the payload below gets the same chunk, in
        // the second pass through the buffer.
        pass_by(&ring, PAYLOAD_BYTES - CHUNK_BYTES);
        let seqno = record(&ring, None, CHUNK_BYTES).unwrap();
        let moved = count(&ring, ControlWord::BufferWindowStart);
        tally.saw(read(ring.memory(), seqno).name());
        assert!(slow.join().unwrap().is_some());
        if count(&ring, ControlWord::SkippedChunks) > 0 {
            tally.saw("late");
        }
        let window = count(&ring, ControlWord::BufferWindowStart);
        assert!(moved <= window && window < count(&ring, ControlWord::NextPayloadByte), "the window is at {window}");
        assert_eq!(read(ring.memory(), seqno), Got::Whole);
    });
}
