//! The test of Mann and Whitney. It tests whether the values of one side tend to be larger than those of the other
//! side.
//!
//! The test requires independent values. The durations of one run are not independent, because the machine's speed
//! changes. [`series_p_value`] measures this dependence, and widens the assumed distribution to avoid false alarms.

use libm::erfc;

/// The largest number of values for which the exact distribution is counted.
const EXACT_VALUES_MAX: usize = 24;
/// The largest dependence that is assumed.
const CORRELATION_MAX: f64 = 0.99;

/// A series of durations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DurationSeries {
    /// Single durations. Their dependence may be anything.
    Calls,
    /// Medians of blocks. Blocks depend less on each other than calls.
    Blocks,
}

impl DurationSeries {
    /// Returns the number of standard errors by which the measured dependence may be too small. With these numbers, the
    /// rate of false alarms holds for series whose neighbouring calls have any correlation up to 0.98.
    fn standard_errors(self) -> f64 {
        match self {
            Self::Calls => 2.0,
            Self::Blocks => 1.0,
        }
    }
}

/// Returns the smallest p value that sides with so many different values can have.
pub(super) fn smallest_p_value(a: usize, b: usize) -> f64 {
    let choices = (0..a.min(b)).fold(1.0, |choices, taken| choices * (a + b - taken) as f64 / (taken + 1) as f64);
    if choices <= 1.0 { 1.0 } else { 2.0 / choices }
}

/// Returns the probability that two sides of the same distribution differ as much as these. The values of a side do not
/// depend on each other.
pub(super) fn p_value(a: &[u64], b: &[u64]) -> f64 {
    let ranks = Ranks::new(a, b);
    if a.len() + b.len() <= EXACT_VALUES_MAX { ranks.exact_p_value() } else { ranks.normal_p_value(1.0) }
}

/// Returns the probability that two sides of the same distribution differ as much as these. Each side is a series in
/// the order of time, whose neighbours may depend on each other.
pub(super) fn series_p_value(kind: DurationSeries, a: &[u64], b: &[u64]) -> f64 {
    let ranks = Ranks::new(a, b);
    ranks.normal_p_value(ranks.widening(kind)).max(p_value(a, b))
}

/// The ranks of the values among those of both sides, doubled: values that are equal share the mean of their ranks.
struct Ranks {
    a: Vec<u64>,
    b: Vec<u64>,
    /// The sum of t³ - t over all groups of t equal values.
    ties: f64,
}

impl Ranks {
    fn new(a: &[u64], b: &[u64]) -> Self {
        let mut sorted: Vec<u64> = a.iter().chain(b).copied().collect();
        sorted.sort_unstable();
        let below = |value: u64| sorted.partition_point(|other| *other < value);
        let rank = |value: &u64| (below(*value) + sorted.partition_point(|other| other <= value) + 1) as u64;
        let cube = |group: &[u64]| (group.len() as f64).powi(3) - group.len() as f64;
        let ties = sorted.chunk_by(|x, y| x == y).map(cube).sum();
        Self { a: a.iter().map(rank).collect(), b: b.iter().map(rank).collect(), ties }
    }

    /// Returns the sum of the doubled ranks of side a, and the sum that is expected if the sides do not differ.
    fn sums(&self) -> (u64, u64) {
        (self.a.iter().sum(), (self.a.len() * (self.a.len() + self.b.len() + 1)) as u64)
    }

    /// Counts all ways to choose the values of side a among all values, and those that differ at least as much.
    fn exact_p_value(&self) -> f64 {
        let (sum, expected) = self.sums();
        let all: Vec<usize> = self.a.iter().chain(&self.b).map(|rank| *rank as usize).collect();
        let largest: usize = all.iter().sum();
        // `ways[n][s]` is the number of ways to choose n of the values seen so far with the sum s.
        let mut ways = vec![vec![0.0_f64; largest + 1]; self.a.len() + 1];
        ways[0][0] = 1.0;
        for rank in all {
            for chosen in (0..self.a.len()).rev() {
                let [from, to] = &mut ways[chosen..chosen + 2] else { unreachable!("the window has two rows") };
                for (to, from) in to[rank..].iter_mut().zip(from.iter()) {
                    *to += *from;
                }
            }
        }
        let of_size = &ways[self.a.len()];
        let at_least = sum.abs_diff(expected);
        let is_as_far = |other: usize| (other as u64).abs_diff(expected) >= at_least;
        let as_far: f64 = of_size.iter().enumerate().filter(|(other, _)| is_as_far(*other)).map(|(_, ways)| ways).sum();
        as_far / of_size.iter().sum::<f64>()
    }

