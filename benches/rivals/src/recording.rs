//! The cost of recording with one thread, compared with the original C algorithm.

use crate::Medians;
use crate::interleave::{Cases, median};
use crate::reference::ReferenceRing;
use eventring::global::{GlobalRecorder, RecordsTo};
use eventring::record;
use eventring::recorder::{ContentDescription, Recorder};
use eventring::{EventPayload, EventType};
use std::hint::black_box;

const EXT: [u64; 4] = [1, 2, 3, 4];

#[derive(EventPayload)]
struct Order {
    id: u64,
    price: u64,
}

#[derive(EventType, Clone, Copy)]
#[event(content_type = 301, name = "ORDERS", recorder = OFF)]
#[repr(u16)]
enum OrderEvent {
    #[event(payload = Order)]
    Placed = 2,
}

static OFF: GlobalRecorder = GlobalRecorder::new("off");

/// The shifts of the ring whose results are in the documentation: 2^20 events and 2^29 bytes (512 MiB) of payloads.
pub const LARGE: (u32, u32) = (20, 29);

/// The default shifts of a shard.
pub const SHARD: (u32, u32) = (17, 23);

/// Makes a recorder that has recorded nothing yet.
fn fresh((descriptor_shift, payload_shift): (u32, u32)) -> Recorder {
    let description = ContentDescription::new(300, "BENCH");
    let builder = Recorder::builder(description).anonymous().compact(true);
    builder.shifts(descriptor_shift, payload_shift).build().expect("memory for a ring")
}

/// Goes once round a ring with these shifts: writes to every descriptor and to the whole payload buffer.
fn go_round((descriptor_shift, payload_shift): (u32, u32), record: impl Fn(&[u8])) {
    let payload = vec![0; 1 << (payload_shift - descriptor_shift)];
    (0..1u64 << descriptor_shift).for_each(|_| record(&payload));
}

/// Makes a recorder with one ring of this size. Every page of the ring has been used once.
pub fn warm_recorder(shifts: (u32, u32)) -> Recorder {
    let recorder = fresh(shifts);
    go_round(shifts, |payload| {
        recorder.record(2, EXT, payload);
    });
    recorder
}

/// Makes a ring of this size that uses the algorithm of the original C implementation. Every page has been used once.
pub fn warm_reference(shifts: (u32, u32)) -> ReferenceRing {
    let reference = ReferenceRing::new(shifts.0, shifts.1);
    go_round(shifts, |payload| {
        reference.record(2, EXT, payload);
    });
    reference
}

pub fn measure(rounds: usize) -> Medians {
    assert!(OrderEvent::global_recorder().active().is_none());
    let recorder = warm_recorder(LARGE);
    let reference = warm_reference(LARGE);
    let payload = [7u8; 4096];
    let chase = Chase::new();
    let at = std::cell::Cell::new(0);
    let mut cases = Cases::default();
    for bytes in [0usize, 16, 82, 350, 4096] {
        let payload = &payload[..bytes];
        let operations = if bytes == 4096 { 4_000 } else { 20_000 };
        let (recorder, reference) = (&recorder, &reference);
        cases.add(format!("record_{bytes}"), operations, move || {
            recorder.record(2, EXT, black_box(payload));
        });
        cases.add(format!("reference_{bytes}"), operations, move || {
            reference.record(2, EXT, black_box(payload));
        });
    }
    let (head, topics, data) = ([1u8; 32], [2u8; 64], [3u8; 40]);
    cases.add("recordv_3x", 20_000, || {
        recorder.recordv(2, EXT, black_box(&[&head, &topics, &data]));
    });
    cases.add("empty_loop", 100_000, || {
        black_box(1);
    });
    cases.add("record_disabled", 100_000, || {
        black_box(1);
        record!(OrderEvent::Placed, &Order { id: black_box(1), price: 2 });
    });
    cases.add("sparse_alone", 5_000, || at.set(chase.walk(at.get())));
    cases.add("sparse_with_record", 5_000, || {
        at.set(chase.walk(at.get()));
        recorder.record(2, EXT, black_box(&payload[..82]));
    });
    cases.add("sparse_with_reference", 5_000, || {
        at.set(chase.walk(at.get()));
        reference.record(2, EXT, black_box(&payload[..82]));
    });
    let mut medians = cases.measure(rounds);
    let alone = medians["sparse_alone"];
    for (name, with) in [("record_sparse", "sparse_with_record"), ("reference_sparse", "sparse_with_reference")] {
        medians.insert(name.into(), medians[with] - alone);
    }
    let empty = medians["empty_loop"];
    medians.insert("record_disabled_over_empty".into(), medians["record_disabled"] - empty);
    medians.extend(first_million(&recorder));
    medians
}

/// Measures the first million events on a fresh ring, and a million events on a ring that has gone round. Repeats both
/// three times in turn, and returns the medians.
fn first_million(warm: &Recorder) -> Medians {
    let payload = [7u8; 82];
    let million = |recorder: &Recorder| {
        let start = std::time::Instant::now();
        (0..1_000_000).for_each(|_| {
            recorder.record(2, EXT, black_box(&payload));
        });
        start.elapsed().as_nanos() as f64 / 1e6
    };
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        first.push(million(&fresh(LARGE)));
        later.push(million(warm));
    }
    Medians::from([("fresh_first_million".into(), median(&mut first)), ("warm_million".into(), median(&mut later))])
}

/// A walk through an array of 16 KiB. The place of each step depends on the step before, so the steps cannot overlap
/// in time. The walk takes about 300 ns and stands for a program's own work between two events.
///
/// The array fits in the first-level cache. With a larger array, the time of a walk would vary by more than the
/// effect that is measured.
struct Chase(Vec<u32>);

impl Chase {
    const STEPS: usize = 160;

    fn new() -> Self {
        let places = 1usize << 12;
        // This is a full-cycle permutation.
        Self((0..places).map(|i| ((i * 1_664_525 + 1_013_904_223) % places) as u32).collect())
    }

    #[inline(never)]
    fn walk(&self, from: usize) -> usize {
        (0..Self::STEPS).fold(from, |at, _| self.0[at] as usize)
    }
}
