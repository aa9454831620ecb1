//! Rings that come after the start of a forwarding to a collector, and what is there when the user ends it.

use crate::fixtures::*;
use crate::http;
use crate::orders::{ended_orders, order, orders_in};
use std::sync::atomic::AtomicUsize;

fn anonymous(name: &str) -> Recorder {
    Recorder::builder(ContentDescription::new(300, name)).anonymous().shifts(16, 27).prefault(false).build().unwrap()
}

/// Waits until the collector has been asked so often.
#[track_caller]
fn await_requests(collector: &http::Collector, count: usize) {
    wait_while(|| collector.requests() < count);
}

/// Plays a program that makes another ring when it is asked to.
fn program_with_two_rings() {
    let first = anonymous("FIRST");
    first.record(2, [0; 4], b"1");
    child::say("begun");
    child::wait_for_parent();
    let second = anonymous("SECOND");
    second.record(2, [0; 4], b"2");
    child::wait_for_parent();
}

#[test]
fn rings_that_programs_make_later_are_forwarded_and_so_are_programs_that_come_later() {
    let test = plays!(program_with_two_rings());
    let directory = tempfile::tempdir().unwrap();
    let served = |address: &str| {
        let mut command = child::play(test, "program", directory.path());
        command.env("EVENTRING_SERVER", address).env("EVENTRING_DIR", directory.path());
        let mut talk = Talk::with(command);
        assert_eq!(talk.hear(), "begun");
        talk
    };
    let address = |name: &str| format!("@otlp-{name}-{}", std::process::id());
    let collector = http::Collector::start();
    let (a, b) = (address("a"), address("b"));
    let mut first = served(&a);
    let forward = live!("forward", "--process", &a, "--process", &b, "--wait", "--to", &collector.address(), "--json");
    // What is there is sent before the other program is.
    await_requests(&collector, 1);
    writeln!(first.child.stdin.as_ref().unwrap()).unwrap();
    await_requests(&collector, 2);
    let mut second = served(&b);
    await_requests(&collector, 3);
    assert!(first.end().success());
    writeln!(second.child.stdin.as_ref().unwrap()).unwrap();
    await_requests(&collector, 4);
    assert!(second.end().success());
    let ended = forward.end();
    assert_eq!((ended.code, &ended.said()["log_records"]), (Some(0), &json!(4)), "{ended:?}");
}

#[test]
fn a_ring_is_forwarded_while_another_is_awaited_also_when_it_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let collector = http::Collector::start();
    let (a, b) = (path("a"), path("b"));
    let forward = live!("forward", &a, &b, "--wait", "--to", &collector.address(), "--json");
    ended_orders(&a, 1);
    await_requests(&collector, 1);
    // Longer than it takes to notice the end of all rings.
    thread::sleep(Duration::from_millis(1500));
    ended_orders(&b, 1);
    let ended = forward.end();
    assert_eq!((ended.code, &ended.said()["log_records"]), (Some(0), &json!(2)), "{ended:?}");
    assert!(ended.err.contains(&format!("waiting for the ring {} to be made", b.display())), "{ended:?}");
}

#[test]
fn what_was_recorded_until_the_user_ends_it_is_sent() {
    const EVENTS: u64 = 30_000;
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory, "orders");
    let orders = orders_in(&path);
    // The collector takes nothing until everything is recorded and the signal has come. Most of it is unread then.
    let answered = AtomicUsize::new(0);
    let collector = http::Collector::start_with(move |_| {
        let is_first = answered.fetch_add(1, Ordering::Relaxed) == 0;
        thread::sleep(Duration::from_millis(if is_first { 2000 } else { 0 }));
        "200 OK".to_owned()
    });
    order(&orders, EVENTS);
    let forward = live!("forward", &path, "--to", &collector.address(), "--json");
    await_requests(&collector, 1);
    forward.interrupt();
    let ended = forward.end();
    assert_eq!((ended.code, &ended.said()["log_records"]), (Some(0), &json!(EVENTS)), "{ended:?}");
    drop(orders);
}

#[test]
fn what_cannot_be_sent_when_the_user_has_ended_it_is_counted() {
    const EVENTS: u64 = 30_000;
    let directory = tempfile::tempdir().unwrap();
    let path = place(&directory, "orders");
    let orders = orders_in(&path);
    order(&orders, EVENTS);
    let collector = http::Collector::start_with(|_| "503 Service Unavailable".to_owned());
    let forward = live!("forward", &path, "--to", &collector.address(), "--timeout", "1", "--json");
    await_requests(&collector, 1);
    forward.interrupt();
    let ended = forward.end();
    assert_eq!((ended.code, &ended.said()["unsent"]), (Some(1), &json!(EVENTS)), "{ended:?}");
    drop(orders);
}
