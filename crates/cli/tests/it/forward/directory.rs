//! Days without an operator: files in a directory begin anew, the oldest go, and a forwarder that was killed goes on.

use crate::consumers;
use crate::every_kind;
use crate::program::{program, run};
use eventring::recorder::{ContentDescription, Recorder};
use eventring_capture::{CaptureFile, CapturedContent};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn recorder(path: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(path).compact(true);
    builder.shifts(15, 21).prefault(false).keep(true).build().unwrap()
}

/// Returns the files and directories with this extension, the oldest first.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|it| it == extension)).collect();
    files.sort();
    files
}

/// Returns how many events and how many lost events the files have together. Each seqno is in exactly one file.
fn account(files: &[PathBuf]) -> (u64, u64) {
    let whole = CaptureFile::open_all(files).unwrap();
    let (mut next, mut events, mut lost) = (whole.rings()[0].first_seqno, 0, 0);
    for record in whole.events() {
        match record.content {
            CapturedContent::Event { descriptor, .. } => {
                assert_eq!(descriptor.seqno, next);
                (next, events) = (next + 1, events + 1);
            }
            CapturedContent::Gap { first_seqno, count, .. } => {
                assert_eq!(first_seqno, next);
                (next, lost) = (next + count, lost + count);
            }
        }
    }
    (events, lost)
}

#[test]
fn a_forwarder_that_was_killed_goes_on_after_its_newest_file() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    let arguments = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--rotate-every", "300ms"];
    let mut child = program(&arguments).spawn().unwrap();
    let (mut recorded, mut known) = (0, 0);
    std::fs::create_dir(&to).unwrap();
    for round in 0..5 {
        // Each forwarder has begun a file and gone on to a second one, however long a busy machine takes for it.
        while files(&to, "evc").len() < known + 2 {
            assert!(child.try_wait().unwrap().is_none(), "the forwarder has ended");
            // The ring holds what is recorded in half a minute.
            (0..10_u64).for_each(|number| assert_ne!(orders.record(7, [number; 4], b"an order"), 0));
            recorded += 10;
            std::thread::sleep(Duration::from_millis(10));
        }
        if round < 4 {
            child.kill().unwrap();
            child.wait().unwrap();
            known = files(&to, "evc").len();
            orders.record(7, [0; 4], b"while nobody forwards");
            recorded += 1;
            child = program(&arguments).spawn().unwrap();
        }
    }
    drop(orders);
    assert!(child.wait().unwrap().success());
    let files = files(&to, "evc");
    assert!(files.len() > 5, "{files:?}");
    assert_eq!(account(&files), (recorded, 0));
}

/// Returns the number of events in all files.
fn events_in(files: &[PathBuf]) -> usize {
    let events_of = |file: &PathBuf| {
        let capture = CaptureFile::open(file).unwrap();
        capture.events().filter(|record| matches!(record.content, CapturedContent::Event { .. })).count()
    };
    files.iter().map(events_of).sum()
}

#[test]
fn nothing_is_written_twice_if_the_newest_file_lacks_a_ring_or_the_clock_has_stepped_back() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    let record = |ring: &Path, count: u64| {
        let recorder = recorder(ring);
        (0..count).for_each(|number| assert_ne!(recorder.record(7, [number; 4], b"an order"), 0));
    };
    let forward = |rings: &[&Path]| {
        let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
        run(&[&["forward"], &rings[..], &["--to", to.to_str().unwrap(), "--json"]].concat()).json()
    };
    record(&first, 10);
    record(&second, 20);
    forward(&[&first, &second]);
    // The clock was an hour ahead, or more.
    let written = files(&to, "evc").remove(0);
    std::fs::rename(&written, to.join("a-29991231T235959Z.0001.evc")).unwrap();
    // The next program of the first name: its file has one ring.
    std::fs::remove_file(&first).unwrap();
    record(&first, 5);
    forward(&[&first]);
    assert_eq!(events_in(&files(&to, "evc")), 35);
    let again = forward(&[&first, &second]);
    assert_eq!((events_in(&files(&to, "evc")), files(&to, "evc").len()), (35, 2), "{again}");
}

