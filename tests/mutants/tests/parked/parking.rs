//! Stops at chosen steps: a writer is parked at a named step of recording, while other writers go round the ring many
//! times. Then the parked writer is let go step by step, and the whole ring is read after each step.
//!
//! The code under test calls [`at`] at each of its steps. A test chooses the step; chance decides which event is
//! being recorded when a writer parks there.

use crate::stall::seal::{self, Random, Verdict};
use crate::stall::{DESCRIPTOR_SHIFT, Figures, Subject};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CAPACITY: u64 = 1 << DESCRIPTOR_SHIFT;
/// The number of writers. A [`Plan`] parks fewer writers than this, so at least one goes on.
const WRITERS: u64 = 3;
/// The largest size of a usual payload. Usual payloads are so large that writers go round the payload buffer before
/// they go round the descriptors.
const USUAL_BYTES: u64 = 128;
/// The longest wait of a run. If a writer does not reach a step within this time, or a thread hangs for so long, the
/// run fails.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The value of [`ARMED`] with which no writer parks.
const NOWHERE: usize = usize::MAX;
/// The value of [`ARMED`] with which every writer parks at every step that it comes to.
const ANYWHERE: usize = usize::MAX - 1;

/// The step at which the next writer parks.
static ARMED: AtomicUsize = AtomicUsize::new(NOWHERE);
/// The number of times that writers have yet to pass the armed step before one of them parks there.
static PASSES: AtomicU64 = AtomicU64::new(0);
/// The number of parked writers.
static PARKED: AtomicUsize = AtomicUsize::new(0);
/// A number that parked writers watch. When it changes, they go on.
static TURN: AtomicU64 = AtomicU64::new(0);
/// The number of steps that writers have come to while [`ARMED`] was [`ANYWHERE`].
static WALKED: AtomicU64 = AtomicU64::new(0);

/// Parks the calling writer if [`ARMED`] names this step and writers have passed the step often enough. The code
/// under test calls this function at each step, with the step's number.
pub fn at(step: usize) {
    let armed = ARMED.load(Ordering::Relaxed);
    if armed == NOWHERE {
        return;
    }
    if armed == ANYWHERE {
        WALKED.fetch_add(1, Ordering::Relaxed);
    } else if armed != step || PASSES.fetch_sub(1, Ordering::Relaxed) != 0 {
        return;
    } else {
        ARMED.store(NOWHERE, Ordering::Relaxed);
    }
    let turn = TURN.load(Ordering::Acquire);
    PARKED.fetch_add(1, Ordering::Release);
    while TURN.load(Ordering::Acquire) == turn {
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// Lets writers pass `step` as often as `passes` says. The writer that comes to the step next parks there.
pub fn arm(step: usize, passes: u64) {
    PASSES.store(passes, Ordering::Relaxed);
    ARMED.store(step, Ordering::Relaxed);
}

/// Returns the number of parked writers.
pub fn parked() -> usize {
    PARKED.load(Ordering::Acquire)
}

/// A plan of a run: at which steps writers park, and how far the other writers go round the ring meanwhile.
pub struct Plan<'a> {
    /// The steps at which writers park: one writer at each step, in this order. There are at most two steps.
    pub steps: &'a [usize],
    /// A function that names the steps.
    pub names: &'a dyn Fn(usize) -> String,
    /// The number of laps that the other writers go round the ring while writers are parked.
    pub laps: u64,
}

/// The state that all threads of a run share.
struct Run<'a, S> {
    subject: &'a S,
    /// True if each writer is to end after the event that it is recording.
    stop: AtomicBool,
    /// True if writers record only payloads of 32 bytes, so that they go round the ring fast.
    hurry: AtomicBool,
    running: AtomicUsize,
    /// For each writer, the number of its next event, and the seqnos of its last events. The writer holds the lock
    /// for as long as it runs.
    writers: [Mutex<(seal::Count, Vec<u64>)>; WRITERS as usize],
}

