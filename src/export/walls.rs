//! The durations of many spans, for exact percentiles.

/// Durations. One of less than four seconds takes four bytes.
#[derive(Default)]
pub(super) struct Walls {
    short: Vec<u32>,
    long: Vec<u64>,
}

impl Walls {
    /// Adds a duration in nanoseconds. Returns the bytes that it takes.
    pub(super) fn add(&mut self, nanos: u64) -> u64 {
        match u32::try_from(nanos) {
            Ok(nanos) => {
                self.short.push(nanos);
                4
            }
            Err(_) => {
                self.long.push(nanos);
                8
            }
        }
    }

    /// Returns the smallest duration that `percent` of the durations do not exceed.
    pub(super) fn percentile(&mut self, percent: usize) -> u64 {
        let rank = ((self.short.len() + self.long.len()) * percent).div_ceil(100).saturating_sub(1);
        match rank.checked_sub(self.short.len()) {
            Some(rank) if rank < self.long.len() => *self.long.select_nth_unstable(rank).1,
            Some(_) => 0,
            None => (*self.short.select_nth_unstable(rank).1).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_short_and_long_durations_are_exact() {
        let mut walls = Walls::default();
        assert_eq!(walls.percentile(50), 0);
        (1..=98).rev().for_each(|nanos| assert_eq!(walls.add(nanos), 4));
        [u64::MAX, 1 << 32].into_iter().for_each(|nanos| assert_eq!(walls.add(nanos), 8));
        assert_eq!([99, 90, 50, 100].map(|percent| walls.percentile(percent)), [1 << 32, 90, 50, u64::MAX]);
    }
}
