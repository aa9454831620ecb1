//! Times from wake to poll, counted in classes: 32 for each power of two. Only classes that are not empty take memory.

/// The bits of a time that are kept.
const BITS: u32 = 5;

/// Counted times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    /// Each class and its count, in the order of the classes.
    counts: Vec<(u16, u32)>,
    max_nanos: u64,
}

impl Latencies {
    pub(crate) fn add(&mut self, nanos: u64) {
        let class = class(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
        match self.counts.binary_search_by_key(&class, |(class, _)| *class) {
            Ok(at) => self.counts[at].1 = self.counts[at].1.saturating_add(1),
            Err(at) => self.counts.insert(at, (class, 1)),
        }
    }

    /// Returns the time that 99 in 100 do not exceed, to 3 %; `None` without any.
    pub(crate) fn p99(&self) -> Option<u64> {
        let all: u64 = self.counts.iter().map(|(_, count)| u64::from(*count)).sum();
        let mut rest = (all * 99).div_ceil(100);
        for (class, count) in &self.counts {
            rest = rest.saturating_sub((*count).into());
            if rest == 0 {
                return Some(end(*class).min(self.max_nanos));
            }
        }
        None
    }

    pub(crate) fn kept_bytes(&self) -> u64 {
        self.counts.capacity() as u64 * 8
    }
}

fn class(nanos: u64) -> u16 {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(BITS + 1);
    ((shift << BITS) + (nanos >> shift) as u32) as u16
}

/// Returns the longest time of a class.
fn end(class: u16) -> u64 {
    let class = u32::from(class);
    let shift = (class >> BITS).saturating_sub(1);
    let first = u64::from(class - (shift << BITS));
    (((u128::from(first) + 1) << shift) - 1).min(u64::MAX.into()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_ends_at_most_three_percent_after_each_of_its_times() {
        for shift in 0..64 {
            for nanos in [1_u64 << shift, (1_u64 << shift).wrapping_sub(1), (1_u64 << shift) | (1 << shift >> 1)] {
                let end = end(class(nanos));
                assert!(end >= nanos && end - nanos <= nanos / 32, "{nanos} {end}");
            }
        }
    }

    #[test]
    fn p99_is_that_of_the_sorted_times() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|nanos| latencies.add(nanos * 1000));
        let p99 = latencies.p99().unwrap();
        assert!((990_000..1_021_000).contains(&p99), "{p99}");
        assert_eq!(Latencies::default().p99(), None);
    }
}
