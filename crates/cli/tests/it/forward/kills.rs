//! Forwarders, brokers and receivers are killed at random moments while a program records. Afterwards each seqno is in
//! the stream once, and in the receiver's file once, or lies in a stated gap.
//!
//! `EVENTRING_FORWARD_RUNS=1000` makes more than 20 runs.

use crate::broker;
use crate::broker::Broker;
use crate::consumers;
use crate::fixtures::*;
use eventring_capture::{CapturedContent, CapturedPayload};
use std::process::ExitStatus;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The number of events that a thread of the program records.
const EVENTS: u64 = 60_000;
const THREADS: u64 = 2;
/// The number of runs at a time. They wait most of the time.
const AT_ONCE: u64 = 3;
/// The ring of every such run is so large that nothing in it is overwritten.
const LARGE: u64 = 2;
/// Every so many runs, the receiver begins new files.
const ROTATED: u64 = 3;
/// The stream of every such run is read by an independent reader, too.
const READ_INDEPENDENTLY: u64 = 5;

/// Numbers that look random, always the same for one seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    fn millis(&mut self, end: u64) -> Duration {
        Duration::from_millis(self.below(end))
    }
}

/// A process of the program `eventring` that is started again when it was killed.
struct Restarted {
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Restarted {
    fn new(arguments: &[&str]) -> Self {
        let mut new = Self { arguments: arguments.iter().map(|it| (*it).to_owned()).collect(), child: None };
        new.start();
        new
    }

    fn start(&mut self) {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = program::program(&arguments);
        self.child = Some(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    }

    fn kill(&mut self) {
        let child = self.child.as_mut().unwrap();
        kill(child);
    }

    /// Returns the exit status once the process has ended by itself.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut().unwrap().try_wait().unwrap()
    }

    fn complaint(&mut self) -> String {
        let stderr = self.child.as_mut().unwrap().stderr.take();
        stderr.map_or_else(String::new, |stderr| std::io::read_to_string(stderr).unwrap())
    }
}

/// Records from several threads, each with a number of its own in the payload, at an uneven pace.
fn record(path: &Path, seed: u64) -> u64 {
    let builder = Recorder::builder(ContentDescription::new(300, "KILLS")).config(path).compact(true);
    let shifts = if seed.is_multiple_of(LARGE) { (17, 24) } else { (15, 21) };
    let recorder = builder.shifts(shifts.0, shifts.1).prefault(false).keep(true).build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            let mut random = Random(seed + 77 * thread + 1);
            scope.spawn(move || {
                for number in 0..EVENTS {
                    let payload = [thread.to_le_bytes(), number.to_le_bytes()].concat();
                    recorder.record((number % 5 + 2) as u16, [number, thread, 0, 7], &payload);
                    if number % 500 == 499 {
                        std::thread::sleep(random.millis(15));
                    }
                }
            });
        }
    });
    Reader::open(path).unwrap().info().last_seqno
}

/// Kills and starts again until the program has recorded everything.
fn disturb(
    broker: &mut Broker,
    processes: &mut [Restarted; 2],
    random: &mut Random,
    is_over: &AtomicBool,
    kills: &AtomicU64,
) {
    while !is_over.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(20) + random.millis(120));
        let victim = random.below(3) as usize;
        match processes.get_mut(victim) {
            Some(process) => process.kill(),
            None => broker.kill(),
        }
        kills.fetch_add(1, Relaxed);
        std::thread::sleep(random.millis(150));
        match processes.get_mut(victim) {
            Some(process) => process.start(),
            None => broker.start_again(),
        }
        // A receiver that comes before the stream has ended by itself.
        if processes[1].ended().is_some() {
            processes[1].start();
        }
    }
}

/// The counts of one run.
struct Left {
    last_seqno: u64,
    lost: u64,
    /// True if the broker had lost the whole stream when the forwarder had ended.
    lost_stream: bool,
}

/// Returns true if the broker has no stream. A broker that is killed just when it writes the description of a stream
/// forgets the stream, with everything that it had acknowledged.
fn is_stream_lost(address: &str, directory: &Path) -> bool {
    let other = directory.join("other");
    program::run(&["receive", address, "--stream", "S", "-o", other.to_str().unwrap(), "--until-idle", "1ms"]).code
        == Some(3)
}

