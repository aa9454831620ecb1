//! `eventring capture --on` writes a file for each event that fulfils a condition, and for no other. The file holds the
//! time around the event.
#![cfg(feature = "cli")]

mod child;
mod program;

use child::{Talk, part, place, play, say, wait_for_parent};
use eventring::capture::CaptureFile;
use eventring::tracing::{trigger, try_init};
use program::{Live, PROGRAM, Run, argument, directory, finish, run};
use serde_json::Value;
use std::io::BufRead as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tracing::{error, info, info_span, warn};

const SLOW_SPANS: u64 = 20;
const LIMIT: Duration = Duration::from_millis(20);
const SLEEP: Duration = Duration::from_millis(30);
const SLOW: &str = "span=slow dur>20ms";
/// The longest wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the command `eventring capture RING OPTIONS -- PROGRAM`, where PROGRAM is this test executable, which plays
/// `part`.
fn watching(test: &str, part: &str, ring: &Path, options: &[&str]) -> Command {
    let program = play(test, part, ring);
    let mut command = Command::new(PROGRAM);
    command.args(["capture", argument(ring), "--json"]).args(options);
    command.arg("--").arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env_remove("EVENTRING_KEEP").env_remove("EVENTRING_FILTER").env("NO_COLOR", "1");
    command
}

/// Starts a watch of a ring that is not there yet. It listens to signals when this function returns.
fn watch_before(ring: &Path, options: &[&str]) -> Live {
    let mut live = Live::start(&[&["capture", argument(ring), "--wait", "--json"][..], options].concat());
    let mut printed = String::new();
    live.err.read_line(&mut printed).unwrap();
    assert!(printed.contains("waiting for the ring"), "{printed}");
    live
}

