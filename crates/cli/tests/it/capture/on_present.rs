//! Conditions about the present fire for what is, whatever the rings have forgotten: tables of the present know it.

use crate::fixtures::*;
use crate::tasks::recording;
use crate::triggers::{count, result, wait_for, watch_before};
use eventring_tokio::spawn_named;
use std::sync::Mutex;
use std::task::{Poll, Waker};
use tokio::runtime::Builder;

/// The events that a ring of these tests holds.
const RING: u64 = 1 << 15;
const SHIFTS: (u32, u32) = (15, 21);

/// Records so many short spans, of four events each, on this thread.
fn flood(spans: u64) {
    (0..spans).for_each(|n| info_span!("brief", n).in_scope(|| ()));
}

/// Returns how often each condition has fired for each name.
fn fired(result: &Value) -> BTreeMap<(&str, String), u64> {
    let mut fired = BTreeMap::new();
    for file in result["files"].list() {
        let name = file["file"].text().rsplit_once('/').unwrap().1;
        let name = name.split_once('-').unwrap().1.trim_end_matches(".evc").to_owned();
        *fired.entry((file["reason"].text(), name)).or_default() += 1;
    }
    assert_eq!(fired.values().sum::<u64>(), count(result, "fired"), "{result:#}");
    fired
}

/// Opens and ends a thousand tasks and many spans while the rings are overwritten ten times and more. One span stays
/// open, one task idle, and one waits for a worker.
fn plays_flood() {
    recording(SHIFTS);
    let stays = info_span!("stays");
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    runtime.block_on(async {
        spawn_named("waits", std::future::pending::<()>());
        // A watch that follows the rings sees these before they are overwritten.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let waker = Arc::new(Mutex::new(None));
        let starved = spawn_named("starved", {
            let waker = waker.clone();
            std::future::poll_fn(move |context| match waker.lock().unwrap().replace(context.waker().clone()) {
                Some(_) => Poll::Ready(()),
                None => Poll::Pending,
            })
        });
        for n in 0..1000 {
            spawn_named(&format!("task {n}"), async move { flood(10 * RING / 1000) }).await.unwrap();
        }
        flood(10 * RING / 4);
        let blocker = spawn_named("blocker", async move {
            // It waits since the first wake.
            for _ in 0..16 {
                waker.lock().unwrap().as_ref().map(Waker::wake_by_ref).unwrap();
                thread::sleep(Duration::from_millis(50));
            }
        });
        blocker.await.unwrap();
        starved.await.unwrap();
    });
    thread::sleep(Duration::from_millis(700));
    say(0);
    wait_for_parent();
    drop(stays);
    std::process::exit(0);
}

#[test]
fn a_flood_of_short_spans_and_tasks_fires_nothing_and_each_that_stays_fires_once() {
    let name = plays!(plays_flood());
    let [open, woken] = ["open>500ms (span=brief or span=stays)", "woken>500ms"];
    let idle = "idle>500ms task!=starved";
    let (_directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let options = ["--on", open, "--on", woken, "--on", idle, "--debounce", "0", "--after", "0s"];
    let live = watch_before(&ring, &[&options[..], &["-o", argument(&names)]].concat());
    let mut talk = Talk::start(name, "flood", &ring);
    talk.hear();
    assert!(talk.end().success());
    let result = result(&live.end());
    let expected = [(open, "stays"), (woken, "starved"), (idle, "waits")].map(|(on, name)| ((on, name.to_owned()), 1));
    assert_eq!(fired(&result), BTreeMap::from(expected), "{result:#}");
    assert_eq!(result["events"], 0, "nothing is read of the rings: {result:#}");
}

#[test]
fn beside_other_conditions_the_tables_say_what_still_is_after_losses() {
    let name = plays!(plays_flood());
    let [open, idle] = ["open>500ms (span=brief or span=stays)", "idle>500ms task!=starved or level>=ERROR"];
    let (_directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let options = ["--on", open, "--on", idle, "--debounce", "0", "--after", "0s", "-o", argument(&names)];
    let live = watch_before(&ring, &options);
    let mut talk = Talk::start(name, "flood", &ring);
    talk.hear();
    assert!(talk.end().success());
    let result = result(&live.end());
    let expected = [(open, "stays"), (idle, "waits")].map(|(on, name)| ((on, name.to_owned()), 1));
    assert_eq!(fired(&result), BTreeMap::from(expected), "{result:#}");
    assert!(count(&result, "events") > 0, "the rings are read: {result:#}");
}

#[test]
fn a_span_whose_begin_was_overwritten_long_ago_fires_once_for_each_age() {
    let name = plays!({
        recording(SHIFTS);
        let old = info_span!("old");
        flood(10 * RING / 2);
        say(0);
        wait_for_parent();
        drop(old);
        std::process::exit(0);
    });
    let (directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let mut talk = Talk::start(name, "old", &ring);
    talk.hear();
    let [one, two] = ["open>1s", "open>1s or open>1500ms"];
    let live =
        live!("capture", &ring, "--json", "--on", one, "--on", two, "--debounce", "0", "--after", "0s", "-o", &names);
    wait_for(&place(&directory, "3-old.evc"));
    thread::sleep(Duration::from_millis(300));
    assert!(talk.end().success());
    let result = result(&live.end());
    let expected = [((one, "old".to_owned()), 1), ((two, "old".to_owned()), 2)];
    assert_eq!(fired(&result), BTreeMap::from(expected), "{result:#}");
}
