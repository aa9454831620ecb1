//! Tests of exports that are directories: where they may lead, and what the program never replaces.

use crate::fixtures::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;

/// Exports the kept snapshot to `output`.
fn export(output: &Path, more: &[&str]) -> Run {
    run!("export", KEPT, "--format", "ctf", "-o", output, more)
}

fn assert_refused(run: &Run, output: &Path, problem: &str) {
    assert_eq!(run.code, Some(14), "{run:?}");
    assert_eq!(run.err, format!("error: cannot write {}: {problem}\n", output.display()));
}

#[test]
fn an_earlier_export_is_replaced_only_with_force_and_nothing_is_left_behind() {
    let (directory, [output]) = places(["t.ctf"]);
    export(&output, &[]).ends(0);
    assert_eq!(names_in(&output), ["metadata", "stream_0"]);
    let first = fs::read(output.join("metadata")).unwrap();
    assert_refused(&export(&output, &[]), &output, "it exists; choose another name, or --force");
    assert_eq!(fs::read(output.join("metadata")).unwrap(), first);

    // A stream that the new trace does not have.
    fs::write(output.join("stream_7"), "old").unwrap();
    export(&output, &["--force"]).ends(0);
    assert_eq!(
        (names_in(&output), names_in(directory.path())),
        (vec!["metadata".into(), "stream_0".into()], vec!["t.ctf".into()])
    );
    // Each trace has a UUID of its own.
    assert_ne!(fs::read(output.join("metadata")).unwrap(), first);
    // An empty directory can be replaced, too.
    let empty = place(&directory, "empty");
    fs::create_dir(&empty).unwrap();
    export(&empty, &["--force"]).ends(0);
    assert_eq!(names_in(&empty), ["metadata", "stream_0"]);
}

#[test]
fn a_directory_with_anything_else_is_never_replaced() {
    let (directory, [output]) = places(["precious"]);
    fs::create_dir(&output).unwrap();
    let other = "it is a directory with other things than an export in this format";
    for (name, is_directory) in [("letter", false), ("stream_0", true)] {
        let entry = output.join(name);
        if is_directory {
            fs::create_dir(&entry).unwrap()
        } else {
            fs::write(&entry, "dear").unwrap()
        }
        assert_refused(&export(&output, &["--force"]), &output, &format!("{other} ({name}); choose another name"));
        assert_eq!(names_in(&output), [name]);
        if is_directory { fs::remove_dir(&entry).unwrap() } else { fs::remove_file(&entry).unwrap() }
    }
    let (file, link) = (place(&directory, "file"), place(&directory, "link"));
    fs::write(&file, "precious").unwrap();
    let no_directory = "it exists and is no directory, which this format needs; choose another name";
    assert_refused(&export(&file, &["--force"]), &file, no_directory);
    symlink(&output, &link).unwrap();
    let is_link = "it is a symbolic link, which is not replaced; name what it leads to";
    assert_refused(&export(&link, &["--force"]), &link, is_link);
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(names_in(directory.path()), ["file", "link", "precious"]);
}

#[test]
fn a_file_that_is_read_is_not_replaced_with_its_directory() {
    let (directory, [output]) = places(["t.ctf"]);
    export(&output, &[]).ends(0);
    let capture = output.join("stream_0");
    fs::remove_file(&capture).unwrap();
    fs::copy(KEPT, &capture).unwrap();
    let run = run!("export", &capture, "--format", "ctf", "-o", &output, "--force").ends(14);
    assert!(
        run.err.ends_with("it is a file that is read, which is not written over; choose another name\n"),
        "{run:?}"
    );
    assert_eq!(fs::read(&capture).unwrap(), fs::read(KEPT).unwrap());
    assert_eq!(names_in(directory.path()), ["t.ctf"]);
}

#[test]
fn stdout_takes_no_directory_and_a_missing_parent_is_named() {
    let run_to = |output: &str| run!("export", KEPT, "--format", "ctf", "-o", output);
    for output in ["-", "/dev/stdout"] {
        run_to(output).fails(2, "stdout takes only one; name a directory with --output");
    }
    let directory = directory();
    run_to(argument(&place(&directory, "missing/t.ctf"))).fails(3, "make its directory first");
}

