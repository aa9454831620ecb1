//! The end of a watch: everything that was recorded before it counts, files that wait are announced, and a second
//! interrupt leaves them out. Options with which a watch could do nothing are refused before it begins.

use crate::fixtures::*;
use crate::triggers;
use crate::triggers::{count, manifest_path, wait_for};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::io::{PipeReader, PipeWriter};

fn recorder(ring: &Path) -> PerfRecorder {
    spans_in(ring).shifts(18, 24).build().unwrap()
}

/// Starts a watch, and returns when a trigger has given the file `first`: then the watch has begun.
fn begun(recorder: &PerfRecorder, ring: &Path, first: &Path, options: &[&str]) -> Live {
    let live = live!("capture", ring, "--json", "--on", "event=TRIGGER", "--after", "0", options);
    wait_while(|| {
        // What was recorded before the watch began does not fire.
        recorder.trigger("begin");
        !manifest_path(first).exists()
    });
    wait_for(first);
    live
}

fn problems(result: &Value) -> Vec<&str> {
    result["problems"].list().iter().map(|problem| problem.text()).collect()
}

#[test]
fn what_was_recorded_before_the_end_counts_however_far_behind_the_watch_is() {
    let directory = directory();
    // Each file has a directory of its own, which is made for it.
    let (ring, names) = (place(&directory, "ring"), place(&directory, "{n}-{span}/x.evc"));
    let recorder = recorder(&ring);
    let first = place(&directory, "1-event/x.evc");
    let template = argument(&names).replace("{n}-{span}", "{n}-event");
    let options = ["--on", "span=last", "--debounce", "1h", "-o", &template];
    let live = begun(&recorder, &ring, &first, &options);
    let pid = Pid::from_child(&live.child);
    kill_process(pid, Signal::STOP).unwrap();
    in_recorder(recorder.clone(), || {
        (0..40_000).for_each(|_| info_span!("many").in_scope(|| ()));
        info_span!("last").in_scope(|| ());
    });
    live.interrupt();
    kill_process(pid, Signal::CONT).unwrap();
    let ended = live.end();
    let result = triggers::result(&ended);
    assert_eq!(count(&result, "fired"), 2, "{result:#}");
    let reasons: Vec<&Value> = result["files"].list().iter().map(|file| &file["reason"]).collect();
    assert_eq!(reasons, ["event=TRIGGER", "span=last"]);
    let recorded = run!("info", "--json", &ring).json();
    assert_eq!(result["events"], recorded["events"]["count"], "{result:#}");
    assert_eq!((count(&result, "lost"), count(&result, "unseen"), count(&result, "not_written")), (0, 0, 0));
    assert_eq!(result["reason"], "interrupted");
    assert!(place(&directory, "2-event/x.evc").exists());
}

#[test]
fn files_that_wait_at_the_end_are_announced_and_a_second_interrupt_leaves_them_out_and_counts_them() {
    let (directory, [ring, names]) = places(["ring", "{n}.evc"]);
    let recorder = recorder(&ring);
    let options = ["--on", "span=slow", "--debounce", "0", "--strict", "-o", argument(&names)];
    let mut live = begun(&recorder, &ring, &place(&directory, "1.evc"), &options);
    // So many that they are not written before the second interrupt.
    in_recorder(recorder.clone(), || {
        (0..9000).for_each(|n| info_span!("slow", n).in_scope(|| ()));
    });
    wait_for(&place(&directory, "5.evc"));
    live.interrupt();
    let line = live.notice("to be written");
    let waiting: u64 = line.split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!(waiting > 15 && line.contains("for at most 60 s; a further Ctrl-C leaves out"), "{line}");
    live.interrupt();
    let ended = live.end().ends(16);
    let result = ended.said();
    let files = result["files"].list().len() as u64;
    let not_written = count(&result, "not_written");
    assert!(not_written > 0 && not_written <= waiting, "{not_written} of {waiting}");
    assert_eq!(files + not_written, count(&result, "fired"), "{files}");
    let says = problems(&result).iter().filter(|it| it.contains("not written: an interrupt")).count();
    assert_eq!(says, 1);
    assert!(ended.err.contains("not written"), "{ended:?}");
}

