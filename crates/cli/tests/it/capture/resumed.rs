//! Days without an operator: files begin anew, the oldest go, and a capture that was killed goes on.

use crate::fixtures::*;
use eventring_capture::CapturedContent;

fn recorder(path: &Path) -> Recorder {
    let builder = Recorder::builder(ContentDescription::new(300, "ORDERS")).config(path).compact(true);
    builder.shifts(15, 21).prefault(false).keep(true).build().unwrap()
}

/// Returns the captures in a directory, the oldest first.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|it| it == "evc")).collect();
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
fn a_capture_that_was_killed_goes_on_after_its_newest_file() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    let orders = recorder(&ring);
    std::fs::create_dir(&to).unwrap();
    let output = to.join("orders.evc");
    let arguments = ["capture", ring.to_str().unwrap(), "-o", output.to_str().unwrap(), "--rotate-every", "300ms"];
    let arguments = [&arguments[..], &["--resume"]].concat();
    let mut child = program(&arguments).spawn().unwrap();
    let (mut recorded, mut known) = (0, 0);
    for round in 0..5 {
        // Each capture has begun a file and gone on to a second one, however long a busy machine takes for it.
        while files(&to).len() < known + 2 {
            assert!(child.try_wait().unwrap().is_none(), "the capture has ended");
            // The ring holds what is recorded in half a minute.
            (0..10_u64).for_each(|number| assert_ne!(orders.record(7, [number; 4], b"an order"), 0));
            recorded += 10;
            std::thread::sleep(Duration::from_millis(10));
        }
        if round < 4 {
            kill(&mut child);
            known = files(&to).len();
            orders.record(7, [0; 4], b"while nobody captures");
            recorded += 1;
            child = program(&arguments).spawn().unwrap();
        }
    }
    drop(orders);
    assert!(child.wait().unwrap().success());
    let files = files(&to);
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

/// Records this many events into a new ring.
fn record(ring: &Path, count: u64) {
    let _ = std::fs::remove_file(ring);
    let recorder = recorder(ring);
    (0..count).for_each(|number| assert_ne!(recorder.record(7, [number; 4], b"an order"), 0));
}

/// Captures rings into the row `a.evc` of this directory, after what it has.
fn resumed(to: &Path, rings: &[&Path], more: &[&str]) -> Run {
    let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
    let output = to.join("a.evc");
    let options = ["-o", output.to_str().unwrap(), "--resume", "--json"];
    run!("capture", &rings, &options, more)
}

#[test]
fn nothing_is_written_twice_if_the_newest_file_lacks_a_ring() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    std::fs::create_dir(&to).unwrap();
    record(&first, 10);
    record(&second, 20);
    resumed(&to, &[&first, &second], &[]).json();
    // The next program of the first name: its file has one ring.
    record(&first, 5);
    resumed(&to, &[&first], &[]).json();
    assert_eq!(events_in(&files(&to)), 35);
    let again = resumed(&to, &[&first, &second], &[]).json();
    assert_eq!((events_in(&files(&to)), &again["lost"]), (35, &0.into()), "{again}");
}

#[test]
fn nothing_is_written_twice_if_the_captures_of_a_ring_are_gone() {
    for more in [["--rotate-every", "1h", "--keep", "1"], ["--rotate-every", "1h", "--keep-size", "1"]] {
        let dir = tempfile::tempdir().unwrap();
        let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
        std::fs::create_dir(&to).unwrap();
        record(&first, 10);
        record(&second, 20);
        assert_eq!(resumed(&to, &[&first, &second], &more).json()["events"], 30);
        for count in [5, 6, 7] {
            record(&first, count);
            assert_eq!(resumed(&to, &[&first], &more).json()["events"], count);
        }
        assert!(files(&to).len() <= 2, "{more:?}");
        let again = resumed(&to, &[&first, &second], &more).json();
        assert_eq!(again["events"], 0, "{more:?}: {again}");
        // Without that file, the ring is written again: that is what the test looks at.
        std::fs::remove_file(to.join("a.ends")).unwrap();
        files(&to).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        let again = resumed(&to, &[&first, &second], &more).json();
        assert_eq!(again["events"], 27, "{more:?}: {again}");
    }
}

#[test]
fn the_next_programs_under_the_same_name_are_captured_until_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    std::fs::create_dir(&to).unwrap();
    let output = to.join("orders.evc");
    let words = ["capture", ring.to_str().unwrap(), "-o", output.to_str().unwrap(), "--wait", "--reopen", "--json"];
    let child = program(&words).stdout(std::process::Stdio::piped()).spawn().unwrap();
    for program in 1..=3_u64 {
        let orders = recorder(&ring);
        (0..program * 100).for_each(|number| _ = orders.record(7, [number; 4], b"an order"));
        drop(orders);
        let has_come = |program: u64| {
            let events: u64 = files(&to)
                .iter()
                .filter_map(|file| CaptureFile::open(file).ok()?.end().map(|end| end.stats.events()))
                .sum();
            events == (1..=program).map(|program| program * 100).sum::<u64>()
        };
        wait_while(|| !has_come(program));
    }
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rings = summary["rings"].list();
    let events: Vec<u64> = rings.iter().map(|ring| ring["events"].number()).collect();
    assert_eq!(events, [100, 200, 300], "{summary}");
    let stated: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(stated, files(&to));
    // The row exists now, and only `--resume` goes on with it.
    run(&words).ends(14);
}

