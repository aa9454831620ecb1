//! Days without an operator: files begin anew, the oldest go, and a capture that was killed goes on.

use crate::fixtures::*;
use crate::orders::{ended_orders, order, orders_in};
use eventring_capture::CapturedContent;

/// Makes a directory with these paths, and an empty directory `out`.
fn with_output<const N: usize>(names: [&str; N]) -> (TempDir, [PathBuf; N], PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out");
    fs::create_dir(&to).unwrap();
    let paths = names.map(|name| dir.path().join(name));
    (dir, paths, to)
}

/// Returns the captures in a directory, the oldest first.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
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
    let (_dir, [ring], to) = with_output(["orders"]);
    let orders = orders_in(&ring);
    let output = to.join("orders.evc");
    let begin = || program!("capture", &ring, "-o", &output, "--rotate-every", "300ms", "--resume").spawn().unwrap();
    let mut child = begin();
    let (mut recorded, mut known) = (0, 0);
    for round in 0..5 {
        // Each capture has begun a file and gone on to a second one, however long a busy machine takes for it.
        while files(&to).len() < known + 2 {
            assert!(child.try_wait().unwrap().is_none(), "the capture has ended");
            // The ring holds what is recorded in half a minute.
            order(&orders, 10);
            recorded += 10;
            thread::sleep(Duration::from_millis(10));
        }
        if round < 4 {
            kill(&mut child);
            known = files(&to).len();
            orders.record(7, [0; 4], b"while nobody captures");
            recorded += 1;
            child = begin();
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
    let _ = fs::remove_file(ring);
    ended_orders(ring, count);
}

/// Captures rings into the row `a.evc` of this directory, after what it has.
fn resumed(to: &Path, rings: &[&Path], more: &[&str]) -> Run {
    run!("capture", rings, "-o", to.join("a.evc"), "--resume", "--json", more)
}

#[test]
fn nothing_is_written_twice_if_the_newest_file_lacks_a_ring() {
    let (_dir, [first, second], to) = with_output(["a", "b"]);
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
        let (_dir, [first, second], to) = with_output(["a", "b"]);
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
        fs::remove_file(to.join("a.ends")).unwrap();
        files(&to).iter().for_each(|file| fs::remove_file(file).unwrap());
        let again = resumed(&to, &[&first, &second], &more).json();
        assert_eq!(again["events"], 27, "{more:?}: {again}");
    }
}

#[test]
fn the_next_programs_under_the_same_name_are_captured_until_ctrl_c() {
    let (_dir, [ring], to) = with_output(["orders"]);
    let output = to.join("orders.evc");
    let words = ["capture", argument(&ring), "-o", argument(&output), "--wait", "--reopen", "--json"];
    let live = live!(words);
    for program in 1..=3_u64 {
        ended_orders(&ring, program * 100);
        let has_come = |program: u64| {
            let events: u64 = files(&to)
                .iter()
                .filter_map(|file| CaptureFile::open(file).ok()?.end().map(|end| end.stats.events()))
                .sum();
            events == (1..=program).map(|program| program * 100).sum::<u64>()
        };
        wait_while(|| !has_come(program));
    }
    live.interrupt();
    let summary = live.end().json();
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
    let (_dir, [first, second], to) = with_output(["a", "b"]);
    for others_live in [false, true] {
        drop(orders_in(&first));
        let other = others_live.then(|| orders_in(&second));
        let rings = [&first, &second];
        let output = to.join(format!("{others_live}.evc"));
        let mut live = live!("capture", &rings[..1 + usize::from(others_live)], "-o", &output, "--reopen");
        thread::sleep(Duration::from_millis(300));
        fs::remove_file(&first).unwrap();
        fs::write(&first, [b"no ring".as_slice(), &[0; 8192]].concat()).unwrap();
        let said = live.notice("error:");
        assert!(said.contains("/a:") && said.contains("go on") == others_live, "{said}");
        if others_live {
            assert!(live.child.try_wait().unwrap().is_none());
            drop(other);
            live.interrupt();
            assert!(live.notice("error:").contains("/a:"));
        }
        assert_ne!(live.end().code, Some(0));
        fs::remove_file(&first).unwrap();
    }
}