/// The captures that described a ring last may be gone: they are in tables, or were too old.
#[test]
fn nothing_is_written_twice_if_the_captures_of_a_ring_are_gone() {
    for more in [["--format", "parquet"], ["--max-bytes", "1"]] {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
        let record = |ring: &Path, count: u64| {
            let _ = std::fs::remove_file(ring);
            let recorder = recorder(ring);
            (0..count).for_each(|number| assert_ne!(recorder.record(7, [number; 4], b"an order"), 0));
        };
        let forward = |rings: &[&Path]| {
            let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
            run(&[&["forward"], &rings[..], &["--to", to.to_str().unwrap(), "--json"], &more].concat()).json()
        };
        record(&first, 10);
        record(&second, 20);
        assert_eq!(forward(&[&first, &second])["events"], 30);
        for count in [5, 6, 7] {
            record(&first, count);
            assert_eq!(forward(&[&first])["events"], count);
        }
        assert_eq!(files(&to, "evc").len(), 1, "{more:?}");
        assert_eq!(files(&to, "parquet").len(), if more[0] == "--format" { 4 } else { 0 });
        let again = forward(&[&first, &second]);
        assert_eq!(again["events"], 0, "{more:?}: {again}");
        // Without that file, the ring is written again: that is what the test looks at.
        std::fs::remove_file(to.join("a.ends")).unwrap();
        let again = forward(&[&first, &second]);
        assert_eq!(again["events"], 20, "{more:?}: {again}");
    }
}

#[test]
fn a_signal_while_tables_are_made_ends_the_forwarding_in_good_order() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    let arguments = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--format", "parquet"];
    let more = ["--rotate-size", "30k", "--level", "0", "--json"];
    let mut child = program(&[&arguments[..], &more].concat());
    let mut child = child.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut recorded = 0;
    // Tables that are not whole have a name that begins with a dot.
    let makes_tables = |to: &Path| {
        let entries = std::fs::read_dir(to).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".eventring."))
    };
    while !makes_tables(&to) {
        assert!(child.try_wait().unwrap().is_none() && recorded < 10_000_000);
        (0..100).for_each(|number| assert_ne!(orders.record(7, [number; 4], &[7; 50]), 0));
        recorded += 100;
        std::thread::sleep(Duration::from_millis(1));
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status:?}");
    let mut report = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["reason"], "interrupted", "{report}");
    assert!(report["rings"][0]["events"].as_u64().unwrap() > 0 && !makes_tables(&to), "{report}");
}

#[test]
fn tables_that_a_killed_forwarder_has_left_unfinished_are_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    let arguments = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--format", "parquet"];
    let unfinished = || {
        let entries = std::fs::read_dir(&to).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".eventring.")).count()
    };
    let mut recorded = 0;
    while unfinished() == 0 {
        let mut child = program(&[&arguments[..], &["--rotate-size", "30k", "--level", "0"]].concat()).spawn().unwrap();
        for _ in 0..200 {
            (0..100).for_each(|number| assert_ne!(orders.record(7, [number; 4], &[7; 50]), 0));
            recorded += 100;
            std::thread::sleep(Duration::from_millis(1));
            if unfinished() > 0 {
                break;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(recorded < 10_000_000);
    }
    // Something else has such a name.
    let other = to.join(".eventring.mine");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("notes.txt"), "mine").unwrap();
    drop(orders);
    assert_eq!(run(&arguments).code, Some(0));
    assert_eq!((unfinished(), other.join("notes.txt").exists()), (1, true));
}

