//! A writer that is killed at any instruction loses nothing that it had committed, and leaves nothing that is half.

#![cfg(not(any(loom, shuttle)))]

mod child;
mod stall;

use child::{part, place, play};
use eventring::reader::{Cursor, Followed, Follower, Next, Reader, ReaderErrorKind, RingState, Seek, WaitStrategy};
use eventring::recorder::{ContentDescription, Recorder};
use stall::ring::{judge, record};
use stall::seal::{Random, Verdict, fill};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const WRITERS: u64 = 3;

/// Kills: some hundred, or what EVENTRING_KILLS says.
fn kills() -> u64 {
    std::env::var("EVENTRING_KILLS").map_or(120, |told| told.parse().expect("a number of kills"))
}

/// Records until killed. Tells over stderr which seqnos were committed: the first writer each of its own, the others, which
/// spend their time recording, every 50th.
fn write_until_killed(path: &Path) {
    let description = ContentDescription::new(300, "DEATH");
    let builder = Recorder::builder(description).config(path).compact(true).shifts(15, 21);
    let recorder = builder.build().unwrap();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut payload = Vec::new();
                for count in 0.. {
                    let words = fill(writer, count, &mut payload);
                    let seqno = record(recorder, count, words, &payload);
                    if writer == 0 || count % 50 == 0 {
                        // One write of less than PIPE_BUF bytes: whole or not at all.
                        std::io::stderr().write_all(&seqno.to_le_bytes()).unwrap();
                    }
                }
            });
        }
    });
}

/// Everything the child says until its end.
fn listen(child: &mut Child) -> std::thread::JoinHandle<Vec<u64>> {
    let mut pipe = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        pipe.read_to_end(&mut said).unwrap();
        said.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    })
}

/// Follows the ring to its end, judging all events; gives the cursor.
fn follow(reader: &Reader) -> (Cursor, Verdict) {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    let mut follower = Follower::new(cursor, WaitStrategy::default());
    let (mut verdict, mut buffer) = (Verdict::default(), Vec::new());
    loop {
        match follower.next_timeout(Duration::from_secs(60)) {
            Followed::Event(event) => judge(follower.cursor(), &event, &mut buffer, &mut verdict),
            Followed::Gap(gap) => verdict.lost += gap.count,
            Followed::Ended => return (follower.cursor().clone(), verdict),
            Followed::TimedOut => panic!("the reader waits for a dead writer, at {}", follower.cursor().next_seqno()),
        }
    }
}

/// What is in the ring of a dead writer: the seqnos, judged.
fn post_mortem(reader: &Reader) -> (HashSet<u64>, Verdict) {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Oldest);
    let (mut seqnos, mut verdict, mut buffer) = (HashSet::new(), Verdict::default(), Vec::new());
    loop {
        match cursor.next() {
            Next::Event(event) => {
                assert!(seqnos.insert(event.seqno));
                judge(&cursor, &event, &mut buffer, &mut verdict);
            }
            Next::Gap(gap) => verdict.lost += gap.count,
            Next::NotReady => return (seqnos, verdict),
        }
    }
}

/// What a row of kills tried and found.
#[derive(Default)]
struct Figures {
    kills: u64,
    while_creating: u64,
    told_and_found: u64,
    never_committed: u64,
    verdict: Verdict,
}

/// A child that records at `path`, and what it tells.
fn start(path: &Path) -> (Child, std::thread::JoinHandle<Vec<u64>>) {
    let mut child = play(TEST, "writer", path).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let told = listen(&mut child);
    (child, told)
}

/// Kills a writer some time after its start: before, while or after it makes its ring.
fn kill_early(path: &Path, random: &mut Random) {
    let (mut child, told) = start(path);
    std::thread::sleep(Duration::from_micros(random.below(20_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    told.join().unwrap();
    match Reader::open(path) {
        Ok(reader) => assert_eq!(reader.state(), RingState::WriterDied),
        Err(error) => assert_eq!(error.kind(), ReaderErrorKind::NotFound, "{error}"),
    }
}

/// Kills a writer while it records, a reader attached; gives that reader.
fn kill_while_recording(path: &Path, random: &mut Random, figures: &mut Figures, before: Option<&Reader>) -> Reader {
    let (mut child, told) = start(path);
    let reader = loop {
        match Reader::open(path) {
            // The ring of the one before is there until it is replaced, whole.
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
    std::thread::sleep(Duration::from_micros(random.below(15_000)));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.join().unwrap();
    let (cursor, followed) = following.join().unwrap();
    let last = reader.info().last_seqno;
    assert_eq!(followed.read + followed.lost, last, "the follower accounts for every seqno");
    assert_eq!(cursor.next_seqno(), last + 1);
    assert_eq!(reader.state(), RingState::WriterDied);
    let (seqnos, verdict) = post_mortem(&Reader::open(path).unwrap());
    let oldest = last.saturating_sub(1 << 15) + 1;
    assert_eq!(verdict.read + verdict.lost, last + 1 - oldest);
    for seqno in told.iter().filter(|seqno| **seqno >= oldest) {
        assert!(seqnos.contains(seqno), "{seqno} was committed, and is not there (last is {last})");
        figures.told_and_found += 1;
    }
    // Each writer can have died inside one event; besides, seqnos are given up only if somebody stalls for a lap.
    let stats = reader.info().extension.unwrap();
    assert!(verdict.lost <= WRITERS + stats.refused_claims + stats.lapped_claims, "{verdict}");
    figures.never_committed += verdict.lost;
    for verdict in [followed, verdict] {
        assert_eq!(verdict.wrong(), 0, "{:#?}", verdict.examples);
        figures.verdict.add(&verdict);
    }
    reader
}

const TEST: &str = "what_was_committed_before_a_kill_is_read_and_nothing_is_half";

/// More: `EVENTRING_KILLS=5000 cargo test --test death_writer -- --nocapture`.
#[test]
fn what_was_committed_before_a_kill_is_read_and_nothing_is_half() {
    if part().is_some() {
        return write_until_killed(&place());
    }
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    // Side by side, for most of the time goes into waiting until the follower asks whether the writer lives.
    let rows: Vec<Figures> = std::thread::scope(|scope| {
        let rows: Vec<_> = (0..4)
            .map(|row| {
                let path = directory.path().join(format!("ring{row}"));
                scope.spawn(move || {
                    let mut random = Random::new(row ^ Random::from_time().next());
                    let (mut figures, mut before) = (Figures::default(), None);
                    for kill in 0..kills().div_ceil(4) {
                        figures.kills += 1;
                        if kill % 8 == 7 {
                            kill_early(&path, &mut random);
                            figures.while_creating += 1;
                        } else {
                            before = Some(kill_while_recording(&path, &mut random, &mut figures, before.as_ref()));
                        }
                    }
                    figures
                })
            })
            .collect();
        rows.into_iter().map(|row| row.join().unwrap()).collect()
    });
    let mut all = Figures::default();
    for row in rows {
        all.kills += row.kills;
        all.while_creating += row.while_creating;
        all.told_and_found += row.told_and_found;
        all.never_committed += row.never_committed;
        all.verdict.add(&row.verdict);
    }
    let Figures { kills, while_creating, told_and_found, never_committed, verdict } = all;
    println!(
        "kills={kills} while_creating={while_creating} told_and_found={told_and_found} never_committed={never_committed} \
         {verdict}"
    );
    assert!(told_and_found > 0 && while_creating > 0);
}
