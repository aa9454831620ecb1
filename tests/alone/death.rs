//! The examination of a ring whose writer process was killed. All tests of killed writers share it.

use crate::stall::ring::{judge, record};
use crate::stall::seal::{self, Count, Verdict, WITHOUT_SEQNO, fill};
use eventring::reader::{Cursor, Followed, Follower, Next, Reader, RingState, Seek, WaitStrategy};
use eventring::recorder::{ContentDescription, Recorder};
use std::collections::HashSet;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Child;
use std::thread::JoinHandle;
use std::time::Duration;

/// The number of recording threads of a writer.
pub const WRITERS: u64 = 3;

/// A function with which a writer records one event. Its arguments are the recorder, the writer's number, the event's
/// count, its words and its payload.
pub type Recording = fn(&Recorder, u64, Count, [u64; 3], &[u8]);

/// Makes the ring at `path` that a writer records to.
pub fn recorder(path: &Path) -> Recorder {
    let description = ContentDescription::new(300, "DEATH");
    Recorder::builder(description).config(path).compact(true).shifts(15, 21).build().unwrap()
}

/// Reports to the parent process, over stderr, that the event with this seqno was committed.
pub fn tell(seqno: u64) {
    // Several threads write to the same pipe. A write of less than PIPE_BUF bytes arrives as a whole or not at all.
    std::io::stderr().write_all(&seqno.to_le_bytes()).unwrap();
}

/// Records an event and then reports its seqno. Writer 0 reports each of its events. The other writers report only
/// every 50th event, so that they spend their time recording.
pub fn record_and_tell(recorder: &Recorder, writer: u64, count: Count, words: [u64; 3], payload: &[u8]) {
    let seqno = record(recorder, count, words, payload);
    if writer == 0 || count.is_multiple_of(50) {
        tell(seqno);
    }
}

/// Records an event. Writer 0 reports the event's seqno before it commits the event. This is a deliberate fault,
/// which the examination must find.
pub fn tell_and_record(recorder: &Recorder, writer: u64, count: Count, words: [u64; 3], payload: &[u8]) {
    if writer > 0 {
        return record_and_tell(recorder, writer, count, words, payload);
    }
    let ext = [words[0], words[1], words[2], seal::seal(0, WITHOUT_SEQNO, payload.len(), words)];
    let mut reservation = recorder.reserve(WITHOUT_SEQNO, ext, payload.len() as u64).unwrap();
    reservation.append(payload);
    tell(reservation.seqno());
    std::thread::sleep(Duration::from_millis(2));
    reservation.commit();
}

/// Commits an event although only half of its payload is written. This is a deliberate fault, which the examination
/// must find.
pub fn record_half(recorder: &Recorder, _: u64, _: Count, words: [u64; 3], payload: &[u8]) {
    let ext = [words[0], words[1], words[2], seal::seal(0, WITHOUT_SEQNO, payload.len(), words)];
    let mut reservation = recorder.reserve(WITHOUT_SEQNO, ext, payload.len() as u64).unwrap();
    reservation.append(&payload[..payload.len() / 2]);
    tell(reservation.commit());
}

/// Records until the process is killed.
pub fn write_until_killed(path: &Path, recording: Recording) {
    let recorder = recorder(path);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut payload = Vec::new();
                for count in 0.. {
                    let words = fill(writer, count, &mut payload);
                    recording(recorder, writer, count, words, &payload);
                }
            });
        }
    });
}

/// Collects all seqnos that the child reports until it ends.
pub fn listen(child: &mut Child) -> JoinHandle<Vec<u64>> {
    let mut pipe = child.stderr.take().unwrap();
    std::thread::spawn(move || {
        let mut printed = Vec::new();
        pipe.read_to_end(&mut printed).unwrap();
        printed.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    })
}

/// Returns how long a reader may wait before the test counts it as stuck: as many seconds as the variable
/// EVENTRING_TIMEOUT says, or a minute if it is not set.
fn timeout() -> Duration {
    Duration::from_secs(std::env::var("EVENTRING_TIMEOUT").map_or(60, |text| text.parse().expect("seconds")))
}

/// Follows the ring from its first seqno to its end and checks all events. Returns the cursor, which then stands at
/// the end of the ring, and the verdict on the events.
pub fn follow(reader: &Reader) -> (Cursor, Verdict) {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(1));
    follow_on(cursor, Verdict::default())
}

