//! Events that the models record and check. In such an event, every word is a function of the event's seqno.

use crate::layout::limits::{MIN_CHUNK_BYTES, MIN_PAYLOAD_BUF_BYTES};
use crate::layout::{Descriptor, Geometry};
use crate::ring::claim::{Claim, PayloadMemory};
use crate::ring::commit::DescriptorFields;
use crate::ring::heap::HeapMemory;
use crate::ring::memory::{ControlWord, RingMemory};
use crate::ring::observe::{self, Observation};
use crate::ring::payload::cursor::PayloadCursor;
use crate::ring::writer::RingWriter;
use crate::sync::Ordering;
use std::sync::Arc;

/// Size of the smallest payload buffer in bytes. The buffer has 16 chunks of 32 bytes. Its window has 448 bytes and
/// moves in steps of 64 bytes.
pub(super) const PAYLOAD_BYTES: u64 = MIN_PAYLOAD_BUF_BYTES;
pub(super) const CHUNK_BYTES: u64 = MIN_CHUNK_BYTES;
/// Largest payload that goes into a payload cursor's chunk.
pub(super) const SMALL_BYTES: u64 = CHUNK_BYTES / 2;

pub(super) type Ring<M = HeapMemory> = RingWriter<M>;

/// Returns memory for a ring of `capacity` descriptors.
pub(super) fn memory(capacity: u64) -> HeapMemory {
    let geometry = Geometry::new(capacity, PAYLOAD_BYTES, 0).unwrap();
    assert_eq!(geometry.chunk_bytes(), CHUNK_BYTES);
    HeapMemory::new(geometry, PAYLOAD_BYTES as usize / 8)
}

/// Returns a ring of `capacity` descriptors.
pub(super) fn ring(capacity: u64) -> Arc<Ring> {
    Arc::new(RingWriter::new(memory(capacity)))
}

/// Returns a ring of `capacity` descriptors. After their first run of chunks, its payload cursors take runs of up to
/// `chunks` chunks.
pub(super) fn ring_with_runs(capacity: u64, chunks: u64) -> Arc<Ring> {
    let mut ring = RingWriter::new(memory(capacity));
    if chunks > 1 {
        ring.run_sizes.run_bytes_max = 2 * chunks * CHUNK_BYTES;
        ring.run_sizes.all_runs_bytes = chunks * CHUNK_BYTES;
    }
    Arc::new(ring)
}

/// Returns a ring of 2 descriptors. Both already hold an event without payload.
pub(super) fn full_ring() -> Arc<Ring> {
    let ring = ring(2);
    assert_eq!([(); 2].map(|()| record_empty(&ring)), [Some(1), Some(2)]);
    ring
}

/// Allocates `bytes` bytes of payload memory and does not use them, as if other writers had recorded that many bytes.
pub(super) fn pass_by(ring: &Ring, bytes: u64) {
    ring.memory().control(ControlWord::NextPayloadByte).fetch_add(bytes, Ordering::Relaxed);
}

/// Returns the word that the event `seqno` has at position `place`. Every other position, and every other event, has
/// another word.
pub(super) fn bound_word(seqno: u64, place: u64) -> u64 {
    seqno << 32 | place << 8 | 0xa5
}

/// Returns the payload that a model gives to the event `seqno`. The payload has `payload_bytes` bytes, a multiple of
/// 8.
pub(super) fn bound_payload(seqno: u64, payload_bytes: u64) -> Vec<u8> {
    (0..payload_bytes / 8).flat_map(|index| bound_word(seqno, index).to_le_bytes()).collect()
}

fn bound_fields(seqno: u64, payload_bytes: u64, payload_offset: u64) -> DescriptorFields {
    DescriptorFields {
        event_type: seqno as u16 + 2,
        payload_bytes: payload_bytes as u32,
        epoch_nanos: bound_word(seqno, 1000),
        content_ext: [
            bound_word(seqno, 1001),
            bound_word(seqno, payload_bytes),
            bound_word(seqno, payload_offset),
            bound_word(seqno, 1004),
        ],
    }
}

/// Records an event without payload. Returns its seqno, or `None` if the event was lost.
pub(super) fn record_empty<M: RingMemory>(ring: &Ring<M>) -> Option<u64> {
    let claim = ring.reserve_empty();
    (claim.seqno != 0).then(|| finish(ring, None, claim, 0))
}

/// Records an event with `payload_bytes` bytes of payload. If there is no memory for the payload, the event has no
/// payload, as with `Recorder`. Returns the event's seqno, or `None` if the event was lost.
pub(super) fn record<M: RingMemory>(ring: &Ring<M>, cursor: Option<&PayloadCursor>, payload_bytes: u64) -> Option<u64> {
    let claim = ring.reserve(cursor, payload_bytes);
    let seqno = claim.seqno;
    let payload_bytes = if claim.has_payload_memory() { payload_bytes } else { 0 };
    finish(ring, cursor, claim, payload_bytes);
    (seqno != 0).then_some(seqno)
}

/// A claim without its reference to the ring, so that a thread can send it to another thread. (A thread of a model may
/// not borrow from the thread that spawns it.)
pub(super) struct SentClaim {
    seqno: u64,
    pub(super) payload_offset: u64,
    memory: PayloadMemory,
}

impl SentClaim {
    /// Takes the claim apart, so that it can be sent.
    pub(super) fn new(claim: Claim<'_>) -> Self {
        Self { seqno: claim.seqno, payload_offset: claim.payload_offset, memory: claim.memory }
    }

