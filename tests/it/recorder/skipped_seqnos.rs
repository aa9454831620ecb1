//! A seqno that a writer skipped stands for no event. Readers distinguish it from a lost event, so their sums are
//! exact.

use crate::fixtures::*;

/// Opens `open` reservations, each `distance` seqnos after the one before it, and lets the ring go round. The slot of
/// each reservation costs one seqno, which is skipped. The reader must report each of these seqnos.
fn all_are_told(descriptor_shift: u32, open: u64, distance: u64) {
    let description = ContentDescription::new(300, "THINGS");
    let recorder =
        Recorder::builder(description).anonymous().compact(true).shifts(descriptor_shift, 21).build().unwrap();
    let capacity = recorder.geometry().descriptor_capacity();
    let mut stalled = Vec::new();
    for _ in 0..open {
        stalled.push(recorder.reserve(2, [0; 4], 0).unwrap());
        (1..distance).for_each(|_| assert_ne!(recorder.record(3, [0; 4], b""), 0));
    }
    let (mut recorded, mut read, mut skipped) = (0, 0, 0);
    let mut cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();
    while recorder.stats().last_seqno < 2 * capacity {
        assert_ne!(recorder.record(3, [0; 4], b""), 0);
        recorded += 1;
    }
    cursor.seek(Seek::Seqno(capacity + 1));
    let last = recorder.stats().last_seqno;
    let mut waited = 0;
    while cursor.next_seqno() <= last {
        match cursor.next() {
            Next::Event(_) => read += 1,
            Next::Gap(gap) => {
                assert_eq!((gap.cause, gap.is_loss()), (GapCause::Skipped, false), "at {}", gap.first_seqno);
                skipped += gap.count;
            }
            // At a slot without its event, the cursor first waits for about 100 microseconds. Only then does it ask
            // whether the seqno was skipped. So the loop may need several attempts.
            Next::NotReady if waited < 1000 => {
                waited += 1;
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Next::NotReady => panic!("the reader waits at {}, one of {skipped} skipped", cursor.next_seqno()),
        }
    }
    assert_eq!(skipped, recorder.stats().refused_claims);
    assert_eq!(skipped, open);
    assert_eq!(read + skipped, last - capacity);
    assert_eq!((cursor.read_count(), cursor.lost_count()), (read, skipped));
    assert!(recorded >= read);
}

#[test]
fn a_seqno_skipped_for_a_stalled_writer_is_not_a_loss() {
    all_are_told(15, 1, 1);
}

#[test]
fn a_thousand_open_reservations_of_one_remainder_of_64_are_counted_exactly() {
    all_are_told(16, 1000, 64);
}

#[test]
fn sixteen_thousand_open_reservations_are_counted_exactly() {
    all_are_told(16, 16_384, 1);
    all_are_told(18, 16_384, 16);
}