/// Goes on as [`follow`] does, from this cursor and verdict.
pub fn follow_on(cursor: Cursor, mut verdict: Verdict) -> (Cursor, Verdict) {
    let mut follower = Follower::new(cursor, WaitStrategy::default());
    let mut buffer = Vec::new();
    loop {
        match follower.next_timeout(timeout()) {
            Followed::Event(event) => judge(follower.cursor(), &event, &mut buffer, &mut verdict),
            Followed::Gap(gap) => verdict.lost += gap.count,
            Followed::Ended => return (follower.cursor().clone(), verdict),
            // `.ci/stalls` looks for these words.
            Followed::TimedOut => panic!("the reader waits for a dead writer, at {}", follower.cursor().next_seqno()),
        }
    }
}

/// Reads the ring of a dead writer from its oldest event to its newest. Returns the seqnos of the events that are in
/// the ring, and the verdict on these events.
pub fn post_mortem(reader: &Reader) -> (HashSet<u64>, Verdict) {
    let mut cursor = reader.cursor();
    cursor.seek(Seek::Seqno(reader.info().last_seqno.saturating_sub(1 << 15) + 1));
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

/// The results of all kills together.
#[derive(Default)]
pub struct Findings {
    /// Writers that were killed.
    pub kills: u64,
    /// Writers that were killed about the time when they made their ring: before, during or after it.
    pub while_creating: u64,
    /// Reported seqnos of the ring's last lap whose events are in the ring after the kill.
    pub told_and_found: u64,
    /// Reported seqnos of the ring's last lap whose events are not in the ring after the kill. Each of these is a
    /// fault: a committed event was lost.
    pub told_and_missing: u64,
    /// Seqnos of the ring's last lap that have no event in the ring after the kill.
    pub never_committed: u64,
    /// The sum of two verdicts: of the reader that followed the ring until the kill, and of the reader that read the
    /// ring after the kill.
    pub verdict: Verdict,
}

/// Examines the ring of a killed writer and adds the results to `findings`. `following` is the result of a reader
/// that followed the ring from before the kill to the ring's end. `reported` are the seqnos that the writer has
/// reported.
pub fn examine(reader: &Reader, following: (Cursor, Verdict), reported: &[u64], findings: &mut Findings) {
    let (cursor, followed) = following;
    let last = reader.info().last_seqno;
    assert_eq!(followed.read + followed.lost, last, "the follower accounts for every seqno");
    assert_eq!(cursor.next_seqno(), last + 1);
    assert_eq!(reader.state(), RingState::WriterDied);
    let (seqnos, verdict) = post_mortem(&Reader::open(reader.path().unwrap()).unwrap());
    let oldest = last.saturating_sub(1 << 15) + 1;
    assert_eq!(verdict.read + verdict.lost, last + 1 - oldest);
    for seqno in reported.iter().filter(|seqno| **seqno >= oldest) {
        match seqnos.contains(seqno) {
            true => findings.told_and_found += 1,
            false => findings.told_and_missing += 1,
        }
    }
    // Each of the writer's threads may have died inside one event, whose seqno then has no event. Any other seqno
    // without an event was skipped because a thread stalled for a lap. The ring's counters count these seqnos.
    let stats = reader.info().extension.unwrap();
    assert!(verdict.lost <= WRITERS + stats.refused_claims + stats.overrun_claims, "{verdict}");
    findings.never_committed += verdict.lost;
    findings.verdict.add(&followed);
    findings.verdict.add(&verdict);
}

impl Findings {
    /// Adds up the findings.
    pub fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.while_creating += other.while_creating;
        self.told_and_found += other.told_and_found;
        self.told_and_missing += other.told_and_missing;
        self.never_committed += other.never_committed;
        self.verdict.add(&other.verdict);
    }

    /// Returns the number of faults.
    pub fn wrong(&self) -> u64 {
        self.told_and_missing + self.verdict.wrong()
    }
}

impl std::fmt::Display for Findings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kills, while_creating, told_and_found, told_and_missing, never_committed, verdict } = self;
        write!(
            f,
            "kills={kills} while_creating={while_creating} told_and_found={told_and_found} \
             told_and_missing={told_and_missing} never_committed={never_committed} {verdict}"
        )
    }
}
