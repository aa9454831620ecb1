//! Samples: the filter keeps a part of the trees of spans. The id of the root decides about the whole tree.

use crate::format::ring::{ALL_PER_MILLION, process_key};
use eventring::reader::Reader;
use std::hash::Hasher as _;
use twox_hash::XxHash3_64;

/// The sample of the trees of one recorder.
#[derive(Clone, Copy)]
pub(crate) struct TreeSample {
    per_million: u32,
    process_key: u64,
}

impl TreeSample {
    pub(super) fn new(per_million: u32, shard0: &Reader) -> Self {
        Self { per_million, process_key: process_key(shard0) }
    }

    /// Returns true if the sample has all trees.
    pub(super) fn has_all(self) -> bool {
        self.per_million >= ALL_PER_MILLION
    }

    /// Returns true if the sample has the tree with this root.
    pub(super) fn has(self, root: u64) -> bool {
        let mut hasher = XxHash3_64::new();
        hasher.write(&self.process_key.to_le_bytes());
        hasher.write(&root.to_le_bytes());
        let place = (u128::from(hasher.finish()) * u128::from(ALL_PER_MILLION)) >> 64;
        place < u128::from(self.per_million)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_samples_of_two_programs_do_not_have_the_trees_of_the_same_ids() {
        let sample = |process_key| TreeSample { per_million: 500_000, process_key };
        let count =
            |one: TreeSample, other: TreeSample| (1..=1000).filter(|root| one.has(*root) == other.has(*root)).count();
        assert_eq!(count(sample(1), sample(1)), 1000);
        assert!((400..600).contains(&count(sample(1), sample(2))));
    }
}
