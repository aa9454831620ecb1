//! Perfetto shows a track for each task, with what it does, and arrows from who woke it to its next poll.

use super::recording;
use crate::consumers;
use crate::fixtures::*;
use eventring_tokio::{instrument, spawn_named};
use tokio::runtime::Builder;
use tokio::sync::mpsc;

/// A task that answers ten times, one that asks it, and one that waits for ever.
fn plays() {
    recording((17, 23));
    let mut builder = Builder::new_multi_thread();
    let runtime = instrument(builder.worker_threads(1).enable_time()).build().unwrap();
    runtime.block_on(async {
        let (ask, mut asked) = mpsc::channel::<u32>(1);
        let (answer, mut answered) = mpsc::channel::<u32>(1);
        let answers = spawn_named("answers", async move {
            while let Some(number) = asked.recv().await {
                answer.send(number + 1).await.unwrap();
            }
        });
        let asks = spawn_named("asks", async move {
            for number in 0..10 {
                ask.send(number).await.unwrap();
                assert_eq!(answered.recv().await, Some(number + 1));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let _waits = spawn_named("waits", std::future::pending::<()>());
        asks.await.unwrap();
        answers.await.unwrap();
    });
    say("ready");
    wait_for_parent();
    std::process::exit(0);
}

#[test]
fn perfetto_has_a_track_for_each_task_and_arrows_from_wakes_to_polls() {
    let name = plays!(plays());
    let (_dir, [ring, capture, trace]) = places(["shop", "t.evc", "trace"]);
    let mut child = Talk::told(name, "asks", &ring, "ready");
    run!("capture", &ring, "-o", &capture, "--now", "--json").json();
    let tasks = run!("tasks", &capture, "--json").json();
    run!("export", &capture, "-o", &trace, "--json").json();
    child.kill();
    let Some(answers) = consumers::read("trace_processor.py", &trace) else { return };
    assert_eq!(answers["errors"], json!([]), "{answers:#}");
    let slices = answers["slices"].list();
    let on = |title: &str| -> Vec<&Value> { slices.iter().filter(|slice| slice["title"] == title).collect() };
    for task in tasks["tasks"].list() {
        let name = task["name"].text();
        let track = on(&format!("task {name}"));
        let mut sums = BTreeMap::<&str, (u64, u64)>::new();
        for slice in track.iter().filter(|slice| slice["depth"] == 1) {
            let sum = sums.entry(slice["name"].text()).or_default();
            *sum = (sum.0 + 1, sum.1 + slice["dur"].number());
        }
        let polled = (task["polls"].number(), task["busy_ns"].number());
        assert_eq!(sums["polled"], polled, "{name}: {track:#?}");
        // It was spawned, and then woken before each further poll.
        assert_eq!(sums["woken"].0, polled.0, "{name}: {track:#?}");
        let life = track.iter().find(|slice| slice["depth"] == 0).unwrap();
        assert_eq!(life["name"], name);
        // Its states fill its life, up to its end.
        let all: u64 = sums.values().map(|(_, nanos)| nanos).sum();
        let life_nanos = life["dur"].number();
        assert!(all <= life_nanos && life_nanos - all < 2_000_000, "{name}: {sums:?} {life:#}");
        assert_eq!(track.iter().filter(|slice| slice["depth"] == 0).count(), 1);
    }
    assert!(on("task waits").iter().any(|slice| slice["name"] == "idle"), "{:#?}", on("task waits"));
    assert!(on("parked").iter().all(|slice| slice["name"] == "parked") && on("parked").len() >= 9);
    // `answers` is woken by `asks` ten times, and by its end; `asks` by `answers` and by timers, which are in no task.
    let id = |name: &str| {
        let task = tasks["tasks"].list().iter().find(|task| task["name"] == name).unwrap();
        task["id"].to_string()
    };
    let span_of = |slice: &Value| {
        let slice = slices.iter().find(|found| found["id"] == *slice).unwrap();
        slice["args"]["debug.span_id"][1].to_string().replace('"', "")
    };
    let flows = answers["flows"].list().iter();
    let mut arrows = BTreeMap::<(String, String), u64>::new();
    flows.for_each(|flow| *arrows.entry((span_of(&flow["begin"]), span_of(&flow["end"]))).or_default() += 1);
    let between = |from: &str, to: &str| arrows.get(&(id(from), id(to))).copied().unwrap_or(0);
    assert!(between("asks", "answers") >= 10, "{arrows:?}");
    assert!(between("answers", "asks") >= 1 && between("asks", "waits") == 0, "{arrows:?}");
}
