//! Stall injection: writers are stopped at random instructions while other writers go round the ring, and readers
//! check every event.
//!
//! A controller sends signals to the writers' threads, and the signal handler sleeps. So chance decides at which
//! instruction a thread stops. [`Figures::stalls_inside`] counts the stalls inside of recording.
//!
//! Each writer is a series of threads, one after another. So threads also take over the payload cursors of ended
//! threads, while other writers are stalled.

pub mod ring;
pub mod seal;

use seal::{Count, Verdict};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The capacity of the rings under test, as a shift: they have 2^`DESCRIPTOR_SHIFT` descriptors.
pub const DESCRIPTOR_SHIFT: u32 = 15;
/// The size of the payload buffers of the rings under test, as a shift: they have 2^`PAYLOAD_SHIFT` bytes.
pub const PAYLOAD_SHIFT: u32 = 21;

/// A tested algorithm.
pub trait Subject: Sync {
    /// Records event number `count` of a writer, with its words and its sealed payload. Returns its seqno, or 0 if
    /// the event was lost.
    fn record(&self, count: Count, words: [u64; 3], payload: &[u8]) -> u64;
    /// Reads and judges all events, from seqno 1 on. Returns when `done` is set and all events have been read.
    fn read(&self, done: &AtomicBool, verdict: &mut Verdict);
    /// Reads and judges the events that are in the ring, while no writer is recording. Calls `seen` with the seqno of
    /// each event.
    fn read_post_mortem(&self, verdict: &mut Verdict, seen: &mut dyn FnMut(u64));
    /// Returns the last seqno that was handed out.
    fn last_seqno(&self) -> u64;
    /// Returns the number of seqnos that were skipped.
    fn skipped(&self) -> u64;
}

/// The numbers of a run: attempts and findings.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    pub stalls: u64,
    pub stalls_inside: u64,
    /// Number of threads that have recorded.
    pub threads: u64,
    pub recorded: u64,
    pub laps: u64,
    pub skipped: u64,
    /// Committed events that should still be in the ring at the end, but are not there. An event counts as committed
    /// if `record` has returned its seqno.
    pub vanished: u64,
    /// Seqnos that a reader neither returned nor counted as lost, and seqnos that a reader returned or counted twice.
    pub unaccounted: u64,
    pub verdict: Verdict,
}

/// Returns how long the test runs: as many seconds as EVENTRING_STALL_SECONDS says, or `default` seconds if it is not
/// set.
pub fn seconds(default: f64) -> Duration {
    let reported = std::env::var("EVENTRING_STALL_SECONDS").ok().map(|text| text.parse().expect("a number of seconds"));
    Duration::from_secs_f64(reported.unwrap_or(default))
}

static ASLEEP: AtomicUsize = AtomicUsize::new(0);
static STALLS: AtomicU64 = AtomicU64::new(0);
static STALLS_INSIDE: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU64 = AtomicU64::new(0);
static SLEEP_MICROS: AtomicU64 = AtomicU64::new(0);
static AWAKE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Handles the signal by sleeping, wherever it has interrupted the thread. The function is async-signal-safe: it uses
/// only atomics, nanosleep, and a thread-local without a destructor.
extern "C" fn stall(_: libc::c_int) {
    // SAFETY: the call returns the address of this thread's errno.
    let errno_place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid while this thread lives.
    let errno = unsafe { errno_place.read() };
    ASLEEP.fetch_add(1, Ordering::Relaxed);
    STALLS.fetch_add(1, Ordering::Relaxed);
    STALLS_INSIDE.fetch_add(u64::from(INSIDE.get()), Ordering::Relaxed);
    let slices = SLEEP_MICROS.load(Ordering::Relaxed) / 500 + 1;
    for _ in 0..slices {
        if AWAKE.load(Ordering::Relaxed) {
            break;
        }
        let slice = libc::timespec { tv_sec: 0, tv_nsec: 500_000 };
        // SAFETY: `slice` is a valid time, and null is allowed as the pointer for the remaining time.
        unsafe { libc::nanosleep(&slice, std::ptr::null_mut()) };
    }
    ASLEEP.fetch_sub(1, Ordering::Relaxed);
    // SAFETY: the argument is the one above.
    unsafe { errno_place.write(errno) };
}

fn install_handler() {
    // SAFETY: an all-zero sigaction is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = stall as extern "C" fn(libc::c_int) as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler is async-signal-safe.
    assert_eq!(unsafe { libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut()) }, 0);
}

/// For each writer, the kernel's id of the thread on which the writer records. If that thread has just ended, its id
/// stays until the next thread runs. The id is 0 until the writer's first thread runs.
pub type Threads = [AtomicI32];

/// The largest number of events that a thread records before another thread takes its place.
const THREAD_EVENTS: u64 = 4000;

