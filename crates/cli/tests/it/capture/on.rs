//! `eventring capture --on` writes a file for each event that fulfils a condition, and for no other. The file holds the
//! time around the event.

use crate::fixtures::*;
use crate::triggers::{
    LIMIT, SLOW, checked, count, open_spans, result, said, slow_spans, wait_for, watch_before, watching,
};
use eventring::tracing::{trigger, try_init};

#[test]
fn each_slow_span_gets_a_file_with_the_time_around_it_and_no_other_span_does() {
    let test = plays!(slow_spans());
    let (directory, [ring, names]) = places(["ring", "slow-{n}-{span}.evc"]);
    let options = ["--on", SLOW, "--before", "1s", "--after", "100ms", "-o", argument(&names)];
    let ended = finish(watching(test, "slow", &ring, &[&options[..], &["--debounce", "0"]].concat()));
    let (result, truth) = (result(&ended), said(&ended));
    let others = (count(&result, "debounced"), count(&result, "suppressed"), count(&result, "lost"));
    assert!(truth.contains(&count(&result, "fired")) && others == (0, 0, 0), "{truth:?}: {result:#}");
    let files = result["files"].list();
    assert_eq!(files.len() as u64, count(&result, "fired"));
    let mut seen = BTreeSet::new();
    for (index, file) in files.iter().enumerate() {
        let (path, manifest) = checked(file);
        assert_eq!(path, program::place(&directory, &format!("slow-{}-slow.evc", index + 1)));
        assert_eq!((manifest["reason"].as_str(), count(&manifest, "window_asked_ns")), (Some(SLOW), 1_100_000_000));
        assert_eq!((&manifest["span"]["name"], &manifest["shortfall"]), (&"slow".into(), &Value::Null));
        let lines = exported(&path);
        let id: u64 = manifest["span"]["id"].text().parse().unwrap();
        let span = lines.iter().find(|line| line["type"] == "span" && line["id"] == id);
        let span = span.unwrap_or_else(|| panic!("no span {id}: {manifest:#}"));
        assert!(count(span, "duration_ns") > LIMIT.as_nanos() as u64 && span["name"] == "slow", "{span}");
        assert!(seen.insert(id), "{id} fired twice");
    }

    let ring = program::place(&directory, "calm");
    let names = program::place(&directory, "calm-{n}.evc");
    // The name with its target is the same span.
    let slow = SLOW.replace("span=", "span=it::*::");
    let options = ["--on", &slow, "--before", "1s", "--after", "100ms", "-o", argument(&names)];
    let ended = finish(watching(test, "slow", &ring, &[&options[..], &["--debounce", "1h"]].concat()));
    let (result, truth) = (self::result(&ended), said(&ended));
    assert_eq!((count(&result, "fired"), result["files"].list().len()), (1, 1), "{result:#}");
    assert!(truth.contains(&(1 + count(&result, "debounced"))), "{truth:?}: {result:#}");
}

#[test]
fn a_program_that_ends_by_itself_does_not_fire_death() {
    let test = plays!(slow_spans());
    let (_directory, [ring, names]) = places(["ring", "{n}.evc"]);
    let ended = finish(watching(test, "slow", &ring, &["--on", "death", "-o", argument(&names)]));
    assert_eq!(count(&result(&ended), "fired"), 0, "{ended:?}");
}

#[test]
fn a_signal_gives_a_file_and_ctrl_c_ends_the_watch() {
    let test = plays!({
        let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
        let work = info_span!("work").entered();
        say(work.id().unwrap().into_u64());
        wait_for_parent();
    });
    let (_directory, [ring, file, names]) = places(["ring", "1-signal.evc", "{n}-{span}.evc"]);
    let live = watch_before(&ring, &["--on", "signal", "--after", "50ms", "-o", argument(&names)]);
    let mut talk = Talk::start(test, "waits", &ring);
    let id: u64 = talk.hear().parse().unwrap();
    signal(&live.child, Signal::USR1);
    assert_eq!(wait_for(&file)["reason"], "signal");
    live.interrupt();
    let result = result(&live.end());
    assert_eq!((count(&result, "fired"), result["files"].list().len()), (1, 1), "{result:#}");
    checked(&result["files"][0]);
    assert_eq!(open_spans(&file), [(id, "work".to_owned())]);
    assert!(talk.end().success());
}

