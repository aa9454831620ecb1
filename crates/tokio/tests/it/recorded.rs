//! The spans of tasks.

use crate::ring::{field, record, run};
use eventring_tokio::{JoinSetExt as _, SpawnExt as _};
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};
use tracing::{Instrument as _, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

#[test]
fn a_task_is_a_root_span_whose_polls_are_its_slices_and_whose_spans_are_its_children() {
    for with_layer in [false, true] {
        let recorded = record(with_layer, || {
            run(async {
                let work = async {
                    async { tokio::task::yield_now().await }.instrument(info_span!("query")).await;
                };
                let spawner = info_span!("request");
                let task = spawner.in_scope(|| eventring_tokio::spawn_named("worker", work));
                task.await.unwrap();
            });
        });
        let task = recorded.task("worker");
        assert_eq!((task.parent, task.slices.len(), task.is_open()), (None, 2, false), "{task:?}");
        assert_eq!((field(task, "outcome"), field(task, "kind")), ("done".into(), "async".into()));
        assert!(field(task, "spawned_at").contains("recorded.rs:"), "{task:?}");
        let children: Vec<String> = recorded.tree.children(task.id).map(|span| span.name()).collect();
        assert_eq!(children, ["query"]);
        let request = recorded.tree.iter().find(|span| span.name() == "request").unwrap();
        assert_eq!(task.follows_from, [request.id]);
        assert_eq!(recorded.count(task, "woken"), 1);
        assert_eq!(recorded.count(task, "unwakeable"), 0);
    }
}

#[test]
fn each_end_of_a_task_has_its_outcome() {
    let recorded = record(false, || {
        run(async {
            let forever = || std::future::pending::<()>();
            let aborted = eventring_tokio::spawn_named("aborted", tokio::time::sleep(Duration::from_secs(1000)));
            let never_polled = eventring_tokio::spawn_named("never polled", async {});
            never_polled.abort();
            let panicking = eventring_tokio::spawn_named("panicking", async { panic!("planted") });
            assert!(panicking.await.unwrap_err().is_panic());
            aborted.abort();
            assert!(aborted.await.unwrap_err().is_cancelled());
            tokio::select! {
                () = eventring_tokio::Task::new("dropped", forever()) => {}
                () = tokio::task::yield_now() => {}
            }
            eventring_tokio::spawn_blocking_named("blocking", || ()).await.unwrap();
            assert!(eventring_tokio::spawn_blocking(|| panic!("planted")).await.is_err());
        });
    });
    for (name, outcome, kind) in [
        ("aborted", "cancelled", "async"),
        ("never polled", "cancelled", "async"),
        ("panicking", "panicked", "async"),
        ("dropped", "cancelled", "async"),
        ("blocking", "done", "blocking"),
    ] {
        let task = recorded.task(name);
        assert_eq!((field(task, "outcome"), field(task, "kind")), (outcome.into(), kind.into()), "{name}");
        assert!(!task.is_open(), "{name}");
    }
    assert_eq!(recorded.tasks().iter().filter(|task| field(task, "outcome") == "panicked").count(), 2);
}

#[test]
fn each_way_to_spawn_makes_one_task() {
    let recorded = record(false, || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let of_runtime = runtime.spawn_task("runtime", async {});
        let of_handle = runtime.handle().spawn_task("handle", async {});
        runtime.block_on(async {
            of_runtime.await.unwrap();
            of_handle.await.unwrap();
            let (mut set, local) = (JoinSet::new(), LocalSet::new());
            set.spawn_task("set", async {});
            set.spawn_task_on("set on local", async {}, &local);
            let of_local = async {
                eventring_tokio::spawn_local(async {}).await.unwrap();
                eventring_tokio::spawn_local_named("local", async {}).await.unwrap();
            };
            local.run_until(of_local).await;
            local.run_until(set.join_all()).await;
        });
    });
    let mut names: Vec<String> = recorded.tasks().iter().map(|task| field(task, "name")).collect();
    names.sort_unstable();
    assert!(names.iter().any(|name| name.contains("each_way_to_spawn_makes_one_task")), "{names:?}");
    names.retain(|name| !name.contains("::"));
    assert_eq!(names, ["handle", "local", "runtime", "set", "set on local"]);
}

#[test]
fn whoever_does_not_want_tasks_gets_none() {
    let filter = tracing_subscriber::filter::Targets::new().with_target("other", tracing::Level::TRACE);
    let subscriber = tracing_subscriber::registry().with(filter);
    tracing::subscriber::with_default(subscriber, || {
        let task = eventring_tokio::Task::new("not wanted", tokio::task::yield_now());
        assert!(task.span().is_disabled());
        run(task);
    });
}

#[test]
fn locks_say_who_waits_and_who_holds() {
    let recorded = record(false, || {
        run(async {
            static LOCK: eventring_tokio::sync::Mutex<()> = eventring_tokio::sync::Mutex::new(());
            let held = LOCK.lock().await;
            let waits = eventring_tokio::spawn_named("waits", async { drop(LOCK.lock().await) });
            tokio::task::yield_now().await;
            let given_up = tokio::time::timeout(Duration::from_millis(1), LOCK.lock());
            assert!(given_up.await.is_err());
            drop(held);
            waits.await.unwrap();
        });
    });
    let task = recorded.task("waits").id.get();
    let of = |span: u64| {
        let names = recorded.events.iter().filter(|(of, name)| *of == span && name.starts_with("lock"));
        names.map(|(_, name)| name.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(task), ["lock_wait", "lock_held", "lock_free"]);
    assert_eq!(of(0), ["lock_held", "lock_wait", "lock_free", "lock_free"]);
}
