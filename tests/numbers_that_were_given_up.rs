//! A number that a writer gave up stands for no event: readers tell it from a loss, and the sums are exact.

use eventring::reader::{Gap, GapCause, Next, Reader, Seek};
use eventring::recorder::{ContentDescription, Recorder};

#[test]
fn a_number_given_up_to_a_stalled_writer_is_no_loss() {
    let description = ContentDescription::new(300, "THINGS");
    let recorder = Recorder::builder(description).anonymous().compact(true).shifts(15, 21).build().unwrap();
    let capacity = recorder.geometry().descriptor_capacity();
    let mut cursor = Reader::options().open_fd(recorder.as_fd()).unwrap().cursor();

    // Stalls in slot 0 while the ring goes round.
    let stalled = recorder.reserve(2, [0; 4], 0).unwrap();
    let (mut recorded, mut read, mut given_up) = (0, 0, 0);
    for _ in 1..=capacity {
        assert_ne!(recorder.record(3, [0; 4], b""), 0);
        recorded += 1;
    }
    // The event that found the slot taken has the number behind.
    assert_eq!(recorder.stats().last_seqno, capacity + 2);
    // Which took the place of event 2.
    cursor.seek(Seek::Seqno(3));
    loop {
        match cursor.next() {
            Next::Event(event) => {
                assert_eq!(event.event_type, 3);
                read += 1;
            }
            Next::Gap(gap) => {
                let expected = Gap { first_seqno: capacity + 1, count: 1, cause: GapCause::GivenUp };
                assert_eq!((gap, gap.is_loss()), (expected, false));
                given_up += gap.count;
            }
            Next::NotReady => break,
        }
    }
    assert_eq!((read, given_up), (recorded - 1, 1));
    assert_eq!(cursor.read_count() + cursor.lost_count(), capacity);
    drop(stalled);
}
