//! Tests of reservations that stay open for long or for ever. Each reservation costs only its own slot and run.

use super::claim::Claim;
use super::commit::DescriptorFields;
use super::heap::HeapMemory;
use super::memory::{ControlWord, RingMemory};
use super::observe::{self, Observation};
use super::payload::chunk::{Chunks, Taker};
use super::payload::cursor::{LeftRun, PayloadCursor};
use super::payload::cursors::PayloadCursors;
use super::writer::RingWriter;
use crate::layout::Geometry;
use crate::sync::Ordering;

const CAPACITY: u64 = 8;
const PAYLOAD: u64 = 1 << 14;
const CHUNK: u64 = 256;

type Ring = RingWriter<HeapMemory>;

fn ring() -> Ring {
    RingWriter::new(HeapMemory::new(Geometry::new(CAPACITY, PAYLOAD, 0).unwrap(), PAYLOAD as usize / 8))
}

fn finish(ring: &Ring, cursor: &PayloadCursor, claim: Claim<'_>, payload: &[u8]) -> u64 {
    let seqno = claim.seqno;
    ring.fill(&claim, 0, payload);
    let payload_bytes = payload.len() as u32;
    ring.commit(
        Some(cursor),
        claim,
        &DescriptorFields { event_type: 2, payload_bytes, epoch_nanos: 0, content_ext: [0; 4] },
    );
    seqno
}

fn record(ring: &Ring, cursor: &PayloadCursor, payload: &[u8]) -> u64 {
    let claim = ring.reserve(Some(cursor), payload.len() as u64);
    assert!(claim.has_payload_memory(), "no payload memory");
    finish(ring, cursor, claim, payload)
}

fn count(ring: &Ring, word: ControlWord) -> u64 {
    ring.memory().control(word).load(Ordering::Relaxed)
}

fn read(ring: &Ring, seqno: u64) -> Vec<u8> {
    let Observation::Event(event) = observe::descriptor(ring.memory(), seqno) else { panic!("{seqno} is gone") };
    let mut out = vec![0; event.payload_size as usize];
    assert!(observe::payload(ring.memory(), &event, &mut out), "payload of {seqno} has expired");
    out
}

#[test]
fn a_leaked_reservation_costs_one_slot_and_one_chunk_even_if_its_thread_goes_on() {
    let ring = ring();
    let cursor = ring.cursors().acquire().unwrap();
    let leaked = ring.reserve(Some(cursor), 64);
    ring.fill(&leaked, 0, &[0xee; 64]);
    let laps = 20;
    for i in 0..laps * PAYLOAD / 64 {
        let payload = [i as u8; 64];
        let seqno = record(&ring, cursor, &payload);
        assert_eq!(read(&ring, seqno), payload);
    }
    let skipped = count(&ring, ControlWord::SkippedChunks);
    assert!(skipped <= laps + 1, "{skipped} chunks skipped, one a lap expected");
    let other = ring.cursors().acquire().unwrap();
    for i in 0..2 * PAYLOAD / 64 {
        record(&ring, other, &[i as u8; 64]);
    }
    // In each pass through the buffer, other writers may skip only two chunks: the chunk of the leaked reservation,
    // and the chunk that the leaking thread was filling.
    assert!(count(&ring, ControlWord::SkippedChunks) <= skipped + 6);
}

#[test]
fn the_last_reservation_in_a_chunk_that_is_no_longer_filled_frees_it() {
    let ring = ring();
    let cursor = ring.cursors().acquire().unwrap();
    let _leaked = ring.reserve(Some(cursor), 64);
    for i in 0..20 * PAYLOAD / CHUNK {
        // `outer` and `also` stay open while their thread stops filling the chunk that holds their payloads.
        let outer = ring.reserve(Some(cursor), 64);
        let also = ring.reserve(Some(cursor), 64);
        for _ in 0..5 {
            record(&ring, cursor, &[1; 64]);
        }
        finish(&ring, cursor, outer, &[i as u8; 64]);
        let seqno = finish(&ring, cursor, also, &[i as u8; 64]);
        assert_eq!(read(&ring, seqno), [i as u8; 64]);
    }
    let laps = count(&ring, ControlWord::NextPayloadByte) / PAYLOAD;
    let skipped = count(&ring, ControlWord::SkippedChunks);
    assert!(skipped <= laps + 1, "{skipped} chunks skipped in {laps} laps");
}

