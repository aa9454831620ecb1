//! The program `soak`.
#![cfg(target_os = "linux")]

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

eventring_stress::names_lead_nowhere!();

/// The lock that lets only one test of this file run at a time: a single soak uses all processors.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn soak(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soak"));
    command.args(arguments).stdin(Stdio::null());
    command
}

#[test]
fn seconds_of_everything_are_accounted_for_and_nothing_is_torn() {
    let _alone = alone();
    let output = soak(&["--seconds", "4", "--threads", "2", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let soak: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |name: &str| soak[name].as_u64().unwrap_or_else(|| panic!("{name}: {soak}"));
    assert!(soak["seconds"].as_f64().unwrap() >= 4.0, "{soak}");
    for name in ["laps", "kills", "lost", "expired"] {
        number(name);
    }
    assert_eq!((number("torn"), number("hung"), number("unaccounted")), (0, 0, 0), "{soak}");
    assert!(number("events") > 1000 && number("readers") >= 2 && number("stalls") > 0, "{soak}");
}

#[test]
fn a_wrong_command_line_is_refused() {
    for arguments in [&["--nonsense"][..], &["--seconds"], &["--seconds", "-1"], &["--threads", "x"]] {
        let output = soak(arguments).output().unwrap();
        assert!(output.status.code() == Some(1) && output.stderr.starts_with(b"Error: "), "{output:?}");
    }
}

/// Returns the directory of a soak's rings.
fn rings(soak: &Child) -> PathBuf {
    format!("/dev/shm/eventring-soak-{}", soak.id()).into()
}

/// Starts a soak and waits until its last ring exists.
fn soak_with_rings() -> Child {
    let mut soak = soak(&["--seconds", "600", "--threads", "2"]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !rings(&soak).join("ring.perf").exists() {
        assert!(Instant::now() < deadline && soak.try_wait().unwrap().is_none(), "it makes no ring");
        std::thread::sleep(Duration::from_millis(1));
    }
    soak
}

/// Kills a soak. Then waits until the soak's writer process has noticed this and has removed the rings.
fn kill_and_wait_until_cleared_up(mut soak: Child) {
    let rings = rings(&soak);
    soak.kill().unwrap();
    soak.wait().unwrap();
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

/// Returns the writing process of a soak.
fn writer_of(soak: &Child) -> Pid {
    let is_writer = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        status.contains(&format!("PPid:\t{}\n", soak.id()))
            && arguments.split(|byte| *byte == 0).nth(1) == Some(b"writer")
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(is_writer).and_then(Pid::from_raw).expect("nobody writes")
}

#[test]
fn a_soak_that_is_killed_while_it_has_its_writer_stopped_leaves_no_ring_behind() {
    let _alone = alone();
    let soak = soak_with_rings();
    let writer = writer_of(&soak);
    // The test stops the soak before it stops the writer. A running soak would wake the writer up again.
    kill_process(Pid::from_child(&soak), Signal::STOP).unwrap();
    kill_process(writer, Signal::STOP).unwrap();
    kill_and_wait_until_cleared_up(soak);
}

#[test]
fn a_writer_whose_soak_is_dead_before_it_is_ready_clears_up() {
    let _alone = alone();
    let rings = PathBuf::from(format!("/dev/shm/eventring-soak-{}", std::process::id()));
    std::fs::create_dir(&rings).unwrap();
    let ring: &Path = &rings.join("ring");
    let (nobody, out) = std::io::pipe().unwrap();
    drop(nobody);
    // Nobody reads the writer's output.
    let status = soak(&["writer", ring.to_str().unwrap(), "1"]).stdout(out).stderr(Stdio::null()).status().unwrap();
    let cleared_up = !rings.exists();
    let _ = std::fs::remove_dir_all(&rings);
    assert!(cleared_up && !status.success(), "{status}");
}
