//! Spans that have waited for a lock.

use super::recording;
use crate::fixtures::*;
use crate::why::Scheduler;
use eventring::sync::{Condvar, Mutex, RwLock, parking_lot};
use std::sync::Barrier;

/// How long a lock is held.
const LONG: Duration = Duration::from_millis(60);
/// The names of the spans that wait, with how they name the lock.
const KINDS: [(&str, &str); 6] = [
    ("mutex", "lock `accounts`"),
    ("read", "lock `prices`"),
    ("write", "lock `prices`"),
    ("condition", "condition `ready`"),
    ("parked", "lock `queue`"),
    ("parked_condition", "condition `parked`"),
];

struct Shop {
    accounts: Mutex<u32>,
    prices: RwLock<u32>,
    ready: Condvar,
    queue: parking_lot::Mutex<u32>,
    parked: parking_lot::Condvar,
}

impl Shop {
    fn new() -> Self {
        Self {
            accounts: Mutex::new("accounts", 0),
            prices: RwLock::new("prices", 0),
            ready: Condvar::new("ready"),
            queue: parking_lot::Mutex::new("queue", 0),
            parked: parking_lot::Condvar::new("parked"),
        }
    }

    /// Holds what the span of this kind waits for.
    fn holds(&self, kind: &str, both: &Barrier) {
        let hold = || {
            both.wait();
            thread::sleep(LONG);
        };
        match kind {
            "mutex" => {
                let _held = self.accounts.lock().unwrap();
                hold();
            }
            "read" => {
                let _held = self.prices.write().unwrap();
                hold();
            }
            "write" => {
                let _held = self.prices.read().unwrap();
                hold();
            }
            "parked" => {
                let _held = self.queue.lock();
                hold();
            }
            "condition" => {
                hold();
                *self.accounts.lock().unwrap() = 1;
                self.ready.notify_one();
            }
            _ => {
                hold();
                *self.queue.lock() = 1;
                self.parked.notify_all();
            }
        }
    }

    /// Does what the span of this kind does.
    fn takes(&self, kind: &str) {
        match kind {
            "mutex" => *self.accounts.lock().unwrap() += 1,
            "read" => assert!(*self.prices.read().unwrap() < 100),
            "write" => *self.prices.write().unwrap() += 1,
            "parked" => *self.queue.lock() += 1,
            "condition" => {
                let guard = self.accounts.lock().unwrap();
                *self.ready.wait_while(guard, |accounts| *accounts == 0).unwrap() = 0;
            }
            _ => {
                let mut guard = self.queue.lock();
                self.parked.wait_while(&mut guard, |queue| *queue == 0);
                *guard = 0;
            }
        }
    }

    /// Makes a span that waits, and returns how long it took.
    fn waits(&self, kind: &'static str, around: impl FnOnce(&dyn Fn())) -> Duration {
        *self.accounts.lock().unwrap() = 0;
        *self.queue.lock() = 0;
        let both = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| info_span!("flush").in_scope(|| self.holds(kind, &both)));
            both.wait();
            info_span!("request", kind).in_scope(|| {
                let begin = Instant::now();
                around(&|| self.takes(kind));
                begin.elapsed()
            })
        })
    }

    /// Makes spans that wait for nothing, also one that is slow.
    fn waits_for_nothing(&self) {
        for kind in ["mutex", "read", "write", "parked"] {
            for number in 0..60 {
                info_span!("request", kind = "free").in_scope(|| {
                    self.takes(kind);
                    if number == 0 {
                        thread::sleep(LONG);
                    }
                });
            }
        }
    }
}

fn waits() {
    // A snapshot is of one ring.
    recording((16, 22), 1);
    let shop = Shop::new();
    shop.waits_for_nothing();
    for (kind, _) in KINDS {
        say(shop.waits(kind, |takes| takes()).as_nanos());
    }
    wait_for_parent();
}

/// Returns the spans of the answer, by the field `kind`.
fn why_of(names: &[&Path], kind: &str) -> Value {
    let lines = run!("export", names, "--format", "jsonl").ends(0).json_lines();
    let is_it = |line: &&Value| line["name"] == "request" && line["fields"]["kind"] == kind;
    let slowest = lines.iter().filter(is_it).max_by_key(|line| line["duration_ns"].as_u64()).unwrap();
    let id = slowest["id"].to_string();
    run!("why", names, "--id", id.trim_matches('"'), "--json").json()["spans"][0].clone()
}

