//! Other threads than that of the subscriber record wakes of its tasks.

use crate::ring::{record, run};

#[test]
fn a_thread_without_a_subscriber_records_its_wakes_for_that_of_the_task() {
    let recorded = record(false, || {
        run(async {
            let (sender, receiver) = tokio::sync::oneshot::channel();
            let waits = eventring_tokio::spawn_named("waits", receiver);
            tokio::task::yield_now().await;
            std::thread::spawn(|| sender.send(()).unwrap()).join().unwrap();
            waits.await.unwrap().unwrap();
        });
    });
    assert_eq!(recorded.count(recorded.task("waits"), "woken"), 1);
}

#[test]
fn a_runtime_that_is_instrumented_says_when_its_worker_parks_and_goes_on() {
    let recorded = record(false, || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = eventring_tokio::instrument(builder.enable_time()).build().unwrap();
        runtime.block_on(async { tokio::time::sleep(std::time::Duration::from_millis(5)).await });
    });
    assert!(recorded.workers >= 2 && recorded.workers % 2 == 0, "{}", recorded.workers);
}

#[cfg(tokio_unstable)]
#[test]
fn the_hooks_record_each_task_once() {
    let recorded = record(false, || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        eventring_tokio::instrument(&mut builder).build().unwrap().block_on(async {
            tokio::spawn(tokio::task::yield_now()).await.unwrap();
            eventring_tokio::spawn_named("ours", async {}).await.unwrap();
        });
    });
    let tasks = recorded.tasks();
    assert_eq!(tasks.len(), 2, "{tasks:?}");
    let hooked = tasks.iter().find(|task| crate::ring::field(task, "kind") == "hooked").unwrap();
    assert_eq!((hooked.slices.len(), hooked.is_open()), (2, false));
    assert_eq!(recorded.task("ours").slices.len(), 1);
}
