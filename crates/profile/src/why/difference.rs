//! The features that slow spans have in common. Fisher's exact test tests each feature. Holm's method corrects for the
//! number of tests.

use super::collect::Collected;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The rate of answers that name a difference where there is none.
pub(super) const ALPHA: f64 = 0.01;

/// The longest value of a field that is a feature.
const VALUE_MAX: usize = 64;
/// The largest number of values of one field: a field with more of them tells spans apart, and says nothing of groups.
const VALUES_MAX: usize = 64;
/// The largest number of differences that are told.
const TOLD_MAX: usize = 10;

/// Something that is more common among slow spans.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct Difference {
    /// What: `field.shard=7`, `child retry`.
    pub what: String,
    /// The share of slow spans with it, in per cent.
    pub slow: f64,
    /// The share of others with it, in per cent.
    pub normal: f64,
    /// The probability of so large a difference by chance, corrected for the number of features.
    pub p: f64,
}

/// Compares slow spans with others; both are indices.
pub(super) fn compare(slow: &[usize], normal: &[usize], collected: &Collected) -> Vec<Difference> {
    let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (group, spans) in [slow, normal].into_iter().enumerate() {
        for at in spans {
            for feature in features(*at, collected) {
                counts.entry(feature).or_default()[group] += 1;
            }
        }
    }
    drop_ids(&mut counts);
    let sizes = [slow.len() as u64, normal.len() as u64];
    if sizes[0] == 0 || sizes[1] == 0 {
        return Vec::new();
    }
    let logs = log_factorials(sizes[0] + sizes[1]);
    let mut found: Vec<(String, [u64; 2], f64)> =
        counts.into_iter().map(|(what, counts)| (what, counts, fisher(counts, sizes, &logs))).collect();
    found.sort_by(|a, b| a.2.total_cmp(&b.2));
    let tests = found.len();
    let mut differences = Vec::new();
    let mut largest = 0.0_f64;
    for (rank, (what, counts, p)) in found.into_iter().enumerate() {
        largest = largest.max(p * (tests - rank) as f64);
        if largest > ALPHA || differences.len() >= TOLD_MAX {
            break;
        }
        let percent = |group: usize| 100.0 * counts[group] as f64 / sizes[group] as f64;
        differences.push(Difference { what, slow: percent(0), normal: percent(1), p: largest });
    }
    differences
}

fn features(at: usize, collected: &Collected) -> BTreeSet<String> {
    let span = &collected.spans[at];
    let mut features = BTreeSet::new();
    for (name, value) in &span.fields {
        if value.len() <= VALUE_MAX {
            features.insert(format!("field.{name}={value}"));
        }
    }
    for child in &span.children {
        features.insert(format!("child {}", collected.inner[*child].name));
    }
    features
}

/// Leaves out fields that have another value in nearly each span.
fn drop_ids(counts: &mut BTreeMap<String, [u64; 2]>) {
    let mut values: BTreeMap<String, usize> = BTreeMap::new();
    let field = |feature: &str| feature.strip_prefix("field.")?.split_once('=').map(|(name, _)| name.to_owned());
    counts.keys().filter_map(|feature| field(feature)).for_each(|name| *values.entry(name).or_default() += 1);
    counts.retain(|feature, _| field(feature).is_none_or(|name| values[&name] <= VALUES_MAX));
}

fn log_factorials(count: u64) -> Vec<f64> {
    let mut logs = vec![0.0];
    for number in 1..=count {
        let last = logs[logs.len() - 1];
        logs.push(last + (number as f64).ln());
    }
    logs
}

/// Returns the probability that so many of the slow spans, or more, have a feature that is given to spans by chance.
fn fisher(counts: [u64; 2], sizes: [u64; 2], logs: &[f64]) -> f64 {
    let (with, all) = (counts[0] + counts[1], sizes[0] + sizes[1]);
    let log = |number: u64| logs[number as usize];
    let choose = |of: u64, some: u64| log(of) - log(some) - log(of - some);
    let most = with.min(sizes[0]);
    let term = |slow: u64| {
        let normal = with - slow;
        if normal > sizes[1] {
            0.0
        } else {
            (choose(sizes[0], slow) + choose(sizes[1], normal) - choose(all, with)).exp()
        }
    };
    (counts[0]..=most).map(term).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_test_agrees_with_a_table_that_is_known() {
        // Fisher's tea: three of four, and one of four.
        let p = fisher([3, 1], [4, 4], &log_factorials(8));
        assert!((p - 17.0 / 70.0).abs() < 1e-9, "{p}");
        let p = fisher([4, 0], [4, 4], &log_factorials(8));
        assert!((p - 1.0 / 70.0).abs() < 1e-9, "{p}");
    }
}
