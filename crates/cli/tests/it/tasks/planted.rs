//! Planted faults are found in each run, and nothing is found in clean ones.

use super::{named, recording, runtime, tasks};
use crate::fixtures::*;
use eventring_tokio::sync::{Mutex, RwLock};
use eventring_tokio::{JoinSetExt as _, Task, spawn_named};
use std::future::poll_fn;
use std::task::Poll;
use tokio::sync::{Barrier, Semaphore, oneshot};
use tokio::task::JoinSet;

/// Returns how often faults are planted: a few times, or as often as `EVENTRING_TASK_FAULTS` says.
pub fn runs() -> u32 {
    std::env::var("EVENTRING_TASK_FAULTS").map_or(2, |runs| runs.parse().unwrap())
}

/// A future that drops its waker.
pub async fn drops_its_waker() {
    poll_fn(|context| {
        drop(context.waker().clone());
        Poll::<()>::Pending
    })
    .await;
}

/// Takes two locks; all who do this have the first one before any wants the second one.
pub async fn takes(locks: Arc<[Mutex<u32>; 3]>, first: usize, barrier: Arc<Barrier>) {
    let _held = locks[first].lock().await;
    barrier.wait().await;
    let second = &locks[(first + 1) % 3];
    async { drop(second.lock().await) }.instrument(info_span!("second")).await;
}

/// Reads under one lock, and wants to write under the other one.
async fn reads_and_wants(locks: Arc<[RwLock<u32>; 2]>, first: usize, barrier: Arc<Barrier>) {
    let _held = locks[first].read().await;
    barrier.wait().await;
    let second = &locks[1 - first];
    async { drop(second.write().await) }.instrument(info_span!("write")).await;
}

fn plays_faults() {
    recording((17, 23));
    let runtime = runtime();
    let (tables, both) = (Arc::new([RwLock::new(0), RwLock::new(1)]), Arc::new(Barrier::new(2)));
    for first in 0..2 {
        runtime.spawn(Task::new(&format!("table {first}"), reads_and_wants(tables.clone(), first, both.clone())));
    }
    // Who waits for a permit is in no cycle.
    let permits = Arc::new(Semaphore::new(0));
    let waits = permits.clone();
    let waits = async move { async { drop(waits.acquire().await) }.instrument(info_span!("acquire")).await };
    runtime.spawn(Task::new("permit", waits));
    let (locks, barrier) = (Arc::new([Mutex::new(0), Mutex::new(1), Mutex::new(2)]), Arc::new(Barrier::new(3)));
    for first in 0..3 {
        runtime.spawn(Task::new(&format!("holder {first}"), takes(locks.clone(), first, barrier.clone())));
    }
    runtime.spawn(Task::new("bystander", async move { drop(locks[0].lock().await) }));
    runtime.spawn(Task::new("blocker", async { thread::sleep(Duration::from_millis(300)) }));
    runtime.spawn(Task::new("lost", drops_its_waker()));
    let (sender, receiver) = oneshot::channel::<()>();
    runtime.spawn(Task::new("idle", async { receiver.await.unwrap() }));
    let mut storm = None;
    let stormy = poll_fn(move |context| {
        storm.get_or_insert_with(|| {
            let waker = context.waker().clone();
            thread::spawn(move || (0..5000).for_each(|_| waker.wake_by_ref())).join().unwrap();
        });
        Poll::Ready(())
    });
    runtime.block_on(async { runtime.spawn(Task::new("stormy", stormy)).await.unwrap() });
    thread::sleep(Duration::from_millis(400));
    say("ready");
    wait_for_parent();
    drop((sender, permits));
    std::process::exit(0);
}

