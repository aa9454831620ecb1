//! Processes that a program starts are followed.

use super::roles::play;
use super::{Profiled, profile, profiled};
use crate::fixtures::*;
use crate::program::program_in;

/// Checks that a shell was followed that is another process than the one that is looked at.
fn check(profiled: &Profiled) {
    let looked_at = &profiled.of("SESSION").next().unwrap().1["process_id"];
    let seen = profiled.of("THREAD_SEEN").find(|(_, seen)| seen["name"] == "sh").map(|(_, seen)| seen);
    let seen = seen.unwrap_or_else(|| panic!("the shell is missing: {}", profiled.summary));
    assert_ne!(&seen["process_id"], looked_at);
    for name in ["SWITCHED_IN", "SWITCHED_OUT", "THREAD_ENDED"] {
        let count = profiled.of(name).filter(|(_, event)| event["thread_id"] == seen["thread_id"]).count();
        assert!(count > 0, "{name} of the shell");
    }
}

#[test]
fn a_process_that_a_started_program_starts_is_followed() {
    let test = plays!(|part| play(&part));
    if let Some(profiled) = profile(test, "forks", &["--sched"]) {
        check(&profiled);
    }
}

#[test]
fn a_process_that_a_running_program_starts_is_followed() {
    let test = plays!(|part| play(&part));
    let (directory, [place, file]) = places(["forks", "p.evc"]);
    let mut talk = Talk::start(test, "forks", &place);
    talk.hear();
    let id = format!("pid:{}", talk.child.id());
    let words = ["profile", &id, "--sched", "--json", "-d", "20s", "-o", argument(&file)];
    let command = program_in(directory.path(), &words);
    let looks = thread::spawn(move || finish(command));
    // It may take a while until it looks, and nothing outside of it says when.
    thread::sleep(Duration::from_secs(3));
    assert!(talk.end().success());
    let profiled = profiled(&looks.join().unwrap(), &file);
    if profiled.summary["missing"] == json!([]) {
        check(&profiled);
    }
}
