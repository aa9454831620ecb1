//! `eventring capture RINGS -- PROGRAM` and `--wait`. Some of the rings are never made, and some stay because
//! EVENTRING_KEEP is set.

use crate::fixtures::*;
use crate::triggers::of_program;
use eventring::reader::RingState;
use eventring::tracing::try_init;

const EVENTS: u64 = 50;

/// Plays a program that records on two threads and ends immediately.
fn brief_program(part: &str) -> ! {
    // This part makes no ring.
    if part == "idle" {
        std::process::exit(0);
    }
    let config = format!("{}:15:21", child::place().display());
    let _recording = try_init(config).unwrap();
    let log = || (0..EVENTS).for_each(|n| info!(n, "something"));
    log();
    thread::spawn(log).join().unwrap();
    println!("the program's own words");
    match part {
        "abort" => std::process::abort(),
        _ => std::process::exit(7),
    }
}

/// Returns the command `eventring ARGUMENTS -- PROGRAM`, where PROGRAM is this test executable, which plays `part`.
fn capturing(test: &str, part: &str, place: &Path, arguments: &[&str]) -> Command {
    of_program(&play(test, part, place), program!(arguments, "--"))
}

/// If a test has started this process to play a part, plays the brief program and never returns. Otherwise returns a
/// new directory, and the paths in it for the ring and for the capture.
fn brief() -> (TempDir, PathBuf, PathBuf) {
    if let Some(part) = part() {
        brief_program(&part);
    }
    let (directory, [place, file]) = places(["ring", "t.evc"]);
    (directory, place, file)
}

/// Returns the command `eventring ARGUMENTS -- sh -c SCRIPT`. In the script, `"$@"` runs this test executable, which
/// plays `part`.
fn capturing_script(test: &str, part: &str, place: &Path, arguments: &[&str], script: &str) -> Command {
    of_program(&play(test, part, place), program!(arguments, "--", "sh", "-c", script, "sh"))
}

/// Returns how many of the program's log records are in the capture.
fn logged(file: &Path) -> u64 {
    let lines = exported(file);
    lines.iter().filter(|line| line["type"] == "event" && line["fields"]["message"] == "something").count() as u64
}

#[test]
fn a_program_that_ends_at_once_is_captured_whole_and_its_exit_code_is_ours() {
    let (directory, place, file) = brief();
    // An earlier program has left a ring of the same name. The capture must wait for the ring of the program that it
    // starts, and must not read the old ring.
    let left = Recorder::builder(ContentDescription::new(300, "OLD")).config(&place).shifts(16, 27).prefault(false);
    drop(left.keep(true).build().unwrap());
    let arguments = ["capture", argument(&place), "-o", argument(&file), "--json", "--strict"];
    let ended = finish(capturing(test_name!(), "brief", &place, &arguments)).ends(7);
    let captured = ended.said();
    assert_eq!((&captured["reason"], &captured["lost"]), (&"writers_ended".into(), &0.into()));
    assert_eq!(logged(&file), 2 * EVENTS);
    // The capture made the program's rings stay, so that it could read them to the end, and then removed them. Only
    // the capture's own file is left.
    assert_eq!(names_in(directory.path()), ["t.evc"]);
    assert!(ended.err.contains("the program's own words"), "{}", ended.err);
}

#[test]
fn a_capture_goes_on_while_its_program_runs_although_the_rings_have_ended() {
    let (_directory, place, file) = brief();
    let arguments = ["capture", argument(&place), "-o", argument(&file)];
    let ended = finish(capturing_script(test_name!(), "brief", &place, &arguments, "\"$@\"; sleep 2; exit 5")).ends(5);
    assert!(ended.err.ends_with("(the program has ended)\n"), "{ended:?}");
    assert_eq!(logged(&file), 2 * EVENTS);
}