#[test]
fn captures_that_are_removed_before_they_could_become_tables_are_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    (0..20_000_u64).for_each(|number| assert_ne!(orders.record(7, [number; 4], &number.to_le_bytes()), 0));
    drop(orders);
    let words = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--format", "parquet", "--json"];
    let written = run(&[&words[..], &["--rotate-size", "20k", "--max-bytes", "30k", "--level", "0"]].concat());
    assert_eq!(written.err, "");
    let written = written.json();
    assert!(written["removed_files"].as_u64().unwrap() > 3, "{written}");
    assert_eq!(written["events"].as_u64().unwrap() + written["removed"].as_u64().unwrap(), 20_000, "{written}");
}

#[test]
fn the_next_programs_under_the_same_name_are_forwarded_until_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let words = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--wait", "--reopen", "--json"];
    let child = program(&words).stdout(std::process::Stdio::piped()).spawn().unwrap();
    for program in 1..=3_u64 {
        let orders = recorder(&ring);
        (0..program * 100).for_each(|number| _ = orders.record(7, [number; 4], b"an order"));
        drop(orders);
        let has_come = |program: u64| {
            let events: u64 = files(&to, "evc")
                .iter()
                .filter_map(|file| CaptureFile::open(file).ok()?.end().map(|end| end.stats.events()))
                .sum();
            events == (1..=program).map(|program| program * 100).sum::<u64>()
        };
        let begin = std::time::Instant::now();
        while !(to.exists() && has_come(program)) {
            assert!(begin.elapsed() < Duration::from_secs(30), "program {program}: {:?}", files(&to, "evc"));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rings = summary["rings"].as_array().unwrap();
    let events: Vec<u64> = rings.iter().map(|ring| ring["events"].as_u64().unwrap()).collect();
    assert_eq!(events, [100, 200, 300], "{summary}");
}

#[test]
fn the_captures_of_the_next_programs_become_tables_and_the_newest_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let words = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--wait", "--reopen", "--json"];
    let child = program(&[&words[..], &["--format", "parquet"]].concat());
    let child = { child }.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    for program in 1..=4_u64 {
        let orders = recorder(&ring);
        (0..program * 100).for_each(|number| _ = orders.record(7, [number; 4], b"an order"));
        drop(orders);
        let begin = std::time::Instant::now();
        while !to.exists() || files(&to, "parquet").len() < program as usize || files(&to, "evc").len() != 1 {
            assert!(begin.elapsed() < Duration::from_secs(30), "program {program}: {:?}", files(&to, "evc"));
            std::thread::sleep(Duration::from_millis(20));
        }
        seen.extend(files(&to, "evc"));
        assert_eq!(CaptureFile::open(seen.last().unwrap()).unwrap().end().unwrap().stats.events(), program * 100);
    }
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["events"], &summary["removed_files"]), (&1000.into(), &0.into()), "{summary}");
    let written = [files(&to, "evc"), files(&to, "parquet")].concat();
    let stated: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(stated.iter().collect::<std::collections::BTreeSet<_>>(), written.iter().collect());
    assert_eq!(written.len(), 5);
}

#[test]
fn what_lies_under_the_name_of_a_next_ring_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    for others_live in [false, true] {
        drop(recorder(&first));
        let other = others_live.then(|| recorder(&second));
        let rings: Vec<&Path> =
            [Some(first.as_path()), others_live.then_some(second.as_path())].into_iter().flatten().collect();
        let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
        let mut child = program(&[&["forward"], &rings[..], &["--to", to.to_str().unwrap(), "--reopen"]].concat());
        let mut child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        std::fs::remove_file(&first).unwrap();
        std::fs::write(&first, [b"no ring".as_slice(), &[0; 8192]].concat()).unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
        let mut error = || lines.by_ref().map(Result::unwrap).find(|line| line.contains("error:")).unwrap();
        let said = error();
        assert!(said.contains("/a:") && said.contains("go on") == others_live, "{said}");
        if others_live {
            assert!(child.try_wait().unwrap().is_none());
            drop(other);
            rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::INT)
                .unwrap();
            assert!(error().contains("/a:"));
        }
        assert_ne!(child.wait().unwrap().code(), Some(0));
        std::fs::remove_file(&first).unwrap();
    }
}