/// Checks that each planted fault was found, and nothing else.
fn check_faults(ring: &Path) {
    let answer = tasks(ring, &[]);
    let id = |name: &str| named(&answer, name)[0]["id"].number();
    let mut cycle = [id("holder 0"), id("holder 1"), id("holder 2")].to_vec();
    let smallest = (0..3).min_by_key(|at| cycle[*at]).unwrap();
    cycle.rotate_left(smallest);
    let mut tables = vec![id("table 0"), id("table 1")];
    tables.sort_unstable();
    let mut cycles = [cycle, tables];
    cycles.sort_unstable();
    assert_eq!(answer["deadlocks"], json!([cycles[0], cycles[1], [id("lost")]]), "{answer:#}");
    let permit = named(&answer, "permit")[0];
    assert!(permit["state"] == "idle" && permit["span"].text().ends_with("::acquire"), "{permit:#}");
    for first in 0..3 {
        let task = named(&answer, &format!("holder {first}"))[0];
        assert!(task["state"] == "idle" && task["span"].text().ends_with("::second"), "{task:#}");
        assert!(task["spawned_at"].text().contains("planted.rs:"), "{task:#}");
    }
    // On a busy machine the storm takes long, too.
    let slowest = answer["tasks"].list().iter().find(|task| task["name"] != "stormy").unwrap();
    assert!(slowest["name"] == "blocker" && slowest["longest_poll_ns"].number() >= 300_000_000, "{answer:#}");
    let by_wakes = tasks(ring, &["--slowest", "wakes"]);
    assert_eq!((&by_wakes["tasks"][0]["name"], &by_wakes["tasks"][0]["wakes"]), (&"stormy".into(), &5000.into()));
    assert!(named(&answer, "lost")[0]["unwakeable"] == true && named(&answer, "idle")[0]["unwakeable"] == false);
    let people = run!("tasks", ring, "--deadlocks");
    assert!(
        people.out.matches(" wait for locks that the next one holds").count() == 2
            && !["bystander", "permit"].iter().any(|other| people.out.contains(other)),
        "{people:?}"
    );
    assert!(people.out.contains("lost (") && people.out.contains("nobody can wake it any more"), "{people:?}");
}

#[test]
fn planted_faults_are_found_in_each_run_live_and_after_a_kill() {
    let name = plays!(plays_faults());
    for _ in 0..runs() {
        let (_dir, [ring]) = places(["shop"]);
        let mut child = Talk::told(name, "faults", &ring, "ready");
        check_faults(&ring);
        child.kill();
        check_faults(&ring);
    }
}

/// Takes locks in one order, and hands messages on.
fn plays_clean() {
    recording((17, 23));
    let runtime = runtime();
    let (locks, table) = (Arc::new([Mutex::new(0), Mutex::new(1), Mutex::new(2)]), Arc::new(RwLock::new(0)));
    runtime.block_on(async {
        let mut set = JoinSet::new();
        for number in 0..30 {
            let (locks, table) = (locks.clone(), table.clone());
            set.spawn_task("clean", async move {
                for round in 0..20 {
                    let first = locks[number % 2].lock().await;
                    tokio::task::yield_now().await;
                    let second = locks[2].lock().await;
                    if (number + round) % 7 == 0 {
                        *table.write().await += 1;
                    } else {
                        let _ = *table.read().await;
                    }
                    drop((first, second));
                }
            });
        }
        let waits_for_ever = tokio::time::sleep(Duration::from_secs(1000));
        let _idle = spawn_named("idle", waits_for_ever);
        while set.join_next().await.is_some() {}
        say("ready");
        wait_for_parent();
    });
}

#[test]
fn nothing_is_found_in_clean_runs() {
    let test = plays!(plays_clean());
    for _ in 0..runs() {
        let (_dir, [ring]) = places(["shop"]);
        let mut child = Talk::told(test, "clean", &ring, "ready");
        let answer = tasks(&ring, &["--deadlocks"]);
        assert_eq!((&answer["deadlocks"], &answer["tasks"]), (&json!([]), &json!([])));
        run!("open", &ring).shows("task").shows("name=\"idle\"");
        child.kill();
        let answer = tasks(&ring, &[]);
        assert_eq!((&answer["deadlocks"], &named(&answer, "idle")[0]["state"]), (&json!([]), &"idle".into()));
        assert_eq!(named(&answer, "clean").iter().filter(|task| task["state"] == "done").count(), 30);
        run!("tasks", &ring, "--deadlocks").shows("no deadlocks");
    }
}
