//! The merged order: no event comes after a later one of another ring, even if a ring seems silent.

use eventring::clock::Clock;
use eventring::reader::{Cursor, Gap, GapCause, MergedItem, Merger, Reader};
use eventring::recorder::{ContentDescription, Recorder};
use std::time::{Duration, Instant};

fn ring() -> Recorder {
    let description = ContentDescription::new(300, "THINGS");
    Recorder::builder(description).anonymous().compact(true).shifts(15, 21).prefault(false).build().unwrap()
}

/// Position after the newest event.
fn cursor(recorder: &Recorder) -> Cursor {
    Reader::options().open_fd(recorder.as_fd()).unwrap().cursor()
}

/// A time longer than an event normally takes from its time stamp to its commit.
fn outlast_the_slack() {
    std::thread::sleep(Duration::from_millis(4));
}

/// Item of the merged stream: the ring and type of an event, or a gap.
#[derive(Debug, PartialEq)]
enum Given {
    Event(usize, u16),
    Gap(usize, Gap),
    Nothing,
}

fn next(merger: &mut Merger) -> Given {
    match merger.next() {
        MergedItem::Event { input, descriptor, .. } => Given::Event(input, descriptor.event_type),
        MergedItem::Gap { input, gap } => Given::Gap(input, gap),
        MergedItem::NotReady => Given::Nothing,
    }
}

#[test]
fn a_given_up_seqno_does_not_hide_an_earlier_event_of_another_ring() {
    let (first, second) = (ring(), ring());
    let capacity = first.geometry().descriptor_capacity();
    // A reservation stalls in the first slot while the ring goes round: the next seqno of that slot is given up.
    let stalled = first.reserve(2, [0; 4], 0).unwrap();
    (1..capacity).for_each(|_| assert_ne!(first.record(3, [0; 4], b""), 0));
    let mut merger = Merger::new([cursor(&first), cursor(&second)]);
    assert_eq!(first.record(4, [0; 4], b""), capacity + 2);
    second.record(5, [0; 4], b"");
    outlast_the_slack();
    let given_up = Gap { first_seqno: capacity + 1, count: 1, cause: GapCause::GivenUp };
    assert_eq!(next(&mut merger), Given::Gap(0, given_up));
    assert_eq!(next(&mut merger), Given::Event(0, 4));
    assert_eq!(next(&mut merger), Given::Event(1, 5));
    drop(stalled);
}

#[test]
fn the_merge_waits_for_an_event_that_is_being_recorded_and_for_later_ones() {
    let (first, second) = (ring(), ring());
    let mut merger = Merger::new([cursor(&first), cursor(&second)]);
    let begun = Instant::now();
    let reservation = first.reserve(2, [0; 4], 0).unwrap();
    first.record(3, [0; 4], b"");
    second.record(4, [0; 4], b"");
    outlast_the_slack();
    let given = next(&mut merger);
    // On a machine that stood still, the waiting time may be over already.
    if begun.elapsed() < Duration::from_millis(20) {
        assert_eq!(given, Given::Nothing);
    }
    reservation.commit();
    if given == Given::Nothing {
        assert_eq!(next(&mut merger), Given::Event(0, 2));
        assert_eq!(next(&mut merger), Given::Event(0, 3));
        assert_eq!(next(&mut merger), Given::Event(1, 4));
    }
}

#[test]
fn a_writer_that_stalls_does_not_hold_up_the_other_rings() {
    let (first, second) = (ring(), ring());
    let mut merger = Merger::new([cursor(&first), cursor(&second)]);
    let stalled = first.reserve(2, [0; 4], 0).unwrap();
    second.record(4, [0; 4], b"");
    second.record(5, [0; 4], b"");
    let mut given = Vec::new();
    while given.len() < 2 {
        match next(&mut merger) {
            Given::Nothing => std::thread::sleep(Duration::from_millis(1)),
            item => given.push(item),
        }
    }
    assert_eq!(given, [Given::Event(1, 4), Given::Event(1, 5)]);
    // The event comes late, but it comes.
    stalled.commit();
    assert_eq!(next(&mut merger), Given::Event(0, 2));
}

#[test]
fn nothing_later_than_the_look_for_rings_is_given_for_a_ring_found_next_may_bring_something_earlier() {
    let (first, found_late) = (ring(), ring());
    let mut merger = Merger::new([cursor(&first)]);
    let now = Clock::global().now_epoch_nanos();
    let late = cursor(&found_late);
    // The look may be long ago, because the thread may have been preempted.
    outlast_the_slack();
    found_late.record(2, [0; 4], b"");
    first.record(3, [0; 4], b"");
    assert!(matches!(merger.next_at(now), MergedItem::NotReady));
    merger.add(late);
    outlast_the_slack();
    let now = Clock::global().now_epoch_nanos();
    assert!(matches!(merger.next_at(now), MergedItem::Event { input: 1, .. }));
    assert!(matches!(merger.next_at(now), MergedItem::Event { input: 0, .. }));
    assert!(matches!(merger.next_at(now), MergedItem::NotReady));
}
