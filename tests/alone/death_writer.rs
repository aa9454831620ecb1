//! A writer that is killed at any instruction loses no event that it had committed, and leaves no half-written event.

use crate::death;
use crate::death::{Findings, examine, follow, listen};
use crate::stall::seal::Random;
use eventring::reader::{Reader, ReaderErrorKind, RingState};
use eventring_stress::child::{part, place, play};
use eventring_stress::test_name;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

/// Returns how many writers the test kills: the number in EVENTRING_KILLS, or 120 if it is not set.
fn kills() -> u64 {
    std::env::var("EVENTRING_KILLS").map_or(120, |text| text.parse().expect("a number of kills"))
}

/// Starts a child that plays `part` of `test` at `path`. Returns the child, and a thread that collects the seqnos
/// that the child reports.
fn start(test: &str, part: &str, path: &Path) -> (Child, JoinHandle<Vec<u64>>) {
    let mut child = play(test, part, path).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let reported = listen(&mut child);
    (child, reported)
}

/// Kills a writer a short time after its start: before, while or after it creates its ring.
fn kill_early(path: &Path, random: &mut Random) {
    let (mut child, reported) = start(TEST, "writer", path);
    std::thread::sleep(Duration::from_micros(random.below(20_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    reported.join().unwrap();
    match Reader::open(path) {
        Ok(reader) => assert_eq!(reader.state(), RingState::WriterDied),
        Err(error) => assert_eq!(error.kind(), ReaderErrorKind::NotFound, "{error}"),
    }
}

/// Starts a writer and a reader that follows it. Kills the writer after `time`, examines the ring, and adds the
/// result to `findings`. Returns the reader.
fn kill_while_recording(
    (test, part): (&str, &str),
    path: &Path,
    time: Duration,
    findings: &mut Findings,
    before: Option<&Reader>,
) -> Reader {
    let (mut child, reported) = start(test, part, path);
    let reader = loop {
        match Reader::open(path) {
            // Until the new writer has made its ring, `path` leads to the ring of the previous writer. That ring is
            // not live, but it must open without an error.
            Ok(reader) if reader.state() == RingState::Live => break reader,
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ReaderErrorKind::NotFound, "{error}"),
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    if let Some(before) = before {
        assert!(before.was_replaced() && before.state() == RingState::WriterDied);
    }
    let following = std::thread::spawn({
        let reader = reader.clone();
        move || follow(&reader)
    });
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    let reported = reported.join().unwrap();
    examine(&reader, following.join().unwrap(), &reported, findings);
    findings.kills += 1;
    reader
}

const TEST: &str = test_name!("committed_events_survive_a_kill_and_no_event_is_half_written");

/// Kills many writers. For more kills:
/// `EVENTRING_KILLS=5000 cargo test -p eventring-tests --test alone death_writer -- --nocapture`.
#[test]
fn committed_events_survive_a_kill_and_no_event_is_half_written() {
    if part().is_some() {
        return death::write_until_killed(&place(), death::record_and_tell);
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    // Four threads kill writers at the same time, because each thread waits most of the time. After a kill, the thread
    // waits until its reader checks whether the writer still lives.
    let rows: Vec<Findings> = std::thread::scope(|scope| {
        let rows: Vec<_> = (0..4)
            .map(|row| {
                let path = directory.path().join(format!("ring{row}"));
                scope.spawn(move || {
                    let mut random = Random::new(row ^ Random::from_time().next());
                    let (mut findings, mut before) = (Findings::default(), None);
                    for kill in 0..kills().div_ceil(4) {
                        if kill % 8 == 7 {
                            kill_early(&path, &mut random);
                            findings.kills += 1;
                            findings.while_creating += 1;
                        } else {
                            let time = Duration::from_micros(random.below(15_000));
                            let before = &mut before;
                            let reader =
                                kill_while_recording((TEST, "writer"), &path, time, &mut findings, before.as_ref());
                            *before = Some(reader);
                        }
                    }
                    findings
                })
            })
            .collect();
        rows.into_iter().map(|row| row.join().unwrap()).collect()
    });
    let mut all = Findings::default();
    rows.iter().for_each(|row| all.add(row));
    println!("{all}");
    assert_eq!(all.wrong(), 0, "{all} {:#?}", all.verdict.examples);
    assert!(all.told_and_found > 0 && (all.while_creating > 0 || kills() < 32));
}

/// The positive control: the same examination must find the faults of two faulty writers. (It nearly always does so
/// with the first kill. The test allows a hundred kills.)
#[test]
fn writers_that_report_too_early_or_commit_half_events_are_found() {
    const TEST: &str = test_name!("writers_that_report_too_early_or_commit_half_events_are_found");
    match part().as_deref() {
        Some("tells early") => return death::write_until_killed(&place(), death::tell_and_record),
        Some(_) => return death::write_until_killed(&place(), death::record_half),
        None => {}
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let caught = |part: &str, is_wrong: fn(&Findings) -> bool| {
        (0..100).any(|_| {
            let (path, mut findings) = (directory.path().join("ring"), Findings::default());
            kill_while_recording((TEST, part), &path, Duration::from_millis(15), &mut findings, None);
            is_wrong(&findings)
        })
    };
    assert!(caught("tells early", |findings| findings.told_and_missing > 0 && findings.verdict.wrong() == 0));
    assert!(caught("commits half", |findings| findings.verdict.misattributed > 0));
}