#[test]
fn later_rings_of_the_same_name_are_captured_and_removed() {
    let (directory, place, file) = brief();
    let arguments = ["capture", argument(&place), "-o", argument(&file), "--json", "--strict"];
    // A program may replace its predecessor's rings before the capture has seen them. Then they are lost, and the
    // capture says so. So each program begins when the capture, which is the shell's parent, has mapped both rings of
    // the one before.
    let script = "
        is_held() { grep -q '/ring$' /proc/$PPID/maps && grep -q '/ring.1$' /proc/$PPID/maps; }
        next() { until is_held; do sleep 0.01; done; \"$@\"; }
        \"$@\"; next \"$@\"; next \"$@\"";
    let ended = finish(capturing_script(test_name!(), "brief", &place, &arguments, script)).ends(7);
    let captured = ended.said();
    assert_eq!((&captured["reason"], &captured["lost"]), (&"writers_ended".into(), &0.into()));
    // Each of the three recorders has made a ring for each of its threads.
    let first = exported(&file).swap_remove(0);
    let pids: BTreeSet<u64> = first["rings"].list().iter().map(|ring| ring["pid"].number()).collect();
    assert_eq!((logged(&file), pids.len()), (3 * 2 * EVENTS, 3));
    assert_eq!(names_in(directory.path()), ["t.evc"]);
}

#[test]
fn a_program_that_dies_is_captured_and_leaves_its_rings() {
    let (_directory, place, file) = brief();
    let arguments = ["capture", argument(&place), "-o", argument(&file), "--json"];
    let ended = finish(capturing(test_name!(), "abort", &place, &arguments)).ends(128 + 6);
    let captured = ended.said();
    assert!(captured["events"].number() > 2 * EVENTS);
    assert_eq!((&captured["died"], &captured["signal"]), (&true.into(), &6.into()), "{captured:#}");
    let told = finish(capturing(
        test_name!(),
        "abort",
        &place,
        &["capture", argument(&place), "-o", argument(&file), "--force"],
    ));
    assert!(told.err.ends_with("(the program was killed by signal 6)\n"), "{told:?}");
    assert_eq!(Reader::open(&place).unwrap().state(), RingState::WriterDied);
}

#[test]
fn a_program_without_the_named_ring_is_an_error() {
    let (_directory, place, file) = brief();
    let arguments = ["capture", argument(&place), "-o", argument(&file)];
    finish(capturing(test_name!(), "idle", &place, &arguments))
        .fails(3, " was not made by it; give the name under which it records");
    assert!(!file.exists());
    let missing = run!("capture", &place, "-o", &file, "--", "/no/such/program").ends(3);
    assert!(missing.err.starts_with("error: cannot start /no/such/program: "), "{missing:?}");
}

#[test]
fn a_capture_waits_for_a_ring_and_says_so() {
    let (_directory, [place, file]) = places(["ring", "t.evc"]);
    let mut live = live!("capture", &place, "-o", &file, "--wait", "--json");
    live.notice(&format!("── waiting for the ring {} to be made ──", place.display()));
    let recorder = things(&place);
    record_things(&recorder, 100);
    wait_while(|| !file.exists());
    recorder.record(2, [0; 4], b"the last one");
    drop(recorder);
    let ended = live.end().ends(0);
    assert_eq!((&ended.said()["events"], &ended.said()["lost"]), (&101.into(), &0.into()));
}

#[test]
fn a_ring_of_another_name_is_reported_and_removed() {
    let (directory, place, file) = brief();
    let wrong = program::place(&directory, "wrong");
    let arguments = ["capture", argument(&wrong), "-o", argument(&file)];
    let ended = finish(capturing(test_name!(), "brief", &place, &arguments)).ends(3);
    let hint = format!("it has made {}: give that name (nothing was captured)", place.display());
    assert!(ended.err.contains(&hint), "{ended:?}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn existing_rings_are_captured_although_another_is_missing() {
    let test = plays!(|part| brief_program(&part));
    for other_first in [false, true] {
        let (directory, [place, other, file]) = places(["ring", "other", "t.evc"]);
        let mut names = [argument(&place), argument(&other)];
        names.sort_by_key(|name| name.ends_with("other") != other_first);
        let arguments = ["capture", names[0], names[1], "-o", argument(&file), "--json"];
        let ended = finish(capturing(test, "brief", &place, &arguments)).ends(3);
        let why = format!("has ended with exit code 7, and the ring {} was not made by it; ", other.display());
        assert!(ended.err.contains(&why), "{ended:?}");
        let captured = ended.said();
        assert_eq!(captured["missing"], json!([argument(&other)]));
        assert!(captured["events"].number() > 2 * EVENTS && captured["lost"] == 0, "{captured}");
        assert_eq!(names_in(directory.path()), ["t.evc"]);
    }
}

fn things(place: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "THINGS")).config(place).shifts(16, 27);
    builder.prefault(false).build().unwrap()
}

