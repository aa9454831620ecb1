//! Runs models and prints their outcomes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Counts of the outcomes in all executions of a model. A model names the outcomes that must occur. So a model fails
/// if it never reaches the situation that it was written for.
#[derive(Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Tally {
    /// Counts `outcome`.
    pub(crate) fn saw(&self, outcome: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
    }

    /// Prints the counts, and checks that each of `expected` occurred. While a deliberate fault is active, this check
    /// is left out: it must not fail in place of the model's own assertions, which must find the fault.
    fn report(&self, name: &str, bound: &str, started: Instant, expected: &[&str]) {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = started.elapsed().as_secs_f64();
        let counts: Vec<String> = seen.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
        eprintln!("model {name} ({bound}), {seconds:.1} s: {}", counts.join(", "));
        if std::env::var("EVENTRING_MUTATION").is_ok_and(|fault| !fault.is_empty()) {
            return;
        }
        for outcome in expected {
            assert!(seen.contains_key(outcome), "model {name} never came to {outcome:?}");
        }
    }
}

/// Returns how much deeper to explore than CI does; see `.ci/models`. Under loom, this is a number of additional
/// preemptions. Under shuttle, it is a power of ten that multiplies the number of schedules.
fn extra_depth() -> usize {
    std::env::var("EVENTRING_MODEL_DEPTH").map_or(0, |depth| depth.parse().expect("EVENTRING_MODEL_DEPTH is a number"))
}

/// Runs `model` in every interleaving of at most `preemptions` preemptions, and with every value that a weakly ordered
/// load may return. Fails if one of `expected` occurs in no execution.
#[cfg(loom)]
pub(crate) fn explore(
    name: &str,
    preemptions: usize,
    expected: &[&str],
    model: impl Fn(&Tally) + Send + Sync + 'static,
) {
    let tally = Tally::default();
    let mut builder = loom::model::Builder::new();
    let preemptions = builder.preemption_bound.unwrap_or(preemptions + extra_depth());
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    let started = Instant::now();
    builder.check({
        let tally = tally.clone();
        move || {
            tally.saw("executions");
            model(&tally);
        }
    });
    tally.report(name, &format!("{preemptions} preemptions"), started, expected);
}

/// Starts a thread that does `work` with what it shares with the other threads of the model.
#[cfg(loom)]
pub(crate) fn beside<S: 'static, T: 'static>(
    shared: &Arc<S>,
    work: impl FnOnce(&S) -> T + 'static,
) -> loom::thread::JoinHandle<T> {
    let shared = Arc::clone(shared);
    loom::thread::spawn(move || work(&shared))
}

/// Runs `model` in `schedules` random schedules. Half of them are uniformly random. The other half are made by
/// probabilistic concurrency testing (PCT): they have few preemptions, at random places. Fails if one of `expected`
/// occurs in no execution.
#[cfg(shuttle)]
pub(crate) fn explore(name: &str, schedules: usize, expected: &[&str], model: impl Fn(&Tally) + Send + Sync + 'static) {
    const PREEMPTIONS: usize = 6;
    let schedules = schedules * 10usize.pow(extra_depth() as u32);
    let tally = Tally::default();
    let model = Arc::new({
        let tally = tally.clone();
        move || {
            tally.saw("executions");
            model(&tally);
        }
    });
    let started = Instant::now();
    let uniform = Arc::clone(&model);
    shuttle::check_random(move || uniform(), schedules / 2);
    shuttle::check_pct(move || model(), schedules / 2, PREEMPTIONS);
    tally.report(name, &format!("{schedules} schedules"), started, expected);
}