    /// Puts the claim together again, in the receiving thread.
    pub(super) fn receive(self, ring: &Ring) -> Claim<'_> {
        let Self { seqno, payload_offset, memory } = self;
        match ring.claimed_slot(seqno) {
            Some(slot) => slot.with_payload(payload_offset, memory),
            None => Claim::lost(),
        }
    }
}

/// Fills the claim's payload with the words of its seqno, and commits the claim.
pub(super) fn finish<M: RingMemory>(
    ring: &Ring<M>,
    cursor: Option<&PayloadCursor>,
    claim: Claim<'_>,
    payload_bytes: u64,
) -> u64 {
    #[cfg(shuttle)]
    check_window(ring, claim.payload_offset, payload_bytes);
    ring.fill(&claim, 0, &bound_payload(claim.seqno, payload_bytes));
    commit(ring, cursor, claim, payload_bytes)
}

/// Commits a claim that has been filled.
pub(super) fn commit<M: RingMemory>(
    ring: &Ring<M>,
    cursor: Option<&PayloadCursor>,
    claim: Claim<'_>,
    payload_bytes: u64,
) -> u64 {
    let seqno = claim.seqno;
    let fields = bound_fields(seqno, payload_bytes, claim.payload_offset);
    ring.commit(cursor, claim, &fields);
    seqno
}

/// Outcome when a reader reads a seqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// The event with its payload, or an event without payload.
    Whole,
    /// An event whose payload has expired.
    Expired,
    /// A seqno that is not committed yet.
    NotReady,
    /// A seqno whose event has been overwritten.
    Overrun,
    /// A seqno that will never have an event.
    Hole,
}

impl Got {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Expired => "expired",
            Self::NotReady => "not ready",
            Self::Overrun => "overrun",
            Self::Hole => "hole",
        }
    }
}

/// Reads `seqno` as a reader does.
///
/// # Panics
/// If the event that the reader gets is not exactly the event that was recorded as `seqno`.
pub(super) fn read<M: RingMemory>(memory: &M, seqno: u64) -> Got {
    match observe::descriptor(memory, seqno) {
        Observation::Event(event) => {
            check_descriptor(seqno, &event);
            let mut out = vec![0; event.payload_size as usize];
            if event.payload_size > 0 && !observe::payload(memory, &event, &mut out) {
                return Got::Expired;
            }
            assert_eq!(out, bound_payload(seqno, u64::from(event.payload_size)), "torn payload of {seqno}");
            Got::Whole
        }
        Observation::NotReady => Got::NotReady,
        Observation::Overrun => Got::Overrun,
        Observation::Hole => Got::Hole,
    }
}

/// # Panics
/// If the descriptor is not exactly what was recorded as `seqno`.
pub(super) fn check_descriptor(seqno: u64, event: &Descriptor) {
    let fields = bound_fields(seqno, u64::from(event.payload_size), event.payload_buf_offset);
    let expected = Descriptor {
        seqno,
        event_type: fields.event_type,
        payload_size: fields.payload_bytes,
        record_epoch_nanos: fields.epoch_nanos,
        payload_buf_offset: event.payload_buf_offset,
        content_ext: fields.content_ext,
    };
    assert_eq!(*event, expected, "torn descriptor of {seqno}");
}

/// Checks that the start of the buffer window is past the old bytes that a new payload overwrites. Only random models
/// check this. Under loom, each additional load multiplies the interleavings to explore; there the module `window` has
/// its own models for this.
#[cfg(shuttle)]
fn check_window<M: RingMemory>(ring: &Ring<M>, payload_offset: u64, payload_bytes: u64) {
    if payload_bytes == 0 {
        return;
    }
    let window = count(ring, ControlWord::BufferWindowStart);
    let overwritten = (payload_offset + payload_bytes).saturating_sub(PAYLOAD_BYTES);
    assert!(overwritten <= window, "the window is at {window}, and {overwritten} is being overwritten");
    let next = count(ring, ControlWord::NextPayloadByte);
    assert!(window == 0 || window < next, "the window is at {window}, beyond {next}");
}

/// Returns the value of one of the ring's control words.
pub(super) fn count<M: RingMemory>(ring: &Ring<M>, word: ControlWord) -> u64 {
    ring.memory().control(word).load(Ordering::Relaxed)
}

/// Checks a ring after all writers have ended. `recorded` is the number of committed events, `open` the number of
/// reservations that are still open. In the last lap, every seqno without an open reservation must be an event or a
/// hole. The ring's counters must be exact.
pub(super) fn check_at_rest<M: RingMemory>(ring: &Ring<M>, recorded: u64, open: u64) {
    let last = observe::last_seqno(ring.memory());
    let mut waiting = 0;
    for seqno in observe::oldest_seqno(ring.memory(), last)..=last {
        let got = read(ring.memory(), seqno);
        waiting += u64::from(got == Got::NotReady);
        assert!(got != Got::Overrun, "{seqno} of {last} is overrun at rest");
    }
    assert!(waiting <= open, "{waiting} of the last seqnos have no event, {open} reservations are open");
    let skipped = count(ring, ControlWord::RefusedClaims) + count(ring, ControlWord::OverrunClaims);
    assert_eq!(last, recorded + skipped + open, "seqnos handed out; recorded, skipped and open");
}
