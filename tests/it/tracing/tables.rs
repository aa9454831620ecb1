//! What the events of tasks change in the tables of the present, through the subscriber and the layer.

use crate::fixtures::*;
use eventring::now::NowReader;
use tracing::{Level, dispatcher, event};
use tracing_subscriber::prelude::*;

const TARGET: &str = "eventring::task";

/// A program has one call site of tasks' spans.
fn task_span() -> tracing::Span {
    info_span!(target: TARGET, "task")
}

fn on_both(test: impl Fn(&NowReader)) {
    for of_layer in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r.ring");
        let builder = PerfRecorder::builder().config(&path).shifts(15, 21).tables_shift(13).prefault(false);
        let recorder = builder.build().unwrap();
        let shard0 = eventring::reader::Reader::open(recorder.path().unwrap()).unwrap();
        let now = NowReader::open_beside(&shard0).unwrap().unwrap();
        let dispatch = if of_layer {
            Dispatch::new(tracing_subscriber::registry().with(RecorderLayer::new(recorder)))
        } else {
            Dispatch::new(RecorderSubscriber::new(recorder))
        };
        dispatcher::with_default(&dispatch, || test(&now));
    }
}

#[test]
fn a_lock_has_a_cell_from_its_wait_until_its_guard_is_dropped() {
    on_both(|now| {
        let (lock, guard, mode) = (7_u64, 9_u64, "mutex");
        event!(name: "lock_wait", target: TARGET, Level::INFO, lock, guard, mode, "lock_wait");
        assert_eq!(
            now.read().locks.iter().map(|of| (of.lock, of.guard, of.is_held)).collect::<Vec<_>>(),
            [(7, 9, false)]
        );
        event!(name: "lock_held", target: TARGET, Level::INFO, lock, guard, mode, "lock_held");
        assert_eq!(
            now.read().locks.iter().map(|of| (of.lock, of.guard, of.is_held)).collect::<Vec<_>>(),
            [(7, 9, true)]
        );
        event!(name: "lock_free", target: TARGET, Level::INFO, lock, guard, mode, "lock_free");
        assert!(now.read().locks.is_empty());
    });
}

#[test]
fn a_task_is_woken_once_by_each_wake_and_ends_with_its_span() {
    on_both(|now| {
        let task = task_span();
        let id = now.read().tasks[0].id;
        for wakes in 1..4 {
            event!(name: "woken", target: TARGET, parent: &task, Level::INFO, {});
            assert_eq!(now.task(id).unwrap().wakes, wakes);
        }
        assert!(!now.task(id).unwrap().is_unwakeable);
        event!(name: "unwakeable", target: TARGET, parent: &task, Level::INFO, {});
        assert!(now.task(id).unwrap().is_unwakeable);
        drop(task);
        assert_eq!((now.task(id), now.read().tasks), (None, Vec::new()));
    });
}

#[test]
fn the_tables_of_a_recorder_that_makes_all_shards_at_build_never_grow() {
    use std::os::unix::fs::MetadataExt as _;

    // Spans of other tests would have some of the cells.
    eventring_stress::alone!();
    const CELLS: u64 = 1 << 14;
    let (_directory, [path]) = places(["r.ring"]);
    let builder = PerfRecorder::builder().config(&path).shifts(15, 21).tables_shift(13).shards(1).prefault(false);
    let recorder = builder.all_shards_at_build(true).build().unwrap();
    let now = NowReader::open_beside(&eventring::reader::Reader::open(&path).unwrap()).unwrap().unwrap();
    let on_disk = || std::fs::metadata(eventring::internal::now_path(&path)).unwrap().blocks() * 512;
    let before = on_disk();
    assert!((4 << 20..5 << 20).contains(&before), "{before}");
    dispatcher::with_default(&Dispatch::new(RecorderSubscriber::new(recorder.clone())), || {
        let open: Vec<_> = (0..CELLS + 10).map(|_| task_span()).collect();
        assert_eq!((now.read().spans.len() as u64, now.untabled().spans), (CELLS, 10));
        // A task of a span without a cell is no further loss.
        assert_eq!((now.read().tasks.len() as u64, now.untabled().tasks), (CELLS, 0));
        let (lock, guard, mode) = (7_u64, 9_u64, "mutex");
        event!(name: "lock_held", target: TARGET, Level::INFO, lock, guard, mode, "lock_held");
        assert_eq!(now.read().locks.len(), 1);
        drop(open);
        // The tables are whole again.
        assert_eq!(now.untabled(), Default::default());
    });
    assert_eq!(on_disk(), before);
}
