//! The test whether the durations of a name have become longer, and when. It compares medians of neighbouring spans, in
//! bounded memory.

use crate::flag::STEP_NANOS;
use eventring_capture::numbers::median;

/// The largest number of blocks.
const BLOCKS_MAX: usize = 64;
/// Fewer blocks say nothing.
const BLOCKS_MIN: usize = 24;
/// The durations of a block whose median is taken.
const SAMPLES: usize = 16;
/// The largest probability of a step where there is none.
const P_MAX: f64 = 0.001;

#[derive(Clone, Copy)]
struct Block {
    median_nanos: u64,
    start_nanos: u64,
}

/// Durations in the order of their ends, as medians of blocks. When there are too many blocks, two become one.
pub(crate) struct Steps {
    blocks: Vec<Block>,
    /// The spans of a block.
    size: u64,
    seen: u64,
    start_nanos: u64,
    samples: Vec<u64>,
}

/// A step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) before_nanos: u64,
    pub(crate) after_nanos: u64,
    /// When it was, in nanoseconds since the epoch.
    pub(crate) at_nanos: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { blocks: Vec::new(), size: 4, seen: 0, start_nanos: 0, samples: Vec::new() }
    }
}

impl Steps {
    /// Takes the next duration, of a span that has begun then.
    pub(crate) fn add(&mut self, nanos: u64, start_nanos: u64) {
        if self.seen == 0 {
            self.start_nanos = start_nanos;
        }
        let stride = (self.size / SAMPLES as u64).max(1);
        if self.seen.is_multiple_of(stride) {
            self.samples.push(nanos);
        }
        self.seen += 1;
        if self.seen < self.size {
            return;
        }
        self.blocks.push(Block { median_nanos: median(&mut self.samples), start_nanos: self.start_nanos });
        self.samples.clear();
        self.seen = 0;
        if self.blocks.len() == BLOCKS_MAX {
            let joined =
                |two: &[Block]| Block { median_nanos: two[0].median_nanos.midpoint(two[1].median_nanos), ..two[0] };
            self.blocks = self.blocks.chunks_exact(2).map(joined).collect();
            self.size *= 2;
        }
    }

    /// Returns the step, if there is one (Pettitt's test).
    pub(crate) fn step(&self) -> Option<Step> {
        let n = self.blocks.len();
        if n < BLOCKS_MIN {
            return None;
        }
        let nanos: Vec<u64> = self.blocks.iter().map(|block| block.median_nanos).collect();
        let rank_sum = |k: usize| -> i64 {
            let (before, after) = nanos.split_at(k);
            before.iter().flat_map(|a| after.iter().map(move |b| b.cmp(a) as i64)).sum()
        };
        let (k, most) = (1..n).map(|k| (k, rank_sum(k))).max_by_key(|(_, sum)| *sum)?;
        let (most, n) = (most as f64, n as f64);
        let p = 2.0 * (-6.0 * most * most / (n * n * n + n * n)).exp();
        let [before_nanos, after_nanos] = [&nanos[..k], &nanos[k..]].map(|part| median(&mut part.to_vec()));
        let is_step = p < P_MAX
            && after_nanos.saturating_sub(before_nanos) >= STEP_NANOS
            && after_nanos >= before_nanos.saturating_add(before_nanos / 2);
        is_step.then(|| Step { before_nanos, after_nanos, at_nanos: self.blocks[k].start_nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds so many durations around a middle, one each microsecond.
    fn add(steps: &mut Steps, count: u64, middle_nanos: u64, from_nanos: u64) {
        (0..count).for_each(|at| steps.add(middle_nanos + at * 7919 % 1009 * 100, from_nanos + at * 1000));
    }

    #[test]
    fn a_step_is_found_where_it_is_and_none_where_there_is_none() {
        for count in [200, 5000, 100_000] {
            let (mut flat, mut step) = (Steps::default(), Steps::default());
            add(&mut flat, 2 * count, 2_000_000, 0);
            assert_eq!(flat.step(), None);
            add(&mut step, count, 2_000_000, 0);
            add(&mut step, count, 6_000_000, count * 1000);
            let found = step.step().unwrap();
            let at = found.at_nanos as f64 / (count * 1000) as f64;
            assert!((0.9..1.1).contains(&at) && found.after_nanos > 5_900_000, "{found:?}");
        }
        // What has become faster is none.
        let mut faster = Steps::default();
        add(&mut faster, 500, 6_000_000, 0);
        add(&mut faster, 500, 2_000_000, 500_000);
        assert_eq!(faster.step(), None);
    }
}
