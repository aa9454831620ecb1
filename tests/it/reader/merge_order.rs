//! The merged order of several rings. The set never returns an event after a later event of another ring, even if the
//! event's own ring was silent for a while.

use crate::fixtures::*;
use eventring::reader::RingItem;

fn ring() -> Recorder {
    let description = ContentDescription::new(300, "THINGS");
    Recorder::builder(description).anonymous().compact(true).shifts(15, 21).prefault(false).build().unwrap()
}

/// Returns a ring set of these recorders' rings. The set returns only events that are recorded from now on.
fn newest<const N: usize>(recorders: [&Recorder; N]) -> RingSet {
    let readers = recorders.map(|recorder| Reader::options().open_fd(recorder.as_fd()).unwrap());
    RingSet::options().start(Seek::Newest).from_readers(readers)
}

/// Sleeps longer than the slack of the ring set, which is 2 ms. The slack is the time for which the set waits for an
/// event that has its time stamp but is not committed yet.
fn outlast_the_slack() {
    std::thread::sleep(Duration::from_millis(4));
}

/// An item of the merged stream: the ring and the type of an event, a gap, or nothing.
#[derive(Debug, PartialEq)]
enum Given {
    Event(usize, u16),
    Gap(usize, Gap),
    Nothing,
}

fn next(rings: &mut RingSet) -> Given {
    match rings.next() {
        Some(RingItem::Event { ring, event }) => Given::Event(ring, event.event_type),
        Some(RingItem::Gap { ring, gap }) => Given::Gap(ring, gap),
        None => Given::Nothing,
    }
}

#[test]
fn a_skipped_seqno_does_not_hide_an_earlier_event_of_another_ring() {
    let (first, second) = (ring(), ring());
    let capacity = first.geometry().descriptor_capacity();
    // This reservation stays open in the first slot. In the next lap, seqno `capacity + 1` comes to the same slot and
    // is skipped.
    let stalled = first.reserve(2, [0; 4], 0).unwrap();
    (1..capacity).for_each(|_| assert_ne!(first.record(3, [0; 4], b""), 0));
    let mut rings = newest([&first, &second]);
    assert_eq!(first.record(4, [0; 4], b""), capacity + 2);
    second.record(5, [0; 4], b"");
    outlast_the_slack();
    let skipped = Gap { first_seqno: capacity + 1, count: 1, cause: GapCause::Skipped };
    assert_eq!(next(&mut rings), Given::Gap(0, skipped));
    assert_eq!(next(&mut rings), Given::Event(0, 4));
    assert_eq!(next(&mut rings), Given::Event(1, 5));
    drop(stalled);
}

#[test]
fn the_merge_waits_for_an_event_that_is_being_recorded_and_for_later_ones() {
    let (first, second) = (ring(), ring());
    let mut rings = newest([&first, &second]);
    let begun = Instant::now();
    let reservation = first.reserve(2, [0; 4], 0).unwrap();
    first.record(3, [0; 4], b"");
    second.record(4, [0; 4], b"");
    outlast_the_slack();
    let given = next(&mut rings);
    // If the machine stood still for a long time, the set may rightly have stopped waiting for the event. So the
    // result is checked only if little time has passed.
    if begun.elapsed() < Duration::from_millis(20) {
        assert_eq!(given, Given::Nothing);
    }
    reservation.commit();
    if given == Given::Nothing {
        assert_eq!(next(&mut rings), Given::Event(0, 2));
        assert_eq!(next(&mut rings), Given::Event(0, 3));
        assert_eq!(next(&mut rings), Given::Event(1, 4));
    }
}

#[test]
fn a_writer_that_stalls_does_not_hold_up_the_other_rings() {
    let (first, second) = (ring(), ring());
    let mut rings = newest([&first, &second]);
    let stalled = first.reserve(2, [0; 4], 0).unwrap();
    second.record(4, [0; 4], b"");
    second.record(5, [0; 4], b"");
    let mut given = Vec::new();
    while given.len() < 2 {
        match next(&mut rings) {
            Given::Nothing => std::thread::sleep(Duration::from_millis(1)),
            item => given.push(item),
        }
    }
    assert_eq!(given, [Given::Event(1, 4), Given::Event(1, 5)]);
    // This event is committed only after the set has returned a later event. It comes late, but it is not lost.
    stalled.commit();
    assert_eq!(next(&mut rings), Given::Event(0, 2));
}

#[test]
fn a_payload_stays_until_the_next_item_though_it_is_overwritten_in_the_ring() {
    let (first, second) = (ring(), ring());
    let mut rings = newest([&first, &second]);
    first.record(2, [0; 4], b"first");
    second.record(3, [0; 4], b"second");
    assert_eq!(next(&mut rings), Given::Event(0, 2));
    let laps = 3 * first.geometry().descriptor_capacity();
    (0..laps).for_each(|_| assert_ne!(first.record(4, [0; 4], &[7; 100]), 0));
    assert_eq!(rings.payload().valid(), Some(&b"first"[..]));
    assert!(matches!(next(&mut rings), Given::Gap(0, Gap { cause: GapCause::Overwritten, .. })));
    assert_eq!(next(&mut rings), Given::Event(1, 3));
    assert_eq!(rings.payload().valid(), Some(&b"second"[..]));
    assert_eq!(rings.rings()[1].stats().read, 1);
}

#[test]
fn the_last_events_of_all_rings_together_are_found_also_after_others_were_read() {
    let (first, second) = (ring(), ring());
    let mut rings = newest([&first, &second]);
    for event_type in 10..20 {
        [&first, &second][usize::from(event_type % 3 == 0)].record(event_type, [0; 4], b"");
    }
    outlast_the_slack();
    assert_eq!(next(&mut rings), Given::Event(0, 10));
    rings.seek(Seek::Last(3));
    outlast_the_slack();
    assert_eq!(next(&mut rings), Given::Event(0, 17));
    assert_eq!(next(&mut rings), Given::Event(1, 18));
    assert_eq!(next(&mut rings), Given::Event(0, 19));
    assert_eq!(next(&mut rings), Given::Nothing);
    let read = |ring: usize| rings.rings()[ring].stats().read;
    assert_eq!((read(0), read(1)), (3, 1));
}
