//! Tests of the protocol in one thread, on heap memory. The models test how threads interleave.

use super::commit::DescriptorFields;
use super::heap::HeapMemory;
use super::memory::{ControlWord, RingMemory};
use super::observe::{self, Observation};
use super::payload::chunk::Taker;
use super::writer::RingWriter;
use crate::layout::Geometry;
use crate::sync::Ordering;

const CAPACITY: u64 = 8;
const PAYLOAD: u64 = 1 << 14;

fn ring() -> RingWriter<HeapMemory> {
    RingWriter::new(HeapMemory::new(Geometry::new(CAPACITY, PAYLOAD, 0).unwrap(), PAYLOAD as usize / 8))
}

fn fields(event_type: u16, payload_bytes: u32) -> DescriptorFields {
    DescriptorFields { event_type, payload_bytes, epoch_nanos: 77, content_ext: [1, 2, 3, u64::from(event_type)] }
}

fn record(ring: &RingWriter<HeapMemory>, event_type: u16, payload: &[u8]) -> u64 {
    let cursor = ring.cursors().get(0);
    let (cursor, claim) = if payload.is_empty() {
        (None, ring.reserve_empty())
    } else {
        (cursor, ring.reserve(cursor, payload.len() as u64))
    };
    assert!(claim.has_payload_memory());
    let seqno = claim.seqno;
    ring.fill(&claim, 0, payload);
    ring.commit(cursor, claim, &fields(event_type, payload.len() as u32));
    seqno
}

fn with_cursor() -> RingWriter<HeapMemory> {
    let ring = ring();
    ring.cursors().acquire().unwrap();
    ring
}

fn read(ring: &RingWriter<HeapMemory>, seqno: u64) -> Option<(u16, Option<Vec<u8>>)> {
    match observe::descriptor(ring.memory(), seqno) {
        Observation::Event(d) => {
            let mut out = vec![0; d.payload_size as usize];
            let valid = observe::payload(ring.memory(), &d, &mut out);
            Some((d.event_type, valid.then_some(out)))
        }
        _ => None,
    }
}

#[test]
fn what_was_recorded_is_observed() {
    let ring = with_cursor();
    for (i, size) in [0usize, 1, 15, 16, 17, 100].into_iter().enumerate() {
        let payload = vec![i as u8 + 1; size];
        let seqno = record(&ring, i as u16 + 2, &payload);
        assert_eq!(read(&ring, seqno), Some((i as u16 + 2, Some(payload))));
    }
    assert_eq!(observe::descriptor(ring.memory(), 7), Observation::NotReady);
}

#[test]
fn an_overrun_slot_is_told_from_one_that_is_not_ready() {
    let ring = with_cursor();
    for i in 0..CAPACITY + 3 {
        record(&ring, i as u16, &[]);
    }
    assert_eq!(observe::descriptor(ring.memory(), 3), Observation::Overrun);
    assert!(matches!(observe::descriptor(ring.memory(), 4), Observation::Event(_)));
    assert_eq!(observe::descriptor(ring.memory(), CAPACITY + 4), Observation::NotReady);
    assert_eq!(observe::oldest_seqno(ring.memory(), CAPACITY + 3), 4);
}

#[test]
fn a_stalled_writer_keeps_its_slot_and_the_refused_seqno_is_a_hole() {
    let ring = with_cursor();
    let stalled = ring.reserve_empty();
    assert_eq!(stalled.seqno, 1);
    for _ in 0..CAPACITY - 1 {
        record(&ring, 2, &[]);
    }
    // The stalled writer is inside the slot of the next seqno. So `record` gives that seqno up, and the event gets the
    // seqno after it.
    assert_eq!(record(&ring, 3, &[]), CAPACITY + 2);
    assert_eq!(observe::descriptor(ring.memory(), CAPACITY + 1), Observation::Hole);
    assert_eq!(ring.memory().control(ControlWord::RefusedClaims).load(Ordering::Relaxed), 1);
    // The stalled writer may still commit its event, which belongs to the first lap. But since its slot's next seqno
    // was handed out, readers get `Overrun` for this event.
    ring.commit(None, stalled, &fields(9, 0));
    for _ in 0..CAPACITY - 1 {
        record(&ring, 2, &[]);
    }
    assert_eq!(read(&ring, 2 * CAPACITY + 1), Some((2, Some(vec![]))));
}

