//! Models of holes. A writer cannot use a seqno, because another writer has stopped inside the slot of that seqno.

use super::event::{Got, check_at_rest, finish, read, record_empty, ring};
use super::explore::{beside, explore};
use crate::ring::observe;

#[test]
fn a_reader_skips_the_hole_that_a_stalled_writer_leaves() {
    explore("hole", 3, &["whole", "not ready", "hole", "overrun"], |tally| {
        let ring = ring(2);
        // The stalled writer has seqno 1. Its slot is also the slot of seqno 3.
        let stalled = ring.reserve_empty();
        let writer = beside(&ring, |ring| [(); 2].map(|()| record_empty(ring)));
        // A reader joins now, and reads event after event until it finds none.
        let mut next = observe::oldest_seqno(ring.memory(), observe::last_seqno(ring.memory()));
        while next <= 4 {
            let got = read(ring.memory(), next);
            tally.saw(got.name());
            if got == Got::NotReady {
                break;
            }
            next += 1;
        }
        // The writer could not claim the slot for seqno 3. So it got seqnos 2 and 4, and seqno 3 is a hole.
        assert_eq!(writer.join().unwrap(), [Some(2), Some(4)]);
        assert_eq!(
            [1, 2, 3, 4].map(|seqno| read(ring.memory(), seqno)),
            [Got::Overrun, Got::Overrun, Got::Hole, Got::Whole]
        );
        finish(&ring, None, stalled, 0);
        assert_eq!(read(ring.memory(), 3), Got::Hole);
        assert_eq!(record_empty(&ring), Some(5));
        check_at_rest(&ring, 4, 0);
    });
}

#[test]
fn a_slot_that_comes_free_late_is_claimed_or_refused_but_never_shared() {
    explore("late_commit", 3, &["claimed", "refused", "whole", "hole"], |tally| {
        let ring = ring(2);
        let stalled = ring.reserve_empty();
        assert_eq!(record_empty(&ring), Some(2));
        let writer = beside(&ring, record_empty);
        let reader = beside(&ring, {
            let tally = tally.clone();
            move |ring| tally.saw(read(ring.memory(), 3).name())
        });
        finish(&ring, None, stalled, 0);
        let seqno = writer.join().unwrap();
        tally.saw(if seqno == Some(3) { "claimed" } else { "refused" });
        reader.join().unwrap();
        check_at_rest(&ring, 2 + u64::from(seqno.is_some()), 0);
    });
}