#[test]
fn the_oldest_files_go_when_there_is_too_much() {
    let (_dir, [ring], to) = with_output(["orders"]);
    let orders = orders_in(&ring);
    let output = to.join("orders.evc");
    // Each file has a quarter of the limit, because `--rotate-size` is larger.
    let options = ["--rotate-size", "1M", "--keep-size", "100k", "--compression", "0"];
    let live = live!("capture", &ring, "--json", "-o", &output, options);
    for number in 0..10_000_u64 {
        orders.record(7, [number; 4], &[number as u8; 50]);
        if number % 200 == 0 {
            thread::sleep(Duration::from_millis(10));
        }
    }
    drop(orders);
    fs::write(to.join("orders-mine.txt"), "not a capture").unwrap();
    let summary = live.end().json();
    let left = files(&to);
    let bytes: u64 = left.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert!((60 << 10..=125 << 10).contains(&bytes), "{bytes} bytes in {left:?}");
    let (events, lost) = account(&left);
    assert!(events > 0 && events < 10_000 && lost == 0, "{events} events, {lost} lost");
    assert!(to.join("orders-mine.txt").exists());
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
    let live = live!("capture", &ring, "-o", &output, &options);
    for part in 1..=4 {
        record(&ring, 100);
        let file = dir.path().join(format!("row.{part:04}.evc"));
        wait_while(|| CaptureFile::open(&file).ok().is_none_or(|capture| capture.end().is_none()));
    }
    live.interrupt();
    let summary = live.end().said();
    let counts = ["events", "removed", "removed_files"].map(|name| summary[name].number());
    assert_eq!(counts, [200, 200, 2], "{summary}");
    let left = files(dir.path());
    let bytes: u64 = left.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    assert_eq!((&summary["bytes"], left.len()), (&bytes.into(), 2), "{summary}");
    let stated: Vec<PathBuf> = serde_json::from_value(summary["files"].clone()).unwrap();
    assert_eq!(stated, left);
}

#[test]
fn what_stands_in_the_file_of_ends_is_not_written_again_and_a_damaged_one_is_refused() {
    let (_dir, [first, second], to) = with_output(["a", "b"]);
    record(&first, 10);
    record(&second, 20);
    let capture = |rings: &[&Path]| resumed(&to, rings, &["--rotate-every", "1h", "--keep", "9"]);
    assert_eq!(capture(&[&second]).json()["events"], 20);
    assert_eq!(capture(&[&first, &second]).json()["events"], 10);
    assert_eq!(capture(&[&second, &first]).json()["events"], 0);
    // Somebody has taken the files away.
    files(&to).iter().for_each(|file| fs::remove_file(file).unwrap());
    assert_eq!(capture(&[&first, &second]).json()["events"], 0);
    let ends = to.join("a.ends");
    let bytes = fs::read(&ends).unwrap();
    for cut in [bytes.len() / 2, 3] {
        fs::write(&ends, &bytes[..cut]).unwrap();
        capture(&[&first]).fails(7, "a.ends: the file of ends is damaged");
    }
}

#[test]
fn two_captures_do_not_write_the_same_row() {
    let (_dir, [ring], to) = with_output(["orders"]);
    let orders = orders_in(&ring);
    orders.record(7, [0; 4], b"an order");
    let output = to.join("orders.evc");
    let words = ["capture", argument(&ring), "-o", argument(&output), "--rotate-every", "50ms", "--resume"];
    let mut first = program(&words).spawn().unwrap();
    for count in [1, 3] {
        wait_while(|| {
            order(&orders, 1);
            files(&to).len() < count
        });
        let second = run(&words);
        assert!(second.code != Some(0) && second.err.contains("another process writes it"), "{second:?}");
    }
    drop(orders);
    assert!(first.wait().unwrap().success());
    run(&words).ends(0);
}

#[test]
fn what_is_too_old_goes_while_nothing_is_recorded() {
    let (_dir, [ring], to) = with_output(["orders"]);
    let orders = orders_in(&ring);
    let output = to.join("orders.evc");
    // Each event fills a file, and an idle capture begins no other.
    let mut child =
        program!("capture", &ring, "-o", &output, "--rotate-size", "1", "--keep-age", "3s").spawn().unwrap();
    for count in 1..=4 {
        orders.record(7, [0; 4], b"an order");
        wait_while(|| files(&to).len() < count);
    }
    // The newest whole file stays, beside the present one.
    wait_while(|| files(&to).len() != 2);
    drop(orders);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_forwarder_into_a_directory_is_told_which_capture_does_it() {
    let dir = tempfile::tempdir().unwrap();
    run!("forward", "orders", "--to", dir.path().to_str().unwrap())
        .fails(2, "eventring capture RING --resume --reopen");
}
