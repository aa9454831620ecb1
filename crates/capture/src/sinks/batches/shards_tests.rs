//! Shards of a program that has ended before its capture begins.

use super::{Batch, BatchOptions, BatchStart, BatchesInMemory, capture_batches};
use crate::{BatchFilter, NextRing};
use eventring::reader::Reader;
use eventring::tracing::{PerfRecorder, RecorderSubscriber};
use std::ops::ControlFlow;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Records spans on four threads, each in a shard of its own, and removes the files. `shard0` is open then. Returns how
/// many events a capture finds afterwards, and how many it has lost, if the shards were opened meanwhile, or not.
fn captured(opens_shards: bool) -> (u64, u64) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop");
    let builder = PerfRecorder::builder().config(&path).shifts(15, 21).shards(4).prefault(false);
    let recorder = builder.build().unwrap();
    let shard0 = Reader::open(&path).unwrap();
    let start = BatchStart::of_recorder("host", &shard0);
    let together = Barrier::new(4);
    let work = || {
        std::thread::scope(|scope| {
            let workers = [(); 4].map(|()| {
                scope.spawn(|| {
                    let subscriber = RecorderSubscriber::new(recorder.clone());
                    tracing::subscriber::with_default(subscriber, || {
                        (0..100).for_each(|number| drop(tracing::info_span!("request", number)));
                    });
                    together.wait();
                })
            });
            // The end of the scope does not wait for what threads do at their end, where they let go of the recorder.
            workers.into_iter().for_each(|worker| worker.join().unwrap());
        });
        // On a busy machine, the shards may be opened later.
        let begin = Instant::now();
        let are_open = || start.opened.as_ref().is_some_and(|opened| opened.count() + 1 == recorder.shard_count());
        while opens_shards && !are_open() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(recorder);
    };
    match opens_shards {
        true => start.open_shards_during(&shard0, work),
        false => work(),
    }
    assert!(!path.exists(), "the files go with the recorder");
    let (bytes_max, payload_bytes_max, every) = (1 << 20, 1 << 19, Duration::from_millis(20));
    let filter = BatchFilter::new();
    let options = BatchOptions { bytes_max, payload_bytes_max, every, level: 1, start, filter, only_new: false };
    let mut ring = Some(shard0);
    let mut next_ring = || ring.take().map_or(NextRing::NoMore, NextRing::Ring);
    let (mut events, mut lost) = (0, 0);
    let mut count = |_: &[u8], batch: &Batch<'_>| {
        (events, lost) = (events + batch.events(), lost + batch.lost());
        Ok(())
    };
    let mut batches = BatchesInMemory::new(&mut count);
    capture_batches(&mut next_ring, &mut batches, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    (events, lost)
}

#[test]
fn shards_that_were_made_and_removed_before_the_capture_begins_are_whole_if_they_were_opened() {
    let (events, lost) = captured(true);
    assert!(events >= 4 * 200 && lost == 0, "{events} events, {lost} lost");
    let (control, lost) = captured(false);
    assert!(control < events && lost > 0, "{control} events, {lost} lost");
}
