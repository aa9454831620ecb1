//! The durations of many spans, for exact percentiles.

/// The number in [`WallTimes::short`] of a duration that is in [`WallTimes::long`].
const IN_LONG: u32 = u32::MAX;

/// Durations. One of less than four seconds takes four bytes.
#[derive(Default)]
pub struct WallTimes {
    short: Vec<u32>,
    long: Vec<u64>,
    total_nanos: u64,
    max_nanos: u64,
}

/// The statistics of spans that were seen from their creation to their close, as those of one name. All are exact, and
/// times are nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct SpanTimes {
    /// The number of spans.
    pub count: u64,
    /// The sum of the durations.
    pub total_nanos: u64,
    /// The median of the durations.
    pub p50_nanos: u64,
    /// The duration that 90 % of the spans did not exceed.
    pub p90_nanos: u64,
    /// The duration that 99 % of the spans did not exceed.
    pub p99_nanos: u64,
    /// The duration that 99.9 % of the spans did not exceed.
    pub p999_nanos: u64,
    /// The longest duration.
    pub max_nanos: u64,
}

impl WallTimes {
    /// Adds a duration in nanoseconds. Returns the bytes that it takes.
    pub fn add(&mut self, nanos: u64) -> u64 {
        self.total_nanos = self.total_nanos.saturating_add(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
        match u32::try_from(nanos) {
            Ok(short) if short != IN_LONG => {
                self.short.push(short);
                4
            }
            _ => {
                self.short.push(IN_LONG);
                self.long.push(nanos);
                12
            }
        }
    }

    /// Returns the smallest duration that `per_mille` thousandths of the durations do not exceed.
    pub fn percentile(&mut self, per_mille: usize) -> u64 {
        percentile(&mut self.short, &mut self.long, per_mille)
    }

    /// Returns the statistics.
    pub fn statistics(&mut self) -> SpanTimes {
        // Finding a percentile puts the smaller durations before it. This makes finding smaller percentiles cheaper.
        let [p999_nanos, p99_nanos, p90_nanos, p50_nanos] = [999, 990, 900, 500].map(|part| self.percentile(part));
        let (count, total_nanos, max_nanos) = (self.count() as u64, self.total_nanos, self.max_nanos);
        SpanTimes { count, total_nanos, p50_nanos, p90_nanos, p99_nanos, p999_nanos, max_nanos }
    }

    /// Returns how many durations are longer than this one.
    pub fn longer_than(&self, nanos: u64) -> u64 {
        let short = self.short.iter().filter(|short| **short != IN_LONG && u64::from(**short) > nanos).count();
        (short + self.long.iter().filter(|long| **long > nanos).count()) as u64
    }

    /// Returns the bytes that the durations take.
    pub fn kept_bytes(&self) -> u64 {
        self.short.len() as u64 * 4 + self.long.len() as u64 * 8
    }

    /// Puts the durations in order, the shortest first.
    pub fn sort(&mut self) {
        self.short.sort_unstable();
        self.long.sort_unstable();
    }

    /// Returns the number of durations.
    pub fn count(&self) -> usize {
        self.short.len()
    }

    /// Returns the duration of this rank, from 0. It must be called after [`Self::sort`].
    pub fn at(&self, rank: usize) -> u64 {
        match rank.checked_sub(self.short.len() - self.long.len()) {
            Some(rank) => self.long[rank],
            None => self.short[rank].into(),
        }
    }

    /// Divides the durations into `blocks` blocks of neighbours, or fewer if there are fewer durations, in the order in
    /// which they were added. Returns the median of each block. It must be called before [`Self::percentile`], which
    /// changes the order.
    pub fn block_medians(&mut self, blocks: usize) -> Vec<u64> {
        let count = self.short.len();
        let blocks = blocks.min(count);
        let (mut short, mut long) = (self.short.as_mut_slice(), self.long.as_mut_slice());
        let mut medians = Vec::with_capacity(blocks);
        for block in 0..blocks {
            // The sizes of blocks differ by one at most.
            let size = count * (block + 1) / blocks - count * block / blocks;
            let (of_block, rest) = short.split_at_mut(size);
            let of_long = of_block.iter().filter(|nanos| **nanos == IN_LONG).count();
            let (long_of_block, long_rest) = long.split_at_mut(of_long);
            medians.push(percentile(of_block, long_of_block, 500));
            (short, long) = (rest, long_rest);
        }
        medians
    }
}

fn percentile(short: &mut [u32], long: &mut [u64], per_mille: usize) -> u64 {
    let rank = (short.len() * per_mille).div_ceil(1000).saturating_sub(1);
    if rank >= short.len() {
        return 0;
    }
    match rank.checked_sub(short.len() - long.len()) {
        Some(rank) => *long.select_nth_unstable(rank).1,
        None => (*short.select_nth_unstable(rank).1).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_short_and_long_durations_are_exact() {
        let mut wall_times = WallTimes::default();
        assert_eq!(wall_times.percentile(500), 0);
        (1..=97).rev().for_each(|nanos| assert_eq!(wall_times.add(nanos), 4));
        [u64::MAX, 1 << 32, u64::from(u32::MAX)].into_iter().for_each(|nanos| assert_eq!(wall_times.add(nanos), 12));
        let percentiles = [990, 900, 500, 1000, 980].map(|per_mille| wall_times.percentile(per_mille));
        assert_eq!(percentiles, [1 << 32, 90, 50, u64::MAX, u64::from(u32::MAX)]);
        let SpanTimes { count, total_nanos, max_nanos, p90_nanos, p999_nanos, .. } = wall_times.statistics();
        assert_eq!((count, total_nanos, max_nanos, p90_nanos, p999_nanos), (100, u64::MAX, u64::MAX, 90, u64::MAX));
        assert_eq!(
            [0, 96, 97, u64::from(u32::MAX), u64::MAX].map(|nanos| wall_times.longer_than(nanos)),
            [100, 4, 3, 2, 0]
        );
        wall_times.sort();
        assert_eq!(
            [0, 96, 97, 98, 99].map(|rank| wall_times.at(rank)),
            [1, 97, u64::from(u32::MAX), 1 << 32, u64::MAX]
        );
        assert_eq!(wall_times.count(), 100);
        let mut unsorted = WallTimes::default();
        [1 << 41, 3, 1 << 40, 9].into_iter().for_each(|nanos| _ = unsorted.add(nanos));
        unsorted.sort();
        assert_eq!([0, 1, 2, 3].map(|rank| unsorted.at(rank)), [3, 9, 1 << 40, 1 << 41]);
    }

    #[test]
    fn blocks_are_neighbours_in_the_order_of_the_durations() {
        let mut wall_times = WallTimes::default();
        assert!(wall_times.block_medians(4).is_empty());
        [5, 1 << 40, 3, 9, 1 << 41, 1 << 42, 1, 2].into_iter().for_each(|nanos| _ = wall_times.add(nanos));
        assert_eq!(wall_times.block_medians(3), [5, 9, 2]);
        let mut few = WallTimes::default();
        [7, 1 << 40].into_iter().for_each(|nanos| _ = few.add(nanos));
        assert_eq!(few.block_medians(20), [7, 1 << 40]);
        assert_eq!(few.percentile(500), 7);
    }
}
