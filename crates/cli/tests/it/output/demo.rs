//! `eventring demo`.

use crate::program;
use crate::program::{Live, argument, directory, finish, place, program, run};
use std::fs;

#[test]
fn every_recorded_event_is_read_or_counted_as_lost_and_nothing_is_torn_or_left() {
    let directory = directory();
    for arguments in [&["--rate", "20000", "--threads", "3"][..], &["--rate", "max", "--threads", "2"]] {
        let mut command = program(&[&["demo", "--json", "--seconds", "0.5"], arguments].concat());
        command.env("EVENTRING_DIR", directory.path());
        let demo = finish(command).json();
        let number = |name: &str| demo[name].as_u64().unwrap();
        assert!(number("recorded") > 1000, "{demo}");
        assert_eq!(number("recorded"), number("read") + number("lost"), "{demo}");
        assert_eq!((number("torn"), demo["accounted"].as_bool()), (0, Some(true)), "{demo}");
        assert!(demo["seconds"].as_f64().unwrap() >= 0.5, "{demo}");
        assert!(number("payload_bytes") > 50 * number("recorded"), "{demo}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn people_get_a_result_and_a_line_a_second() {
    let directory = directory();
    let ring = format!("{}:16:27", place(&directory, "ring").display());
    let run = run(&["demo", "--seconds", "1.2", "--rate", "5000", "--ring", &ring, "--keep"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for word in ["recorded", "read", "lost", "torn", "recorded = read + lost", "the ring is still there"] {
        assert!(run.out.contains(word), "{run:?}");
    }
    assert!(run.err.contains("recorded") && run.err.contains("torn 0"), "{run:?}");
    // The ring that was kept can be opened.
    let info = program::run(&["info", "--json", argument(&place(&directory, "ring"))]).json();
    assert_eq!((&info["state"], &info["descriptor_capacity"]), (&"ended".into(), &65_536.into()));
}

#[test]
fn ctrl_c_ends_it_early_in_good_order() {
    let directory = directory();
    let ring = format!("{}:16:27", place(&directory, "ring").display());
    let mut live = Live::start(&["demo", "--seconds", "600", "--rate", "5000", "--ring", &ring, "--json"]);
    while !place(&directory, "ring").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
        assert!(live.child.try_wait().unwrap().is_none(), "it has ended");
    }
    live.interrupt();
    let run = live.end();
    let demo = run.json();
    assert_eq!((&demo["torn"], &demo["accounted"]), (&0.into(), &true.into()), "{demo}");
    assert!(demo["seconds"].as_f64().unwrap() < 60.0);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_ring_that_cannot_be_made_is_one_clear_line_with_its_code() {
    let run = run(&["demo", "--ring", "/nowhere/at/all/ring", "--json"]);
    assert_eq!((run.code, run.out.as_str()), (Some(3), ""));
    assert_eq!(run.err.lines().count(), 1, "{run:?}");
    assert!(run.err.starts_with("error: cannot open the directory of the ring file, /nowhere/at/all: "), "{run:?}");
}
