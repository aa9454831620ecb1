//! `capture --on` with conditions about tasks: each planted fault fires once, and nothing fires in clean runs.

use super::planted::{drops_its_waker, runs, takes};
use super::recording;
use crate::fixtures::*;
use crate::triggers::{checked, count, result, watch_before};
use eventring_tokio::spawn_named;
use eventring_tokio::sync::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Barrier, Notify};

/// A task that waits for a worker as long as this is starved.
const STARVED: Duration = Duration::from_millis(150);

fn one_worker() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

/// Sleeps and yields, and is never slow for long, unless the machine is too busy. Returns the longest time without a
/// poll.
async fn goes_on() -> Duration {
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    for _ in 0..250 {
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(2)).await;
        longest = longest.max(last.elapsed());
        last = Instant::now();
    }
    longest
}

fn plays_faults() {
    recording((17, 23));
    let (locks, barrier) = (Arc::new([Mutex::new(0), Mutex::new(1), Mutex::new(2)]), Arc::new(Barrier::new(3)));
    let runtime = one_worker();
    let first_wait = runtime.block_on(async {
        let goes_on = spawn_named("goes on", goes_on());
        for first in 0..3 {
            spawn_named(&format!("holder {first}"), takes(locks.clone(), first, barrier.clone()));
        }
        spawn_named("lost", drops_its_waker());
        let starts = Arc::new(Notify::new());
        let spawned = Instant::now();
        let starved = spawn_named("starved", {
            let starts = starts.clone();
            async move {
                let first_wait = spawned.elapsed();
                starts.notified().await;
                first_wait
            }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        let blocker = spawn_named("blocker", async move {
            starts.notify_one();
            thread::sleep(Duration::from_millis(300));
        });
        blocker.await.unwrap();
        let first_wait = starved.await.unwrap();
        goes_on.await.unwrap();
        first_wait
    });
    // The tasks that wait for ever have done so for long enough.
    thread::sleep(Duration::from_millis(300));
    // A busy machine may have starved it once more, after it was spawned.
    say(if first_wait < STARVED { "1" } else { "2" });
    wait_for_parent();
    std::process::exit(0);
}

fn plays_clean() {
    recording((17, 23));
    let runtime = one_worker();
    let longest = runtime.block_on(async {
        let other = spawn_named("other", std::future::pending::<()>());
        let spawned = Instant::now();
        let first_poll = spawn_named("first", async move { spawned.elapsed() });
        let clean: Vec<_> = (0..3).map(|_| spawn_named("clean", goes_on())).collect();
        let mut longest = first_poll.await.unwrap();
        for task in clean {
            longest = longest.max(task.await.unwrap());
        }
        other.abort();
        longest
    });
    say(longest.as_millis());
    wait_for_parent();
    std::process::exit(0);
}

/// How often each condition has fired for each task.
type Fired = BTreeMap<(String, String), u64>;

/// Watches a program with these conditions. Returns what has fired, and the number that the program says.
fn fired(test: &str, part: &str, ring: &Path, conditions: &[&str]) -> (Fired, u64) {
    let files = ring.with_file_name("{n}-{span}.evc");
    let on = conditions.iter().flat_map(|condition| ["--on", condition]);
    let rest = ["--debounce", "0", "--before", "100ms", "--after", "0s", "-o", argument(&files)];
    let live = watch_before(ring, &on.chain(rest).collect::<Vec<_>>());
    let mut child = Talk::start(test, part, ring);
    let said = child.hear().parse().unwrap();
    child.kill();
    let result = result(&live.end());
    let mut fired = Fired::new();
    for file in result["files"].list() {
        let (path, manifest) = checked(file);
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (_, task) = name.split_once('-').unwrap();
        *fired.entry((manifest["reason"].text().to_owned(), task.to_owned())).or_default() += 1;
    }
    assert_eq!(fired.values().sum::<u64>(), count(&result, "fired"), "{result:#}");
    (fired, said)
}

#[test]
fn each_planted_fault_fires_once() {
    let name = plays!(plays_faults());
    let [blocking, starved] = ["task=blocker poll>150ms", "task=starved woken>150ms"];
    let [lost, holders] = ["task=lost idle>200ms", "task=\"holder *\" idle>200ms"];
    for _ in 0..runs() {
        let (_dir, [ring]) = places(["shop"]);
        let (seen, times_starved) = fired(name, "faults", &ring, &[blocking, starved, lost, holders]);
        let expected = [(blocking, "blocker", 1), (starved, "starved", times_starved), (lost, "lost", 1)];
        let expected = expected.into_iter().chain(["holder_0", "holder_1", "holder_2"].map(|of| (holders, of, 1)));
        let expected = expected.map(|(condition, task, times)| ((condition.to_owned(), task.to_owned()), times));
        assert_eq!(seen, expected.collect());
    }
}

#[test]
fn nothing_fires_in_clean_runs_that_last_longer_than_each_limit() {
    let name = plays!(plays_clean());
    let mut busy = 0;
    for _ in 0..runs() {
        let (_dir, [ring]) = places(["shop"]);
        let conditions = ["poll>400ms", "woken>400ms", "task!=other idle>400ms", "task=other idle>400ms"];
        let (seen, longest_millis) = fired(name, "clean", &ring, &conditions);
        // Then the run was not clean: the machine has let its tasks wait.
        if longest_millis > 200 {
            busy += 1;
            continue;
        }
        // The control: the one task that was idle for so long.
        assert_eq!(seen, Fired::from([((conditions[3].to_owned(), "other".to_owned()), 1)]));
    }
    assert!(busy <= 1 + runs() / 4, "{busy} runs were not clean: this machine is too busy to say anything");
}
