//! Tests of the batches that a follower gets in memory.

use super::*;
use crate::EndReason;
use crate::format::stats::CaptureStats;

const MILLI: u64 = 1_000_000;

/// Ends a batch at this time, with one ring of so many events, of which so many more are not read.
fn end(sink: &mut BatchesInMemory<'_>, ended_epoch_nanos: u64, (events, unread): (u64, u64)) {
    let stats = CaptureStats { rings: vec![RingStats { events, unread, ..RingStats::default() }] };
    let end = CaptureEnd { reason: EndReason::Rotated, ended_epoch_nanos, lower_level_events: 0, stats };
    sink.end(&Batch { end: &end, rings: &[] }).unwrap();
}

#[test]
fn a_follower_gets_empty_batches_until_one_says_that_nothing_more_has_come() {
    let sent = Rc::new(RefCell::new(0));
    let of_sink = Rc::clone(&sent);
    let mut send = move |_: &[u8], _: &Batch<'_>| {
        *of_sink.borrow_mut() += 1;
        Ok(())
    };
    let mut sink = BatchesInMemory::new(&mut send).for_a_follower();
    assert!(!sink.wants_empty());
    end(&mut sink, 100 * MILLI, (5, 0));
    assert!(sink.wants_empty());
    // An event from before the end of the last batch may still be on its way.
    end(&mut sink, 105 * MILLI, (0, 0));
    assert!(sink.wants_empty());
    end(&mut sink, 110 * MILLI, (0, 0));
    assert!(!sink.wants_empty());
    end(&mut sink, 200 * MILLI, (0, 1));
    assert!(sink.wants_empty());
    assert_eq!(*sent.borrow(), 4);
}

#[test]
fn others_get_no_empty_batch() {
    let mut send = |_: &[u8], _: &Batch<'_>| panic!("an empty batch");
    let mut sink = BatchesInMemory::new(&mut send);
    end(&mut sink, 100 * MILLI, (0, 1));
    assert!(!sink.wants_empty());
}
