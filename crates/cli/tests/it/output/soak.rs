//! `eventring soak`.

use crate::program::{Live, program, run};
use eventring::files::{LockState, lock_state};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The lock that lets only one test of this file run at a time: a single soak uses all processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_second_of_everything_is_accounted_for_and_nothing_is_torn() {
    let _alone = alone();
    // While other programs use the processors, a soak of one second may record too little. Then the test repeats it
    // with more seconds.
    for seconds in ["1", "4", "16", "64"] {
        let soak = run(&["soak", "--seconds", seconds, "--threads", "2", "--json"]);
        assert_eq!(soak.code, Some(0), "{soak:?}");
        let soak = soak.json();
        let number = |name: &str| soak[name].as_u64().unwrap_or_else(|| panic!("{name}: {soak}"));
        assert!(soak["seconds"].as_f64().unwrap() >= seconds.parse().unwrap(), "{soak}");
        for name in ["laps", "kills", "lost", "expired"] {
            number(name);
        }
        assert_eq!((number("torn"), number("hung"), number("unaccounted")), (0, 0, 0), "{soak}");
        if number("events") > 1000 && number("readers") >= 2 && number("stalls") > 0 {
            return;
        }
    }
    panic!("in more than a minute it did next to nothing");
}

/// Returns the directory of a soak's rings.
fn rings(soak: &Live) -> PathBuf {
    format!("/dev/shm/eventring-soak-{}", soak.child.id()).into()
}

/// Starts a soak and waits until its last ring exists.
fn soak_with_rings() -> Live {
    let mut live = Live::start(&["soak", "--seconds", "600", "--threads", "2"]);
    let perf = rings(&live).join("ring.perf");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !perf.exists() {
        assert!(Instant::now() < deadline && live.child.try_wait().unwrap().is_none(), "it makes no ring");
        std::thread::sleep(Duration::from_millis(1));
    }
    live
}

/// Kills a soak. Then waits until the soak's writer process has noticed this and has removed the rings.
fn kill_and_wait_until_cleared_up(mut soak: Live) {
    let rings = rings(&soak);
    soak.child.kill().unwrap();
    soak.child.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while rings.exists() {
        let left: Vec<_> = std::fs::read_dir(&rings).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
        assert!(Instant::now() < deadline, "{} is still there, with {left:?}", rings.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_soak_that_is_killed_leaves_no_ring_behind() {
    let _alone = alone();
    // The soak is killed at different times: immediately, when its writer process may not be ready yet, and later.
    for later in [0, 30, 300] {
        let soak = soak_with_rings();
        std::thread::sleep(Duration::from_millis(later));
        kill_and_wait_until_cleared_up(soak);
    }
}

#[test]
fn a_soak_that_is_killed_while_it_has_its_writer_stopped_leaves_no_ring_behind() {
    let _alone = alone();
    let soak = soak_with_rings();
    let ring = std::fs::File::open(rings(&soak).join("ring.perf")).unwrap();
    let LockState::Held { pid: Some(writer) } = lock_state(&ring) else { panic!("nobody writes") };
    let writer = Pid::from_raw(writer.try_into().unwrap()).unwrap();
    // The test stops the soak before it stops the writer. A running soak would wake the writer up again.
    kill_process(Pid::from_child(&soak.child), Signal::STOP).unwrap();
    kill_process(writer, Signal::STOP).unwrap();
    kill_and_wait_until_cleared_up(soak);
}

#[test]
fn a_writer_whose_soak_is_dead_before_it_is_ready_clears_up() {
    let _alone = alone();
    let rings = PathBuf::from(format!("/dev/shm/eventring-soak-{}", std::process::id()));
    std::fs::create_dir(&rings).unwrap();
    let mut writer = program(&["soak-writer", rings.join("ring").to_str().unwrap(), "--threads", "1"]);
    let (nobody, out) = std::io::pipe().unwrap();
    drop(nobody);
    let status = writer.stdout(out).stderr(Stdio::null()).status().unwrap();
    // The other end of the pipe is closed, so nobody reads the writer's output. A writer that has lost its reader ends
    // with code 0.
    assert_eq!(status.code(), Some(0));
    let cleared_up = !rings.exists();
    let _ = std::fs::remove_dir_all(&rings);
    assert!(cleared_up);
}
