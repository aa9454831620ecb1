//! What is true of tasks now is told although their rings have gone round many times since it began: live, after a
//! kill, and of captures.

use super::believed::check;
use super::planted::{drops_its_waker, takes};
use super::{named, recording, runtime, tasks};
use crate::fixtures::*;
use eventring_stress::child::place as handed_over;
use eventring_tokio::sync::Mutex;
use eventring_tokio::{JoinSetExt as _, Task, spawn_named};
use std::os::unix::fs::MetadataExt as _;
use tokio::sync::{Barrier, oneshot};
use tokio::task::JoinSet;

/// The slots of a ring, and how often the flood goes round it.
const SHIFTS: (u32, u32) = (15, 21);
const ROUNDS: u64 = 100;
/// The tasks that end.
const ENDED: u64 = 100_000;

/// Records until all rings have gone round, and lets many tasks end.
fn floods() {
    let other = thread::spawn(|| {
        for n in 0..ROUNDS << (SHIFTS.0 - 2) {
            info_span!("request", n).in_scope(|| ());
        }
    });
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        for _ in 0..ENDED / 100 {
            let mut set = JoinSet::new();
            (0..100).for_each(|_| drop(set.spawn_task("short", tokio::task::yield_now())));
            set.join_all().await;
        }
    });
    other.join().unwrap();
}

fn plays_what_outlives_the_ring() {
    recording(SHIFTS);
    outlives();
}

/// A snapshot holds one ring.
fn plays_on_one_ring() {
    let ring = spans_in(handed_over()).shifts(SHIFTS.0, SHIFTS.1).shards(1);
    subscriber::set_global_default(RecorderSubscriber::new(ring.prefault(false).build().unwrap())).unwrap();
    outlives();
}

fn outlives() {
    let runtime = runtime();
    let (locks, barrier) = (Arc::new([Mutex::new(0), Mutex::new(1), Mutex::new(2)]), Arc::new(Barrier::new(3)));
    for first in 0..3 {
        runtime.spawn(Task::new(&format!("holder {first}"), takes(locks.clone(), first, barrier.clone())));
    }
    let (sender, receiver) = oneshot::channel::<()>();
    let waits = async { receiver.instrument(info_span!("for ever", why = "nobody knows")).await.unwrap() };
    runtime.spawn(Task::new("idle", waits));
    runtime.spawn(Task::new("lost", drops_its_waker()));
    thread::sleep(Duration::from_millis(100));
    floods();
    runtime.block_on(async {
        spawn_named("blocked", async { thread::sleep(Duration::from_millis(150)) }).await.unwrap();
    });
    thread::sleep(Duration::from_millis(500));
    std::mem::forget((runtime, sender));
}

#[test]
fn deadlocks_and_waits_are_told_after_a_hundred_rounds_and_no_task_that_has_ended_waits() {
    let name = test_name!();
    check(name, plays_what_outlives_the_ring, |ring| {
        let answer = tasks(ring, &[]);
        let id = |name: &str| named(&answer, name)[0]["id"].number();
        let mut cycle = vec![id("holder 0"), id("holder 1"), id("holder 2")];
        let smallest = (0..3).min_by_key(|at| cycle[*at]).unwrap();
        cycle.rotate_left(smallest);
        let mut expected = vec![cycle, vec![id("lost")]];
        expected.sort_unstable();
        let mut deadlocks: Vec<Vec<u64>> = serde_json::from_value(answer["deadlocks"].clone()).unwrap();
        deadlocks.sort_unstable();
        assert_eq!(deadlocks, expected, "{}", answer["counts"]);
        let is_over = |task: &&Value| task["state"] == "done" || task["state"] == "ended";
        let listed = answer["tasks"].list();
        let mut open: Vec<_> = listed.iter().filter(|task| !is_over(task)).collect();
        open.sort_by_key(|task| task["name"].to_string());
        let told: Vec<_> = open.iter().map(|task| (task["name"].text(), &task["state"])).collect();
        let idle = json!("idle");
        assert_eq!(told, ["holder 0", "holder 1", "holder 2", "idle", "lost"].map(|name| (name, &idle)));
        assert_eq!((&answer["counts"]["unknown"], &answer["futurelocks"]), (&json!(0), &json!([])));
        for (task, span) in open.iter().zip(["::second", "::second", "::second", "::for ever"]) {
            assert!(task["span"].text().ends_with(span), "{task:#}");
            assert!(task["spawned_at"].text().contains("outlived.rs:"), "{task:#}");
        }
        run!("tasks", ring, "--deadlocks").shows(" wait for locks that the next one holds");
        asks(ring);
    });
}