#[test]
fn payload_of_an_open_reservation_is_not_given_away_by_nested_ones() {
    let ring = ring();
    let cursor = ring.cursors().acquire().unwrap();
    let outer = ring.reserve(Some(cursor), 64);
    let offset = outer.payload_offset;
    let mut laps = 0;
    while laps < 3 {
        let seqno = record(&ring, cursor, &[laps as u8; 64]);
        let Observation::Event(event) = observe::descriptor(ring.memory(), seqno) else { panic!("{seqno} is gone") };
        laps = event.payload_buf_offset / PAYLOAD;
        let chunk = |offset: u64| offset % PAYLOAD / CHUNK;
        assert!(laps == 0 || chunk(event.payload_buf_offset) != chunk(offset));
        assert_ne!(event.payload_buf_offset % PAYLOAD, offset);
    }
    finish(&ring, cursor, outer, &[7; 64]);
}

#[test]
fn a_chunk_that_was_taken_from_a_cursor_is_pinned_by_its_new_holder_alone() {
    let geometry = Geometry::new(CAPACITY, PAYLOAD, 0).unwrap();
    let chunks = Chunks::new(&geometry);
    let cursors = PayloadCursors::new();
    let [old, new, other] = [(); 3].map(|()| cursors.acquire().unwrap());
    assert!(chunks.take(0, Taker::Cursor(old), &cursors));
    new.enter();
    assert!(chunks.take(PAYLOAD, Taker::Cursor(new), &cursors));
    // The new holder has two open reservations in the chunk. The old holder has lost the chunk, but does not know it
    // yet. It still counts one open reservation in the chunk, and releases the chunk with this count.
    chunks.release_run(LeftRun { base: PAYLOAD, bytes: CHUNK, open: 2 }, new, false);
    chunks.release_run(LeftRun { base: 0, bytes: CHUNK, open: 1 }, old, false);
    chunks.unpin(PAYLOAD, new);
    assert!(!chunks.take(2 * PAYLOAD, Taker::Cursor(other), &cursors), "one is still open");
    assert!(new.try_leave());
    assert!(chunks.take(3 * PAYLOAD, Taker::Cursor(other), &cursors));
}

#[test]
fn a_large_payload_takes_the_chunk_that_its_own_thread_has_stopped_using() {
    let ring = ring();
    let cursor = ring.cursors().acquire().unwrap();
    record(&ring, cursor, &[1; 64]);
    for i in 0..100u8 {
        let payload = [i; 3000];
        let seqno = record(&ring, cursor, &payload);
        assert_eq!(read(&ring, seqno), payload);
    }
    assert_eq!(count(&ring, ControlWord::SkippedChunks), 0);
    let seqno = record(&ring, cursor, &[9; 64]);
    assert_eq!(read(&ring, seqno), [9; 64]);
}

#[test]
fn a_ring_whose_slots_are_all_open_loses_events_and_does_not_hang() {
    let ring = ring();
    let cursor = ring.cursors().acquire().unwrap();
    let mut open: Vec<Claim<'_>> = (0..CAPACITY).map(|_| ring.reserve(Some(cursor), 16)).collect();
    let lost = ring.reserve(Some(cursor), 16);
    assert_eq!((lost.seqno, lost.has_payload_memory()), (0, false));
    assert_eq!(count(&ring, ControlWord::RefusedClaims), CAPACITY + 1);
    ring.commit(
        Some(cursor),
        lost,
        &DescriptorFields { event_type: 2, payload_bytes: 0, epoch_nanos: 0, content_ext: [0; 4] },
    );
    let lost = ring.reserve_empty();
    assert_eq!((lost.seqno, lost.has_payload_memory()), (0, false));
    // One free slot is enough for the next event.
    finish(&ring, cursor, open.remove(3), &[3; 16]);
    let seqno = record(&ring, cursor, &[4; 16]);
    assert_eq!(read(&ring, seqno), [4; 16]);
    for claim in open {
        finish(&ring, cursor, claim, &[5; 16]);
    }
    assert!(cursor.is_outside());
}

#[test]
fn holes_of_several_stalled_writers_in_one_set_are_all_published() {
    let capacity = 1 << 12;
    let geometry = Geometry::new(capacity, 1 << 16, 0).unwrap();
    let ring = RingWriter::new(HeapMemory::new(geometry, 16));
    let empty = DescriptorFields { event_type: 2, payload_bytes: 0, epoch_nanos: 0, content_ext: [0; 4] };
    let mut stalled = Vec::new();
    for seqno in 1..=capacity {
        let claim = ring.reserve_empty();
        if seqno % 512 == 5 {
            stalled.push(claim);
        } else {
            ring.commit(None, claim, &empty);
        }
    }
    assert_eq!(stalled.len(), 8);
    for lap in 1..4 {
        while observe::last_seqno(ring.memory()) < (lap + 1) * capacity {
            ring.commit(None, ring.reserve_empty(), &empty);
        }
        for claim in &stalled {
            assert_eq!(observe::descriptor(ring.memory(), lap * capacity + claim.seqno), Observation::Hole);
        }
    }
}
