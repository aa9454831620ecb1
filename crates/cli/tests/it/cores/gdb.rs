//! The commands of gdb show the spans and events of a program that has crashed, and of one that runs.

use super::{TEST, crash};
use crate::fixtures::*;
use eventring_stress::missing;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gdb/eventring.py");

/// Runs gdb with these arguments and the commands. Returns what it has printed.
fn gdb(arguments: &[&str]) -> Option<String> {
    let commands = ["-nx", "-batch", "-x", SCRIPT, "-ex", "eventring open", "-ex", "eventring watch"];
    let output = Command::new("gdb").args(commands).args(arguments).env("EVENTRING", PROGRAM).output();
    match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            missing("gdb");
            None
        }
        output => {
            let output = output.unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text + &String::from_utf8_lossy(&output.stderr))
        }
    }
}

fn check(printed: &str, events: u64) {
    assert!(printed.contains(&format!("crash {{events={events}}}")), "{printed}");
    assert!(
        printed.lines().filter(|line| line.contains("OrderPlaced") || line.contains("ORDER_PLACED")).count() > 0,
        "{printed}"
    );
}

#[test]
fn gdb_shows_the_open_spans_and_the_last_events_of_a_core_file() {
    let directory = directory();
    let Some((core, events)) = crash(directory.path(), "memfd", "segv", 7) else { return };
    let program = std::env::current_exe().unwrap();
    let Some(printed) = gdb(&[argument(&program), argument(&core)]) else { return };
    check(&printed, events);
}

#[test]
fn gdb_shows_the_open_spans_and_the_last_events_of_a_program_that_runs() {
    let directory = directory();
    let talk = Talk::told(TEST, "named waits 9", directory.path(), "9");
    let Some(printed) = gdb(&["-p", &talk.child.id().to_string()]) else { return };
    check(&printed, 9);
    assert!(!printed.contains("died"), "{printed}");
    assert!(Path::new(&format!("/proc/{}", talk.child.id())).exists(), "gdb has left it alone");
}