/// A command that never ends, one that does not heed SIGTERM, one that fills a pipe that nobody reads, and one that
/// leaves a daemon behind, which holds the pipe.
#[test]
fn files_are_written_whatever_commands_do_and_those_that_take_too_long_are_killed_and_told() {
    let daemon_ends = "n=600; while [ -e {file} ] && [ $n -gt 0 ]; do sleep 0.1; n=$((n-1)); done";
    let commands = [
        ("sleep 1000", "timed_out"),
        ("trap '' TERM; while :; do sleep 1000; done", "timed_out"),
        ("while :; do echo 'a line that nobody reads'; done", "timed_out"),
        (&format!("({daemon_ends}) & true"), "done"),
    ];
    let check = |command: &str, fate: &str| {
        let (directory, [ring, names]) = places(["ring", "{n}.evc"]);
        let recorder = recorder(&ring);
        let limits = ["--exec-timeout", "1s", "--debounce", "50ms", "--max-files", "6"];
        let exec = [&["--exec", command, "-o", argument(&names)][..], &limits].concat();
        let live = begun(&recorder, &ring, &place(&directory, "1.evc"), &exec);
        // More than run at the same time. Those for earlier files hang.
        for file in (2..=6).map(|n| place(&directory, &format!("{n}.evc"))) {
            while !manifest_path(&file).exists() {
                recorder.trigger("again");
                thread::sleep(Duration::from_millis(100));
            }
        }
        live.interrupt();
        let (mut out, mut err) = (String::new(), String::new());
        let Live { mut child, out: mut stdout, err: mut stderr, .. } = live;
        // Nobody reads stderr until the watch has ended.
        stdout.read_to_string(&mut out).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        stderr.read_to_string(&mut err).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{err}");
        let result: Value = serde_json::from_str(&out).unwrap();
        let files = result["files"].list().len() as u64;
        assert!(files == 6 && files == count(&result, "fired"), "{command}: {result:#}");
        assert_eq!(count(&result["commands"], fate), files, "{command}: {result:#}");
        let says =
            problems(&result).iter().filter(|it| it.contains("has taken longer than 1.0 s (--exec-timeout)")).count();
        assert_eq!(says as u64, if fate == "done" { 0 } else { files }, "{command}: {result:#}");
    };
    thread::scope(|scope| {
        for (command, fate) in commands {
            scope.spawn(move || check(command, fate));
        }
    });
}

/// The control of the limit: the second interrupt does not wait for it.
#[test]
fn commands_that_run_are_announced_at_the_end_and_a_second_interrupt_does_not_wait_for_them() {
    let (directory, [ring, names]) = places(["ring", "{n}.evc"]);
    let recorder = recorder(&ring);
    let stays = "n=3000; while [ -e {file} ] && [ $n -gt 0 ]; do sleep 0.1; n=$((n-1)); done";
    let options = ["--exec", stays, "--debounce", "1h", "-o", argument(&names)];
    let first = place(&directory, "1.evc");
    let mut live = begun(&recorder, &ring, &first, &options);
    live.interrupt();
    live.notice("has not ended, and may run for 1 min 0 s each; a further Ctrl-C");
    live.interrupt();
    // The command still runs, and holds stderr. It ends when its file is gone.
    let mut out = String::new();
    live.out.read_to_string(&mut out).unwrap();
    fs::remove_file(&first).unwrap();
    live.end().ends(0);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(count(&result["commands"], "left_out"), 1, "{result:#}");
    assert!(problems(&result)[0].contains("still runs, and is not waited for"), "{result:#}");
}

/// Returns the writing end of a pipe that is full, and the reading end, which nobody reads.
fn full_pipe() -> (PipeWriter, PipeReader) {
    let (reading, mut writing) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writing).unwrap();
    fcntl_setfl(&writing, flags | OFlags::NONBLOCK).unwrap();
    while writing.write(&[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writing, flags).unwrap();
    (writing, reading)
}

