//! The tests of all spans, with one rate of false alarms for all tests together.

use super::rank_sum::{DurationSeries, p_value, series_p_value, smallest_p_value};
use super::side::SideSpan;

/// Tests for each span whether its durations differ. Returns the p values that [`holm`] has corrected; `None` for spans
/// with too few durations.
pub(super) fn p_values(pairs: &[Option<(&SideSpan<'_>, &SideSpan<'_>)>], alpha: f64) -> Vec<Option<f64>> {
    let on_both = pairs.iter().flatten().count().max(1);
    let test = |(a, b): (&SideSpan<'_>, &SideSpan<'_>)| {
        if smallest_p_value(a.captures(), b.captures()) <= alpha / on_both as f64 {
            return Some(p_value(&a.capture_medians(), &b.capture_medians()));
        }
        let kind = if a.has_blocks() && b.has_blocks() { DurationSeries::Blocks } else { DurationSeries::Calls };
        let (a, b) = (a.block_medians(), b.block_medians());
        // A test that cannot become significant, whatever the durations are, need not be corrected for.
        (smallest_p_value(a.len(), b.len()) <= alpha).then(|| series_p_value(kind, &a, &b))
    };
    holm(&pairs.iter().map(|pair| pair.and_then(test)).collect::<Vec<_>>())
}

/// Corrects p values for their number as Holm does. If those up to alpha count as alarms, the probability of any false
/// alarm is at most alpha.
fn holm(p_values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<(usize, f64)> =
        p_values.iter().enumerate().filter_map(|(index, p_value)| Some((index, (*p_value)?))).collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut corrected = vec![None; p_values.len()];
    let mut largest = 0.0_f64;
    for (place, (index, p_value)) in order.iter().enumerate() {
        largest = largest.max(p_value * (order.len() - place) as f64).min(1.0);
        corrected[*index] = Some(largest);
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_the_smallest_by_their_number_and_keeps_the_order() {
        let corrected = holm(&[Some(0.04), None, Some(0.01), Some(0.03), Some(0.9)]);
        let expected = [Some(0.09), None, Some(0.04), Some(0.09), Some(0.9)];
        for (corrected, expected) in corrected.into_iter().zip(expected) {
            assert_eq!(corrected.is_some(), expected.is_some());
            assert!(
                (corrected.unwrap_or(0.0) - expected.unwrap_or(0.0_f64)).abs() < 1e-12,
                "{corrected:?} {expected:?}"
            );
        }
    }
}
