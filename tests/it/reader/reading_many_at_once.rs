//! `Cursor::each_ready` returns the same events as a loop around `Cursor::next`.

use crate::fixtures::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

const CAPACITY: u64 = 1 << 16;

fn ring() -> (Recorder, Reader) {
    let builder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).prefault(false);
    let recorder = builder.build().unwrap();
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    (recorder, reader)
}

fn record(recorder: &Recorder, events: u64) {
    for n in 0..events {
        recorder.record(2 + (n % 3) as u16, [n, n + 1, n + 2, n + 3], &n.to_le_bytes()[..n as usize % 9]);
    }
}

/// Reads with `Cursor::next` until nothing is ready. Returns a text for each result: an event with its payload, or a
/// gap.
fn one_by_one(cursor: &mut Cursor) -> Vec<String> {
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    loop {
        match cursor.next() {
            Next::Event(event) => found.push(format!("{event:?} {:?}", cursor.payload(&event, &mut buffer))),
            Next::Gap(gap) => found.push(format!("{gap:?}")),
            Next::NotReady => return found,
        }
    }
}

fn at_once(cursor: &mut Cursor, mut breaks_at: impl FnMut(u64) -> bool) -> Vec<String> {
    let (mut found, mut buffer) = (Vec::new(), Vec::new());
    loop {
        let end = cursor.each_ready(|event| {
            found.push(format!("{:?} {:?}", event.descriptor(), event.payload(&mut buffer)));
            if breaks_at(event.descriptor().seqno) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match end {
            None => {}
            Some(Next::Gap(gap)) => found.push(format!("{gap:?}")),
            Some(Next::NotReady) => return found,
            Some(Next::Event(event)) => panic!("an end that is an event: {event:?}"),
        }
    }
}

#[test]
fn batches_give_the_same_events_and_gaps_as_single_reads() {
    let (recorder, reader) = ring();
    let (mut each, mut next) = (reader.cursor(), reader.cursor());
    record(&recorder, 100);
    assert_eq!(at_once(&mut each, |_| false), one_by_one(&mut next));
    // These events lap both cursors, so both must report the same gap first.
    record(&recorder, CAPACITY + 5_000);
    let found = at_once(&mut each, |_| false);
    assert!(found[0].contains("Overwritten"), "{}", found[0]);
    assert_eq!(found, one_by_one(&mut next));
    assert_eq!((each.read_count(), each.lost_count()), (next.read_count(), next.lost_count()));
    assert_eq!(each.read_count() + each.lost_count(), CAPACITY + 5_100);
}

#[test]
fn after_a_break_reading_continues_after_the_last_returned_event() {
    let (recorder, reader) = ring();
    let (mut each, mut next) = (reader.cursor(), reader.cursor());
    record(&recorder, 1_000);
    assert_eq!(at_once(&mut each, |seqno| seqno % 7 == 0), one_by_one(&mut next));
    assert_eq!(each.next_seqno(), 1_001);
}

#[test]
fn an_event_whose_handling_panics_counts_as_read() {
    let (recorder, reader) = ring();
    let mut cursor = reader.cursor();
    record(&recorder, 10);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cursor.each_ready(|event| {
            assert!(event.descriptor().seqno < 4, "on purpose");
            ControlFlow::Continue(())
        })
    }));
    assert!(panicked.is_err());
    assert_eq!((cursor.next_seqno(), cursor.read_count()), (5, 4));
    assert_eq!(one_by_one(&mut cursor).len(), 6);
}

#[test]
fn reading_stops_at_an_open_reservation_and_continues_later() {
    let (recorder, reader) = ring();
    let mut cursor = reader.cursor();
    record(&recorder, 3);
    let open = recorder.reserve(2, [0; 4], 16).unwrap();
    record(&recorder, 3);
    assert_eq!(at_once(&mut cursor, |_| false).len(), 3);
    assert_eq!(cursor.next_seqno(), 4);
    drop(open);
    assert_eq!(at_once(&mut cursor, |_| false).len(), 4);
    cursor.seek(Seek::Oldest);
    assert_eq!(at_once(&mut cursor, |_| false).len(), 7);
}

#[test]
fn a_loop_around_next_ends_with_the_writer_and_not_before_its_last_event_and_hole() {
    let (recorder, reader) = ring();
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    assert!(!cursor.is_finished(), "nothing was recorded, and the writer lives");
    let writing = std::thread::spawn(move || {
        for burst in 0..20 {
            record(&recorder, 500);
            if burst == 10 {
                // This reservation is never committed. The cursor waits at its seqno until the ring has ended.
                std::mem::forget(recorder.reserve(2, [0; 4], 8));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        std::mem::forget(recorder.reserve(2, [0; 4], 8));
        recorder.stats().last_seqno
    });
    let (mut events, mut missing) = (0, 0);
    loop {
        match cursor.next() {
            Next::Event(_) => events += 1,
            Next::Gap(gap) => missing += gap.count,
            Next::NotReady if cursor.is_finished() => break,
            Next::NotReady => std::thread::yield_now(),
        }
    }
    assert_eq!((events, missing, writing.join().unwrap()), (10_000, 2, 10_002));
}