fn ended_within(child: &mut Child, timeout: Duration) -> Option<i32> {
    let begin = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status.code(),
            None if begin.elapsed() > timeout => {
                kill(child);
                panic!("it does not end");
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn a_stderr_that_nobody_reads_holds_up_neither_the_files_nor_the_end() {
    // The second watch shows nothing before its report, and the third one's error comes after it.
    let cases: [(&[&str], Option<i32>); 3] = [
        (&["--on", "event=TRIGGER", "--after", "0", "--exec", "true", "--json"], Some(0)),
        (&["--on", "span=never"], Some(0)),
        (&["--on", "span=never", "--wait", "--json", "never-made"], Some(3)),
    ];
    for (options, code) in cases {
        let (directory, [ring, names]) = places(["ring", "{n}.evc"]);
        let recorder = recorder(&ring);
        let (stderr, _unread) = full_pipe();
        let words = ["capture", argument(&ring), "-d", "1s", "-o", argument(&names)];
        let mut command = program!(&words, options);
        command.env("EVENTRING_DIR", directory.path()).stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        for _ in 0..60 {
            recorder.trigger("now");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(ended_within(&mut child, Duration::from_secs(20)), code, "{options:?}");
        let mut out = String::new();
        child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        if options.contains(&"--json") {
            let result: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(count(&result, "fired") > 0, place(&directory, "1.evc").exists(), "{result:#}");
        }
        assert_eq!(place(&directory, "1.evc").exists(), options.contains(&"event=TRIGGER"));
    }
}

#[test]
fn a_second_signal_ends_each_command_that_a_full_stderr_holds_up() {
    let (directory, [ring, file]) = places(["ring", "{n}.evc"]);
    let _recorder = recorder(&ring);
    let (ring, file, missing) = (argument(&ring), argument(&file), place(&directory, "missing"));
    let row = place(&directory, "row.evc");
    let (missing, row) = (argument(&missing), argument(&row));
    let mut children = Vec::new();
    for arguments in [
        &["watch", ring][..],
        &["watch", missing, "--wait"],
        &["capture", ring, "-o", file],
        &["capture", missing, "--wait", "-o", file],
        &["capture", missing, "--wait", "--on", "event=TRIGGER", "-o", file],
        &["capture", ring, "-o", row, "--reopen"],
    ] {
        let (stderr, unread) = full_pipe();
        let child = program::program(arguments).stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        children.push((child, arguments.join(" "), unread));
    }
    for _ in 0..2 {
        // The notice of what is awaited comes after a second.
        thread::sleep(Duration::from_millis(1500));
        children.iter().for_each(|(child, ..)| _ = kill_process(Pid::from_child(child), Signal::TERM));
    }
    for (mut child, arguments, _unread) in children {
        // A command that does not listen to the signal is ended by the first one.
        let code = ended_within(&mut child, Duration::from_secs(20));
        assert!(matches!(code, None | Some(130)), "{arguments}: {code:?}");
    }
}

#[test]
fn a_command_that_fails_is_named_with_its_file() {
    let (directory, [ring, names]) = places(["ring", "{n}.evc"]);
    let recorder = recorder(&ring);
    let options = ["--debounce", "1h", "--exec", "exit 3 # {manifest}", "-o", argument(&names)];
    let first = place(&directory, "1.evc");
    let live = begun(&recorder, &ring, &first, &options);
    live.interrupt();
    let ended = live.end();
    let result = triggers::result(&ended);
    let expected = format!(
        "the command of --exec for {} has failed (exit status: 3): exit 3 # '{}'",
        first.display(),
        manifest_path(&first).display()
    );
    assert_eq!(problems(&result), [expected.as_str()]);
    assert!(ended.err.contains(&format!("warning: {expected}")), "{ended:?}");
}

#[test]
fn options_with_which_a_watch_could_do_nothing_are_refused_and_the_message_says_why() {
    let (signal, here) = (["--on", "signal"], directory());
    let missing = here.path().join("missing/{n}/{span}.evc");
    let cases: [(&[&str], i32, &str); 11] = [
        (&["--max-files", "0"], 2, "expected at least 1 file: with 0, the watch would never write one"),
        (&["--max", "0/1h"], 2, "expected at least 1 file"),
        (&["--max", "10/0s"], 2, "expected a time greater than 0"),
        (&["--max-bytes", "0"], 2, "expected a size greater than 0"),
        (&["--memory", "0"], 2, "expected at least 1MiB"),
        (&["--memory", "1023k"], 2, "expected at least 1MiB"),
        (&["--exec", "cp {fil} x"], 2, "found `{fil}`, expected {file} or {manifest}"),
        (&["--before", "1e30"], 2, "the time is too long, expected at most 876000h"),
        (&["--on", "level>=ERROR dur>5ms"], 2, "column 14: `dur>5ms` holds only for spans that are closed"),
        (&["--on", "signal and death"], 2, "so both never hold together"),
        (&["-o", argument(&missing)], 3, "make its directory first"),
    ];
    for (options, code, said) in cases {
        run!("capture", "no-such-ring", &signal, options).ends(code).shows_nothing().warns(said);
    }
}