#[test]
fn what_lies_under_the_name_of_a_next_ring_is_said_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    std::fs::create_dir(&to).unwrap();
    for others_live in [false, true] {
        drop(recorder(&first));
        let other = others_live.then(|| recorder(&second));
        let rings: Vec<&Path> =
            [Some(first.as_path()), others_live.then_some(second.as_path())].into_iter().flatten().collect();
        let rings: Vec<&str> = rings.iter().map(|ring| ring.to_str().unwrap()).collect();
        let output = to.join(format!("{others_live}.evc"));
        let mut child = program!("capture", &rings, "-o", output.to_str().unwrap(), "--reopen");
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
            signal(&child, Signal::INT);
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
    std::fs::create_dir(&to).unwrap();
    let orders = recorder(&ring);
    let output = to.join("orders.evc");
    // Each file has a quarter of the limit, because `--rotate-size` is larger.
    let options = ["-o", output.to_str().unwrap(), "--rotate-size", "1M", "--keep-size", "100k", "--compression", "0"];
    let child = program!("capture", ring.to_str().unwrap(), "--json", &options)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
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
    let left = files(&to);
    let bytes: u64 = left.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!((60 << 10..=125 << 10).contains(&bytes), "{bytes} bytes in {left:?}");
    let (events, lost) = account(&left);
    assert!(events > 0 && events < 10_000 && lost == 0, "{events} events, {lost} lost");
    assert!(to.join("orders-mine.txt").exists());
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&summary["events"], &summary["bytes"]), (&events.into(), &bytes.into()), "{summary}");
    assert_eq!(summary["removed"], 10_000 - events, "{summary}");
    assert!(summary["removed_files"].number() >= 5, "{summary}");
    assert_eq!(summary["files"].list().len(), left.len(), "{summary}");
}

#[test]
fn files_of_earlier_rings_that_are_removed_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, output) = (dir.path().join("orders"), dir.path().join("row.evc"));
    let options = ["--wait", "--reopen", "--rotate-every", "1h", "--keep", "2", "--json"];
    let child = program!("capture", ring.to_str().unwrap(), "-o", output.to_str().unwrap(), &options)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for part in 1..=4 {
        record(&ring, 100);
        let file = dir.path().join(format!("row.{part:04}.evc"));
        wait_while(|| CaptureFile::open(&file).ok().is_none_or(|capture| capture.end().is_none()));
    }
    signal(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = ["events", "removed", "removed_files"].map(|name| summary[name].number());
    assert_eq!(counts, [200, 200, 2], "{summary}");
    let left = files(dir.path());
    let bytes: u64 = left.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert_eq!((&summary["bytes"], left.len()), (&bytes.into(), 2), "{summary}");
    let stated: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(stated, left);
}

#[test]
fn what_stands_in_the_file_of_ends_is_not_written_again_and_a_damaged_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second, to] = ["a", "b", "out"].map(|name| dir.path().join(name));
    std::fs::create_dir(&to).unwrap();
    record(&first, 10);
    record(&second, 20);
    let capture = |rings: &[&Path]| resumed(&to, rings, &["--rotate-every", "1h", "--keep", "9"]);
    assert_eq!(capture(&[&second]).json()["events"], 20);
    assert_eq!(capture(&[&first, &second]).json()["events"], 10);
    assert_eq!(capture(&[&second, &first]).json()["events"], 0);
    // Somebody has taken the files away.
    files(&to).iter().for_each(|file| std::fs::remove_file(file).unwrap());
    assert_eq!(capture(&[&first, &second]).json()["events"], 0);
    let ends = to.join("a.ends");
    let bytes = std::fs::read(&ends).unwrap();
    for cut in [bytes.len() / 2, 3] {
        std::fs::write(&ends, &bytes[..cut]).unwrap();
        let refused = capture(&[&first]);
        assert_eq!(refused.code, Some(7), "{refused:?}");
        assert!(refused.err.contains("a.ends: the file of ends is damaged"), "{refused:?}");
    }
}

#[test]
fn two_captures_do_not_write_the_same_row() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    std::fs::create_dir(&to).unwrap();
    let orders = recorder(&ring);
    orders.record(7, [0; 4], b"an order");
    let output = to.join("orders.evc");
    let words =
        ["capture", ring.to_str().unwrap(), "-o", output.to_str().unwrap(), "--rotate-every", "50ms", "--resume"];
    let mut first = program(&words).spawn().unwrap();
    let begin = std::time::Instant::now();
    for count in [1, 3] {
        while files(&to).len() < count {
            assert!(begin.elapsed() < Duration::from_secs(60));
            orders.record(7, [0; 4], b"an order");
            std::thread::sleep(Duration::from_millis(20));
        }
        let second = run(&words);
        assert!(second.code != Some(0) && second.err.contains("another process writes it"), "{second:?}");
    }
    drop(orders);
    assert!(first.wait().unwrap().success());
    run(&words).ends(0);
}

#[test]
fn what_is_too_old_goes_while_nothing_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let (ring, to) = (dir.path().join("orders"), dir.path().join("out"));
    std::fs::create_dir(&to).unwrap();
    let orders = recorder(&ring);
    let output = to.join("orders.evc");
    let words = ["capture", ring.to_str().unwrap(), "-o", output.to_str().unwrap()];
    // Each event fills a file, and an idle capture begins no other.
    let mut child = program!(&words, "--rotate-size", "1", "--keep-age", "3s").spawn().unwrap();
    let wait = |until: &dyn Fn(&[PathBuf]) -> bool| {
        wait_while(|| !until(&files(&to)));
    };
    for count in 1..=4 {
        orders.record(7, [0; 4], b"an order");
        wait(&|files| files.len() >= count);
    }
    // The newest whole file stays, beside the present one.
    wait(&|files| files.len() == 2);
    drop(orders);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_forwarder_into_a_directory_is_told_which_capture_does_it() {
    let dir = tempfile::tempdir().unwrap();
    run!("forward", "orders", "--to", dir.path().to_str().unwrap())
        .fails(2, "eventring capture RING --resume --reopen");
}