/// Aborts the process if the run has not ended after `limit`. So a hang is reported as a failure, and the test does
/// not run for ever. Dropping the returned sender stops the watchdog.
fn watchdog(limit: Duration) -> std::sync::mpsc::Sender<()> {
    let (alive, ended) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            eprintln!("HUNG: the run did not end within {limit:?}");
            std::process::abort();
        }
    });
    alive
}

/// The duration of a round, without the time that its threads take to end.
const ROUND: Duration = Duration::from_millis(300);

/// Runs rounds of [`run`], each with a new ring from `make`, until `time` is over. On a loaded machine there may be too
/// few stalls or laps in this time. Then the rounds go on, up to a limit. A fault ends the rounds early.
pub fn run_rounds<S: Subject>(make: impl Fn() -> S, writers: u64, time: Duration) -> Figures {
    let end = Instant::now() + time;
    let mut all = Figures::default();
    let is_enough = |all: &Figures| Instant::now() >= end && all.stalls_inside >= 10 && all.laps >= 5;
    while !is_enough(&all) && all.wrong() == 0 && Instant::now() < end + 20 * time.max(Duration::from_secs(30)) {
        all.add(&run(&make(), writers, ROUND));
    }
    all
}

/// Runs a number of writers and two readers on `subject` for `time`, and stalls writers meanwhile. At least one
/// writer is always free to go on.
pub fn run(subject: &impl Subject, writers: u64, time: Duration) -> Figures {
    install_handler();
    let alive = watchdog(time + Duration::from_secs(120));
    for counter in [&STALLS, &STALLS_INSIDE, &THREADS] {
        counter.store(0, Ordering::Relaxed);
    }
    AWAKE.store(false, Ordering::Relaxed);
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let threads: Box<Threads> = (0..writers).map(|_| AtomicI32::new(0)).collect();
    let mut figures = Figures::default();
    let mut returned = Vec::new();
    std::thread::scope(|scope| {
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                scope.spawn({
                    let (stop, thread) = (&stop, &threads[writer as usize]);
                    move || write(subject, writer, stop, thread)
                })
            })
            .collect();
        let reading: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut verdict = Verdict::default();
                    subject.read(&done, &mut verdict);
                    verdict
                })
            })
            .collect();
        control(writers as usize, Instant::now() + time, &threads);
        stall_all_but_one(subject, &threads);
        stop.store(true, Ordering::Relaxed);
        AWAKE.store(true, Ordering::Relaxed);
        for writer in writing {
            returned.extend(writer.join().unwrap());
        }
        done.store(true, Ordering::Release);
        for reader in reading {
            let verdict = reader.join().unwrap();
            // For each reader, every seqno must count as read or as lost. So the sum of both counts must be the last
            // seqno.
            figures.unaccounted += (verdict.read + verdict.lost).abs_diff(subject.last_seqno());
            figures.verdict.add(&verdict);
        }
    });
    let last = subject.last_seqno();
    let oldest = last.saturating_sub(1 << DESCRIPTOR_SHIFT) + 1;
    let mut seen = vec![false; 1 << DESCRIPTOR_SHIFT];
    let mut post_mortem = Verdict::default();
    subject.read_post_mortem(&mut post_mortem, &mut |seqno| seen[(seqno - oldest) as usize] = true);
    figures.vanished =
        returned.iter().filter(|seqno| **seqno >= oldest && !seen[(**seqno - oldest) as usize]).count() as u64;
    figures.verdict.add(&post_mortem);
    figures.stalls = STALLS.load(Ordering::Relaxed);
    figures.stalls_inside = STALLS_INSIDE.load(Ordering::Relaxed);
    figures.threads = THREADS.load(Ordering::Relaxed);
    figures.recorded = last - subject.skipped();
    figures.laps = last >> DESCRIPTOR_SHIFT;
    figures.skipped = subject.skipped();
    drop(alive);
    figures
}

/// Records events of one writer until `stop` is set, on one thread after another. Returns the seqnos of the writer's
/// last events, as many as the ring has slots.
fn write(subject: &impl Subject, writer: u64, stop: &AtomicBool, thread: &AtomicI32) -> Vec<u64> {
    let mut random = seal::Random::from_time();
    let mut last = vec![0; 1 << DESCRIPTOR_SHIFT];
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let end = count + 1 + random.below(THREAD_EVENTS);
        let write = || write_on_this_thread(subject, writer, stop, thread, &mut last, count..end);
        // A destructor of the thread gives its payload cursor back, and `join` waits for the destructor. So the thread
        // of the next iteration may take over that cursor.
        count = std::thread::scope(|scope| scope.spawn(write).join().unwrap());
    }
    last
}

