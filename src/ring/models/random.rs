//! Models of rings under random schedules. These models have more writers, readers and laps than can be explored
//! exhaustively.

use super::event::{
    CHUNK_BYTES, Got, Ring, SMALL_BYTES, check_at_rest, commit, finish, read, record, record_empty, ring_with_runs,
};
use super::explore::{Tally, explore};
use crate::ring::observe;
use crate::sync::{AtomicU64, Ordering};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::Arc;

/// Counts of what a writer did.
#[derive(Clone, Copy, Default)]
struct Written {
    recorded: u64,
    open: u64,
}

/// Records `steps` events of random kinds. If `may_stop` is true, the writer may stop for ever with a reservation
/// open.
fn write(ring: &Ring, steps: usize, may_stop: bool, tally: &Tally) -> Written {
    let mut cursor = ring.cursors().acquire().expect("a cursor for each writer");
    let mut written = Written::default();
    let mut count = |seqno: Option<u64>| match seqno {
        Some(_) => written.recorded += 1,
        None => tally.saw("lost"),
    };
    let mut open = 0;
    for _ in 0..steps {
        match thread_rng().gen_range(0..12) {
            0..=1 => count(record_empty(ring)),
            2..=5 => count(record(ring, Some(cursor), SMALL_BYTES)),
            6 => count(record(ring, None, SMALL_BYTES)),
            7 => count(record(ring, Some(cursor), CHUNK_BYTES)),
            8 => count(record(ring, Some(cursor), 7 * CHUNK_BYTES)),
            9 => {
                let outer = ring.reserve(Some(cursor), SMALL_BYTES);
                for _ in 0..thread_rng().gen_range(1..4) {
                    count(record(ring, Some(cursor), SMALL_BYTES));
                }
                let (seqno, bytes) = (outer.seqno, if outer.has_payload_memory() { SMALL_BYTES } else { 0 });
                finish(ring, Some(cursor), outer, bytes);
                count((seqno != 0).then_some(seqno));
            }
            // This acts as if the thread ended and another thread began. The payload cursor is given back. The new
            // thread gets the same cursor again, or a cursor that a third thread has given back.
            10 => {
                ring.give_back(cursor);
                if thread_rng().gen_range(0..2) == 0 {
                    thread::yield_now();
                }
                let next = ring.cursors().acquire().expect("a cursor that was given back");
                tally.saw(if next.id() == cursor.id() { "its own cursor" } else { "another's cursor" });
                cursor = next;
            }
            _ if may_stop => {
                let claim = ring.reserve(Some(cursor), SMALL_BYTES);
                if claim.seqno != 0 {
                    tally.saw("stopped");
                    open = 1;
                    break;
                }
                commit(ring, Some(cursor), claim, 0);
            }
            _ => {}
        }
    }
    Written { open, ..written }
}

/// Reads the ring from its oldest event until all writers have ended. Checks that every seqno was an event, was lost,
/// or was a hole.
fn follow(ring: &Ring, writing: &AtomicU64, tally: &Tally) {
    let start = observe::oldest_seqno(ring.memory(), observe::last_seqno(ring.memory()));
    let (mut next, mut events, mut lost) = (start, 0, 0);
    loop {
        let at_rest = writing.load(Ordering::Acquire) == 0;
        let got = read(ring.memory(), next);
        match got {
            Got::Whole | Got::Expired => {
                tally.saw(if got == Got::Whole { "whole" } else { "expired" });
                events += 1;
                next += 1;
            }
            Got::Hole => {
                tally.saw("hole");
                lost += 1;
                next += 1;
            }
            Got::Overrun => {
                tally.saw("overrun");
                let oldest = observe::oldest_seqno(ring.memory(), observe::last_seqno(ring.memory()));
                let to = oldest.max(next + 1);
                lost += to - next;
                next = to;
            }
            Got::NotReady if at_rest => break,
            Got::NotReady => thread::yield_now(),
        }
    }
    assert_eq!(events + lost, next - start);
    let last = observe::last_seqno(ring.memory());
    // All writers have ended. A seqno that is still not ready belongs to the open reservation of a stopped writer.
    tally.saw(if next > last { "came to the end" } else { "waits for a writer that has stopped" });
}

/// Runs two readers, and `writers` writers. The first `stops` of these writers may stop for ever. Payload cursors take
/// runs of up to `chunks` chunks.
fn storm(capacity: u64, chunks: u64, writers: usize, stops: usize, steps: usize, tally: &Tally) {
    let ring = ring_with_runs(capacity, chunks);
    let writing = Arc::new(AtomicU64::new(writers as u64));
    let readers = [(); 2].map(|()| {
        let (ring, writing, tally) = (Arc::clone(&ring), Arc::clone(&writing), tally.clone());
        thread::spawn(move || follow(&ring, &writing, &tally))
    });
    let writers: Vec<_> = (0..writers)
        .map(|id| {
            let (ring, writing, tally) = (Arc::clone(&ring), Arc::clone(&writing), tally.clone());
            thread::spawn(move || {
                let written = write(&ring, steps, id < stops, &tally);
                writing.fetch_sub(1, Ordering::Release);
                written
            })
        })
        .collect();
    let written: Vec<Written> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    let sum = |what: fn(&Written) -> u64| written.iter().map(what).sum::<u64>();
    check_at_rest(&ring, sum(|w| w.recorded), sum(|w| w.open));
}

#[test]
fn three_writers_lap_a_ring_of_two() {
    let expected = ["whole", "expired", "hole", "overrun", "came to the end", "another's cursor"];
    explore("storm_of_two_slots", 20_000, &expected, |tally| storm(2, 1, 3, 0, 8, tally));
}

#[test]
fn four_writers_of_which_two_stop_lap_a_ring_of_four() {
    let expected = ["whole", "expired", "hole", "overrun", "stopped", "came to the end", "another's cursor"];
    explore("storm_with_stops", 20_000, &expected, |tally| storm(4, 1, 4, 2, 10, tally));
}

#[test]
fn writers_that_take_two_chunks_at_a_time_never_share_one() {
    let expected = ["whole", "expired", "stopped", "came to the end", "another's cursor"];
    explore("storm_of_runs", 6000, &expected, |tally| storm(8, 2, 4, 1, 16, tally));
}

#[test]
fn writers_that_stop_in_every_slot_make_the_others_lose_events_but_not_hang() {
    let expected = ["whole", "stopped", "lost"];
    explore("storm_to_a_standstill", 6000, &expected, |tally| storm(2, 1, 4, 4, 12, tally));
}