/// Waits until a file is complete: its manifest is written last.
fn wait_for(file: &Path) -> Value {
    let since = Instant::now();
    loop {
        // A manifest that is being written may be empty.
        let text = std::fs::read_to_string(manifest_path(file)).unwrap_or_default();
        if let Ok(manifest) = serde_json::from_str(&text) {
            return manifest;
        }
        assert!(since.elapsed() < PATIENCE, "{} was not written", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn manifest_path(file: &Path) -> PathBuf {
    format!("{}.json", file.display()).into()
}

fn result(run: &Run) -> Value {
    assert_eq!(run.code, Some(0), "{run:?}");
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

fn count(result: &Value, what: &str) -> u64 {
    result[what].as_u64().unwrap_or_else(|| panic!("no {what}: {result}"))
}

/// Checks that a file opens, holds the whole time that was asked for, and has the manifest that the result names.
/// Returns the file's path, and its manifest.
fn checked(file: &Value) -> (PathBuf, Value) {
    let path = PathBuf::from(file["file"].as_str().unwrap());
    assert_eq!(CaptureFile::open(&path).unwrap().events().count() as u64, file["events"].as_u64().unwrap());
    let manifest = wait_for(&path);
    for (name, value) in file.as_object().unwrap() {
        assert_eq!(&manifest[name], value, "{name} of {}", path.display());
    }
    assert_eq!(manifest["window_kept_ns"], manifest["window_asked_ns"], "{manifest:#}");
    (path, manifest)
}

/// Returns the spans that were open at the end of a file.
fn open_spans(file: &Path) -> Vec<(u64, String)> {
    let opened = run(&["open", argument(file), "--json"]).json();
    let spans = opened["spans"].as_array().unwrap().iter();
    spans.map(|span| (span["id"].as_u64().unwrap(), span["name"].as_str().unwrap().to_owned())).collect()
}

/// Plays a program with thousands of short spans and some that sleep. Says how many spans `slow` were longer than the
/// limit for certain, and possibly: on a busy machine, a short one may be held up.
fn slow_spans() -> ! {
    let _recording = try_init(format!("{}:18:24", place().display())).unwrap();
    let mut random = u64::from(std::process::id()) * 2 + 1;
    let (mut certain, mut possible) = (0, 0);
    let mut slow = |n: u64, sleep: Duration| {
        let outside = Instant::now();
        let inside = info_span!("slow", n).in_scope(|| {
            let inside = Instant::now();
            info!("a record in a slow span has no duration");
            std::thread::sleep(sleep);
            inside.elapsed()
        });
        certain += u64::from(inside > LIMIT);
        possible += u64::from(outside.elapsed() > LIMIT);
    };
    // The first and the last event of the program are those of slow spans.
    for n in 0..SLOW_SPANS {
        slow(n, SLEEP);
        if n + 1 == SLOW_SPANS {
            break;
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for k in 0..100 + (random >> 40) % 400 {
            info_span!("ordinary", k).in_scope(|| info!(k, "something"));
        }
        slow(n, Duration::ZERO);
        if n % 5 == 0 {
            info_span!("patient").in_scope(|| std::thread::sleep(SLEEP));
        }
    }
    say(format!("{certain} {possible}"));
    std::process::exit(0);
}

/// Returns how many slow spans the program says it had. It prints to stderr, because stdout has the result.
fn said(run: &Run) -> RangeInclusive<u64> {
    let line = run.err.lines().find_map(|line| line.strip_prefix("talk: ")).unwrap_or_else(|| panic!("{run:?}"));
    let (certain, possible) = line.split_once(' ').unwrap();
    let certain: u64 = certain.parse().unwrap();
    assert!(certain >= SLOW_SPANS, "{line}");
    certain..=possible.parse().unwrap()
}

const EXACT: &str = "each_slow_span_gets_a_file_with_the_time_around_it_and_no_other_span_does";

#[test]
fn each_slow_span_gets_a_file_with_the_time_around_it_and_no_other_span_does() {
    if part().is_some() {
        slow_spans();
    }
    let directory = directory();
    let (ring, names) = (program::place(&directory, "ring"), program::place(&directory, "slow-{n}-{span}.evc"));
    let options = ["--on", SLOW, "--before", "200ms", "--after", "100ms", "-o", argument(&names)];
    let ended = finish(watching(EXACT, "slow", &ring, &[&options[..], &["--debounce", "0"]].concat()));
    let (result, truth) = (result(&ended), said(&ended));
    let others = (count(&result, "debounced"), count(&result, "suppressed"), count(&result, "lost"));
    assert!(truth.contains(&count(&result, "fired")) && others == (0, 0, 0), "{truth:?}: {result:#}");
    let files = result["files"].as_array().unwrap();
    assert_eq!(files.len() as u64, count(&result, "fired"));
    let mut seen = std::collections::BTreeSet::new();
    for (index, file) in files.iter().enumerate() {
        let (path, manifest) = checked(file);
        assert_eq!(path, program::place(&directory, &format!("slow-{}-slow.evc", index + 1)));
        assert_eq!((manifest["reason"].as_str(), count(&manifest, "window_asked_ns")), (Some(SLOW), 300_000_000));
        assert_eq!((&manifest["span"]["name"], &manifest["shortfall"]), (&"slow".into(), &Value::Null));
        let lines = run(&["export", argument(&path), "--format", "jsonl"]).json_lines();
        let id: u64 = manifest["span"]["id"].as_str().unwrap().parse().unwrap();
        let span = lines.iter().find(|line| line["type"] == "span" && line["id"] == id);
        let span = span.unwrap_or_else(|| panic!("no span {id}: {manifest:#}"));
        assert!(count(span, "duration_ns") > LIMIT.as_nanos() as u64 && span["name"] == "slow", "{span}");
        assert!(seen.insert(id), "{id} fired twice");
    }

    let ring = program::place(&directory, "calm");
    let names = program::place(&directory, "calm-{n}.evc");
    let options = ["--on", SLOW, "--before", "200ms", "--after", "100ms", "-o", argument(&names)];
    let ended = finish(watching(EXACT, "slow", &ring, &[&options[..], &["--debounce", "1h"]].concat()));
    let (result, truth) = (self::result(&ended), said(&ended));
    assert_eq!((count(&result, "fired"), result["files"].as_array().unwrap().len()), (1, 1), "{result:#}");
    assert!(truth.contains(&(1 + count(&result, "debounced"))), "{truth:?}: {result:#}");
}

const KILLED: &str = "the_death_of_a_program_gives_a_file_with_the_spans_that_were_open";

#[test]
fn the_death_of_a_program_gives_a_file_with_the_spans_that_were_open() {
    if part().is_some() {
        let _recording = try_init(format!("{}:17:23", place().display())).unwrap();
        (0..100).for_each(|n| info_span!("short", n).in_scope(|| info!("done")));
        let work = info_span!("work").entered();
        info_span!("step").in_scope(|| info!("done"));
        say(work.id().unwrap().into_u64());
        return wait_for_parent();
    }
    let directory = directory();
    let (ring, file) = (program::place(&directory, "ring"), program::place(&directory, "1-death.evc"));
    let names = program::place(&directory, "{n}-{span}.evc");
    let live = watch_before(&ring, &["--on", "death", "--after", "100ms", "-o", argument(&names)]);
    let mut talk = Talk::with(play(KILLED, "killed", &ring));
    let id: u64 = talk.hear().parse().unwrap();
    talk.child.kill().unwrap();
    talk.child.wait().unwrap();
    let result = result(&live.end());
    assert_eq!((count(&result, "fired"), result["files"].as_array().unwrap().len()), (1, 1), "{result:#}");
    let (path, manifest) = checked(&result["files"][0]);
    assert_eq!((&path, &manifest["reason"]), (&file, &"death".into()));
    assert_eq!(manifest["program"]["pid"], talk.child.id());
    assert_eq!(open_spans(&file), [(id, "work".to_owned())]);
}

const ENDED: &str = "a_program_that_ends_by_itself_does_not_fire_death";

#[test]
fn a_program_that_ends_by_itself_does_not_fire_death() {
    if part().is_some() {
        slow_spans();
    }
    let directory = directory();
    let (ring, names) = (program::place(&directory, "ring"), program::place(&directory, "{n}.evc"));
    let ended = finish(watching(ENDED, "slow", &ring, &["--on", "death", "-o", argument(&names)]));
    assert_eq!(count(&result(&ended), "fired"), 0, "{ended:?}");
}

const SIGNAL: &str = "a_signal_gives_a_file_and_ctrl_c_ends_the_watch";

#[test]
fn a_signal_gives_a_file_and_ctrl_c_ends_the_watch() {
    if part().is_some() {
        let _recording = try_init(format!("{}:17:23", place().display())).unwrap();
        let work = info_span!("work").entered();
        say(work.id().unwrap().into_u64());
        return wait_for_parent();
    }
    let directory = directory();
    let (ring, file) = (program::place(&directory, "ring"), program::place(&directory, "1-signal.evc"));
    let names = program::place(&directory, "{n}-{span}.evc");
    let live = watch_before(&ring, &["--on", "signal", "--after", "50ms", "-o", argument(&names)]);
    let mut talk = Talk::with(play(SIGNAL, "waits", &ring));
    let id: u64 = talk.hear().parse().unwrap();
    let pid = rustix::process::Pid::from_child(&live.child);
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    assert_eq!(wait_for(&file)["reason"], "signal");
    live.interrupt();
    let result = result(&live.end());
    assert_eq!((count(&result, "fired"), result["files"].as_array().unwrap().len()), (1, 1), "{result:#}");
    checked(&result["files"][0]);
    assert_eq!(open_spans(&file), [(id, "work".to_owned())]);
    assert!(talk.end().success());
}

const HUNG: &str = "a_span_that_hangs_fires_once_while_it_is_open";

#[test]
fn a_span_that_hangs_fires_once_while_it_is_open() {
    if part().is_some() {
        let _recording = try_init(format!("{}:17:23", place().display())).unwrap();
        (0..10).for_each(|n| info_span!("short", n).in_scope(|| ()));
        let hung = info_span!("hung").entered();
        say(hung.id().unwrap().into_u64());
        return wait_for_parent();
    }
    let directory = directory();
    let (ring, file) = (program::place(&directory, "ring"), program::place(&directory, "1-hung.evc"));
    let names = program::place(&directory, "{n}-{span}.evc");
    let options = ["--on", "open>200ms", "--debounce", "0", "--after", "50ms", "-o", argument(&names)];
    let live = watch_before(&ring, &options);
    let mut talk = Talk::with(play(HUNG, "hangs", &ring));
    let id: u64 = talk.hear().parse().unwrap();
    let manifest = wait_for(&file);
    // The span is still open. It does not fire again.
    assert_eq!(manifest["span"]["id"], id.to_string());
    assert_eq!(open_spans(&file), [(id, "hung".to_owned())]);
    std::thread::sleep(Duration::from_millis(500));
    assert!(talk.end().success());
    let result = result(&live.end());
    assert_eq!((count(&result, "fired"), result["files"].as_array().unwrap().len()), (1, 1), "{result:#}");
    checked(&result["files"][0]);
}

const RECORDS: &str = "records_and_triggers_fire_and_records_of_other_levels_and_values_do_not";

#[test]
fn records_and_triggers_fire_and_records_of_other_levels_and_values_do_not() {
    if part().is_some() {
        let _recording = try_init(format!("{}:17:23", place().display())).unwrap();
        warn!(code = 7, "a warning");
        error!(code = 8, "another code");
        error!("no code");
        info!(code = 7, "less");
        error!(code = 7, "this one");
        trigger("the queue is full");
        error!(code = 77, "nearly");
        std::process::exit(0);
    }
    let directory = directory();
    let (ring, names) = (program::place(&directory, "ring"), program::place(&directory, "{n}-{span}.evc"));
    let conditions = ["level>=ERROR field.code=7", "event=TRIGGER"];
    let options = ["--on", conditions[0], "--on", conditions[1], "--debounce", "0", "--after", "50ms"];
    let ended = finish(watching(RECORDS, "records", &ring, &[&options[..], &["-o", argument(&names)]].concat()));
    let result = result(&ended);
    let files = result["files"].as_array().unwrap();
    let reasons: Vec<_> = files.iter().map(|file| file["reason"].as_str().unwrap()).collect();
    assert_eq!((count(&result, "fired"), reasons), (2, conditions.to_vec()), "{result:#}");
    for (file, message) in files.iter().zip(["this one", "the queue is full"]) {
        let (path, _) = checked(file);
        let lines = run(&["export", argument(&path), "--format", "jsonl"]).json_lines();
        let has = |line: &&Value| line["fields"]["message"] == message || line["fields"]["reason"] == message;
        let line = lines.iter().find(has).unwrap_or_else(|| panic!("no {message}: {lines:?}"));
        assert_eq!(line["time_ns"], file["epoch_nanos"], "{line}");
    }
}

const LIMITED: &str = "a_limit_suppresses_files_and_a_command_gets_those_that_are_written";

#[test]
fn a_limit_suppresses_files_and_a_command_gets_those_that_are_written() {
    if part().is_some() {
        slow_spans();
    }
    let directory = directory();
    let place = |name: &str| program::place(&directory, name);
    let (ring, names, copy) = (place("ring"), place("{n}-{span}.evc"), place("copy.evc"));
    // The first two names are taken: one by a file, one by a manifest.
    std::fs::write(place("1-slow.evc"), "old").unwrap();
    std::fs::write(place("2-slow.evc.json"), "old").unwrap();
    let command = format!("cp {{file}} {}", copy.display());
    let options = ["--on", SLOW, "--debounce", "0", "--max", "1/1h", "--exec", &command, "--after", "50ms"];
    let ended = finish(watching(LIMITED, "slow", &ring, &[&options[..], &["-o", argument(&names)]].concat()));
    let (result, truth) = (result(&ended), said(&ended));
    assert_eq!((count(&result, "fired"), count(&result, "debounced")), (1, 0), "{result:#}");
    assert!(truth.contains(&(1 + count(&result, "suppressed"))), "{truth:?}: {result:#}");
    let (path, _) = checked(&result["files"][0]);
    assert_eq!((result["files"].as_array().unwrap().len(), &path), (1, &place("3-slow.evc")));
    assert_eq!(std::fs::read(&copy).unwrap(), std::fs::read(&path).unwrap());
    assert_eq!(std::fs::read_to_string(place("1-slow.evc")).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(place("2-slow.evc.json")).unwrap(), "old");
    assert!(!place("2-slow.evc").exists() && !place("1-slow.evc.json").exists());
}

#[test]
fn a_wrong_condition_is_refused_with_its_place() {
    let mut refused = String::new();
    for condition in ["span=slow dur>20", "span=slow durr>20ms", "level>=LOUD", "(span=a or death", "open<2s"] {
        let run = run(&["capture", "no-such-ring", "--on", condition]);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
        refused.push_str(&format!("--on '{condition}'\n{}\n", run.err));
    }
    insta::assert_snapshot!("wrong_condition", refused);
}
