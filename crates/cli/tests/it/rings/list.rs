//! `eventring list`.

use crate::program;
use crate::program::{argument, directory, finish, place, program, run};
use crate::terminal::{BEFORE, Terminal};
use eventring::recorder::{ContentDescription, Recorder};
use eventring_stress::child::{Talk, part, play, say, wait_for_parent};
use eventring_stress::test_name;
use std::fs;
use std::io::Write as _;
use std::path::Path;

fn recorder_at(path: &Path, name: &str, events: u64) -> Recorder {
    let description = ContentDescription::new(300, name);
    let recorder = Recorder::builder(description).config(path).compact(true).shifts(15, 21).build().unwrap();
    (0..events).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b"x"), 0));
    recorder
}

#[test]
fn rings_are_listed_with_their_writers_and_other_files_are_not() {
    let directory = directory();
    let _live = recorder_at(&place(&directory, "live"), "SHOP", 3);
    let kept = recorder_at(&place(&directory, "kept"), "THINGS", 12_345);
    kept.keep(true);
    drop(kept);
    fs::write(place(&directory, "letter"), "no ring").unwrap();
    fs::create_dir(place(&directory, "more")).unwrap();

    // EVENTRING_DIR names the ring directory, in which the program looks for rings.
    let mut command = program(&["list", "--json"]);
    command.env("EVENTRING_DIR", directory.path());
    let list = finish(command).json();
    assert_eq!(list["directories"], serde_json::json!([argument(directory.path())]));
    let rings = list["rings"].as_array().unwrap();
    let reported: Vec<_> = rings
        .iter()
        .map(|ring| {
            let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
            let alive = ring["writer"]["alive"].as_bool().unwrap();
            assert_eq!(ring["writer"]["pid"], std::process::id());
            assert_eq!(ring["content_type"]["code"], 300);
            assert_eq!(ring["file"], argument(&place(&directory, ring["name"].as_str().unwrap())));
            let recorded = ring["recorded"].as_u64().unwrap();
            (text(&ring["name"]), text(&ring["content_type"]["name"]), text(&ring["state"]), alive, recorded)
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("kept".into(), "THINGS".into(), "ended".into(), false, 12_345),
            ("live".into(), "SHOP".into(), "live".into(), true, 3)
        ]
    );
    assert_eq!(rings[0]["file_bytes"], fs::metadata(place(&directory, "kept")).unwrap().len());

    // Without `--json` the program prints a table, here of a directory that the command line names.
    let run = run(&["list", argument(directory.path())]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let program = rings[0]["writer"]["program"].as_str().unwrap();
    let pid = std::process::id().to_string();
    assert_eq!(rows[0], ["NAME", "CONTENT", "WRITER", "STATE", "RECORDED", "SIZE", "RATE", "PAST", "SERVER"]);
    assert_eq!(rows[1][..6], ["kept", "THINGS", program, &pid, "ended", "12,345"]);
    assert_eq!(rows[2][..6], ["live", "SHOP", program, &pid, "live", "3"]);
    assert_eq!(rows.len(), 3);
}

#[test]
fn without_rings_the_searched_directories_are_named() {
    let directory = directory();
    let run = run(&["list", argument(directory.path())]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), ""));
    assert_eq!(run.err, format!("there are no rings in {}\n", directory.path().display()));
    let missing = program::run(&["list", argument(&place(&directory, "missing"))]);
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(
        missing.err.ends_with("; check the path; without a path, `eventring list` shows all rings\n"),
        "{missing:?}"
    );
    let file = place(&directory, "file");
    fs::write(&file, "").unwrap();
    let file = program::run(&["list", argument(&file)]);
    assert_eq!(file.code, Some(1), "{file:?}");
    assert!(file.err.ends_with("; name a directory; `eventring info` shows a single ring\n"), "{file:?}");
    // The default directories need not exist.
    let mut command = program(&["list", "--json"]);
    command.env("EVENTRING_DIR", place(&directory, "missing"));
    assert_eq!(finish(command).json()["rings"], serde_json::json!([]));
}

