//! The durations of the spans of one name, for charts: a histogram and a curve of percentiles.

use eventring_capture::WallTimes;

/// The number of parts into which an octave of durations is divided.
const PARTS: u32 = 4;
/// The number of points of a curve for each further nine: from 90 % to 99 %, for example.
const POINTS_OF_NINE: u32 = 12;

/// A percentile that charts name.
pub(super) struct NamedPercentile {
    pub(super) name: &'static str,
    /// The place on the scale of nines.
    pub(super) nines: f64,
    /// The part of the spans that are not slower, in millionths.
    millionths: usize,
}

const fn named(name: &'static str, nines: f64, millionths: usize) -> NamedPercentile {
    NamedPercentile { name, nines, millionths }
}

/// The percentiles that charts name, in their order.
pub(super) const NAMED: [NamedPercentile; 6] = [
    named("p50", std::f64::consts::LOG10_2, 500_000),
    named("p90", 1.0, 900_000),
    named("p99", 2.0, 990_000),
    named("p99.9", 3.0, 999_000),
    named("p99.99", 4.0, 999_900),
    named("p99.999", 5.0, 999_990),
];

/// The durations of the spans of one name.
pub(super) struct Durations {
    pub(super) histogram: Histogram,
    pub(super) curve: PercentileCurve,
}

impl Durations {
    pub(super) fn new(mut wall_times: WallTimes) -> Self {
        wall_times.sort();
        let mut histogram = Histogram::default();
        (0..wall_times.count()).for_each(|rank| histogram.add(wall_times.at(rank)));
        Self { histogram, curve: PercentileCurve::from_sorted(&wall_times) }
    }
}

/// The number of durations in each part of a logarithmic scale.
#[derive(Default)]
pub(super) struct Histogram {
    pub(super) counts: Vec<u64>,
}

impl Histogram {
    fn add(&mut self, nanos: u64) {
        let index = (f64::from(PARTS) * (nanos.max(1) as f64).log2()) as usize;
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Returns the shortest duration of a part.
    pub(super) fn begin(index: usize) -> f64 {
        (index as f64 / f64::from(PARTS)).exp2()
    }

    /// Returns the part in which a duration lies, with decimals.
    pub(super) fn place(nanos: u64) -> f64 {
        f64::from(PARTS) * (nanos.max(1) as f64).log2()
    }
}

/// The duration that each part of the spans did not exceed.
pub(crate) struct PercentileCurve {
    /// The points from the shortest duration to the longest.
    pub(super) points: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct CurvePoint {
    /// The part of the spans that are slower, as a number of nines: 1 for p90, 2 for p99, 3 for p99.9.
    pub(super) nines: f64,
    pub(super) nanos: u64,
}

impl PercentileCurve {
    /// Makes the curve of sorted durations. It ends where only the longest duration is left. It has a point at each of
    /// the [`NAMED`] percentiles before its end.
    fn from_sorted(sorted: &WallTimes) -> Self {
        let count = sorted.count();
        let mut points = Vec::new();
        let Some(last) = count.checked_sub(1) else { return Self { points } };
        let end = (count as f64).log10();
        let is_named = |nines: f64| NAMED.iter().any(|named| (named.nines - nines).abs() < 1e-9);
        let steps = (0..).map(|step| f64::from(step) / f64::from(POINTS_OF_NINE)).take_while(|nines| *nines < end);
        let steps = steps.filter(|nines| !is_named(*nines));
        let steps = steps.map(|nines| (nines, (count as f64 * (1.0 - 10_f64.powf(-nines))).ceil() as usize));
        let named = NAMED.iter().filter(|named| named.nines < end - 1e-9);
        let named = named.map(|named| (named.nines, (count * named.millionths).div_ceil(1_000_000)));
        points.extend(steps.chain(named).map(|(nines, rank)| {
            let nanos = sorted.at(rank.saturating_sub(1).min(last));
            CurvePoint { nines, nanos }
        }));
        points.sort_by(|a, b| a.nines.total_cmp(&b.nines));
        points.push(CurvePoint { nines: end, nanos: sorted.at(last) });
        Self { points }
    }

    /// Returns the point at a percentile, or `None` if the spans are too few for it.
    pub(super) fn at(&self, percentile: &NamedPercentile) -> Option<CurvePoint> {
        let before_end = self.points.split_last()?.1;
        before_end.iter().copied().find(|point| point.nines == percentile.nines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durations(nanos: impl IntoIterator<Item = u64>) -> Durations {
        let mut wall_times = WallTimes::default();
        nanos.into_iter().for_each(|nanos| _ = wall_times.add(nanos));
        Durations::new(wall_times)
    }

    #[test]
    fn a_curve_has_the_exact_percentiles_and_ends_with_the_longest_duration() {
        let curve = durations((1..=1000).rev().map(|micros| micros * 1000)).curve;
        let at = |nines: f64| curve.points.iter().find(|point| (point.nines - nines).abs() < 1e-9).unwrap().nanos;
        assert_eq!([at(0.0), at(1.0), at(2.0), at(3.0)], [1_000, 900_000, 990_000, 1_000_000]);
        assert!(curve.points.is_sorted_by(|a, b| a.nines < b.nines && a.nanos <= b.nanos), "{:?}", curve.points);
        let named = NAMED.each_ref().map(|named| curve.at(named).map(|point| point.nanos));
        assert_eq!(named, [Some(500_000), Some(900_000), Some(990_000), None, None, None]);
    }

    #[test]
    fn few_durations_have_a_short_curve_and_none_have_no_point() {
        assert!(durations([]).curve.points.is_empty());
        assert_eq!(durations([7]).curve.points, [CurvePoint { nines: 0.0, nanos: 7 }]);
        let two = durations([9, 1 << 40]).curve.points;
        assert_eq!((two[0].nanos, two.last().unwrap().nanos, two.len()), (9, 1 << 40, 5));
    }

    #[test]
    fn every_duration_is_in_its_part_of_the_histogram() {
        let Histogram { counts } = durations([0, 1, 2, 3, 1 << 20]).histogram;
        assert_eq!((counts[0], counts[4], counts[6], counts[80], counts.len()), (2, 1, 1, 1, 81));
    }
}