#[test]
fn the_oldest_files_go_when_there_is_too_much() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    let [ring, to_text] = [&ring, &to].map(|path| path.to_str().unwrap());
    // Each file has a quarter of the limit, because `--rotate-size` is larger.
    let arguments = ["forward", ring, "--to", to_text, "--max-bytes", "100k", "--level", "0", "--json"];
    let child = program(&arguments).stdout(std::process::Stdio::piped()).spawn().unwrap();
    for number in 0..10_000_u64 {
        orders.record(7, [number; 4], &[number as u8; 50]);
        if number % 200 == 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    drop(orders);
    std::fs::write(to.join("orders-mine.txt"), "not a capture").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let left = files(&to, "evc");
    let bytes: u64 = left.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!((60 << 10..=100 << 10).contains(&bytes), "{bytes} bytes in {left:?}");
    let (events, lost) = account(&left);
    assert!(events > 0 && events < 10_000 && lost == 0, "{events} events, {lost} lost");
    assert!(to.join("orders-mine.txt").exists());
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["events"], &summary["bytes"]), (&events.into(), &bytes.into()), "{summary}");
    assert_eq!(summary["removed"], 10_000 - events, "{summary}");
    assert_eq!(summary["rings"][0]["removed"], 10_000 - events, "{summary}");
    assert!(summary["removed_files"].as_u64().unwrap() >= 5, "{summary}");
    assert_eq!(summary["files"].as_array().unwrap().len(), left.len(), "{summary}");
    // Age: everything is old now, and the newest capture stays for the next forwarder.
    let orders = recorder(&dir.path().join("other"));
    orders.record(7, [0; 4], b"an order");
    drop(orders);
    std::thread::sleep(Duration::from_millis(50));
    std::fs::rename(dir.path().join("other"), ring).unwrap();
    let aged = run(&["forward", ring, "--to", to_text, "--max-age", "10ms", "--json"]).json();
    assert_eq!(aged["rings"][0]["events"], 1, "{aged}");
    assert_eq!(files(&to, "evc").len(), 1);
    // A run without events leaves nothing, and says so.
    let empty = run(&["forward", ring, "--to", to_text, "--json"]).json();
    assert_eq!((&empty["files"], &empty["bytes"]), (&serde_json::json!([]), &0.into()), "{empty}");
}

#[test]
fn what_stands_in_the_file_of_ends_is_not_written_again_and_a_damaged_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    for (ring, count) in [(&first, 10), (&second, 20)] {
        let recorder = recorder(ring);
        (0..count).for_each(|number| assert_ne!(recorder.record(7, [number; 4], b"an order"), 0));
    }
    let forward = |rings: &[&Path]| {
        let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
        run(&[&["forward"], &rings[..], &["--to", to.to_str().unwrap(), "--json"]].concat())
    };
    assert_eq!(forward(&[&second]).json()["events"], 20);
    // Another ring is the first: its name is that of the files.
    assert_eq!(forward(&[&first, &second]).json()["events"], 10);
    assert_eq!(forward(&[&second, &first]).json()["events"], 0);
    // Somebody has taken the files away.
    files(&to, "evc").iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert_eq!(forward(&[&first, &second]).json()["events"], 0);
    let ends = to.join("a.ends");
    let bytes = std::fs::read(&ends).unwrap();
    for cut in [bytes.len() / 2, 3] {
        std::fs::write(&ends, &bytes[..cut]).unwrap();
        let refused = forward(&[&first]);
        assert_eq!(refused.code, Some(7), "{refused:?}");
        assert!(refused.err.contains("a.ends: the file of ends is damaged"), "{refused:?}");
    }
    std::fs::remove_file(&ends).unwrap();
    assert_eq!(forward(&[&first]).json()["events"], 10);
}

