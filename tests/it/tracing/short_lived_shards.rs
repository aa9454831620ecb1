//! A recorder makes shards, and removes them before a reader looks for shards again. The reader still reads the events
//! of these shards, or counts them exactly.

use crate::fixtures::*;
use eventring::reader::SetRing;
use eventring::tracing::{PerfItem, PerfSource};
use std::process::ExitStatus;
use std::sync::mpsc::channel;

fn recorder(place: &Path, keep: bool) -> PerfRecorder {
    let builder = PerfRecorder::builder().config(place).shifts(15, 21).tables_shift(16).shards(8);
    builder.prefault(false).keep(keep).build().unwrap()
}

/// Records events on the calling thread.
fn log(recorder: &PerfRecorder, events: u64) {
    tracing::subscriber::with_default(RecorderSubscriber::new(recorder.clone()), || {
        (0..events).for_each(|n| tracing::info!(n, "something"));
    });
}

/// Records events on several threads. The recorder makes a new shard for each of them.
fn log_on_threads(recorder: &PerfRecorder, threads: u64, events: u64) {
    let (mut stay, mut joined) = (Vec::new(), Vec::new());
    for thread in 0..threads {
        let recorder = recorder.clone();
        let (logged, has_logged) = channel::<()>();
        let (may_go, permission) = channel::<()>();
        joined.push(std::thread::spawn(move || {
            log(&recorder, events + thread);
            drop(logged);
            let _ = permission.recv();
        }));
        // The next thread starts only now, so no thread makes a shard while another one does.
        let _ = has_logged.recv();
        stay.push(may_go);
    }
    drop(stay);
    joined.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Returns how many seqnos each shard has handed out. The first shard is left out.
fn handed_out(recorder: &PerfRecorder) -> Vec<u64> {
    recorder.stats().shards.iter().skip(1).map(|shard| shard.last_seqno).collect()
}

/// Reads until all shards have ended. Returns how many records came from each shard, and the gaps.
fn read_to_the_end(reader: &mut PerfReader) -> (Vec<u64>, Vec<(u32, Gap)>) {
    let (mut records, mut gaps) = (Vec::new(), Vec::new());
    loop {
        match reader.next_timeout(Duration::from_millis(50)) {
            Some(PerfItem::Record(record)) => {
                let shard = record.shard as usize;
                records.resize(records.len().max(shard + 1), 0);
                records[shard] += 1;
            }
            Some(PerfItem::Gap { source: PerfSource::Shard(shard), gap }) => gaps.push((shard, gap)),
            Some(other) => panic!("{other:?}"),
            None if reader.has_ended() => return (records, gaps),
            None => {}
        }
    }
}

fn never_opened(handed_out: &[u64]) -> Vec<(u32, Gap)> {
    let gap = |count: &u64| Gap { first_seqno: 1, count: *count, cause: GapCause::NeverOpened };
    (1..).zip(handed_out.iter().map(gap)).collect()
}

#[test]
fn shards_that_were_removed_before_they_were_seen_are_counted_exactly() {
    let (_directory, [place]) = places(["ring"]);
    let recorder = recorder(&place, false);
    log(&recorder, 5);
    let mut reader = PerfReader::open(&place).unwrap();
    log_on_threads(&recorder, 3, 100);
    let handed_out = handed_out(&recorder);
    assert!(handed_out.len() == 3 && handed_out.iter().sum::<u64>() >= 300, "{handed_out:?}");
    drop(recorder);
    assert!(!place.exists());
    let (records, gaps) = read_to_the_end(&mut reader);
    assert_eq!(gaps, never_opened(&handed_out));
    assert_eq!(records.len(), 1);
    assert!(reader.shard_errors().is_empty() && reader.state() == RingState::Ended);
}

#[test]
fn a_shard_is_found_with_the_next_look() {
    let (_directory, [place]) = places(["ring"]);
    let recorder = recorder(&place, false);
    log(&recorder, 1);
    let mut reader = PerfReader::open(&place).unwrap();
    log_on_threads(&recorder, 3, 10);
    let handed_out = handed_out(&recorder);
    // This call opens all shards that exist. After it, their files may be removed.
    let _ = reader.next();
    let shards = recorder.shard_count();
    drop(recorder);
    assert_eq!(reader.rings().iter().filter_map(SetRing::reader).count(), shards);
    let (records, gaps) = read_to_the_end(&mut reader);
    assert_eq!((&records[1..], gaps), (&handed_out[..], Vec::new()));
}

/// Plays a program. It records, and waits until the parent has opened a reader. Then it records in three more shards,
/// prints how many seqnos each of them has handed out, and calls `end`.
fn record_and(end: fn() -> !) -> ! {
    // Nothing drops the recorder.
    let recorder: &'static PerfRecorder = Box::leak(Box::new(recorder(&place(), false)));
    log(recorder, 5);
    say("recording");
    wait_for_parent();
    log_on_threads(recorder, 3, 100);
    say(handed_out(recorder).iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
    end()
}

/// Runs the program of `test` to its end, while a reader has the program's ring open but does not read. Returns the
/// reader, how many seqnos each of the three later shards has handed out, and how the program ended.
fn left_by(test: &str, place: &Path) -> (PerfReader, Vec<u64>, ExitStatus) {
    let mut talk = Talk::told(test, "program", place, "recording");
    let reader = PerfReader::open(place).unwrap();
    drop(talk.child.stdin.take());
    let handed_out = talk.hear().split(' ').map(|count| count.parse().unwrap()).collect();
    (reader, handed_out, talk.end())
}

#[test]
fn an_exiting_program_leaves_the_counts_of_unseen_shards() {
    let test = plays!(record_and(|| std::process::exit(0)));
    let (_directory, [place]) = places(["ring"]);
    let (mut reader, handed_out, status) = left_by(test, &place);
    assert!(status.success());
    assert!(!place.exists());
    let (records, gaps) = read_to_the_end(&mut reader);
    assert_eq!(gaps, never_opened(&handed_out));
    assert_eq!((records.len(), reader.state()), (1, RingState::Ended));
}

#[test]
fn unseen_shards_of_a_killed_program_are_read() {
    let test = plays!(record_and(|| std::process::abort()));
    let (_directory, [place]) = places(["ring"]);
    let (mut reader, handed_out, status) = left_by(test, &place);
    assert!(!status.success());
    let (records, gaps) = read_to_the_end(&mut reader);
    assert_eq!((&records[1..], gaps), (&handed_out[..], Vec::new()));
    assert_eq!(reader.state(), RingState::WriterDied);
}

#[test]
fn a_shard_of_another_recorder_is_not_read_and_the_loss_is_counted() {
    let (_directory, [place]) = places(["ring"]);
    let first = recorder(&place, true);
    log(&first, 5);
    let mut reader = PerfReader::open(&place).unwrap();
    log_on_threads(&first, 2, 10);
    let handed_out = handed_out(&first);
    drop(first);
    // The files of the second recorder get the names that the files of the first one had.
    let second = recorder(&place, false);
    log(&second, 1);
    log_on_threads(&second, 4, 7);
    assert_eq!(second.shard_count(), 5);
    let (_, gaps) = read_to_the_end(&mut reader);
    assert_eq!(gaps, never_opened(&handed_out));
}

#[test]
fn a_shard_that_cannot_be_opened_is_a_loss_even_if_nobody_knows_how_large() {
    let (directory, [place]) = places(["ring"]);
    let recorder = recorder(&place, false);
    log(&recorder, 5);
    log_on_threads(&recorder, 1, 10);
    log_on_threads(&recorder, 3, 10);
    // Only the first shard is copied, so the reader finds no other shard. The recorder has not ended, so the copy
    // does not say how many events the other shards have.
    let copy = directory.path().join("copy");
    std::fs::copy(&place, &copy).unwrap();
    let mut reader = PerfReader::open(&copy).unwrap();
    let missing = recorder.shard_count() - 1;
    assert_eq!(reader.shard_errors().len(), missing);
    drop(recorder);
    let (_, gaps) = read_to_the_end(&mut reader);
    assert_eq!(gaps, never_opened(&vec![1; missing]));
}

#[test]
fn what_a_late_shard_had_overwritten_before_it_was_found_is_a_gap() {
    let (_directory, [place]) = places(["ring"]);
    let recorder = recorder(&place, false);
    log(&recorder, 1);
    let mut reader = PerfReader::open(&place).unwrap();
    log_on_threads(&recorder, 1, (1 << 15) + 5000);
    let handed_out = handed_out(&recorder);
    let Some(PerfItem::Gap { source: PerfSource::Shard(1), gap: first }) = reader.next() else { panic!("no gap") };
    drop(recorder);
    let (records, gaps) = read_to_the_end(&mut reader);
    let lost = first.count + gaps.iter().map(|(_, gap)| gap.count).sum::<u64>();
    assert!(lost >= 5000 && (first.first_seqno, first.cause) == (1, GapCause::Overwritten), "{first:?}");
    assert_eq!(records.iter().skip(1).sum::<u64>() + lost, handed_out.iter().sum::<u64>());
}