#[test]
fn a_span_that_hangs_fires_once_while_it_is_open() {
    let test = plays!({
        let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
        (0..10).for_each(|n| info_span!("short", n).in_scope(|| ()));
        let hung = info_span!("hung").entered();
        say(hung.id().unwrap().into_u64());
        wait_for_parent();
    });
    let (_directory, [ring, file, names]) = places(["ring", "1-hung.evc", "{n}-{span}.evc"]);
    let options = ["--on", "open>200ms", "--debounce", "0", "--after", "50ms", "-o", argument(&names)];
    let live = watch_before(&ring, &options);
    let mut talk = Talk::start(test, "hangs", &ring);
    let id: u64 = talk.hear().parse().unwrap();
    let manifest = wait_for(&file);
    // The span is still open. It does not fire again.
    assert_eq!(manifest["span"]["id"], id.to_string());
    assert_eq!(open_spans(&file), [(id, "hung".to_owned())]);
    thread::sleep(Duration::from_millis(500));
    assert!(talk.end().success());
    let result = result(&live.end());
    assert_eq!((count(&result, "fired"), result["files"].list().len()), (1, 1), "{result:#}");
    checked(&result["files"][0]);
}

#[test]
fn records_and_triggers_fire_and_records_of_other_levels_and_values_do_not() {
    let test = plays!({
        let _recording = try_init(format!("{}:17:23", child::place().display())).unwrap();
        warn!(code = 7, "a warning");
        error!(code = 8, "another code");
        error!("no code");
        info!(code = 7, "less");
        error!(code = 7, "this one");
        trigger("the queue is full");
        error!(code = 77, "nearly");
        std::process::exit(0);
    });
    let (_directory, [ring, names]) = places(["ring", "{n}-{span}.evc"]);
    let conditions = ["level>=ERROR field.code=7", "event=TRIGGER"];
    let options = ["--on", conditions[0], "--on", conditions[1], "--debounce", "0", "--after", "50ms"];
    let ended = finish(watching(test, "records", &ring, &[&options[..], &["-o", argument(&names)]].concat()));
    let result = result(&ended);
    let files = result["files"].list();
    let reasons: Vec<_> = files.iter().map(|file| file["reason"].text()).collect();
    assert_eq!((count(&result, "fired"), reasons), (2, conditions.to_vec()), "{result:#}");
    for (file, message) in files.iter().zip(["this one", "the queue is full"]) {
        let (path, _) = checked(file);
        let lines = exported(&path);
        let has = |line: &&Value| line["fields"]["message"] == message || line["fields"]["reason"] == message;
        let line = lines.iter().find(has).unwrap_or_else(|| panic!("no {message}: {lines:?}"));
        assert_eq!(line["time_ns"], file["epoch_nanos"], "{line}");
    }
}

#[test]
fn a_limit_suppresses_files_and_a_command_gets_those_that_are_written() {
    let test = plays!(slow_spans());
    let directory = directory();
    let place = |name: &str| program::place(&directory, name);
    let (ring, names, copy) = (place("ring"), place("{n}-{span}.evc"), place("copy.evc"));
    // The first two names are taken: one by a file, one by a manifest.
    fs::write(place("1-slow.evc"), "old").unwrap();
    fs::write(place("2-slow.evc.json"), "old").unwrap();
    let command = format!("cp {{file}} {}", copy.display());
    let options = ["--on", SLOW, "--debounce", "0", "--max", "1/1h", "--exec", &command, "--after", "50ms"];
    let ended = finish(watching(test, "slow", &ring, &[&options[..], &["-o", argument(&names)]].concat()));
    let (result, truth) = (result(&ended), said(&ended));
    assert_eq!((count(&result, "fired"), count(&result, "debounced")), (1, 0), "{result:#}");
    assert!(truth.contains(&(1 + count(&result, "suppressed"))), "{truth:?}: {result:#}");
    let (path, _) = checked(&result["files"][0]);
    assert_eq!((result["files"].list().len(), &path), (1, &place("3-slow.evc")));
    assert_eq!(fs::read(&copy).unwrap(), fs::read(&path).unwrap());
    assert_eq!(fs::read_to_string(place("1-slow.evc")).unwrap(), "old");
    assert_eq!(fs::read_to_string(place("2-slow.evc.json")).unwrap(), "old");
    assert!(!place("2-slow.evc").exists() && !place("1-slow.evc.json").exists());
}

#[test]
fn a_wrong_condition_is_refused_with_its_place() {
    let mut refused = String::new();
    for condition in ["span=slow dur>20", "span=slow durr>20ms", "level>=LOUD", "(span=a or death", "open<2s"] {
        let run = run!("capture", "no-such-ring", "--on", condition).ends(2).shows_nothing();
        refused.push_str(&format!("--on '{condition}'\n{}\n", run.err));
    }
    insta::assert_snapshot!("wrong_condition", refused);
}
