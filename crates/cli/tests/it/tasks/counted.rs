//! What the verb counts is what programs count themselves.

use super::counters::{Counters, check};
use super::{LAYERED, named, recording, runtime, tasks};
use crate::fixtures::*;
use crate::program::memory_of;
use eventring_tokio::{JoinSetExt as _, Task, spawn_named};
use std::future::pending;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, LocalSet};

/// The largest memory of the verb, in KiB, however many tasks have ended. (It was 59 MiB for a hundred thousand, and 71
/// MiB for a million.)
const MEMORY_KIB: u64 = 96 << 10;

async fn each_kind(counters: &Arc<Counters>) {
    let pause = || tokio::time::sleep(Duration::from_millis(1));
    let (sender, mut receiver) = mpsc::channel(4);
    let sends = counters.of(async move {
        for number in 0..50 {
            sender.send(number).await.unwrap();
        }
    });
    let selects = counters.of(async move {
        let mut sum = 0;
        loop {
            tokio::select! {
                number = receiver.recv() => match number {
                    Some(number) => sum += number,
                    None => break sum,
                },
                () = tokio::time::sleep(Duration::from_secs(100)) => unreachable!(),
            }
        }
    });
    let (sends, selects) = (spawn_named("sends", sends), spawn_named("selects", selects));
    sends.await.unwrap();
    assert_eq!(selects.await.unwrap(), 1225);
    let mut set = JoinSet::new();
    for _ in 0..20 {
        set.spawn_task("of a set", counters.of(pause()));
    }
    while set.join_next().await.is_some() {}
    spawn_named(
        "blocks",
        counters.of(async {
            tokio::task::yield_now().await;
            tokio::task::block_in_place(|| thread::sleep(Duration::from_millis(2)));
            tokio::task::yield_now().await;
        }),
    )
    .await
    .unwrap();
    let aborted = spawn_named("aborted", counters.of(tokio::time::sleep(Duration::from_secs(100))));
    tokio::time::sleep(Duration::from_millis(5)).await;
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    assert!(spawn_named("panics", counters.of(async { panic!("planted") })).await.unwrap_err().is_panic());
    tokio::select! {
        () = Task::new("loses", counters.of(pending())) => {}
        () = pause() => {}
    }
}

#[test]
fn tasks_polls_and_wakes_are_those_that_the_program_counts() {
    let name = plays!({
        recording((17, 23));
        let counters = Arc::new(Counters::default());
        runtime().block_on(each_kind(&counters));
        let local = LocalSet::new();
        let of_local = async {
            eventring_tokio::spawn_local_named("local", counters.of(tokio::task::yield_now())).await.unwrap();
        };
        Builder::new_current_thread().build().unwrap().block_on(local.run_until(of_local));
        counters.say();
        wait_for_parent();
    });
    for by in ["counts", LAYERED] {
        let (dir, [ring]) = places(["shop"]);
        let mut child = Talk::start(name, by, &ring);
        let counted = child.hear();
        let answer = tasks(&ring, &[]);
        let counts = &answer["counts"];
        check(counts, &counted);
        assert_eq!((&counts["cancelled"], &counts["panicked"], &counts["done"]), (&2.into(), &1.into(), &24.into()));
        assert_eq!((&answer["lost"], &answer["deadlocks"]), (&0.into(), &json!([])), "{answer:#}");
        let sum = |what: &str| answer["tasks"].list().iter().map(|task| task[what].number()).sum::<u64>();
        assert_eq!((sum("polls"), sum("wakes")), (counts["polls"].number(), counts["wakes"].number()));
        let blocks = named(&answer, "blocks")[0];
        assert!(blocks["longest_poll_ns"].number() >= 2_000_000 && blocks["state"] == "done", "{blocks:#}");
        assert!(blocks["scheduled_p99_ns"].number() > 0, "{blocks:#}");
        // A capture that was cut says so.
        let capture = place(&dir, "shop.evc");
        run!("capture", &ring, "--now", "-o", &capture).ends(0);
        let whole = fs::read(&capture).unwrap();
        fs::write(&capture, &whole[..whole.len() - 100]).unwrap();
        run!("tasks", &capture, "--json").fails(6, "truncated");
        // The control: what is listed may be less, what is counted not.
        let few = tasks(&ring, &["--max", "3"]);
        assert_eq!((few["tasks"].list().len(), &few["counts"]["polls"]), (3, &counts["polls"]));
        assert_eq!(few["counts"]["not_listed"], 24);
        assert!(child.end().success());
    }
}

#[test]
fn a_hundred_thousand_tasks_are_counted_exactly() {
    // With EVENTRING_MANY_TASKS, a million: the ring takes a gigabyte.
    let many = std::env::var_os("EVENTRING_MANY_TASKS").is_some();
    let (count, shifts) = if many { (1_000_000, (23, 29)) } else { (100_000, (20, 26)) };
    let name = plays!({
        recording(shifts);
        let counters = Arc::new(Counters::default());
        Builder::new_current_thread().build().unwrap().block_on(async {
            for _ in 0..count / 100 {
                let mut set = JoinSet::new();
                for _ in 0..100 {
                    set.spawn_task("one of many", counters.of(tokio::task::yield_now()));
                }
                set.join_all().await;
            }
        });
        counters.say();
        wait_for_parent();
    });
    let (dir, [ring]) = places(["shop"]);
    let mut child = Talk::start(name, "many", &ring);
    let counted = child.hear();
    let answer = tasks(&ring, &[]);
    let counts = &answer["counts"];
    assert_eq!(check(counts, &counted), [count, 2 * count, count]);
    assert_eq!((&counts["not_listed"], &answer["lost"]), (&(count - 10_000).into(), &0.into()));
    assert_eq!(answer["tasks"].list().len(), 10_000);
    // Ended tasks are counted, not kept: a capture takes no more memory, however many there are.
    let capture = place(&dir, "t.evc");
    run!("capture", &ring, "-o", &capture, "--now", "--json").json();
    let mut verb = program!("tasks", &capture, "--json", "--max", "100");
    verb.stdout(Stdio::null());
    let (is_ok, memory_kib) = memory_of(verb);
    assert!(is_ok && memory_kib < MEMORY_KIB, "{memory_kib} KiB");
    assert!(child.end().success());
}