#[test]
fn of_a_snapshot_only_the_header_is_decompressed() {
    /// The size of the header section.
    const HEADER_BYTES: usize = 2 << 20;
    let directory = directory();
    let image = zstd::decode_all(fs::File::open(program::KEPT).unwrap()).unwrap();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&image[..HEADER_BYTES]).unwrap();
    // Only the header of this snapshot can be decompressed: the bytes after it are damaged.
    encoder.flush().unwrap();
    let mut snapshot = encoder.get_ref().clone();
    snapshot.extend([0xff; 1000]);
    let path = place(&directory, "some.zst");
    fs::write(&path, snapshot).unwrap();
    assert_eq!(run(&["info", argument(&path)]).code, Some(7));
    let list = run(&["list", "--json", argument(directory.path())]);
    assert_eq!(list.err, "");
    let ring = &list.json()["rings"][0];
    assert_eq!(
        (&ring["state"], &ring["recorded"], &ring["content_type"]["code"]),
        (&"snapshot".into(), &36.into(), &2.into())
    );
    // A snapshot that ends within its header is not listed.
    fs::write(&path, &encoder.get_ref()[..100]).unwrap();
    let list = run(&["list", "--json", argument(directory.path())]);
    assert!(list.err.contains("the snapshot ends in the middle"), "{list:?}");
    assert_eq!(list.json()["rings"], serde_json::json!([]));
}

#[test]
fn an_instance_is_listed_with_the_name_that_it_belongs_to() {
    let directory = directory();
    for name in ["shop", "shop~2", "shop~1", "shop~02", "shop~2x", "~3"] {
        recorder_at(&place(&directory, name), "SHOP", 1).keep(true);
    }
    let listed = run(&["list", "--json", argument(directory.path())]).json();
    let text = |ring: &serde_json::Value, key: &str| ring[key].as_str().map(ToOwned::to_owned);
    let rings = listed["rings"].as_array().unwrap().iter();
    let instances: Vec<_> = rings.filter_map(|ring| Some((text(ring, "name")?, text(ring, "instance_of")?))).collect();
    assert_eq!(instances, [("shop~2".to_owned(), "shop".to_owned())]);
    let table = run(&["list", argument(directory.path())]).out;
    assert!(table.lines().any(|line| line.starts_with("shop~2 (instance of shop) ")), "{table}");
    assert!(table.lines().any(|line| line.starts_with("shop ")), "{table}");
}

#[test]
fn a_program_that_records_nothing_is_listed_with_the_reason_as_long_as_it_runs() {
    let test = test_name!("a_program_that_records_nothing_is_listed_with_the_reason_as_long_as_it_runs");
    if part().is_some() {
        say(eventring::tracing::init("orders:3:4\nx").problem().is_some());
        wait_for_parent();
        // A later attempt succeeds.
        say(eventring::tracing::init("orders:15:21").problem().is_none());
        return wait_for_parent();
    }
    let directory = directory();
    let notes_of = |pid: u32| {
        let mut command = program(&["list", "--json"]);
        command.env("EVENTRING_DIR", directory.path());
        let notes = finish(command).json()["notes"].as_array().unwrap().clone();
        notes.into_iter().filter(|note| note["pid"] == pid).collect::<Vec<_>>()
    };
    let mut command = play(test, "", directory.path());
    command.env("EVENTRING_DIR", directory.path());
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "true");
    let pid = talk.child.id();
    let notes = notes_of(pid);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = notes[0]["note"].as_str().unwrap();
    assert!(note.starts_with("records nothing as `orders:3:4\nx`: begin recording of `tracing`: "), "{note}");
    // Control characters of a note do not reach the terminal.
    let mut command = program(&["list"]);
    command.env("EVENTRING_DIR", directory.path());
    let printed = finish(command).err;
    let line = printed.lines().find(|line| line.contains(&format!("process {pid} records nothing as `orders:3:4")));
    assert!(line.is_some_and(|line| line.contains("begin recording of `tracing`: ")), "{printed}");
    talk.child.stdin.as_ref().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(talk.hear(), "true");
    assert_eq!(notes_of(pid), [] as [serde_json::Value; 0]);
    assert!(talk.end().success());
}