#[track_caller]
fn names_each_lock(names: &[&Path], took: &[u64], kept: &str) {
    let mut named = 0;
    for ((kind, lock), took) in KINDS.iter().zip(took) {
        let span = why_of(names, kind);
        let [found] = &span["locks"].list()[..] else { panic!("{kept}, {kind}: {span:#}") };
        let nanos = found["ns"].number();
        assert!(nanos.abs_diff(*took) <= took / 10, "{kept}, {kind}: {nanos} of {took}: {span:#}");
        assert_eq!((found["holder"].text(), found["count"].number()), ("flush", 1), "{kept}, {kind}: {span:#}");
        assert!(found["file"].text().ends_with("waits.rs") && found["line"].number() > 10, "{span:#}");
        // It is a part of the time that the span was blocked, and is not counted twice. On a busy machine, a thread that
        // was woken waits for a processor, and parking_lot gives its processor away before it sleeps.
        let share = |part: &str| span["shares"][part].as_f64().unwrap();
        let (blocked, runnable) = (share("blocked"), share("runnable"));
        assert!((85.0..100.1).contains(&(blocked + runnable)), "{kept}, {kind}: {span:#}");
        if blocked > 60.0 {
            let (evidence, is_lock) = (span["evidence"].text(), lock.starts_with("lock"));
            let holder = if is_lock { "held by `flush` for " } else { "notified by `flush`, " };
            assert!(span["cause"] == "lock" && evidence.contains(lock) && evidence.contains(holder), "{evidence}");
            named += 1;
        }
    }
    // The control: the machine is not that busy all the time.
    assert!(named > 0, "{kept}");
    let free = why_of(names, "free");
    assert!(free["locks"] == json!([]) && free["cause"] != "lock", "{kept}: {free:#}");
}

#[test]
fn a_lock_its_place_its_holder_and_the_time_are_named_live_in_a_capture_and_after_a_kill() {
    let name = plays!(waits());
    let (_dir, [ring, capture, snapshot]) = places(["shop", "shop.evc", "shop.snap.zst"]);
    let mut child = Talk::start(name, "waits", &ring);
    let took = KINDS.map(|_| child.hear().parse().unwrap());
    names_each_lock(&[&ring], &took, "live");
    run!("capture", &ring, "--now", "-o", &capture).ends(0);
    names_each_lock(&[&capture], &took, "a capture");
    child.kill();
    run!("snapshot", &ring, "-o", &snapshot).ends(0);
    names_each_lock(&[&ring], &took, "killed");
    names_each_lock(&[&snapshot], &took, "a snapshot");
    let text = run!("why", &ring, "--span", "request", "--slowest", "20").ends(0);
    text.shows("lock `accounts` (").shows("), held by `flush` for ").shows("), notified by `flush`, ");
}

#[test]
fn a_thread_knows_better_than_the_kernel_for_what_lock_it_has_waited() {
    alone!();
    let (_dir, [ring, sched, capture]) = places(["shop", "shop-sched", "shop.evc"]);
    let recorder = spans_in(&ring).shifts(16, 22).build().unwrap();
    super::record_to(&recorder);
    let scheduler = Scheduler::begin(&sched);
    let shop = Shop::new();
    shop.waits_for_nothing();
    let took = KINDS.map(|(kind, _)| shop.waits(kind, |takes| scheduler.away_while(takes)).as_nanos() as u64);
    run!("capture", &ring, &sched, "--now", "-o", &capture).ends(0);
    for ((kind, lock), took) in KINDS.iter().zip(took) {
        let span = why_of(&[&capture], kind);
        assert_eq!(span["source"], "kernel", "{span:#}");
        let nanos = span["locks"][0]["ns"].number();
        assert!(nanos.abs_diff(took) <= took / 10, "{kind}: {nanos} of {took}: {span:#}");
        let evidence = span["evidence"].text();
        assert!(span["cause"] == "lock" && evidence.contains(lock) && !evidence.contains("futex"), "{evidence}");
        assert!(span["shares"]["blocked"].as_f64().unwrap() < 100.1, "{span:#}");
    }
}
