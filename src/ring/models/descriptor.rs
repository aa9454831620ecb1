//! Descriptors: an event is seen whole or not at all.

use super::event::{Got, check_at_rest, full_ring, read, record_empty, ring};
use super::explore::{beside, explore};
use crate::ring::observe;

#[test]
fn first_lap_events_are_seen_whole_or_not_at_all() {
    explore("first_lap", 3, &["whole", "not ready"], |tally| {
        let ring = ring(2);
        let writers = [(); 2].map(|()| beside(&ring, |ring| assert!(record_empty(ring).is_some())));
        for seqno in [2, 1] {
            tally.saw(read(ring.memory(), seqno).name());
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        check_at_rest(&ring, 2, 0);
    });
}

#[test]
fn an_event_that_is_overwritten_is_never_seen_mixed() {
    explore("second_lap", 4, &["whole", "overrun", "not ready"], |tally| {
        let ring = full_ring();
        let writer = beside(&ring, |ring| assert_eq!(record_empty(ring), Some(3)));
        for seqno in [1, 3] {
            tally.saw(read(ring.memory(), seqno).name());
        }
        writer.join().unwrap();
        check_at_rest(&ring, 3, 0);
    });
}

#[test]
fn a_writer_that_is_overrun_spoils_nothing() {
    explore("overrun_writer", 2, &["whole", "overrun", "hole", "not ready"], |tally| {
        let ring = full_ring();
        let slow = beside(&ring, |ring| u64::from(record_empty(ring).is_some()));
        let fast = beside(&ring, |ring| [(); 3].map(|()| record_empty(ring)).into_iter().flatten().count() as u64);
        for seqno in [3, 5] {
            tally.saw(read(ring.memory(), seqno).name());
        }
        let recorded = slow.join().unwrap() + fast.join().unwrap();
        check_at_rest(&ring, 2 + recorded, 0);
    });
}

#[test]
fn the_last_seqno_comes_with_the_events_before_it() {
    explore("last_seqno", 5, &["none", "one", "two"], |tally| {
        let ring = ring(2);
        let writer = beside(&ring, |ring| [(); 2].map(|()| record_empty(ring)));
        let last = observe::last_seqno(ring.memory());
        tally.saw(["none", "one", "two"][last as usize]);
        if last == 2 {
            assert_eq!(read(ring.memory(), 1), Got::Whole);
        }
        writer.join().unwrap();
    });
}