fn record_things(recorder: &Recorder, count: u64) {
    (0..count).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b"thing"), 0));
}

#[test]
fn a_ring_is_read_while_another_is_awaited_and_may_be_gone_by_then() {
    let (_directory, [first, second, file]) = places(["first", "second", "t.evc"]);
    let mut live = live!("capture", &second, &first, "-o", &file, "--wait", "--json");
    let recorder = things(&first);
    // The capture makes its file when it has opened a ring.
    wait_while(|| !file.exists());
    // The ring holds only 65,536 of these 90,000 events. A capture gets more only if it reads while the program
    // records.
    for _ in 0..9 {
        record_things(&recorder, 10_000);
        thread::sleep(Duration::from_millis(100));
    }
    drop(recorder);
    assert!(!first.exists());
    live.notice(&format!("waiting for the ring {} to be made ──", second.display()));
    let recorder = things(&second);
    record_things(&recorder, 10);
    // In this second the capture finds the second ring and opens it. After that, the recorder may remove the ring's
    // file.
    thread::sleep(Duration::from_secs(1));
    drop(recorder);
    let ended = live.end().ends(0);
    let captured = ended.said();
    let number = |what: &str| captured[what].number();
    assert_eq!(number("events") + number("lost"), 90_010, "{captured}");
    // The capture has more events than both rings could hold at the end. So it began to read the first ring before the
    // second ring existed. It may still lose some events on a busy machine.
    assert!(number("events") > (1 << 16) + 10, "{captured}");
    assert_eq!((&captured["reason"], &captured["missing"]), (&"writers_ended".into(), &json!([])));
}

#[test]
fn an_interrupted_capture_holds_the_rings_that_came_and_names_those_that_did_not() {
    let (_directory, [first, second, file]) = places(["first", "second", "t.evc"]);
    let live = live!("capture", &first, &second, "-o", &file, "--wait", "--json");
    let recorder = things(&first);
    record_things(&recorder, 100);
    wait_while(|| !file.exists());
    drop(recorder);
    live.interrupt();
    let ended = live.end().ends(3);
    let error = format!("error: the ring {} was never made; ", second.display());
    assert!(ended.err.lines().last().unwrap().starts_with(&error), "{ended:?}");
    let captured = ended.said();
    assert_eq!((&captured["events"], &captured["reason"]), (&100.into(), &"interrupted".into()));
    assert_eq!(captured["missing"], json!([argument(&second)]));
    assert_eq!(exported(&file).len(), 102);
}

#[test]
fn an_interrupted_wait_without_any_ring_is_an_error_that_says_so() {
    let (_directory, [place, file]) = places(["ring", "t.evc"]);
    let mut live = live!("capture", &place, "-o", &file, "--wait");
    let mut printed = String::new();
    live.err.read_line(&mut printed).unwrap();
    live.interrupt();
    let ended = live.end().ends(3);
    let error = format!("interrupted before the ring {} was made; nothing was captured", place.display());
    assert!(ended.err.contains(&error) && !file.exists(), "{ended:?}");
}

#[test]
fn a_duration_ends_the_wait_for_a_ring_that_never_comes() {
    let (_directory, [place, file]) = places(["ring", "t.evc"]);
    let arguments = ["capture", argument(&place), "-o", argument(&file), "--duration", "300ms"];
    for more in [&["--wait"][..], &["--", "sleep", "2"]] {
        let ended = run!(&arguments, more).ends(3);
        let error = format!("error: the ring {} was not made within 300 ms (--duration); ", place.display());
        assert!(ended.err.starts_with(&error) && !file.exists(), "{ended:?}");
    }
}

#[test]
fn a_program_is_not_started_if_the_output_cannot_be_written() {
    let (directory, [place, started, first]) = places(["ring", "started", "t.0001.evc"]);
    fs::write(&first, "in use").unwrap();
    let whole = program::place(&directory, "t.evc");
    for output in ["/dev/null", argument(&whole)] {
        let arguments = ["capture", argument(&place), "--rotate-size", "8k", "-o", output];
        let refused = run!(&arguments, "--", "touch", &started);
        assert_eq!((refused.code, started.exists()), (Some(14), false), "{refused:?}");
    }
    let full = run!("capture", &place, "-o", "/dev/full", "--", "touch", &started);
    assert_eq!((full.code, started.exists()), (Some(12), false), "{full:?}");
}

