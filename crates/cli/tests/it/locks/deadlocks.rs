//! Threads that wait for each other.

use super::recording;
use crate::fixtures::*;
use eventring::now::NowReader;
use eventring::sync::{Condvar, Mutex, RwLock};
use std::sync::Barrier;

/// The events after the deadlock, of which the ring keeps some 30,000.
const FLOOD: u32 = 100_000;

/// Two threads take two locks in different order. A third one waits beside them, and a fourth one for the third.
fn deadlocks() {
    recording((15, 21), 8);
    let [accounts, orders] = [Mutex::new("accounts", ()), Mutex::new("orders", ())];
    // The third one begins when both have their first lock.
    let (both, waits) = (Barrier::new(3), Barrier::new(2));
    let takes = |name: &str, first: &Mutex<()>, second: &Mutex<()>| {
        let span = if name == "transfer" { info_span!("transfer") } else { info_span!("audit") };
        let _inside = span.entered();
        let _held = first.lock().unwrap();
        both.wait();
        drop(second.lock());
    };
    thread::scope(|scope| {
        scope.spawn(|| takes("transfer", &accounts, &orders));
        scope.spawn(|| takes("audit", &orders, &accounts));
        thread::Builder::new()
            .name("bystander".into())
            .spawn_scoped(scope, || {
                both.wait();
                waits.wait();
                drop(accounts.lock());
            })
            .unwrap();
        waits.wait();
        thread::sleep(Duration::from_millis(100));
        (0..FLOOD).for_each(|number| info!(number, "on"));
        say("ready");
        wait_for_parent();
        std::process::exit(0);
    });
}

#[track_caller]
fn shows_the_circle(names: &[&Path], kept: &str) {
    let answer = run!("open", names, "--json").json();
    let (waits, cycles) = (answer["lock_waits"].list(), answer["deadlocks"].list());
    let who = |wait: &Value| {
        let holder = wait["holder"]["span"].as_str().map(str::to_owned);
        (wait["waiter"]["span"].as_str().map(str::to_owned), wait["lock"].text().to_owned(), holder)
    };
    let some = |text: &str| Some(text.to_owned());
    let found: BTreeSet<_> = waits.iter().map(who).collect();
    let expected = [
        (some("transfer"), "orders".to_owned(), some("audit")),
        (some("audit"), "accounts".to_owned(), some("transfer")),
        (None, "accounts".to_owned(), some("transfer")),
    ];
    assert_eq!(found, BTreeSet::from(expected), "{kept}: {answer:#}");
    let outside = waits.iter().find(|wait| wait["waiter"]["span"].is_null()).unwrap();
    assert_eq!(outside["waiter"]["thread"], "bystander");
    for wait in waits {
        assert!(wait["file"].text().ends_with("deadlocks.rs") && wait["line"].number() > 10, "{wait:#}");
        assert!(wait["mode"] == "mutex" && wait["waited_ns"].number() >= 50_000_000, "{wait:#}");
    }
    let [cycle] = &cycles[..] else { panic!("{kept}: {answer:#}") };
    let of_cycle: BTreeSet<&str> =
        cycle.list().iter().map(|at| waits[at.number() as usize]["waiter"]["span"].text()).collect();
    assert_eq!(of_cycle, BTreeSet::from(["transfer", "audit"]));

    let shown = run!("open", names).ends(0);
    let line = shown.out.lines().find(|line| line.starts_with("deadlock: ")).unwrap_or_else(|| panic!("{shown:?}"));
    for part in ["waits for lock `orders` held by `audit`", ", which waits for lock `accounts` held by `transfer`"] {
        let turned =
            ["waits for lock `accounts` held by `transfer`", ", which waits for lock `orders` held by `audit`"];
        assert!(line.contains(part) || turned.iter().all(|part| line.contains(part)), "{kept}: {line}");
    }
    shown.shows("bystander waits for lock `accounts` (").shows(", held by `transfer` (");
}

#[test]
fn a_circle_of_threads_is_shown_live_after_a_kill_and_from_a_capture_however_much_was_recorded_since() {
    let name = plays!(deadlocks());
    let (_dir, [ring, typed, live, killed, both]) = places(["shop", "typed", "live.evc", "killed.evc", "both.evc"]);
    let mut child = Talk::told(name, "waits", &ring, "ready");
    shows_the_circle(&[&ring], "live");
    run!("capture", &ring, "--now", "-o", &live).ends(0);
    // Beside typed events, the events of the rings are read, too.
    let _typed = typed_in::<ExecEvent>(&typed).build().unwrap();
    shows_the_circle(&[&ring, &typed], "live beside typed events");
    run!("capture", &ring, &typed, "--now", "-o", &both).ends(0);
    shows_the_circle(&[&both], "a capture with typed events");
    child.kill();
    shows_the_circle(&[&ring], "killed");
    run!("capture", &ring, "--now", "-o", &killed).ends(0);
    shows_the_circle(&[&live], "a capture");
    shows_the_circle(&[&killed], "a capture after the kill");
    // They are no tasks.
    let tasks = run!("tasks", &killed, "--json").json();
    assert_eq!((&tasks["deadlocks"], &tasks["lock_waits"]), (&json!([]), &json!([])), "{tasks:#}");
}

/// Threads take the same locks in the same order, read together, and wait for each other's news, until the parent says
/// stop.
fn goes_on() {
    recording((15, 21), 8);
    let (accounts, orders) = (Mutex::new("accounts", 0_u64), Mutex::new("orders", 0_u64));
    let (prices, news) = (RwLock::new("prices", 0_u64), Condvar::new("news"));
    let is_over = AtomicBool::new(false);
    let works = |number: u64| {
        let _inside = info_span!("works", number).entered();
        for turn in number.. {
            let mut held = accounts.lock().unwrap();
            *orders.lock().unwrap() += 1;
            if turn % 5 == 0 {
                held = news.wait_timeout(held, Duration::from_micros(100)).unwrap().0;
            }
            *held += 1;
            news.notify_one();
            drop(held);
            match turn % 7 {
                0 => *prices.write().unwrap() += 1,
                _ => assert!(*prices.read().unwrap() < u64::MAX),
            }
            if is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    thread::scope(|scope| {
        (0..4).for_each(|number| _ = scope.spawn(move || works(number)));
        say("ready");
        wait_for_parent();
        is_over.store(true, Ordering::Relaxed);
    });
    say("over");
    wait_for_parent();
}

#[test]
fn threads_that_only_wait_are_in_no_circle_and_leave_nothing_behind() {
    let name = plays!(goes_on());
    let (_dir, [ring]) = places(["shop"]);
    let mut child = Talk::told(name, "works", &ring, "ready");
    let (begin, mut waits) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(2) {
        let answer = run!("open", &ring, "--json").json();
        assert_eq!(answer["deadlocks"], json!([]), "{answer:#}");
        waits += answer["lock_waits"].list().len();
    }
    // The control: threads did wait.
    assert!(waits > 0);
    child.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    assert_eq!(child.hear(), "over");
    assert_eq!(run!("open", &ring, "--json").json()["lock_waits"], json!([]));
    let tables = NowReader::open_beside(&Reader::open(&ring).unwrap()).unwrap().unwrap();
    let left: Vec<_> = tables.locks().into_iter().filter(|cell| cell.guard != 0).collect();
    assert_eq!((left, tables.untabled().locks), (vec![], 0));
}
