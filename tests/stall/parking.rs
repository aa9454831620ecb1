//! Stops at chosen steps: a writer is parked at a named step of recording while others go round the ring many times.
//! Then it goes on step by step, and at each step the whole ring is read.
//!
//! The code under test calls [`at`] at its steps. Chance decides only which event is parked.

use super::seal::{self, Random, Verdict};
use super::{DESCRIPTOR_SHIFT, Figures, Subject};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CAPACITY: u64 = 1 << DESCRIPTOR_SHIFT;
/// The number of writers. As many as a [`Plan`] has steps are parked.
const WRITERS: u64 = 3;
/// The largest size of usual payloads. With it, payload memory goes round before the descriptors do.
const USUAL_BYTES: u64 = 128;
/// An upper limit for a run: if a step is never reached or a thread hangs, the run fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// The value of [`ARMED`] with which no writer parks.
const NOWHERE: usize = usize::MAX;
/// The value of [`ARMED`] with which every writer parks at every step.
const ANYWHERE: usize = usize::MAX - 1;

/// The step at which the next writer parks.
static ARMED: AtomicUsize = AtomicUsize::new(NOWHERE);
/// The number of times that the step is passed before a writer parks.
static PASSES: AtomicU64 = AtomicU64::new(0);
/// The number of parked writers.
static PARKED: AtomicUsize = AtomicUsize::new(0);
/// A number for whose change parked writers wait.
static TURN: AtomicU64 = AtomicU64::new(0);
/// Steps that were walked with [`ANYWHERE`].
static WALKED: AtomicU64 = AtomicU64::new(0);

/// Marks that the calling writer is at the step of this number, and parks it if it is its turn. The code under test
/// calls this.
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

/// Arranges that the next writer that comes to `step` for the `passes + 1`st time from now on parks there.
pub fn arm(step: usize, passes: u64) {
    PASSES.store(passes, Ordering::Relaxed);
    ARMED.store(step, Ordering::Relaxed);
}

/// Returns the number of parked writers.
pub fn parked() -> usize {
    PARKED.load(Ordering::Acquire)
}

/// The things to do to the writers.
pub struct Plan<'a> {
    /// The steps at which writers park, one after the other; at most two.
    pub steps: &'a [usize],
    /// A function that names the steps.
    pub names: &'a dyn Fn(usize) -> String,
    /// The number of laps that the others go round the ring meanwhile.
    pub laps: u64,
}

/// The state that all threads of a run share.
struct Run<'a, S> {
    subject: &'a S,
    /// True if the writers are to end after their event.
    stop: AtomicBool,
    /// True if writers record small events of one size, to go round fast.
    hurry: AtomicBool,
    running: AtomicUsize,
    /// Next count of each writer, and the seqnos of its last events.
    writers: [Mutex<(seal::Count, Vec<u64>)>; WRITERS as usize],
}

/// Runs the plan on `subject`, whose ring must have [`DESCRIPTOR_SHIFT`].
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
        // The steps are in the first lap, or in a later one.
        run.go_on_for(random.below(4));
        for step in plan.steps {
            run.park_one(*step, plan, random);
        }
        run.hurry.store(true, Ordering::Relaxed);
        run.go_on_for(plan.laps);
        // The events that the late writers could spoil are of every kind again.
        run.hurry.store(false, Ordering::Relaxed);
        run.go_on_for(2);
        run.end_but(plan.steps.len());
        // The slots and chunks that the parked writers hold are more than a lap old: no reader may have to wait for
        // them.
        run.look(&mut figures, 0);
        // The parked writers go on one step at a time.
        ARMED.store(ANYWHERE, Ordering::Relaxed);
        while run.running.load(Ordering::Acquire) > 0 {
            PARKED.store(0, Ordering::Relaxed);
            TURN.fetch_add(1, Ordering::Release);
            run.wait_for("the next step", || parked() >= run.running.load(Ordering::Acquire));
            run.look(&mut figures, run.running.load(Ordering::Acquire) as u64);
        }
        ARMED.store(NOWHERE, Ordering::Relaxed);
        // All writers record again.
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
    figures.given_up = subject.given_up();
    figures.recorded = subject.last_seqno() - figures.given_up;
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
            // A writer that was parked records another event after the event in which it was parked.
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

    /// Ends the writers that are not parked.
    fn end_but(&self, parked: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.wait_for("the writers' end", || self.running.load(Ordering::Acquire) == parked);
    }

    fn wait_for(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            if Instant::now() > deadline {
                // A panic would wait for the threads of the scope.
                eprintln!("HUNG: waited in vain for {what}");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Reads the ring while all writers stand still, `inside` of them inside of an event of this lap.
    fn look(&self, figures: &mut Figures, inside: u64) {
        let last = self.subject.last_seqno();
        let oldest = last.saturating_sub(CAPACITY) + 1;
        let mut seen = vec![false; CAPACITY as usize];
        let mut verdict = Verdict::default();
        self.subject.read_post_mortem(&mut verdict, &mut |seqno| seen[(seqno - oldest) as usize] = true);
        // Only the events of writers that have ended are checked: a parked writer holds its lock.
        for writer in &self.writers {
            let Ok(mine) = writer.try_lock() else { continue };
            let is_missing = |seqno: &&u64| **seqno >= oldest && !seen[(**seqno - oldest) as usize];
            figures.vanished += mine.1.iter().filter(is_missing).count() as u64;
        }
        verdict.stuck = verdict.stuck.saturating_sub(inside);
        figures.verdict.add(&verdict);
    }
}
