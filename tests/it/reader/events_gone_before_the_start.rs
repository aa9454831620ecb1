//! A reader that begins after the ring has gone round. Its cursor first reports a gap: the events that were
//! overwritten before the reader began. So the reader accounts for every seqno since 1. It counts these events apart
//! from those that it loses later.

use crate::fixtures::*;
use eventring::reader::RingItem;
use std::ops::ControlFlow;

const GONE: u64 = 1000;

/// Makes a ring and records `GONE` more events than it can hold, so the first `GONE` events are overwritten. Returns
/// the recorder, a reader and the last seqno.
fn gone_round() -> (Recorder, Reader, u64) {
    let builder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().compact(true);
    let recorder = builder.shifts(15, 21).prefault(false).build().unwrap();
    let last = recorder.geometry().descriptor_capacity() + GONE;
    (1..=last).for_each(|seqno| assert_eq!(recorder.record(2, [seqno, 0, 0, 0], b"x"), seqno));
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    (recorder, reader, last)
}

fn cursor(reader: &Reader, to: Seek) -> Cursor {
    let mut cursor = reader.cursor();
    cursor.seek(to);
    cursor
}

fn before(first_seqno: u64, count: u64) -> Next {
    Next::Gap(Gap { first_seqno, count, cause: GapCause::OverwrittenBefore })
}

/// Reads until no event is ready. Returns four counts: events read, events overwritten before the start, events lost,
/// and seqnos that the writer skipped without an event.
fn account(cursor: &mut Cursor) -> [u64; 4] {
    let mut counts = [0; 4];
    let mut next_seqno = cursor.next_seqno();
    loop {
        let (first, count, kind) = match cursor.next() {
            Next::Event(event) => (event.seqno, 1, 0),
            Next::Gap(gap) if gap.cause == GapCause::OverwrittenBefore => (gap.first_seqno, gap.count, 1),
            Next::Gap(gap) if gap.is_loss() => (gap.first_seqno, gap.count, 2),
            Next::Gap(gap) => (gap.first_seqno, gap.count, 3),
            Next::NotReady => return counts,
        };
        assert_eq!(first, next_seqno, "in order, and each once");
        next_seqno = first + count;
        counts[kind] += count;
    }
}

#[test]
fn from_the_oldest_event_on_every_seqno_is_accounted_for() {
    let (recorder, reader, last) = gone_round();
    let mut recorder = Some(recorder);
    for state in [RingState::Live, RingState::Ended] {
        assert_eq!(reader.state(), state);
        let mut cursor = cursor(&reader, Seek::Oldest);
        assert_eq!(cursor.next_seqno(), 1);
        assert_eq!(cursor.next(), before(1, GONE), "{state:?}");
        assert_eq!(account(&mut cursor), [last - GONE, 0, 0, 0], "{state:?}");
        assert_eq!((cursor.read_count(), cursor.lost_count()), (last - GONE, GONE));
        // The cursor reports the overwritten events again each time it goes to the oldest event.
        cursor.seek(Seek::Oldest);
        assert_eq!(account(&mut cursor), [last - GONE, GONE, 0, 0], "{state:?}");
        recorder.take();
    }
}

#[test]
fn without_overwritten_events_nothing_is_reported() {
    let recorder = Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().prefault(false).build().unwrap();
    let reader = Reader::options().open_fd(recorder.as_fd()).unwrap();
    let mut cursor = cursor(&reader, Seek::Oldest);
    assert_eq!(cursor.next(), Next::NotReady);
    (0..3).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b""), 0));
    assert_eq!(account(&mut cursor), [3, 0, 0, 0]);
    cursor.seek(Seek::Last(2));
    assert_eq!(account(&mut cursor), [2, 0, 0, 0]);
}