#[test]
fn a_stalled_writer_never_spoils_payload_of_a_later_lap() {
    let ring = with_cursor();
    let other = ring.cursors().acquire().unwrap();
    let stalled = ring.reserve(Some(other), 64);
    let mut last = 0;
    for i in 0..3 * PAYLOAD / 128 {
        last = record(&ring, 2, &[i as u8; 128]);
    }
    ring.fill(&stalled, 0, &[0xee; 64]);
    for seqno in last - 3..=last {
        let Some((_, Some(bytes))) = read(&ring, seqno) else { panic!("{seqno} is gone") };
        assert!(bytes.iter().all(|b| *b == bytes[0] && *b != 0xee));
    }
    assert!(ring.memory().control(ControlWord::SkippedChunks).load(Ordering::Relaxed) > 0);
    ring.commit(Some(other), stalled, &fields(3, 64));
}

#[test]
fn an_idle_cursor_gives_its_chunk_away() {
    let ring = with_cursor();
    let idle = ring.cursors().acquire().unwrap();
    let claim = ring.reserve(Some(idle), 64);
    ring.commit(Some(idle), claim, &fields(3, 64));
    for i in 0..3 * PAYLOAD / 128 {
        record(&ring, 2, &[i as u8; 128]);
    }
    assert_eq!(ring.memory().control(ControlWord::SkippedChunks).load(Ordering::Relaxed), 0);
    // The owner continues in a chunk of its own.
    let claim = ring.reserve(Some(idle), 64);
    ring.fill(&claim, 0, &[7; 64]);
    let seqno = claim.seqno;
    ring.commit(Some(idle), claim, &fields(3, 64));
    assert_eq!(read(&ring, seqno), Some((3, Some(vec![7; 64]))));
}

#[test]
fn a_payload_of_many_chunks_is_contiguous_across_the_wrap() {
    let ring = with_cursor();
    let size = ring.memory().geometry().overflow_expire_bytes() as usize - 16;
    for round in 1..20u8 {
        let payload: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(round)).collect();
        let seqno = record(&ring, 2, &payload);
        assert_eq!(read(&ring, seqno), Some((2, Some(payload))), "round {round}");
        record(&ring, 2, &[round; 40]);
    }
}

#[test]
fn the_window_passes_exactly_what_is_overwritten_and_never_moves_back() {
    let ring = with_cursor();
    let window = || ring.memory().control(ControlWord::BufferWindowStart).load(Ordering::Relaxed);
    let mut before = 0;
    for _ in 0..1000 {
        record(&ring, 2, &[1; 500]);
        let next = ring.memory().control(ControlWord::NextPayloadByte).load(Ordering::Relaxed);
        let incr = ring.memory().geometry().window_incr_bytes();
        assert!(window() >= before && window() % incr == 0);
        assert!(next.saturating_sub(PAYLOAD - incr) <= window() && window() < next);
        before = window();
    }
    // A stalled writer may call this function late, with a smaller end. That does not move the window back.
    super::payload::window::move_past(ring.memory(), 64);
    assert_eq!(window(), before);
}

#[test]
fn a_chunk_allocated_a_lap_ago_cannot_be_taken_any_more() {
    let geometry = Geometry::new(CAPACITY, PAYLOAD, 0).unwrap();
    let chunks = super::payload::chunk::Chunks::new(&geometry);
    let cursors = super::payload::cursors::PayloadCursors::new();
    assert!(chunks.take(PAYLOAD, Taker::OneOff(None), &cursors));
    chunks.free(PAYLOAD, Taker::OneOff(None));
    assert!(!chunks.take(0, Taker::OneOff(None), &cursors));
    assert!(chunks.take(2 * PAYLOAD, Taker::OneOff(None), &cursors));
    assert!(!chunks.take(3 * PAYLOAD, Taker::OneOff(None), &cursors));
}
