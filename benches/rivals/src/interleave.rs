//! Runs several cases in turn. Each case has many short batches, so a disturbance of the machine affects all cases
//! alike.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A case to measure. `run` does the given number of operations and returns the time that they took.
pub struct Case<'a> {
    name: String,
    operations: u64,
    run: Box<dyn FnMut(u64) -> Duration + 'a>,
}

/// The cases of one table.
#[derive(Default)]
pub struct Cases<'a> {
    cases: Vec<Case<'a>>,
}

impl<'a> Cases<'a> {
    /// Adds a case. One batch of it calls `f` as many times as `operations` says.
    pub fn add(&mut self, name: impl Into<String>, operations: u64, mut f: impl FnMut() + 'a) {
        self.add_batch(name, operations, move |operations| {
            let start = Instant::now();
            for _ in 0..operations {
                f();
            }
            start.elapsed()
        });
    }

    /// Adds a case that times its batch of `operations` itself.
    pub fn add_batch(&mut self, name: impl Into<String>, operations: u64, run: impl FnMut(u64) -> Duration + 'a) {
        self.cases.push(Case { name: name.into(), operations, run: Box::new(run) });
    }

    /// Runs `rounds` rounds, after a first round that is not counted. In each round, runs one batch of each case.
    /// Returns two values for each case, in nanoseconds per operation: the median of its batches, and under the name
    /// [`fastest`] their 5th percentile.
    pub fn measure(mut self, rounds: usize) -> BTreeMap<String, f64> {
        let mut samples: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); self.cases.len()];
        for round in 0..=rounds {
            for (case, samples) in self.cases.iter_mut().zip(&mut samples) {
                let nanos = (case.run)(case.operations).as_nanos() as f64 / case.operations as f64;
                if round > 0 {
                    samples.push(nanos);
                }
            }
        }
        let mut found = BTreeMap::new();
        for (case, samples) in self.cases.iter().zip(&mut samples) {
            insert(&mut found, &case.name, samples);
        }
        found
    }
}

/// Inserts two values into `found`: the median of the samples as `name`, and their 5th percentile as
/// [`fastest`]`(name)`.
pub fn insert(found: &mut BTreeMap<String, f64>, name: &str, samples: &mut [f64]) {
    found.insert(name.into(), median(samples));
    // The median has sorted the samples.
    found.insert(fastest(name), samples[samples.len() / 20]);
}

/// Returns the name under which the 5th percentile of a case's batches is stored. Batches that take no longer than this
/// probably ran while no other program used the core.
pub fn fastest(name: &str) -> String {
    format!("{name}{FASTEST}")
}

/// The ending of the names that [`fastest`] returns.
pub const FASTEST: &str = " (fastest 5 %)";

/// Returns the median of the samples.
pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
