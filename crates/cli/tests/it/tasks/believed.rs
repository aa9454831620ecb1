//! Nothing is said of a task that was not recorded: a state whose end may be lost is unknown.

use super::{named, recording, runtime, tasks};
use crate::fixtures::*;
use eventring_tokio::sync::{Mutex, RwLock};
use eventring_tokio::{Task, spawn_named};
use std::pin::pin;
use tokio::sync::oneshot;

/// Plays a part until the parent has looked, and calls `check` with the ring and with a capture of it.
pub fn check(name: &str, plays: fn(), check: fn(&Path)) {
    if part().is_some() {
        plays();
        say("ready");
        wait_for_parent();
        std::process::exit(0);
    }
    let dir = directory();
    let (ring, capture) = (place(&dir, "shop"), dir.path().join("shop.evc"));
    let mut child = Talk::told(name, "plays", &ring, "ready");
    check(&ring);
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    check(&capture);
    child.kill();
    check(&ring);
}

/// A task takes its own locks so often that tokio lets others go on meanwhile. Nobody else wants them.
fn plays_a_lover_of_locks() {
    recording((17, 23));
    let runtime = runtime();
    let (lock, table) = (Mutex::new(0), RwLock::new(0));
    runtime.spawn(Task::new("alone", async move {
        for _ in 0..500 {
            *lock.lock().await += 1;
        }
        let _reads = table.read().await;
        for _ in 0..500 {
            drop(table.read().await);
        }
        tokio::time::sleep(Duration::from_secs(1000)).await;
    }));
    thread::sleep(Duration::from_millis(300));
    std::mem::forget(runtime);
}

#[test]
fn who_gives_way_to_others_waits_for_no_lock() {
    let name = test_name!();
    check(name, plays_a_lover_of_locks, |ring| {
        let answer = tasks(ring, &[]);
        assert_eq!((&answer["deadlocks"], &answer["lock_waits"]), (&json!([]), &json!([])), "{answer:#}");
        assert_eq!(named(&answer, "alone")[0]["state"], "idle", "{answer:#}");
    });
}

/// A task begins to wait for a lock in a `select!`, goes on with something else, and wants the lock again.
fn plays_a_futurelock() {
    recording((17, 23));
    let runtime = runtime();
    let lock = Arc::new(Mutex::new(0));
    let (goes_on, other) = oneshot::channel();
    let (holds, wants) = (lock.clone(), lock.clone());
    runtime.block_on(async {
        let held = holds.lock().await;
        runtime.spawn(Task::new("futurelock", async move {
            let mut queued = pin!(lock.lock());
            let mut other = other;
            tokio::select! {
                biased;
                _ = &mut other => drop(lock.lock().await),
                _ = &mut queued => panic!("the lock is held until the other branch is ready"),
            }
        }));
        tokio::time::sleep(Duration::from_millis(50)).await;
        runtime.spawn(Task::new("waits", async move { drop(wants.lock().await) }));
        tokio::time::sleep(Duration::from_millis(50)).await;
        goes_on.send(()).unwrap();
        drop(held);
        tokio::time::sleep(Duration::from_millis(300)).await;
    });
    std::mem::forget(runtime);
}

#[test]
fn a_lock_that_was_given_to_a_wait_which_nobody_polls_is_found() {
    let name = test_name!();
    check(name, plays_a_futurelock, |ring| {
        let answer = tasks(ring, &[]);
        let id = named(&answer, "futurelock")[0]["id"].clone();
        assert_eq!((&answer["futurelocks"], &answer["deadlocks"]), (&json!([id]), &json!([[id]])), "{answer:#}");
        run!("tasks", ring, "--deadlocks").shows("given to an earlier wait of its own, which it does not poll");
        let flags = run!("ask", ring, "--json").json();
        let kinds = flags["flags"].list().iter().map(|flag| &flag["flag"]);
        // The program is killed in the end.
        assert!(kinds.filter(|kind| *kind != "died").eq(["futurelock"]), "{flags:#}");
    });
}

/// Many tasks end, in a ring of which a part is overwritten, and then the program rests.
fn plays_tasks_that_ended() {
    recording((15, 21));
    let runtime = runtime();
    runtime.block_on(async {
        for number in 0..30_000 {
            let short = async move { number };
            assert_eq!(spawn_named("short", short).await.unwrap(), number);
        }
    });
    runtime
        .block_on(async { spawn_named("blocked", async { thread::sleep(Duration::from_millis(150)) }).await.unwrap() });
    runtime.block_on(async {
        for number in 0..5_000 {
            spawn_named("later", async move { info!(number) }).await.unwrap();
        }
    });
    drop(runtime);
    thread::sleep(Duration::from_millis(1_200));
}

#[test]
fn of_tasks_whose_end_may_be_overwritten_none_is_said_to_wait_or_to_run() {
    let name = test_name!();
    check(name, plays_tasks_that_ended, |ring| {
        let answer = tasks(ring, &[]);
        let listed = answer["tasks"].list();
        let is_over = |task: &Value| task["state"] == "done" || task["state"] == "ended";
        let wrong: Vec<&Value> = listed.iter().filter(|task| !is_over(task) && task["state"] != "unknown").collect();
        assert!(wrong.is_empty(), "{} of {}: {:#?}", wrong.len(), listed.len(), wrong.first());
        let unknown = listed.iter().filter(|task| task["state"] == "unknown");
        assert_eq!(answer["counts"]["unknown"], unknown.clone().count(), "{}", answer["counts"]);
        assert!(unknown.clone().all(|task| task["unknown_since_ns"].is_u64()));
        // They come last.
        assert!(listed.iter().skip_while(|task| is_over(task)).all(|task| task["state"] == "unknown"));
        assert!(listed.iter().all(|task| task["longest_poll_ns"].number() < 1_000_000_000), "{listed:#?}");
        assert_eq!((&answer["deadlocks"], &answer["futurelocks"]), (&json!([]), &json!([])));
    });
}

/// A task whose one poll goes on, after another thread was in its span.
fn plays_a_helper_in_the_span_of_a_task() {
    recording((17, 23));
    let runtime = runtime();
    runtime.spawn(Task::new("works", async {
        let span = tracing::Span::current();
        thread::spawn(move || span.in_scope(|| info!("helps"))).join().unwrap();
        thread::sleep(Duration::from_secs(1000));
    }));
    thread::sleep(Duration::from_millis(300));
    std::mem::forget(runtime);
}

#[test]
fn a_task_is_polled_on_while_another_thread_enters_and_leaves_its_span() {
    let name = test_name!();
    check(name, plays_a_helper_in_the_span_of_a_task, |ring| {
        let answer = tasks(ring, &[]);
        let works = named(&answer, "works")[0];
        assert_eq!((&works["state"], &works["polls"]), (&json!("running"), &json!(1)), "{works:#}");
        let opened = run!("open", ring, "--json").json();
        let task = opened["spans"].list().iter().find(|span| span["id"] == works["id"]).unwrap();
        assert!(!task["thread"].is_null(), "{task:#}");
    });
}