#[test]
fn a_program_is_not_started_for_a_ring_that_can_never_be() {
    let (_directory, [ring, file, started]) = places(["ring:64MiB", "t.evc", "started"]);
    run!("capture", &ring, "-o", &file, "--", "touch", &started).fails(3, "are sizes for the recorder");
    // If it was started, it may take a moment.
    thread::sleep(Duration::from_millis(500));
    assert!(!started.exists() && !file.exists());
}

/// A type or a field that no ring has yet may be one of a ring that the program makes later.
#[test]
fn a_program_that_runs_already_is_captured_although_nothing_is_taken_so_far() {
    let (_directory, ring, file) = brief();
    let words = ["capture", argument(&ring), "-o", argument(&file), "--type", "NOSUCH"];
    finish(capturing(test_name!(), "ends", &ring, &words)).fails(7, "--type NOSUCH");
    assert!(file.exists() && !ring.exists());
}

#[test]
fn a_ring_that_comes_and_cannot_be_captured_does_not_spoil_the_others() {
    let (_directory, [first, second, file]) = places(["first", "second", "t.evc"]);
    let live = live!("capture", &first, &second, "-o", &file, "--wait", "--json");
    let recorder = things(&first);
    wait_while(|| !file.exists());
    let older = Recorder::builder(ContentDescription::new(3, "PERF").schema_hash([7; 32])).config(&second);
    let older = older.shifts(16, 27).prefault(false).keep(true).build().unwrap();
    record_things(&recorder, 100);
    drop(recorder);
    let ended = live.end();
    drop(older);
    assert_eq!((ended.code, &ended.said()["events"]), (Some(9), &100.into()), "{ended:?}");
    assert!(ended.err.contains("schema hash"), "{ended:?}");
}

#[test]
fn a_ring_stays_after_an_exit_if_the_environment_says_so() {
    if let Some(part) = part() {
        if part == "built" {
            // The program builds this recorder itself. Such a recorder does not read EVENTRING_KEEP, so its ring does
            // not stay.
            let builder = spans_in(child::place()).shifts(15, 21);
            Box::leak(Box::new(builder.build().unwrap()));
            std::process::exit(0);
        }
        brief_program(&part);
    }
    let says_no = ["0", "", "no", "FALSE", "off"].map(|value| ("one line", value, false));
    let says_yes = ["1", "true", "on", "any"].map(|value| ("one line", value, true));
    for (part, value, stays) in says_no.into_iter().chain(says_yes).chain([("built", "1", false)]) {
        let (_directory, [place]) = places(["ring"]);
        let status = play(test_name!(), part, &place).env("EVENTRING_KEEP", value).status().unwrap();
        assert_eq!(status.code(), Some(if part == "built" { 0 } else { 7 }));
        assert_eq!(place.exists(), stays, "{part} {value}");
        if stays {
            // This program ended normally, so readers see the state "ended". They would see "writer died" after a
            // crash.
            assert_eq!(Reader::open(&place).unwrap().state(), RingState::Ended);
            assert_eq!(run!("info", &place, "--json").json()["state"], "ended");
        }
    }
}

/// Returns a command that runs in a directory, which also has the rings.
fn in_directory(directory: &TempDir, arguments: &[&str]) -> Command {
    let mut command = program::program(arguments);
    command.current_dir(directory).env("EVENTRING_DIR", place(directory, "rings")).env_remove("EVENTRING_KEEP");
    command
}