#[test]
fn a_ring_whose_file_was_removed_is_listed_and_read_through_its_program() {
    let test = test_name!("a_ring_whose_file_was_removed_is_listed_and_read_through_its_program");
    if part().is_some() {
        let _ = eventring::tracing::init("shop:15:21");
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for name in ["first", "second"] {
                let both = &both;
                scope.spawn(move || {
                    tracing::info!(name, "served");
                    both.wait();
                });
            }
        });
        say("served");
        return wait_for_parent();
    }
    let directory = directory();
    let mut command = play(test, "", directory.path());
    command.env("EVENTRING_DIR", directory.path()).env_remove("EVENTRING_SERVER").env_remove("EVENTRING_FILTER");
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "served");
    let run = |arguments: &[&str]| {
        let mut command = program(arguments);
        command.env("EVENTRING_DIR", directory.path());
        finish(command)
    };
    // The files are removed as logind does when a user logs out, and the program lives.
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    let (process, ring) = (format!("pid:{}", talk.child.id()), format!("pid:{}/shop", talk.child.id()));
    let listed = run(&["list", "--json"]).json()["rings"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let listed = &listed[0];
    assert_eq!(
        (&listed["name"], &listed["state"], &listed["shards"]),
        (&ring.clone().into(), &"live".into(), &2.into())
    );
    assert_eq!(listed["removed_from"], argument(&place(&directory, "shop")));
    let table = run(&["list"]);
    assert!(table.out.contains("(file removed, 2 shards)") && table.err.contains("enable-linger"), "{table:?}");
    // The error for the name says how the ring can be read.
    let by_name = run(&["info", "shop"]);
    assert!(by_name.code == Some(3) && by_name.err.contains(&format!("name {ring} to read it")), "{by_name:?}");
    for name in [&process, &ring] {
        let file = place(&directory, "saved.evc");
        let captured = run(&["capture", name, "--now", "-o", argument(&file)]);
        assert_eq!(captured.code, Some(0), "{captured:?}");
        let saved = run(&["export", argument(&file), "--format", "jsonl", "-o", "-"]).out;
        assert!(saved.contains("first") && saved.contains("second"), "{saved}");
        fs::remove_file(file).unwrap();
        for verb in [&["info", name][..], &["open", name], &["top", name, "--once"]] {
            let run = run(verb);
            assert_eq!(run.code, Some(0), "{run:?}");
        }
        // It has two shards.
        let refused = run(&["snapshot", name]);
        assert!(refused.code == Some(2) && refused.err.contains(&format!("`eventring capture {name} --now -o ")));
    }
    // A watch follows it to the end of the program.
    let mut watch = program(&["watch", &process, "--from", "oldest"]);
    watch
        .env("EVENTRING_DIR", directory.path())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let watch = watch.spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(talk.end().success());
    let watched = watch.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&watched.stdout);
    assert!(watched.status.success() && out.contains("first") && out.contains("second"), "{watched:?}");
    assert_eq!(run(&["list", "--json"]).json()["rings"], serde_json::json!([]));
    assert_eq!(run(&["info", &process]).code, Some(3));
}

#[test]
fn a_forked_child_that_outlives_its_parent_leaves_no_ring_in_the_list() {
    let test = test_name!("a_forked_child_that_outlives_its_parent_leaves_no_ring_in_the_list");
    if part().is_some() {
        let _ = eventring::tracing::init("shop:15:21");
        tracing::info!("served");
        // SAFETY: the child only waits for a signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // The test reads to the end of the parent's messages.
            // SAFETY: the child writes nothing.
            unsafe { libc::close(1) };
            loop {
                std::thread::park();
            }
        }
        say(child);
        return wait_for_parent();
    }
    let directory = directory();
    let mut command = play(test, "", directory.path());
    command.env("EVENTRING_DIR", directory.path()).env_remove("EVENTRING_SERVER").env_remove("EVENTRING_FILTER");
    let mut talk = Talk::with(command);
    let child: i32 = talk.hear().parse().unwrap();
    assert!(talk.end().success());
    let mut list = program(&["list", "--json"]);
    list.env("EVENTRING_DIR", directory.path());
    let list = finish(list);
    rustix::process::kill_process(rustix::process::Pid::from_raw(child).unwrap(), rustix::process::Signal::KILL)
        .unwrap();
    assert_eq!((&list.json()["rings"], list.err.as_str()), (&serde_json::json!([]), ""));
}

#[test]
fn no_line_takes_two_in_a_terminal_and_a_pipe_gets_whole_names() {
    let directory = directory();
    let name = "a-recorder-of-a-shop-with-a-name-that-is-much-longer-than-those-of-others";
    let _long = recorder_at(&place(&directory, name), "THINGS_WITH_A_LONG_NAME", 12_345_678);
    let _short = recorder_at(&place(&directory, "short"), "SHOP", 3);
    for columns in [200, 120, 100, 80, 40] {
        let mut terminal = Terminal::start(program(&["list", argument(directory.path())]), (columns, 30));
        assert!(terminal.end().success());
        let shown = terminal.shown();
        let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).collect();
        let begins = lines.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
        assert_eq!(lines.len(), 4, "{columns}:\n{shown}");
        assert_eq!((lines[0], begins[1], begins[3]), (BEFORE, "NAME", "short"), "{columns}:\n{shown}");
        assert!(begins[2].starts_with("a-recorder-"), "{shown}");
        assert_eq!(begins[2] == name, columns == 200, "{shown}");
    }
    let piped = run(&["list", argument(directory.path())]);
    assert!(piped.out.contains(name), "{piped:?}");
}