/// Records the writer's events with the numbers `counts`, on the calling thread. Stops early if `stop` is set.
/// Returns the number of the writer's next event.
fn write_on_this_thread(
    subject: &impl Subject,
    writer: u64,
    stop: &AtomicBool,
    thread: &AtomicI32,
    last: &mut [u64],
    counts: std::ops::Range<Count>,
) -> Count {
    // SAFETY: the call returns this thread's id.
    thread.store(unsafe { libc::gettid() }, Ordering::Relaxed);
    THREADS.fetch_add(1, Ordering::Relaxed);
    let mut payload = Vec::new();
    for count in counts.clone() {
        if stop.load(Ordering::Relaxed) {
            return count;
        }
        let words = seal::fill(writer, count, &mut payload);
        INSIDE.set(true);
        let seqno = subject.record(count, words, &payload);
        INSIDE.set(false);
        last[count as usize % last.len()] = seqno;
    }
    counts.end
}

/// What a thread does until its argument is set.
pub type Body<'b> = Box<dyn FnOnce(&AtomicBool) + Send + 'b>;

/// Runs one thread for each of the bodies, and stalls random ones of them for `time`. Returns the number of stalls.
pub fn run_bodies(bodies: Vec<Body<'_>>, time: Duration) -> u64 {
    install_handler();
    let alive = watchdog(time + Duration::from_secs(120));
    let stop = AtomicBool::new(false);
    let threads: Box<Threads> = bodies.iter().map(|_| AtomicI32::new(0)).collect();
    std::thread::scope(|scope| {
        for (body, thread) in bodies.into_iter().zip(&threads) {
            let stop = &stop;
            scope.spawn(move || {
                // SAFETY: the call returns this thread's id.
                thread.store(unsafe { libc::gettid() }, Ordering::Relaxed);
                body(stop);
            });
        }
        control(threads.len(), Instant::now() + time, &threads);
        stop.store(true, Ordering::Relaxed);
        AWAKE.store(true, Ordering::Relaxed);
    });
    drop(alive);
    STALLS.load(Ordering::Relaxed)
}

/// Stalls random writers until `end`, but never all of them at the same time.
fn control(writers: usize, end: Instant, threads: &Threads) {
    let mut random = seal::Random::from_time();
    while threads.iter().any(|thread| thread.load(Ordering::Relaxed) == 0) {
        std::thread::yield_now();
    }
    while Instant::now() < end {
        std::thread::sleep(Duration::from_micros(random.below(1500)));
        if ASLEEP.load(Ordering::Relaxed) + 1 >= writers {
            continue;
        }
        // Most stalls last at most 3 ms. One in four is so long (20 to 120 ms) that the other writers go round the
        // ring many times meanwhile.
        let micros = if random.below(4) == 0 { 20_000 + random.below(100_000) } else { random.below(3000) };
        SLEEP_MICROS.store(micros, Ordering::Relaxed);
        send_stall(&threads[random.below(writers as u64) as usize]);
    }
}

fn send_stall(thread: &AtomicI32) {
    let process = i64::from(std::process::id());
    let thread = i64::from(thread.load(Ordering::Relaxed));
    // SAFETY: the call passes no pointer. It sends a signal that has our handler to one of our own threads, or to
    // none if that thread has ended.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, i64::from(libc::SIGUSR1)) };
    assert!(sent == 0 || std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH));
}

/// Stalls all writers except the first one while the first one goes round the ring. So when the others wake up, the
/// seqnos with which they were stalled are more than a lap old.
fn stall_all_but_one(subject: &impl Subject, threads: &Threads) {
    SLEEP_MICROS.store(10_000_000, Ordering::Relaxed);
    threads[1..].iter().for_each(send_stall);
    let enough = subject.last_seqno() + (3 << DESCRIPTOR_SHIFT) / 2;
    let deadline = Instant::now() + Duration::from_secs(3);
    while subject.last_seqno() < enough && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Figures {
    /// Returns the number of faults.
    pub fn wrong(&self) -> u64 {
        self.verdict.wrong() + self.vanished + self.unaccounted
    }

    pub fn add(&mut self, round: &Self) {
        self.stalls += round.stalls;
        self.stalls_inside += round.stalls_inside;
        self.threads += round.threads;
        self.recorded += round.recorded;
        self.laps += round.laps;
        self.skipped += round.skipped;
        self.vanished += round.vanished;
        self.unaccounted += round.unaccounted;
        self.verdict.add(&round.verdict);
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stalls, stalls_inside, threads, recorded, laps, skipped, vanished, unaccounted, verdict } = self;
        write!(
            f,
            "stalls={stalls} inside={stalls_inside} threads={threads} recorded={recorded} laps={laps} skipped={skipped} \
             vanished={vanished} unaccounted={unaccounted} {verdict}"
        )
    }
}
