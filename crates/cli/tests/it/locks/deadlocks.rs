//! Threads that wait for each other.

use super::recording;
use crate::fixtures::*;
use eventring::sync::Mutex;
use std::sync::Barrier;

/// The events after the deadlock, of which the ring keeps some 30,000.
const FLOOD: u32 = 100_000;

/// Two threads take two locks in different order. A third one waits beside them, and a fourth one for the third.
fn deadlocks() {
    recording((15, 21), 8);
    let [accounts, orders] = [Mutex::new("accounts", ()), Mutex::new("orders", ())];
    let (both, waits) = (Barrier::new(2), Barrier::new(2));
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
    let (_dir, [ring, live, killed]) = places(["shop", "live.evc", "killed.evc"]);
    let mut child = Talk::told(name, "waits", &ring, "ready");
    shows_the_circle(&[&ring], "live");
    run!("capture", &ring, "--now", "-o", &live).ends(0);
    child.kill();
    shows_the_circle(&[&ring], "killed");
    run!("capture", &ring, "--now", "-o", &killed).ends(0);
    shows_the_circle(&[&live], "a capture");
    shows_the_circle(&[&killed], "a capture after the kill");
    // They are no tasks.
    let tasks = run!("tasks", &killed, "--json").json();
    assert_eq!((&tasks["deadlocks"], &tasks["lock_waits"]), (&json!([]), &json!([])), "{tasks:#}");
}
