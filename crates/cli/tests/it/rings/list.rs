//! `eventring list`.

use crate::fixtures::*;
use crate::terminal::{BEFORE, Terminal};

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
    let list = run_in!(directory.path(), "list", "--json").json();
    assert_eq!(list["directories"], json!([argument(directory.path())]));
    let rings = list["rings"].list();
    let reported: Vec<_> = rings
        .iter()
        .map(|ring| {
            let text = |value: &Value| value.text().to_owned();
            let alive = ring["writer"]["alive"].as_bool().unwrap();
            assert_eq!(ring["writer"]["pid"], std::process::id());
            assert_eq!(ring["content_type"]["code"], 300);
            assert_eq!(ring["file"], argument(&place(&directory, ring["name"].text())));
            let recorded = ring["recorded"].number();
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
    let run = run!("list", directory.path()).ends(0).quiet();
    let rows: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    let program = rings[0]["writer"]["program"].text();
    let pid = std::process::id().to_string();
    assert_eq!(rows[0], ["NAME", "CONTENT", "WRITER", "STATE", "RECORDED", "SIZE", "RATE", "PAST", "SERVER"]);
    assert_eq!(rows[1][..6], ["kept", "THINGS", program, &pid, "ended", "12,345"]);
    assert_eq!(rows[2][..6], ["live", "SHOP", program, &pid, "live", "3"]);
    assert_eq!(rows.len(), 3);
}

#[test]
fn without_rings_the_searched_directories_are_named() {
    let directory = directory();
    let run = run!("list", directory.path()).ends(0).shows_nothing();
    assert_eq!(run.err, format!("there are no rings in {}\n", directory.path().display()));
    let missing = run!("list", &place(&directory, "missing")).ends(3);
    assert!(
        missing.err.ends_with("; check the path; without a path, `eventring list` shows all rings\n"),
        "{missing:?}"
    );
    let file = place(&directory, "file");
    fs::write(&file, "").unwrap();
    let file = run!("list", &file).ends(1);
    assert!(file.err.ends_with("; name a directory; `eventring info` shows a single ring\n"), "{file:?}");
    // The default directories need not exist.
    assert_eq!(run_in!(place(&directory, "missing"), "list", "--json").json()["rings"], json!([]));
}

#[test]
fn of_a_snapshot_only_the_header_is_decompressed() {
    /// The size of the header section.
    const HEADER_BYTES: usize = 2 << 20;
    let directory = directory();
    let image = zstd::decode_all(File::open(program::KEPT).unwrap()).unwrap();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.write_all(&image[..HEADER_BYTES]).unwrap();
    // Only the header of this snapshot can be decompressed: the bytes after it are damaged.
    encoder.flush().unwrap();
    let mut snapshot = encoder.get_ref().clone();
    snapshot.extend([0xff; 1000]);
    let path = place(&directory, "some.zst");
    fs::write(&path, snapshot).unwrap();
    run!("info", &path).ends(7);
    let list = run!("list", "--json", directory.path()).quiet();
    let ring = &list.json()["rings"][0];
    assert_eq!(
        (&ring["state"], &ring["recorded"], &ring["content_type"]["code"]),
        (&"snapshot".into(), &36.into(), &2.into())
    );
    // A snapshot that ends within its header is not listed.
    fs::write(&path, &encoder.get_ref()[..100]).unwrap();
    let list = run!("list", "--json", directory.path()).warns("the snapshot ends in the middle");
    assert_eq!(list.json()["rings"], json!([]));
}

#[test]
fn an_instance_is_listed_with_the_name_that_it_belongs_to() {
    let directory = directory();
    for name in ["shop", "shop~2", "shop~1", "shop~02", "shop~2x", "~3"] {
        recorder_at(&place(&directory, name), "SHOP", 1).keep(true);
    }
    let listed = run!("list", "--json", directory.path()).json();
    let text = |ring: &Value, key: &str| ring[key].as_str().map(ToOwned::to_owned);
    let rings = listed["rings"].list().iter();
    let instances: Vec<_> = rings.filter_map(|ring| Some((text(ring, "name")?, text(ring, "instance_of")?))).collect();
    assert_eq!(instances, [("shop~2".to_owned(), "shop".to_owned())]);
    let table = run!("list", directory.path()).out;
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
        let notes = run_in!(directory.path(), "list", "--json").json()["notes"].list().clone();
        notes.into_iter().filter(|note| note["pid"] == pid).collect::<Vec<_>>()
    };
    let mut command = play(test, "", directory.path());
    command.env("EVENTRING_DIR", directory.path());
    let mut talk = Talk::with(command);
    assert_eq!(talk.hear(), "true");
    let pid = talk.child.id();
    let notes = notes_of(pid);
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = notes[0]["note"].text();
    assert!(note.starts_with("records nothing as `orders:3:4\nx`: begin recording of `tracing`: "), "{note}");
    // Control characters of a note do not reach the terminal.
    let printed = run_in!(directory.path(), "list").err;
    let line = printed.lines().find(|line| line.contains(&format!("process {pid} records nothing as `orders:3:4")));
    assert!(line.is_some_and(|line| line.contains("begin recording of `tracing`: ")), "{printed}");
    talk.child.stdin.as_ref().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(talk.hear(), "true");
    assert_eq!(notes_of(pid), [] as [Value; 0]);
    assert!(talk.end().success());
}