/// Runs the plan on `subject`, whose ring must have 2^[`DESCRIPTOR_SHIFT`] descriptors.
///
/// # Panics
///
/// If a step is not reached.
pub fn run(subject: &impl Subject, plan: &Plan<'_>, random: &mut Random) -> Figures {
    assert!(plan.steps.len() < WRITERS as usize);
    let run = Run {
        subject,
        stop: AtomicBool::new(false),
        hurry: AtomicBool::new(false),
        running: AtomicUsize::new(0),
        writers: std::array::from_fn(|_| Mutex::new((0, vec![0; CAPACITY as usize]))),
    };
    let walked = WALKED.load(Ordering::Relaxed);
    let mut figures = Figures::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut verdict = Verdict::default();
            subject.read(&done, &mut verdict);
            verdict
        });
        run.start(scope);
        // The writers first go on for 0 to 3 laps, chosen at random. So the writer parks sometimes in the ring's
        // first lap and sometimes in a later one.
        run.go_on_for(random.below(4));
        for step in plan.steps {
            run.park_one(*step, plan, random);
        }
        run.hurry.store(true, Ordering::Relaxed);
        run.go_on_for(plan.laps);
        // The other writers record events of all sizes again. These are the events that the parked writers could
        // spoil when they are let go.
        run.hurry.store(false, Ordering::Relaxed);
        run.go_on_for(2);
        run.end_but(plan.steps.len());
        // The parked writers reserved their seqnos more than a lap ago. So no seqno of the current lap may make a
        // reader wait: the expected number of stuck seqnos is 0.
        run.look(&mut figures, 0);
        // Each change of `TURN` lets the parked writers take one step.
        ARMED.store(ANYWHERE, Ordering::Relaxed);
        while run.running.load(Ordering::Acquire) > 0 {
            PARKED.store(0, Ordering::Relaxed);
            TURN.fetch_add(1, Ordering::Release);
            run.wait_for("the next step", || parked() >= run.running.load(Ordering::Acquire));
            run.look(&mut figures, run.running.load(Ordering::Acquire) as u64);
        }
        ARMED.store(NOWHERE, Ordering::Relaxed);
        // At the end all writers record again for a lap, to show that the ring still works.
        run.stop.store(false, Ordering::Relaxed);
        run.start(scope);
        run.go_on_for(1);
        run.end_but(0);
        run.look(&mut figures, 0);
        done.store(true, Ordering::Release);
        let verdict = reading.join().unwrap();
        figures.unaccounted += (verdict.read + verdict.lost).abs_diff(subject.last_seqno());
        figures.verdict.add(&verdict);
    });
    figures.stalls = plan.steps.len() as u64;
    figures.stalls_inside = WALKED.load(Ordering::Relaxed) - walked;
    figures.skipped = subject.skipped();
    figures.recorded = subject.last_seqno() - figures.skipped;
    figures.laps = subject.last_seqno() / CAPACITY;
    figures
}

impl<S: Subject> Run<'_, S> {
    fn start<'s>(&'s self, scope: &'s std::thread::Scope<'s, '_>) {
        for writer in 0..WRITERS {
            self.running.fetch_add(1, Ordering::Relaxed);
            scope.spawn(move || {
                self.write(writer);
                self.running.fetch_sub(1, Ordering::Release);
            });
        }
    }

    fn write(&self, writer: u64) {
        let mut payload = Vec::new();
        let quick = [writer as u8; 32];
        let quick_sum = seal::checksum(&quick);
        let mut mine = self.writers[writer as usize].lock().unwrap();
        let (count, last) = &mut *mine;
        let mut is_last = false;
        while !is_last {
            // If `stop` is set, the writer ends here. But if `ARMED` is `ANYWHERE`, the writer has just finished the
            // event in which it was parked. Then it records one more event before it ends.
            is_last = self.stop.load(Ordering::Relaxed);
            if is_last && ARMED.load(Ordering::Relaxed) != ANYWHERE {
                break;
            }
            let seqno = if self.hurry.load(Ordering::Relaxed) {
                self.subject.record(*count, [writer, *count, quick_sum], &quick)
            } else {
                let words = seal::fill_up_to(USUAL_BYTES, writer, *count, &mut payload);
                self.subject.record(*count, words, &payload)
            };
            last[*count as usize % CAPACITY as usize] = seqno;
            *count += 1;
        }
    }

    /// Waits until a writer is parked at `step`.
    fn park_one(&self, step: usize, plan: &Plan<'_>, random: &mut Random) {
        let before = parked();
        arm(step, random.below(30));
        self.wait_for(&(plan.names)(step), || parked() > before);
    }

    fn go_on_for(&self, laps: u64) {
        let enough = self.subject.last_seqno() + laps * CAPACITY;
        self.wait_for("the ring to go round", || self.subject.last_seqno() >= enough);
    }

    /// Ends all writers except the `parked` ones.
    fn end_but(&self, parked: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait_for("the writers' end", || self.running.load(Ordering::Acquire) == parked);
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so() {
            if Instant::now() > deadline {
                // A panic would first wait for the threads of the scope, which hang. Aborting the process does not
                // wait.
                eprintln!("HUNG: waited in vain for {what}");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Reads the whole ring while all writers stand still. `inside` is the largest number of writers that may be parked
    /// inside an event of the current lap. A reader waits for the seqno of each such event. So up to `inside` stuck
    /// seqnos are no fault.
    fn look(&self, figures: &mut Figures, inside: u64) {
        let last = self.subject.last_seqno();
        let oldest = last.saturating_sub(CAPACITY) + 1;
        let mut seen = vec![false; CAPACITY as usize];
        let mut verdict = Verdict::default();
        self.subject.read_post_mortem(&mut verdict, &mut |seqno| seen[(seqno - oldest) as usize] = true);
        // A writer holds its lock until it ends. So `try_lock` fails for the parked writers, and only the events of
        // writers that have ended are checked.
        for writer in &self.writers {
            let Ok(mine) = writer.try_lock() else { continue };
            let is_missing = |seqno: &&u64| **seqno >= oldest && !seen[(**seqno - oldest) as usize];
            figures.vanished += mine.1.iter().filter(is_missing).count() as u64;
        }
        verdict.stuck = verdict.stuck.saturating_sub(inside);
        figures.verdict.add(&verdict);
    }
}