    /// Returns the p value by the normal distribution, whose variance is multiplied by `widening`.
    fn normal_p_value(&self, widening: f64) -> f64 {
        let (sum, expected) = self.sums();
        let (a, b) = (self.a.len() as f64, self.b.len() as f64);
        let count = a + b;
        let variance = a * b / 12.0 * (count + 1.0 - self.ties / (count * (count - 1.0)));
        // The ranks are doubled. The half is the correction for a distribution of whole numbers.
        let far = (sum.abs_diff(expected) as f64 / 2.0 - 0.5).max(0.0);
        // This is false for NaN, too: no value, or all of them equal.
        if variance > 0.0 { erfc(far / (2.0 * variance * widening).sqrt()) } else { 1.0 }
    }

    /// Returns the factor by which the dependence of neighbours widens the distribution: (1 + r) / (1 - r), where r is
    /// the largest correlation of neighbours that the series allow, but no negative one.
    fn widening(&self, kind: DurationSeries) -> f64 {
        let (mut with_next, mut squares) = (0.0, 0.0);
        for side in [&self.a, &self.b] {
            let mean = side.iter().sum::<u64>() as f64 / side.len() as f64;
            let off: Vec<f64> = side.iter().map(|rank| *rank as f64 - mean).collect();
            with_next += off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>();
            squares += off.iter().map(|off| off * off).sum::<f64>();
        }
        if squares == 0.0 {
            return 1.0;
        }
        let count = (self.a.len() + self.b.len()) as f64;
        // The correlation of a short series comes out too small: by (1 + 3r) / n, where n is its length.
        let length = count / 2.0;
        let measured = ((with_next / squares + 1.0 / length) / (1.0 - 3.0 / length).max(0.1)).clamp(-1.0, 1.0);
        let error = ((1.0 - measured * measured) / count).sqrt();
        let correlation = (measured + kind.standard_errors() * error).clamp(0.0, CORRELATION_MAX);
        (1.0 + correlation) / (1.0 - correlation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts by trying each choice of `a.len()` of the values.
    fn counted(a: &[u64], b: &[u64]) -> f64 {
        let ranks = Ranks::new(a, b);
        let all: Vec<u64> = ranks.a.iter().chain(&ranks.b).copied().collect();
        let (sum, expected) = ranks.sums();
        let (mut as_far, mut choices) = (0, 0);
        for choice in 0_u32..1 << all.len() {
            if choice.count_ones() as usize == a.len() {
                let other: u64 = (0..all.len()).filter(|at| choice >> at & 1 == 1).map(|at| all[at]).sum();
                choices += 1;
                as_far += u32::from(other.abs_diff(expected) >= sum.abs_diff(expected));
            }
        }
        f64::from(as_far) / f64::from(choices)
    }

    #[test]
    fn the_exact_distribution_is_that_of_all_choices() {
        for (a, b) in [
            (&[1, 2, 3][..], &[4, 5, 6, 7][..]),
            (&[1, 5, 3, 3], &[3, 3, 4, 9, 9]),
            (&[7, 7], &[7, 7, 7]),
            (&[10, 11, 12, 13, 14], &[1, 2, 3, 4, 5]),
            (&[1], &[2, 2]),
        ] {
            let (exact, counted) = (p_value(a, b), counted(a, b));
            assert!((exact - counted).abs() < 1e-12, "{a:?} {b:?}: {exact} {counted}");
            assert!((p_value(b, a) - exact).abs() < 1e-12);
        }
        // Of 252 choices, two are as far apart: these, and the reverse.
        assert!((p_value(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]) - 2.0 / 252.0).abs() < 1e-12);
        assert!((smallest_p_value(5, 5) - 2.0 / 252.0).abs() < 1e-12);
    }

    #[test]
    fn for_many_values_the_normal_distribution_is_near_the_exact_one() {
        let a: Vec<u64> = (0..20).map(|number| number * 3).collect();
        let b: Vec<u64> = (0..20).map(|number| number * 3 + 14).collect();
        let (exact, normal) = (p_value(&a, &b), Ranks::new(&a, &b).normal_p_value(1.0));
        assert!((exact - normal).abs() < 0.002 && exact < 0.05, "{exact} {normal}");
    }

    #[test]
    fn a_side_without_values_or_with_equal_values_tells_nothing() {
        let p_value = |a: &[u64], b: &[u64]| series_p_value(DurationSeries::Blocks, a, b);
        assert_eq!([p_value(&[], &[]), p_value(&[1], &[]), p_value(&[4; 9], &[4; 9])], [1.0; 3]);
        assert_eq!(smallest_p_value(0, 7), 1.0);
    }

    #[test]
    fn a_series_that_drifts_tells_less_than_one_that_does_not() {
        let drifting: Vec<u64> = (0..20).collect();
        let mixed: Vec<u64> = (0..20).map(|number| number * 7 % 20).collect();
        let later = |side: &[u64]| side.iter().map(|value| value + 12).collect::<Vec<u64>>();
        let p_value = |side: &[u64]| series_p_value(DurationSeries::Blocks, side, &later(side));
        let (steady, drift) = (p_value(&mixed), p_value(&drifting));
        assert!(steady < 0.01 && drift > 0.05, "{steady} {drift}");
    }
}
