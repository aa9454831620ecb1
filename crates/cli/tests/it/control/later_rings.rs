//! Programs of which all rings are read: also those that they make later, and of programs that are not there yet.

use crate::fixtures::*;

fn anonymous(content_type: u16, name: &str) -> Recorder {
    let description = ContentDescription::new(content_type, name);
    Recorder::builder(description).anonymous().shifts(16, 27).prefault(false).build().unwrap()
}

/// Plays the program: it makes a ring, and others when it has lived for a while. The last one is named as the first.
fn program() {
    let first = anonymous(300, "FIRST");
    first.record(2, [0; 4], b"1");
    child::say("begun");
    thread::sleep(Duration::from_millis(500));
    let later = [anonymous(301, "LATER"), anonymous(300, "FIRST")];
    for ring in &later {
        ring.record(2, [0; 4], b"2");
    }
    child::say("recorded");
    child::wait_for_parent();
}

fn served(test: &str, address: &str, directory: &Path) -> Talk {
    let mut command = child::play(test, "program", directory);
    command.env("EVENTRING_SERVER", address).env("EVENTRING_DIR", directory);
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "begun");
    talk
}

#[test]
fn a_capture_of_a_program_takes_the_rings_that_it_makes_later() {
    let test = plays!(program());
    let (directory, [socket]) = places(["control"]);
    let abstract_name = format!("@later-{}", std::process::id());
    let cases: [(&str, bool); 3] = [(argument(&socket), false), (argument(&socket), true), (&abstract_name, true)];
    for (number, (address, waits)) in cases.into_iter().enumerate() {
        let saved = place(&directory, &format!("{number}.evc"));
        let capture = |more: &[&str]| live!("capture", address, "-o", &saved, more);
        // The capture waits for the program, or begins when its first ring is there.
        let waiting = waits.then(|| capture(&["--wait"]));
        thread::sleep(Duration::from_millis(100));
        let mut program = served(test, address, directory.path());
        let capture = waiting.unwrap_or_else(|| capture(&[]));
        assert_eq!(program.hear(), "recorded");
        thread::sleep(Duration::from_millis(500));
        assert!(program.end().success());
        let captured = capture.end().ends(0);
        let run = run!("export", &saved, "-t", "jsonl", "-o", "-");
        let events = run.json_lines().into_iter().filter(|line| line["type"] == "typed_event").count();
        assert_eq!(events, 3, "{address} {waits} {captured:?} {run:?}");
    }
}

#[test]
fn a_watch_waits_for_a_program_that_is_not_there_yet() {
    let test = plays!(program());
    let directory = directory();
    let name = format!("@awaited-{}", std::process::id());
    let mut watch = live!("watch", &name, "--reopen", "--from", "oldest", "--count", "1", "--json", "--quiet");
    let mut by_option =
        live!("watch", "--process", &name, "--reopen", "--from", "oldest", "--count", "1", "--json", "--quiet");
    thread::sleep(Duration::from_millis(300));
    assert!(watch.child.try_wait().unwrap().is_none() && by_option.child.try_wait().unwrap().is_none());
    let _program = served(test, &name, directory.path());
    assert_eq!(watch.json_line()["seqno"], 1);
    assert_eq!(by_option.json_line()["seqno"], 1);
    assert_eq!((watch.end().code, by_option.end().code), (Some(0), Some(0)));
    // Without the option it does not wait.
    run!("watch", "@nobody-is-here", "--count", "1").ends(3);
}
