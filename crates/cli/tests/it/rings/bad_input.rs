//! Bad input gives one clear line and a documented exit code. Nothing panics.

use crate::fixtures::*;
use eventring::schema::test::TestEvent;
use eventring_stress::mounted::mount_or_skip;
use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;

/// A table that shows, for each run of the program, its arguments, exit code and error message. Texts that differ
/// each time, such as process ids, are replaced.
struct Table {
    text: String,
    directory: String,
}

impl Table {
    fn new(directory: &Path) -> Self {
        Self { text: String::new(), directory: directory.to_str().unwrap().to_owned() }
    }

    fn add(&mut self, run: Run, arguments: &[&str]) {
        assert_eq!(run.out, "", "{run:?}");
        assert_eq!(run.err.lines().count(), 1, "not one line: {run:?}");
        let (run, arguments) = (format!("{:>2}  {}", run.code.unwrap(), run.err), arguments.join(" "));
        let text = format!("$ eventring {arguments}\n{run}\n").replace(&self.directory, "DIR");
        let text = text.replace(&format!("process {}", std::process::id()), "process PID");
        self.text.write_str(&text).unwrap();
    }

    fn run(&mut self, arguments: &[&str]) {
        let mut command = program(arguments);
        command.current_dir(&self.directory).env("EVENTRING_DIR", format!("{}/rings", self.directory));
        self.add(finish(command), arguments);
    }
}

fn ring(path: &Path, description: ContentDescription) -> Recorder {
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).keep(true).build().unwrap()
}

#[test]
fn every_bad_input_has_its_line_and_its_code() {
    let directory = directory();
    let dir = directory.path();
    let mut table = Table::new(dir);

    fs::create_dir(dir.join("rings")).unwrap();
    fs::write(
        dir.join("text"),
        "no ring at all, but a text of some length, longer than what a header takes".repeat(10),
    )
    .unwrap();
    fs::write(dir.join("short"), "RING01").unwrap();
    fs::write(dir.join("empty"), "").unwrap();
    let exec = ring(&dir.join("live"), ContentDescription::from_event_type::<ExecEvent>());
    drop(ring(&dir.join("test"), ContentDescription::from_event_type::<TestEvent>()));
    drop(ring(&dir.join("old-exec"), ContentDescription::new(2, "EXEC").schema_hash([7; 32])));
    let image = fs::read(dir.join("test")).unwrap();
    fs::write(dir.join("cut"), &image[..3 << 20]).unwrap();
    let changed = |offset: usize, bytes: &[u8]| {
        let mut image = image.clone();
        image[offset..offset + bytes.len()].copy_from_slice(bytes);
        image
    };
    fs::write(dir.join("newer"), changed(4, b"02")).unwrap();
    fs::write(dir.join("odd"), changed(40, &12_345u64.to_le_bytes())).unwrap();
    let snapshot = fs::read(program::KEPT).unwrap();
    fs::write(dir.join("cut.zst"), &snapshot[..5000]).unwrap();
    let mut bad = snapshot.clone();
    bad[4000] ^= 1;
    fs::write(dir.join("bad.zst"), bad).unwrap();
    fs::write(dir.join("text.zst"), zstd::encode_all(&[b'x'; 1000][..], 1).unwrap()).unwrap();

    for verb in ["info", "watch", "snapshot"] {
        table.run(&[verb, "missing"]);
        table.run(&[verb, "./missing"]);
    }
    for file in [".", "text", "short", "empty", "/dev/null", "newer", "cut", "odd", "cut.zst", "bad.zst", "text.zst"] {
        let file = if file.starts_with('/') { file.to_owned() } else { format!("{}/{file}", dir.display()) };
        table.run(&["info", &file]);
    }
    table.run(&["watch", "rings/"]);
    for verb in ["info", "watch", "snapshot", "summary", "export", "report", "capture"] {
        table.run(&[verb, argument(&dir.join("rings"))]);
    }
    let capture = dir.join("t.evc");
    assert_eq!(
        program::run(&["capture", argument(&dir.join("live")), "--now", "-o", argument(&capture)]).code,
        Some(0)
    );
    for verb in ["info", "snapshot", "capture"] {
        table.run(&[verb, argument(&capture)]);
    }
    table.run(&["watch", argument(&capture), "--last", "1"]);
    for verb in ["watch", "summary", "export", "report", "capture"] {
        table.run(&[verb, argument(&dir.join("empty"))]);
    }
    // `missing:21:29` is no ring's name, but a recorder's configuration: the name `missing`, followed by two sizes.
    for verb in ["info", "watch", "snapshot", "capture", "summary", "export"] {
        table.run(&[verb, "missing:21:29"]);
    }
    for verb in ["info", "snapshot", "summary"] {
        table.run(&[verb, "missing*"]);
    }
    for name in ["./missing:17", "missing::30", "missing:64MiB", "missing:x"] {
        table.run(&["info", name]);
    }
    table.run(&["watch", "--reopen", "missing:16:27"]);
    table.run(&["capture", "--wait", "missing:16:27"]);
    for name in ["missing", "./missing.evc"] {
        table.run(&["summary", name]);
        table.run(&["export", name]);
        table.run(&["report", name]);
    }
    let test = dir.join("test");
    table.run(&["info", "--expect", "exec", argument(&test)]);
    table.run(&["watch", "--block", "1", argument(&test)]);
    table.run(&["watch", "--txn", "1", argument(&test)]);
    table.run(&["info", "--expect", "exec", argument(&dir.join("old-exec"))]);
    table.run(&["watch", "--expect", "perf", argument(&test)]);
    table.run(&["snapshot", "--expect", "exec", argument(&dir.join("old-exec"))]);
    table.run(&["export", "--format", "folded", argument(&test)]);
    table.run(&["watch", argument(&test), "--type", "SALE"]);
    table.run(&["watch", argument(&test), argument(&dir.join("live")), "--from", "7"]);
    table.run(&["snapshot", argument(&test), "-o", argument(&dir.join("text"))]);
    table.run(&["snapshot", argument(&test), "-o", argument(&dir.join("nowhere/file"))]);
    table.run(&["snapshot", argument(&test), "-o", "/proc/file"]);
    table.run(&["snapshot", argument(&test), "-o", argument(&dir.join("rings")), "--force"]);
    drop(exec);
    insta::assert_snapshot!(table.text);
}