fn run(seed: u64, kills: &AtomicU64) -> Left {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut broker = Broker::start(&dir.path().join("js"));
    let address = broker.address();
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let is_over = AtomicBool::new(false);
    let (ring, file) = (path("shop"), path("all.evc"));
    let forward = ["forward", &ring, "--wait", "--to", &address, "--stream", "S", "--host", "h", "--every", "40ms"];
    let receive = ["receive", &address, "--stream", "S", "-o", &file, "--until-end"];
    let more: &[&str] = if seed.is_multiple_of(ROTATED) { &["--rotate-size", "40k"] } else { &[] };
    let receive = [&receive[..], more].concat();
    let (last_seqno, lost_stream) = std::thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let last = record(ring.as_ref(), seed);
            is_over.store(true, Relaxed);
            last
        });
        let mut processes = [Restarted::new(&forward), Restarted::new(&receive)];
        disturb(&mut broker, &mut processes, &mut random, &is_over, kills);
        let last = recording.join().unwrap();
        let (mut begin, mut lost_stream) = (Instant::now(), false);
        for process in &mut processes {
            loop {
                match process.ended() {
                    Some(status) if status.success() => break,
                    // The stream was not there yet.
                    Some(status) if status.code() == Some(3) => process.start(),
                    Some(status) => panic!("seed {seed}: {status}: {}", process.complaint()),
                    // The next forwarder sends again what is in the ring.
                    None if begin.elapsed() > Duration::from_secs(10)
                        && !lost_stream
                        && is_stream_lost(&address, dir.path()) =>
                    {
                        (begin, lost_stream) = (Instant::now(), true);
                        let again = program::run(&forward);
                        assert_eq!(again.code, Some(0), "seed {seed}: {again:?}");
                    }
                    None if begin.elapsed() > Duration::from_secs(20) => {
                        process.kill();
                        let complaint = process.complaint();
                        panic!("seed {seed}: {:?} does not end: {complaint}", process.arguments);
                    }
                    None => std::thread::sleep(Duration::from_millis(10)),
                }
            }
        }
        (last, lost_stream)
    });
    let files = receivers_files(dir.path());
    let sizes: Vec<u64> = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).collect();
    assert_eq!(files.len() > 1, seed.is_multiple_of(ROTATED), "seed {seed}: {files:?} {sizes:?}");
    let lost = check_files(&files, last_seqno, seed);
    if seed.is_multiple_of(LARGE) {
        assert_eq!((last_seqno, lost), (THREADS * EVENTS, 0), "seed {seed}: everything was in the ring all the time");
    }
    if seed.is_multiple_of(READ_INDEPENDENTLY)
        && let Some(found) = consumers::read_stream(&address, "S")
    {
        let found = found.unwrap_or_else(|problem| panic!("seed {seed}: {problem}"));
        let ring = &found["rings"][0];
        assert_eq!((&ring["first"], &ring["last"]), (&1.into(), &last_seqno.into()), "seed {seed}: {found}");
        assert_eq!(found["rings"].list().len(), 1, "seed {seed}");
        let in_stream = ring["events"].number();
        assert!(
            in_stream >= last_seqno - lost,
            "seed {seed}: {in_stream} events in the stream, {lost} missing in the file"
        );
    }
    Left { last_seqno, lost, lost_stream }
}

/// Returns the files of the receiver.
fn receivers_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "evc")).collect()
}

/// Checks that the receiver's files have each seqno once, with what was recorded. Returns how many are missing.
fn check_files(files: &[PathBuf], last_seqno: u64, seed: u64) -> u64 {
    let capture = CaptureFile::open_all(files).unwrap();
    assert_eq!((capture.problems(), capture.rings().len()), (&[][..], 1), "seed {seed}");
    let (mut next, mut lost) = (1, 0);
    let mut recorded = BTreeSet::new();
    for record in capture.events() {
        match record.content {
            CapturedContent::Gap { first_seqno, count, cause } => {
                assert_eq!(first_seqno, next, "seed {seed}: {cause:?}");
                next += count;
                lost += count;
            }
            CapturedContent::Event { descriptor, payload } => {
                assert_eq!(descriptor.seqno, next, "seed {seed}");
                next += 1;
                let [number, thread, ..] = descriptor.content_ext;
                assert!(recorded.insert((thread, number)), "seed {seed}: {thread}, {number} twice");
                match payload {
                    CapturedPayload::Valid(bytes) => {
                        assert_eq!(bytes, [thread.to_le_bytes(), number.to_le_bytes()].concat(), "seed {seed}");
                    }
                    CapturedPayload::Expired => {}
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
        }
    }
    assert_eq!(next, last_seqno + 1, "seed {seed}");
    let stats = &capture.end().unwrap().stats;
    assert_eq!((stats.events(), stats.lost() + stats.skipped()), (recorded.len() as u64, lost), "seed {seed}");
    lost
}

#[test]
fn after_any_kills_each_seqno_is_there_once_or_lies_in_a_stated_gap() {
    if !broker::is_installed() {
        return;
    }
    let runs: u64 = std::env::var("EVENTRING_FORWARD_RUNS").map_or(20, |runs| runs.parse().unwrap());
    let (next, kills) = (AtomicU64::new(0), AtomicU64::new(0));
    let totals = std::sync::Mutex::new((0, 0, 0, 0));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Relaxed);
                    if seed >= runs {
                        return;
                    }
                    let left = run(seed, &kills);
                    let mut totals = totals.lock().unwrap();
                    totals.0 += left.last_seqno;
                    totals.1 += left.lost;
                    totals.2 += u64::from(left.lost > 0);
                    totals.3 += u64::from(left.lost_stream);
                }
            });
        }
    });
    let (seqnos, lost, with_losses, lost_streams) = *totals.lock().unwrap();
    let kills = kills.load(Relaxed);
    println!(
        "{runs} runs, {kills} kills, {seqnos} seqnos, {lost} in stated gaps of {with_losses} runs; {lost_streams} lost streams"
    );
    assert!(lost_streams <= 1 + runs / 500, "{lost_streams} lost streams in {runs} runs: the broker is not the cause");
    assert!(kills > runs, "{kills} kills in {runs} runs");
}