#[test]
fn every_way_to_read_tells_it() {
    let (recorder, reader, last) = gone_round();
    let mut each = cursor(&reader, Seek::Oldest);
    assert_eq!(each.each_ready(|_| panic!("nothing is there")), Some(before(1, GONE)));
    let mut read = 0;
    let end = each.each_ready(|_| {
        read += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((read, end), (last - GONE, Some(Next::NotReady)));

    let mut follower = Follower::new(cursor(&reader, Seek::Oldest), WaitStrategy::default());
    let Followed::Gap(gap) = follower.next_timeout(Duration::ZERO) else { panic!() };
    assert_eq!(Next::Gap(gap), before(1, GONE));

    let mut rings = RingSet::options().start(Seek::Newest).from_readers([reader.clone()]);
    rings.add(reader.clone(), Seek::Oldest);
    let Some(RingItem::Gap { ring: 1, gap }) = rings.next() else { panic!() };
    assert_eq!(Next::Gap(gap), before(1, GONE));
    while rings.next().is_some() {}
    let [newest, oldest] = [0, 1].map(|ring| rings.rings()[ring].stats());
    assert_eq!((newest.read, newest.overwritten_before), (0, 0));
    assert_eq!((oldest.read, oldest.overwritten_before, oldest.lost, oldest.skipped), (last - GONE, GONE, 0, 0));
    rings.seek(Seek::Newest);
    assert!(rings.next_timeout(Duration::from_millis(20)).is_none() && !rings.has_ended());
    drop(recorder);
}

#[test]
fn the_gap_begins_at_the_requested_seqno() {
    let (recorder, reader, last) = gone_round();
    // `Seek::Last` asks for ten more events than the ring still has. These ten events are gone, so the cursor reports
    // them first.
    let mut cursor = cursor(&reader, Seek::Last(last - GONE + 10));
    assert_eq!(cursor.next_seqno(), GONE - 9);
    assert_eq!(cursor.next(), before(GONE - 9, 10));
    assert_eq!(account(&mut cursor), [last - GONE, 0, 0, 0]);
    cursor.seek(Seek::Last(u64::MAX));
    assert_eq!(cursor.next(), before(1, GONE));
    for (wanted, seqno) in [(0, last + 1), (5, last - 4)] {
        cursor.seek(Seek::Last(wanted));
        assert_eq!(cursor.next_seqno(), seqno);
    }
    // `Seek::Seqno(5)` asks for all events from seqno 5 on. So the overwritten ones among them count as a loss.
    cursor.seek(Seek::Seqno(5));
    let gap = Gap { first_seqno: 5, count: GONE - 4, cause: GapCause::Overwritten };
    assert_eq!(cursor.next(), Next::Gap(gap));
    assert_eq!(account(&mut cursor), [last - GONE, 0, 0, 0]);
    cursor.seek(Seek::Newest);
    assert_eq!(cursor.next(), Next::NotReady);
    drop(recorder);
}

#[test]
fn events_overwritten_after_the_start_are_the_readers_losses() {
    let (recorder, reader, last) = gone_round();
    let mut oldest = cursor(&reader, Seek::Oldest);
    let mut newest = cursor(&reader, Seek::Newest);
    assert_eq!(oldest.next(), before(1, GONE));
    assert!(matches!(oldest.next(), Next::Event(_)));
    // The ring goes round twice.
    let more = 2 * (last - GONE);
    (0..more).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b""), 0));
    drop(recorder);
    assert_eq!(reader.state(), RingState::Ended);
    let first = Gap { first_seqno: GONE + 2, count: last - GONE - 1 + (last - GONE), cause: GapCause::Overwritten };
    assert_eq!(oldest.next(), Next::Gap(first));
    // This cursor began at the newest event, and all later events were recorded after its start. So none of them
    // counts as overwritten before the start.
    let [read, before, lost, skipped] = account(&mut newest);
    assert_eq!((read + lost, before, skipped), (more, 0, 0));
    assert!(lost > 0);
}

/// A guard that ends the writer even if a check fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn beside_a_writer_that_is_faster_it_is_exact_too() {
    let (recorder, reader, _) = gone_round();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                assert_ne!(recorder.record(2, [0; 4], b"x"), 0);
            }
        });
        let _stop = StopOnDrop(&is_done);
        for _ in 0..50 {
            let last = reader.info().last_seqno;
            let mut cursor = cursor(&reader, Seek::Oldest);
            let later = reader.info().last_seqno;
            let (mut next_seqno, mut gone) = (1, 0);
            for _ in 0..1000 {
                let (first, count) = match cursor.next() {
                    Next::Event(event) => (event.seqno, 1),
                    Next::Gap(gap) => {
                        gone += if gap.cause == GapCause::OverwrittenBefore { gap.count } else { 0 };
                        (gap.first_seqno, gap.count)
                    }
                    Next::NotReady => continue,
                };
                assert_eq!(first, next_seqno);
                next_seqno += count;
            }
            assert_eq!(cursor.read_count() + cursor.lost_count(), next_seqno - 1);
            // `gone` includes all events that were gone when the cursor began, and no event that was recorded after
            // that.
            let gone_at_least = last.saturating_sub(recorder.geometry().descriptor_capacity());
            assert!((gone_at_least..=later).contains(&gone), "{gone} of {last} to {later}");
        }
    });
}
