//! `eventring watch` on a ring that is being written: it follows the writer, notices that the writer ends or comes
//! back, and ends on Ctrl-C.

use crate::fixtures::*;
use std::sync::mpsc::channel;

fn record(recorder: &Recorder, mark: u64) -> u64 {
    recorder.record(ExecEvent::TxnEnd as u16, [0, mark, 0, 0], b"")
}

#[test]
fn a_live_ring_is_followed_from_its_newest_event_until_its_writer_ends_it() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    record(&recorder, 1);
    let mut live = live!("watch", &path, "--json");
    // The watch shows only events that are recorded after it has begun. The test cannot know when that is, so it
    // records events until the watch shows one.
    let (shown, seen) = channel();
    let watcher = thread::spawn(move || {
        let first = live.json_line();
        shown.send(()).unwrap();
        (first, live)
    });
    while seen.recv_timeout(Duration::from_millis(20)).is_err() {
        record(&recorder, 2);
    }
    let (first, live) = watcher.join().unwrap();
    assert_eq!((&first["name"], &first["ext"][1]), (&"TXN_END".into(), &2.into()));
    let last = record(&recorder, 3);
    drop(recorder);
    let run = live.end().ends(0);
    let lines = run.json_lines();
    let mut expected = first["seqno"].number();
    for line in &lines {
        expected += 1;
        assert_eq!(line["seqno"], expected);
    }
    assert_eq!(expected, last);
    assert!(run.err.contains(" · ended "), "{run:?}");
}

#[test]
fn ctrl_c_ends_with_a_summary() {
    let (_directory, [path]) = places(["ring"]);
    let recorder = exec_ring(&path);
    (0..3).for_each(|mark| assert_ne!(record(&recorder, mark), 0));
    let mut live = live!("watch", &path, "--from", "oldest");
    // The watch shows five lines while the writer is silent: the date, the headings, and three events.
    let lines: Vec<String> = (0..5).map(|_| live.line()).collect();
    assert!(lines[4].contains("TXN_END"), "{lines:?}");
    live.interrupt();
    let run = live.end().ends(0).shows_nothing();
    assert!(run.err.starts_with("── 3 events shown, none lost, "), "{}", run.err);
    assert!(run.err.ends_with("stopped\n"), "{}", run.err);
}

/// Leaves out the times between which a program died.
fn without_times(text: &str) -> String {
    let Some((before, rest)) = text.split_once(" between ") else { return text.to_owned() };
    let (times, after) = rest.split_once("; ").unwrap();
    assert!(times.contains(" and "), "{text}");
    format!("{before}; {after}")
}

#[test]
fn the_cause_of_a_rings_end_is_reported() {
    let test = plays!(|part| {
        let recorder =
            typed_in::<ExecEvent>(child::place()).compact(true).shifts(15, 21).keep(part == "kept").build().unwrap();
        record(&recorder, 7);
        child::say("recorded");
        child::wait_for_parent();
        // `exit` ends the process without running destructors, so the recorder is not dropped.
        std::process::exit(0);
    });
    let reported = ["exit", "kept", "killed", "killed and removed"].map(|part| {
        let (_directory, [path]) = places(["ring"]);
        let mut writer = Talk::told(test, part, &path, "recorded");
        let mut live = live!("watch", &path, "--from", "oldest", "--json");
        assert_eq!(live.json_line()["ext"][1], 7);
        match part {
            "exit" | "kept" => assert!(writer.end().success()),
            _ => {
                if part == "killed and removed" {
                    fs::remove_file(&path).unwrap();
                }
                writer.kill();
            }
        }
        let run = live.end().ends(0).shows_nothing();
        format!("{part}: {}", without_times(run.err.trim_end().rsplit_once(" · ").unwrap().1))
    });
    insta::assert_snapshot!(reported.join("\n"), @r"
    exit: ended and removed by its program
    kept: ended by its program
    killed: its program died; the ring is left
    killed and removed: its program died; the ring was removed
    ");
}

#[test]
fn reopen_waits_for_the_ring_and_follows_to_the_next_one_from_its_oldest_event() {
    let (_directory, [path]) = places(["ring"]);
    let mut live = live!("watch", &path, "--reopen", "--from", "oldest", "--json");
    for round in 1..4 {
        let recorder = exec_ring(&path);
        record(&recorder, round);
        record(&recorder, round + 10);
        if round > 1 {
            assert_eq!(live.json_line()["made_anew"]["pid"], std::process::id());
        }
        for mark in [round, round + 10] {
            let line = live.json_line();
            assert_eq!(line["ext"][1], mark);
        }
        // This event is the last one of its ring. The watch must show it before it goes on with the next ring.
        record(&recorder, round + 20);
        drop(recorder);
        assert_eq!(live.json_line()["ext"][1], round + 20);
    }
    live.interrupt();
    live.end().ends(0).warns("── the ring was made anew ──").warns("── 9 events shown, none lost");
}

#[test]
fn without_reopen_a_missing_ring_is_an_error() {
    let directory = directory();
    run!("watch", &place(&directory, "ring")).ends(3);
}

#[test]
fn a_pattern_follows_the_rings_that_fit_also_those_that_come_later() {
    let (directory, [pattern, shop]) = places(["shop*", "shop"]);
    let (first, other) = (exec_ring(&shop), exec_ring(&place(&directory, "other")));
    record(&first, 1);
    record(&other, 9);
    let mut watch = live!("watch", &pattern, "--json", "--from", "oldest");
    let capture_file = place(&directory, "all.evc");
    let capture = live!("capture", &pattern, "-o", &capture_file);
    let mark = |line: &Value| {
        let ring = Path::new(line["ring"].text()).file_name().unwrap();
        (ring.to_str().unwrap().to_owned(), line["ext"][1].number())
    };
    assert_eq!(mark(&watch.json_line()), ("shop".to_owned(), 1));
    // The capture has begun when its file is there.
    wait_while(|| !capture_file.exists());
    let second = exec_ring(&place(&directory, "shop~2"));
    record(&second, 2);
    assert_eq!(mark(&watch.json_line()), ("shop~2".to_owned(), 2));
    record(&first, 3);
    assert_eq!(mark(&watch.json_line()), ("shop".to_owned(), 3));
    // Verbs that read what is there take the pattern, too.
    run!("export", &pattern, "--format", "jsonl", "-o", "-").ends(0);
    drop((first, second));
    watch.end().ends(0).shows_nothing();
    let captured = capture.end().ends(0);
    assert!(captured.err.starts_with("3 events from 2 rings "), "{captured:?}");
    drop(other);
    run!("watch", &pattern).fails(3, "no ring fits ");
    run!("capture", &pattern, "-o", &capture_file).fails(3, "no ring fits ");
}

#[test]
fn a_pattern_waits_for_its_first_ring_if_it_is_asked_to() {
    let (directory, [pattern, capture_file]) = places(["shop*", "all.evc"]);
    let mut watch = live!("watch", &pattern, "--json", "--reopen", "--from", "oldest");
    let capture = live!("capture", &pattern, "--wait", "-o", &capture_file);
    // If one of them begins later than this, it sees the same.
    thread::sleep(Duration::from_millis(300));
    let ring = exec_ring(&place(&directory, "shop~2"));
    ring.keep(true);
    record(&ring, 1);
    wait_while(|| !capture_file.exists());
    wait_while(|| record(&ring, 2) < 500);
    assert_eq!(watch.json_line()["ring"], argument(&place(&directory, "shop~2")));
    drop(ring);
    capture.end().ends(0);
    watch.interrupt();
    watch.end().ends(0);
}
