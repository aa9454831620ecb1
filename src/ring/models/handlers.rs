//! Models of signal handlers that record while the interrupted thread is recording. Before each access of this thread
//! to a shared word, a handler runs in some execution.

use super::event::{
    CHUNK_BYTES, Got, PAYLOAD_BYTES, Ring, SMALL_BYTES, count, finish, read, record, record_empty, ring_with_runs,
};
use crate::checker;
use crate::ring::memory::ControlWord;
use crate::ring::observe::{self, Observation};
use std::sync::{Arc, Mutex};

/// An action of a thread, or of a handler that interrupts it.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Empty,
    Small,
    /// Small events, so many that the thread needs a new chunk.
    Smalls,
    Large,
    /// Small events during an outer reservation. There are so many that the payload cursor goes on to a new chunk,
    /// while the outer reservation is open in the old chunk.
    Nested,
}

impl Doing {
    const ALL: [Self; 5] = [Self::Empty, Self::Small, Self::Smalls, Self::Large, Self::Nested];

    /// Performs the action, and adds the seqnos of its events to `seqnos`.
    fn run(self, ring: &Ring, seqnos: &Mutex<Vec<u64>>) {
        let cursor = ring.cursors().get(0);
        let note = |seqno: Option<u64>| seqnos.lock().unwrap().push(seqno.expect("there is a slot"));
        match self {
            Self::Empty => note(record_empty(ring)),
            Self::Small => note(record(ring, cursor, SMALL_BYTES)),
            Self::Smalls => (0..3).for_each(|_| note(record(ring, cursor, SMALL_BYTES))),
            Self::Large => note(record(ring, cursor, 2 * CHUNK_BYTES)),
            Self::Nested => {
                let outer = ring.reserve(cursor, SMALL_BYTES);
                assert!(outer.has_payload_memory());
                (0..2).for_each(|_| note(record(ring, cursor, SMALL_BYTES)));
                note(Some(finish(ring, cursor, outer, SMALL_BYTES)));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    doing: Doing,
    on_top: Doing,
    /// Number of small events that are recorded before the action. A chunk has room for two of them.
    earlier: u64,
    /// True if a reservation in the cursor's first chunk stays open during the action.
    is_open: bool,
    /// Largest number of chunks in a run of the payload cursor.
    chunks: u64,
    /// Number of accesses to shared words that the thread makes before the handler runs.
    step: u64,
}

/// Fills the payload buffer twice, as another thread would. Checks that no event gets the chunk `spared`.
fn go_round(ring: &Ring, spared: Option<u64>) {
    for _ in 0..2 * PAYLOAD_BYTES / CHUNK_BYTES {
        let seqno = record(ring, ring.cursors().get(1), CHUNK_BYTES).unwrap();
        let got = read(ring.memory(), seqno);
        let Observation::Event(event) = observe::descriptor(ring.memory(), seqno) else { panic!("{seqno} is {got:?}") };
        assert_eq!((got, event.payload_size), (Got::Whole, CHUNK_BYTES as u32));
        assert_ne!(
            Some(event.payload_buf_offset % PAYLOAD_BYTES / CHUNK_BYTES),
            spared,
            "an open payload is overwritten"
        );
    }
}

/// Performs `case.doing`, and lets a handler interrupt it after `case.step` accesses to shared words. If the action
/// makes fewer accesses, the handler does not run, and this function returns false. Otherwise it checks all events
/// and returns true.
fn interrupt(case: Case) -> bool {
    let ring = ring_with_runs(32, case.chunks);
    let seqnos = Arc::new(Mutex::new(Vec::new()));
    let cursor = ring.cursors().get(0);
    let open = case.is_open.then(|| ring.reserve(cursor, SMALL_BYTES));
    for _ in 0..case.earlier {
        seqnos.lock().unwrap().push(record(&ring, cursor, SMALL_BYTES).unwrap());
    }
    let handler = {
        let (ring, seqnos) = (Arc::clone(&ring), Arc::clone(&seqnos));
        move || case.on_top.run(&ring, &seqnos)
    };
    checker::interrupt_before(case.step, handler);
    case.doing.run(&ring, &seqnos);
    if checker::cancel_interrupt() {
        return false;
    }
    for seqno in seqnos.lock().unwrap().iter() {
        assert_eq!(read(ring.memory(), *seqno), Got::Whole, "{seqno} in {case:?}");
    }
    // While `open` is open, another thread must not take the chunk that holds its payload.
    if let Some(open) = open {
        go_round(&ring, Some(open.payload_offset / CHUNK_BYTES));
        finish(&ring, cursor, open, SMALL_BYTES);
    }
    assert!(cursor.unwrap().is_outside());
    let skipped = count(&ring, ControlWord::SkippedChunks);
    go_round(&ring, None);
    assert_eq!(count(&ring, ControlWord::SkippedChunks), skipped, "a chunk is kept after {case:?}");
    assert!(record(&ring, cursor, SMALL_BYTES).is_some_and(|seqno| read(ring.memory(), seqno) == Got::Whole));
    true
}

#[test]
fn a_handler_may_record_at_any_step_of_recording() {
    let mut handlers = 0;
    for doing in Doing::ALL {
        for on_top in Doing::ALL {
            for (chunks, earlier, is_open) in [
                (1, 0, false),
                (1, 1, false),
                (1, 2, false),
                (1, 0, true),
                (1, 1, true),
                (2, 2, false),
                (2, 5, false),
                (2, 3, true),
            ] {
                for step in 0.. {
                    let came = Arc::new(Mutex::new(true));
                    let came_in_model = Arc::clone(&came);
                    let case = Case { doing, on_top, earlier, is_open, chunks, step };
                    // The model has one thread, so loom explores only one execution. That execution has many branches.
                    let mut model = loom::model::Builder::new();
                    model.max_branches = 30_000;
                    model.check(move || *came_in_model.lock().unwrap() = interrupt(case));
                    if !*came.lock().unwrap() {
                        break;
                    }
                    handlers += 1;
                }
            }
        }
    }
    eprintln!("model handlers: {handlers} handlers");
    assert!(handlers > 3000);
}
