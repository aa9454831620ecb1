//! `eventring soak`.
#![cfg(feature = "cli")]

mod program;

use program::{Live, run};
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn a_second_of_everything_is_accounted_for_and_nothing_is_torn() {
    let soak = run(&["soak", "--seconds", "1", "--threads", "2", "--json"]);
    assert_eq!(soak.code, Some(0), "{soak:?}");
    let soak = soak.json();
    let number = |name: &str| soak[name].as_u64().unwrap_or_else(|| panic!("{name}: {soak}"));
    assert!(soak["seconds"].as_f64().unwrap() >= 1.0, "{soak}");
    assert!(number("events") > 1000 && number("readers") >= 2 && number("stalls") > 0, "{soak}");
    for name in ["laps", "kills", "lost", "expired"] {
        number(name);
    }
    assert_eq!((number("torn"), number("hung"), number("unaccounted")), (0, 0, 0), "{soak}");
}

#[test]
fn a_soak_that_is_killed_leaves_no_ring_behind() {
    let mut live = Live::start(&["soak", "--seconds", "600", "--threads", "2"]);
    let rings = format!("/dev/shm/eventring-soak-{}", live.child.id());
    let deadline = Instant::now() + Duration::from_secs(60);
    while !Path::new(&rings).join("ring.perf").exists() {
        assert!(Instant::now() < deadline && live.child.try_wait().unwrap().is_none(), "it makes no ring");
        std::thread::sleep(Duration::from_millis(10));
    }
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    // Its writer notices, and clears up.
    while Path::new(&rings).exists() {
        assert!(Instant::now() < deadline, "{rings} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