#[test]
fn a_ring_whose_file_was_removed_is_listed_and_read_through_its_program() {
    let test = test_name!("a_ring_whose_file_was_removed_is_listed_and_read_through_its_program");
    if part().is_some() {
        let _ = eventring::tracing::init("shop:15:21");
        let both = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            for name in ["first", "second"] {
                let both = &both;
                scope.spawn(move || {
                    info!(name, "served");
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
    // The files are removed as logind does when a user logs out, and the program lives.
    let files: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
    let (process, ring) = (format!("pid:{}", talk.child.id()), format!("pid:{}/shop", talk.child.id()));
    let listed = run_in!(directory.path(), "list", "--json").json()["rings"].clone();
    assert_eq!(listed.list().len(), 1, "{listed}");
    let listed = &listed[0];
    assert_eq!(
        (&listed["name"], &listed["state"], &listed["shards"]),
        (&ring.clone().into(), &"live".into(), &2.into())
    );
    assert_eq!(listed["removed_from"], argument(&place(&directory, "shop")));
    run_in!(directory.path(), "list").shows("(file removed, 2 shards)").warns("enable-linger");
    // The error for the name says how the ring can be read.
    run_in!(directory.path(), "info", "shop").fails(3, format!("name {ring} to read it"));
    for name in [&process, &ring] {
        let file = place(&directory, "saved.evc");
        run_in!(directory.path(), "capture", name, "--now", "-o", &file).ends(0);
        let saved = run_in!(directory.path(), "export", &file, "--format", "jsonl", "-o", "-").out;
        assert!(saved.contains("first") && saved.contains("second"), "{saved}");
        fs::remove_file(file).unwrap();
        for verb in [&["info", name][..], &["open", name], &["top", name, "--once"]] {
            run_in!(directory.path(), verb).ends(0);
        }
        // It has two shards.
        run_in!(directory.path(), "snapshot", name).fails(2, format!("`eventring capture {name} --now -o "));
    }
    // A watch follows it to the end of the program.
    let mut watch = program!("watch", &process, "--from", "oldest");
    watch.env("EVENTRING_DIR", directory.path());
    let watch = Live::from_command(watch);
    thread::sleep(Duration::from_millis(300));
    assert!(talk.end().success());
    watch.end().ends(0).shows("first").shows("second");
    assert_eq!(run_in!(directory.path(), "list", "--json").json()["rings"], json!([]));
    run_in!(directory.path(), "info", &process).ends(3);
}

#[test]
fn a_forked_child_that_outlives_its_parent_leaves_no_ring_in_the_list() {
    let test = test_name!("a_forked_child_that_outlives_its_parent_leaves_no_ring_in_the_list");
    if part().is_some() {
        let _ = eventring::tracing::init("shop:15:21");
        info!("served");
        // SAFETY: the child only waits for a signal.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // The test reads to the end of the parent's messages.
            // SAFETY: the child writes nothing.
            unsafe { libc::close(1) };
            loop {
                thread::park();
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
    let mut list = program!("list", "--json");
    list.env("EVENTRING_DIR", directory.path());
    let list = finish(list);
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
    assert_eq!((&list.json()["rings"], list.err.as_str()), (&json!([]), ""));
}

#[test]
fn no_line_takes_two_in_a_terminal_and_a_pipe_gets_whole_names() {
    let directory = directory();
    let name = "a-recorder-of-a-shop-with-a-name-that-is-much-longer-than-those-of-others";
    let _long = recorder_at(&place(&directory, name), "THINGS_WITH_A_LONG_NAME", 12_345_678);
    let _short = recorder_at(&place(&directory, "short"), "SHOP", 3);
    for columns in [200, 120, 100, 80, 40] {
        let mut terminal = Terminal::start(program!("list", directory.path()), (columns, 30));
        assert!(terminal.end().success());
        let shown = terminal.shown();
        let lines: Vec<&str> = shown.lines().filter(|line| !line.is_empty()).collect();
        let begins = lines.iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>();
        assert_eq!(lines.len(), 4, "{columns}:\n{shown}");
        assert_eq!((lines[0], begins[1], begins[3]), (BEFORE, "NAME", "short"), "{columns}:\n{shown}");
        assert!(begins[2].starts_with("a-recorder-"), "{shown}");
        assert_eq!(begins[2] == name, columns == 200, "{shown}");
    }
    run!("list", directory.path()).shows(name);
}
