//! What the events of tasks change in the tables of the present, through the subscriber and the layer.

use eventring::now::NowReader;
use eventring::tracing::{PerfRecorder, RecorderLayer, RecorderSubscriber};
use tracing::{Dispatch, Level, dispatcher, event, info_span};
use tracing_subscriber::prelude::*;

const TARGET: &str = "eventring::task";

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
        let task = info_span!(target: TARGET, "task");
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