#[test]
fn a_name_without_a_slash_is_that_of_a_ring_beside_the_program_of_the_same_name() {
    let directory = directory();
    std::os::unix::fs::symlink(PROGRAM, program::place(&directory, "shop")).unwrap();
    let replay = ["--", "./shop", "exec", "replay", program::KEPT, "--ring", "shop"];
    for (arguments, code) in [(&["capture", "shop", "-o", "out.evc"][..], 0), (&["capture", "shop", "-o", "-"], 0)] {
        let mut command = in_directory(&directory, &[arguments, &replay].concat());
        if arguments.contains(&"-") {
            command.stdout(File::create(program::place(&directory, "stdout.evc")).unwrap());
        }
        finish(command).ends(code);
        let _ = fs::remove_dir_all(program::place(&directory, "rings"));
    }
    let summary = finish(in_directory(&directory, &["summary", "out.evc", "--json"])).json();
    assert_eq!(summary["blocks"], 2, "{summary:#}");
    // Who waits for the ring waits, whatever has its name here.
    let mut waits = in_directory(&directory, &["capture", "shop", "--wait", "--duration", "2s", "-o", "waited.evc"]);
    let waits = waits.stderr(Stdio::piped()).spawn().unwrap();
    let mut watch = in_directory(&directory, &["watch", "shop", "--reopen", "--json"]);
    let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    finish(in_directory(&directory, &replay[2..])).ends(0);
    let line = BufReader::new(watch.stdout.take().unwrap()).lines().next();
    kill(&mut watch);
    assert!(line.is_some_and(|line| line.unwrap().starts_with('{')));
    let waited = waits.wait_with_output().unwrap();
    assert_eq!(waited.status.code(), Some(0), "{waited:?}");
    // A name with a slash is a path.
    finish(in_directory(&directory, &["capture", "./shop", "--now", "-o", "path.evc"])).ends(4);
}

#[test]
fn a_name_without_a_slash_is_that_of_a_ring_beside_a_capture_or_an_archive_of_the_same_name() {
    let directory = directory();
    let replay = |ring: &str| {
        finish(in_directory(&directory, &["exec", "replay", program::KEPT, "--ring", ring])).ends(0);
    };
    replay("shop");
    // What has the name in the working folder has no events.
    let empty = program::exec_ring(&program::place(&directory, "empty"));
    let capture = ["capture", "./empty", "--now", "-o", "shop"];
    finish(in_directory(&directory, &capture)).ends(0);
    drop(empty);
    let verbs: [&[&str]; 5] = [
        &["summary", "NAME", "--json"],
        &["export", "NAME", "--format", "jsonl", "-o", "-"],
        &["exec", "blocks", "NAME", "--json"],
        &["watch", "NAME", "--json"],
        &["ask", "NAME"],
    ];
    let of = |verb: &[&str], name: &str| {
        let words: Vec<&str> = verb.iter().map(|word| if *word == "NAME" { name } else { word }).collect();
        let run = finish(in_directory(&directory, &words)).ends(0);
        run.out.lines().count()
    };
    for verb in verbs {
        let (bare, ring, file) = (of(verb, "shop"), of(verb, "rings/shop"), of(verb, "./shop"));
        assert_eq!(bare, ring, "{verb:?}");
        // The control: the file is something else.
        assert!(file != ring || verb[0] == "summary", "{verb:?}");
    }
    fs::remove_file(program::place(&directory, "shop")).unwrap();
    fs::create_dir(program::place(&directory, "shop")).unwrap();
    assert_eq!(of(verbs[2], "shop"), 2);
    // Where no ring has the name, it is that of the file; also where captures lie beside the rings.
    let capture = ["capture", "rings/shop", "--now", "-o", "saved.evc"];
    finish(in_directory(&directory, &capture)).ends(0);
    assert_eq!(of(verbs[2], "saved.evc"), 2);
    fs::copy(program::place(&directory, "saved.evc"), program::place(&directory, "rings/saved.evc")).unwrap();
    assert_eq!(of(verbs[2], "saved.evc"), 2);
}

#[test]
fn a_second_instance_of_the_service_is_captured_by_the_name_that_both_have() {
    let directory = directory();
    let service = Path::new(PROGRAM).with_file_name("examples").join("http_service");
    let rings = program::place(&directory, "rings");
    let mut first = Command::new(&service);
    first.args(["--requests", "10000000", "--ring", "shop"]).env("EVENTRING_DIR", &rings);
    let mut first = first.stdout(Stdio::null()).spawn().unwrap();
    wait_while(|| !rings.join("shop").exists());
    let second = ["capture", "shop", "-o", "shop.evc", "--", argument(&service), "--requests", "20", "--ring", "shop"];
    let captured = finish(in_directory(&directory, &second));
    kill(&mut first);
    captured.ends(0);
    let summary = finish(in_directory(&directory, &["summary", "shop.evc", "--json"])).json();
    let requests = summary["spans"].list().iter().find(|span| span["name"] == "request").unwrap();
    assert_eq!(requests["count"], 20, "{summary:#}");
    assert!(!rings.join("shop~2").exists(), "the capture removes what it had kept");
}