#[test]
fn two_forwarders_do_not_write_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    orders.record(7, [0; 4], b"an order");
    let words = ["forward", ring.to_str().unwrap(), "--to", to.to_str().unwrap(), "--rotate-every", "50ms"];
    let mut first = program(&words).spawn().unwrap();
    let begin = std::time::Instant::now();
    for count in [1, 3] {
        while !to.exists() || files(&to, "evc").len() < count {
            assert!(begin.elapsed() < Duration::from_secs(30));
            orders.record(7, [0; 4], b"an order");
            std::thread::sleep(Duration::from_millis(20));
        }
        let second = run(&words);
        assert!(second.code != Some(0) && second.err.contains("another process writes it"), "{second:?}");
    }
    drop(orders);
    assert!(first.wait().unwrap().success());
    assert_eq!(run(&words).code, Some(0));
}

#[test]
fn what_is_too_old_goes_while_nothing_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    let [ring, to_text] = [&ring, &to].map(|path| path.to_str().unwrap());
    let mut child = program(&["forward", ring, "--to", to_text, "--rotate-every", "200ms", "--max-age", "3s"]);
    let mut child = child.spawn().unwrap();
    let begin = std::time::Instant::now();
    let wait = |until: &dyn Fn(&[PathBuf]) -> bool| {
        while !(to.exists() && until(&files(&to, "evc"))) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", files(&to, "evc"));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    for count in 1..=3 {
        orders.record(7, [0; 4], b"an order");
        wait(&|files| files.len() > count);
    }
    // The newest whole file stays, beside the one that is begun.
    wait(&|files| files.len() == 2);
    drop(orders);
    assert!(child.wait().unwrap().success());
}

/// Returns the JSON lines of a capture but the first, which is about its rings, in an order of their own. The last line
/// comes without the ends of the programs, which each capture sees at another time.
fn events_of(capture: &Path) -> Vec<String> {
    let exported = run(&["export", capture.to_str().unwrap(), "--format", "jsonl"]);
    let without_ends = |line: &str| line.split(",\"processes\":").next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = exported.out.lines().skip(1).map(without_ends).collect();
    assert!(lines.len() > 10, "{exported:?}");
    lines.sort();
    lines
}

#[test]
fn files_become_tables_with_all_rows_and_the_newest_capture_stays() {
    let dir = tempfile::tempdir().unwrap();
    let capture = every_kind::capture_everything(dir.path());
    let to = dir.path().join("out");
    let [shop, sink] = ["shop", "sink"].map(|name| dir.path().join(name).to_str().unwrap().to_owned());
    let to_text = to.to_str().unwrap();
    let written = run(&["forward", &shop, &sink, "--to", to_text, "--format", "parquet", "--json"]).json();
    assert_eq!(written["reason"], "writers_ended", "{written}");
    let tables = files(&to, "parquet");
    assert_eq!((tables.len(), files(&to, "evc").len()), (1, 1));
    // The file has the events of a capture beside the program, and the tables have those of the file. Only the rings
    // are described otherwise: the file names their host.
    let written = files(&to, "evc").remove(0);
    assert_eq!(events_of(&written), events_of(Path::new(&capture)));
    let lines = dir.path().join("lines");
    let (written, of_written) = (written.to_str().unwrap(), lines.to_str().unwrap());
    run(&["export", written, "--format", "jsonl", "-o", of_written, "--json"]).json();
    let Some(found) = consumers::read_files("parquet_rows.py", &[&tables[0], &lines]) else { return };
    assert_eq!(found["differences"], serde_json::json!([]));
    // A second forwarder finds nothing new.
    run(&["forward", &shop, &sink, "--to", to_text, "--format", "parquet", "--json"]).json();
    assert_eq!((files(&to, "parquet").len(), files(&to, "evc").len()), (1, 1));
}