#[test]
fn a_failed_export_leaves_nothing_and_the_default_name_is_that_of_the_input() {
    let (directory, [capture]) = places(["t.evc"]);
    fs::write(&capture, "no capture").unwrap();
    let run_there = |arguments: &[&str]| {
        let mut command = program::program(arguments);
        command.current_dir(directory.path());
        program::finish(command)
    };
    assert_ne!(run_there(&["export", "t.evc", "--format", "ctf"]).code, Some(0));
    assert_eq!(names_in(directory.path()), ["t.evc"]);
    fs::copy(KEPT, place(&directory, "kept.zst")).unwrap();
    run_there(&["export", "kept.zst", "--format", "ctf"]).ends(0).warns("written to kept.ctf");
    assert_eq!(names_in(directory.path()), ["kept.ctf", "kept.zst", "t.evc"]);
}

#[test]
fn a_directory_whose_files_another_program_wrote_is_not_replaced() {
    let directory = directory();
    for (format, name) in [("ctf", "metadata"), ("parquet", "rings.parquet"), ("parquet", "orders.parquet")] {
        let output = place(&directory, "precious");
        fs::create_dir(&output).unwrap();
        fs::write(output.join(name), "precious").unwrap();
        let export = |more: &[&str]| run!("export", KEPT, "--format", format, "-o", &output, more);
        export(&["--force"]).fails(14, "it is a directory that is no export in this format of eventring");
        assert_eq!(fs::read(output.join(name)).unwrap(), b"precious");
        fs::remove_dir_all(&output).unwrap();
        assert_eq!((export(&[]).code, export(&["--force"]).code), (Some(0), Some(0)));
        fs::remove_dir_all(&output).unwrap();
    }
}

#[test]
fn only_the_owner_and_the_group_may_read_the_files() {
    let directory = directory();
    for format in ["ctf", "parquet"] {
        let output = place(&directory, format);
        run!("export", KEPT, "--format", format, "-o", &output).ends(0);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&output) & 0o007, 0);
        assert!(names_in(&output).iter().all(|name| mode(&output.join(name)) & 0o137 == 0));
    }
}

/// Captures spans whose export takes longer than a signal takes to come.
fn large_capture(directory: &TempDir) -> String {
    let (ring, capture) = (place(directory, "ring"), place(directory, "t.evc"));
    let recorder = spans_in(&ring).shifts(17, 24).build().unwrap();
    in_recorder(recorder, || {
        (0..25_000).for_each(|number| info_span!("work", number).in_scope(|| ()));
        run!("capture", &ring, "--now", "-o", &capture).ends(0);
    });
    argument(&capture).to_owned()
}

/// Returns true if the process has a file without a name open.
fn writes_nameless(process: u32) -> bool {
    let open = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| argument(&path).ends_with(" (deleted)"))
}

#[test]
fn a_signal_ends_an_export_and_nothing_of_it_is_left() {
    let directory = directory();
    let capture = large_capture(&directory);
    let outputs = place(&directory, "outputs");
    for (format, signal) in [
        ("ctf", Signal::INT),
        ("ctf", Signal::TERM),
        ("parquet", Signal::TERM),
        ("perfetto", Signal::INT),
        // Nobody can clean up after this one.
        ("perfetto", Signal::KILL),
    ] {
        // Now and then, an export is complete before the signal comes.
        let is_ended_by_signal = (0..50).any(|_| ends_by_signal(&capture, format, signal, &outputs));
        assert!(is_ended_by_signal, "{format}");
    }
}

/// Exports to a new directory and sends a signal when the export has begun. Returns true if the signal has ended it,
/// and checks that nothing is left. Returns false if the export was complete.
fn ends_by_signal(capture: &str, format: &str, signal: Signal, outputs: &Path) -> bool {
    fs::create_dir(outputs).unwrap();
    let mut command = program!("export", capture, "--format", format, "-o", "out");
    let mut child = command.current_dir(outputs).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    // A directory has a temporary name, a file has none.
    while names_in(outputs).is_empty() && !writes_nameless(child.id()) && child.try_wait().unwrap().is_none() {}
    // An export that is complete has ended and cannot get a signal.
    let _ = kill_process(Pid::from_child(&child), signal);
    let status = child.wait().unwrap();
    let left = names_in(outputs);
    fs::remove_dir_all(outputs).unwrap();
    if left == ["out"] {
        return false;
    }
    assert_eq!((status.signal(), left), (Some(signal.as_raw()), vec![]), "{format}");
    true
}