#[test]
fn a_wrong_command_line_has_code_2() {
    for arguments in [
        &["nonsense"][..],
        &["watch"],
        &["info", ""],
        &["info", "x", "--nonsense"],
        &["watch", "x", "--from", "yesterday"],
        &["watch", "x", "--from", "0"],
        &["watch", "x", "--block", "1", "--block-number", "2"],
        &["snapshot", "x", "--compression", "23"],
        &["capture", "x", "--rotate-size", "0"],
        &["capture", "x", "--rotate-every", "0s"],
    ] {
        let run = program::run(arguments);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(run.err.starts_with("error: "), "{run:?}");
    }
}

#[test]
fn a_file_of_somebody_else_is_permission_denied() {
    let directory = tempfile::tempdir().unwrap();
    let file = place(&directory, "private");
    fs::copy(program::KEPT, &file).unwrap();
    let is_root = rustix::process::geteuid().is_root();
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(&file, if is_root { 0o600 } else { 0 });
    mode(directory.path(), 0o755);
    // If the test runs as root, it starts the program as another user. That user may have no access to the directory
    // where the program was built. So the test starts a copy.
    let copy = place(&directory, "eventring");
    fs::copy(program::PROGRAM, &copy).unwrap();
    mode(&copy, 0o755);
    let run = |arguments: &[&str]| {
        let mut command = std::process::Command::new(&copy);
        command.args(arguments).env("NO_COLOR", "1").current_dir("/");
        if is_root {
            command.uid(65_534).gid(65_534);
        }
        finish(command)
    };
    let mut table = Table::new(directory.path());
    let file = argument(&file);
    table.add(run(&["info", file]), &["info", file]);
    if is_root {
        let output = place(&directory, "output");
        mode(Path::new(file), 0o644);
        let arguments = ["snapshot", file, "-o", argument(&output)];
        table.add(run(&arguments), &arguments);
        insta::assert_snapshot!(table.text);
    } else {
        assert!(table.text.contains("permission denied"), "{}", table.text);
    }
}

#[test]
fn a_full_disk_is_no_space() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    let small = path.join("small");
    fs::create_dir(&small).unwrap();
    let mut table = Table::new(&path);
    let Some(_mounted) = mount_or_skip(&small, "tmpfs", "size=4k") else { return };
    table.run(&["snapshot", program::KEPT, "-o", argument(&small.join("saved"))]);
    assert_eq!(fs::read_dir(&small).unwrap().count(), 0);
    insta::assert_snapshot!(table.text.replace(program::KEPT, "KEPT"));
}

#[test]
fn truncation_is_reported_before_a_wrong_content_type() {
    let (directory, [path]) = places(["ring"]);
    drop(ring(&path, ContentDescription::new(300, "SHOP")));
    let whole = fs::read(&path).unwrap();
    let cut = place(&directory, "cut");
    for bytes in [100, 3_000_000] {
        fs::write(&cut, &whole[..bytes]).unwrap();
        for verb in [&["info"][..], &["summary"], &["watch"], &["export"], &["watch", "--expect", "perf"]] {
            let run = program::run(&[verb, &[argument(&cut)]].concat());
            assert_eq!(run.code, Some(6), "{verb:?} of {bytes} bytes: {run:?}");
        }
    }
}