/// Records on, with no end, after all that.
fn plays_and_goes_on() {
    plays_what_outlives_the_ring();
    thread::spawn(|| {
        loop {
            info_span!("tick").in_scope(|| thread::sleep(Duration::from_millis(1)));
        }
    });
}

#[test]
fn a_capture_that_was_killed_tells_the_deadlock_that_its_events_do_not_show() {
    let name = test_name!();
    check(name, plays_and_goes_on, |ring| {
        if ring.extension().is_some() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (file, cut) = (place(&directory, "t.evc"), place(&directory, "cut.evc"));
        let length = || fs::metadata(&file).map_or(0, |file| file.len());
        let mut capture = live!("capture", ring, "-o", &file);
        let mut lengths = 0;
        // Events after those of the begin are in it, if the program lives.
        while lengths < 3 {
            let before = length();
            thread::sleep(Duration::from_millis(300));
            lengths += usize::from(length() > before || capture.child.try_wait().unwrap().is_some());
        }
        let _ = capture.child.kill();
        capture.child.wait().unwrap();
        // A capture of a dead program has ended.
        fs::write(&cut, &fs::read(&file).unwrap()[..length() as usize - 40]).unwrap();
        let answer = run!("tasks", &cut, "--json").said();
        let lengths: BTreeSet<_> = answer["deadlocks"].list().iter().map(|cycle| cycle.list().len()).collect();
        assert_eq!(lengths, BTreeSet::from([1, 3]), "{answer:#}");
        let idle = named(&answer, "idle")[0];
        assert!(idle["state"] == "idle" && idle["span"].text().ends_with("::for ever"), "{idle:#}");
    });
}

#[test]
fn a_snapshot_has_the_tables_beside_it_and_tells_the_deadlock_that_its_events_do_not_show() {
    let name = test_name!();
    check(name, plays_on_one_ring, |ring| {
        if ring.extension().is_some() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let (saved, other) = (place(&directory, "shop.zst"), place(&directory, "part.zst"));
        let save = |file: &Path, options: &[&str]| run!("snapshot", ring, "-o", file, options).code;
        assert_eq!(save(&saved, &[]), Some(0));
        let beside = place(&directory, "shop.zst.now");
        assert!(fs::metadata(&beside).unwrap().blocks() * 512 < 1 << 20);
        let answer = tasks(&saved, &[]);
        let lengths = |answer: &Value| {
            let cycles = answer["deadlocks"].list().iter().map(|cycle| cycle.list().len());
            cycles.collect::<BTreeSet<_>>()
        };
        assert_eq!(lengths(&answer), BTreeSet::from([1, 3]), "{answer:#}");
        let idle = named(&answer, "idle")[0];
        assert!(idle["span"].text().ends_with("::for ever"), "{idle:#}");
        let opened = run!("open", &saved, "--json").json();
        let mut spans = opened["spans"].list().iter();
        let span = spans.find(|span| span["name"] == "for ever").unwrap();
        let told = ["may_have_closed", "opened_before_window"].map(|of| &span[of]);
        assert_eq!((told, &span["fields"]["why"]), ([&json!(false); 2], &json!("nobody knows")), "{span:#}");
        let kinds = run!("ask", &saved, "--json").json()["flags"].to_string();
        assert!(kinds.contains("task_deadlock"), "{kinds}");
        // Both files are replaced, or none.
        assert_eq!(save(&saved, &[]), Some(14));
        fs::rename(&beside, place(&directory, "part.zst.now")).unwrap();
        assert_eq!((save(&other, &[]), other.exists()), (Some(14), false));
        // The events of another time have no tables.
        assert_eq!((save(&saved, &["--force"]), beside.exists()), (Some(0), true));
        assert_eq!((save(&saved, &["--force", "--to", "1000000000"]), beside.exists()), (Some(0), false));
        assert_eq!(lengths(&tasks(&saved, &[])), BTreeSet::new());
    });
}

fn asks(ring: &Path) {
    let flags = run!("ask", ring, "--json").json();
    let kinds: Vec<_> = flags["flags"].list().iter().map(|flag| flag["flag"].text()).collect();
    assert!(kinds.contains(&"task_deadlock") && kinds.contains(&"lost_waker"), "{kinds:?}");
    // Of the many that have ended, none waits.
    assert!(!kinds.iter().any(|kind| ["late_poll", "futurelock"].contains(kind)), "{flags:#}");
}
