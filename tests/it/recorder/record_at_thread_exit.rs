//! Destructors of thread-locals record while their thread ends. No event is lost, and nothing panics.

use crate::fixtures::*;
use crate::read_back::{events, reader_of};
use std::cell::RefCell;

const THREADS: u64 = 200;

/// A value that records when it is dropped. It records three events: the first by a call, the second by a reservation
/// that is committed, and the third by a reservation that is dropped.
struct Last {
    recorder: Recorder,
    thread: u64,
}

impl Drop for Last {
    fn drop(&mut self) {
        let payload = [self.thread as u8; 100];
        assert_ne!(self.recorder.record(3, [self.thread, 0, 0, 0], &payload), 0);
        let mut reservation = self.recorder.reserve(4, [self.thread, 0, 0, 0], 100).unwrap();
        reservation.append(&payload);
        reservation.commit();
        drop(self.recorder.reserve(5, [self.thread, 0, 0, 0], 10));
    }
}

thread_local! {
    static BEFORE: RefCell<Option<Last>> = const { RefCell::new(None) };
    static BEHIND: RefCell<Option<Last>> = const { RefCell::new(None) };
}

#[test]
fn destructors_of_thread_locals_record_before_and_after_the_recorders_own() {
    let description = ContentDescription::new(300, "THINGS");
    let recorder = Recorder::builder(description).anonymous().prefault(false).build().unwrap();
    for thread in 0..THREADS {
        let recorder = recorder.clone();
        let ended = std::thread::spawn(move || {
            let last = || Some(Last { recorder: recorder.clone(), thread });
            // The order in which thread-locals are initialised decides the order in which they are destroyed. So one
            // value is initialised before the thread-locals that recording makes, and one after them.
            BEFORE.set(last());
            if thread % 3 > 0 {
                recorder.record(2, [thread, 0, 0, 0], b"alive");
            }
            if thread % 3 > 1 {
                BEHIND.set(last());
            }
        });
        ended.join().unwrap();
    }

    let mut found: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
    for (_, event_type, [thread, ..], payload) in events(&reader_of(&recorder)) {
        match event_type {
            3 | 4 => assert_eq!(payload, [thread as u8; 100]),
            1 => assert_eq!(payload[2..4], 5u16.to_le_bytes()),
            _ => assert_eq!(payload, b"alive"),
        }
        found.entry(thread).or_default().push(event_type);
    }
    for thread in 0..THREADS {
        let expected: &[u16] = match thread % 3 {
            0 => &[3, 4, 1],
            1 => &[2, 3, 4, 1],
            _ => &[2, 3, 4, 1, 3, 4, 1],
        };
        assert_eq!(found[&thread], expected, "thread {thread}");
    }
}
