//! The news of a live ring as a stream.

use crate::streams::{chain, node};
use eventring::reader::Reader;
use eventring_exec::{BlockUpdate, Blocks, Replay, Wanted};
use futures_lite::future::{block_on, or, poll_once, yield_now};
use futures_lite::{Stream, StreamExt as _};
use std::time::{Duration, Instant};

#[test]
fn a_stream_of_news_is_cancel_safe_idle_without_events_and_ends_with_the_ring() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("node");
    let recorder = node(&path);
    let mut news = Blocks::of_ring(&Reader::open(&path).unwrap(), Wanted::ALL).unwrap().into_stream().unwrap();
    // Nothing has come, and a `next` that is dropped takes nothing.
    assert!(block_on(poll_once(news.next())).is_none());
    let begin = Instant::now();
    std::thread::sleep(Duration::from_millis(1500));
    let (used, passed) = (cpu_nanos(), begin.elapsed().as_nanos() as u64);
    // A build without optimizations takes about twice as much.
    assert!(
        used < passed / if cfg!(debug_assertions) { 50 } else { 100 },
        "{used} ns of {passed} ns while nothing came"
    );
    let events = chain(&(1..=50).map(|number| (number, number as u8)).collect::<Vec<_>>());
    let recording = std::thread::spawn(move || {
        let mut replay = Replay::new(&recorder);
        events.iter().for_each(|(event, payload)| _ = replay.record(event, payload));
    });
    let told = block_on(async {
        let mut told = Vec::new();
        loop {
            // Most of these are dropped before anything came.
            let next = or(async { Some(news.next().await) }, async {
                yield_now().await;
                None
            });
            match next.await {
                Some(Some(BlockUpdate::Changed(update))) => told.push((update.tag.block_number, update.state.name())),
                Some(Some(other)) => panic!("{other:?}"),
                Some(None) => return told,
                None => {}
            }
        }
    });
    recording.join().unwrap();
    assert_eq!(told.len(), 50 * 4 - 1);
    for (number, state) in (1..=50).flat_map(|number| ["proposed", "voted", "finalized"].map(|state| (number, state))) {
        assert_eq!(told.iter().filter(|found| **found == (number, state)).count(), 1, "{number} {state}");
    }
    fn is_stream(_: &(impl Stream<Item = BlockUpdate> + Send + Unpin)) {}
    is_stream(&news);
}

/// Returns the processor time of the thread that reads for the stream.
fn cpu_nanos() -> u64 {
    let of_thread = std::fs::read_dir("/proc/self/task").unwrap().find_map(|task| {
        let path = task.ok()?.path();
        let name = std::fs::read_to_string(path.join("comm")).ok()?;
        name.starts_with("eventring-block").then(|| std::fs::read_to_string(path.join("schedstat")).ok())?
    });
    of_thread.unwrap().split(' ').next().unwrap().parse().unwrap()
}
