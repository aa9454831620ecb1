//! Both sides, span by span.

use super::measure::{Measure, SpanFigures};
use super::side::{self, SideSpan, SpanKey};
use super::significance;
use eventring_export::numbers::{counted, grouped};
use eventring_export::{Summary, full_name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A comparison of two sides. Each side is one capture, or several captures of the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The spans of both sides. Those whose cost has changed most are first.
    pub spans: Vec<ComparedSpan>,
    /// The probability that at least one span counts as significant if no span's durations have changed.
    pub alpha: f64,
    /// True if the spans are in the order of their instructions, because these were counted on both sides.
    pub has_instructions: bool,
    /// The number of events that each side lost while it was captured.
    pub lost: [u64; 2],
    /// True if a side does not hold all events of its run: some were lost or overwritten, or files are missing. Then a
    /// limit of instructions cannot be judged.
    pub has_losses: bool,
    /// True if the sides were captured with different filters, which only the caller knows. Then no limit can be
    /// judged.
    pub has_different_filters: bool,
}

/// A span on two sides.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparedSpan {
    /// The name.
    pub name: String,
    /// The target.
    pub target: String,
    /// The figures of side A; `None` if A has no such span that was seen from its creation to its close.
    pub a: Option<SpanFigures>,
    /// The figures of side B; `None` if B has no such span that was seen from its creation to its close.
    pub b: Option<SpanFigures>,
    /// The number of further spans of each side that are in no figure: they were open, or their beginning or end was
    /// not seen.
    pub not_whole: [u64; 2],
    /// True if the instructions of the span are the same in each run of a program that does the same. Otherwise, no
    /// limit of instructions looks at the span.
    pub is_exact: bool,
    /// The number of captures of each side that have the span.
    pub captures: [usize; 2],
    /// The p value of the test of the durations, corrected for the number of spans. `None` if there are too few.
    pub p_value: Option<f64>,
}

impl Comparison {
    /// Compares the captures of two sides. `alpha` is the rate of false alarms.
    #[must_use]
    pub fn new(a: &[Summary], b: &[Summary], alpha: f64) -> Self {
        let lost = [a, b].map(|side| side.iter().map(Summary::lost_since).fold(0, u64::saturating_add));
        let has_losses = a.iter().chain(b).any(|summary| summary.lost > 0);
        let not_whole = [a, b].map(side::not_whole);
        let (a, b) = (side::spans(a), side::spans(b));
        let has = |side: usize, key: &SpanKey| not_whole[side].get(key).is_some_and(|number| *number > 0);
        // A span that only one side has is compared even if none of it is whole. One that is open on both is not.
        let hanging = not_whole.iter().flat_map(BTreeMap::keys).filter(|key| has(0, key) != has(1, key));
        let keys: BTreeSet<_> = a.keys().chain(b.keys()).chain(hanging).collect();
        let pairs: Vec<_> = keys.iter().map(|key| a.get(*key).zip(b.get(*key))).collect();
        let p_values = significance::p_values(&pairs, alpha);
        let spans = keys.iter().zip(p_values).map(|((name, target), p_value)| {
            let key = (name.clone(), target.clone());
            let (a, b) = (a.get(&key), b.get(&key));
            ComparedSpan {
                captures: [a, b].map(|side| side.map_or(0, SideSpan::captures)),
                is_exact: [a, b].into_iter().flatten().all(SideSpan::is_exact),
                a: a.map(SideSpan::figures),
                b: b.map(SideSpan::figures),
                not_whole: not_whole.each_ref().map(|side| side.get(&key).copied().unwrap_or(0)),
                p_value,
                name: key.0,
                target: key.1,
            }
        });
        let mut spans: Vec<ComparedSpan> = spans.collect();
        let is_counted = |span: &ComparedSpan| {
            span.a
                .zip(span.b)
                .is_some_and(|(a, b)| a.get(Measure::Instructions).and(b.get(Measure::Instructions)).is_some())
        };
        let has_instructions = spans.iter().any(is_counted);
        let effect = |span: &ComparedSpan| {
            let of = |measure| span.seen(measure).map_or(0, |(a, b)| a.abs_diff(b));
            let instructions = if has_instructions { of(Measure::Instructions) } else { 0 };
            Reverse((instructions, of(Measure::Busy), of(Measure::Total)))
        };
        spans.sort_by_key(effect);
        Self { spans, alpha, has_instructions, lost, has_losses, has_different_filters: false }
    }

    /// Says which sides lost events, and what that means for the test of durations. Returns `None` if none did.
    #[must_use]
    pub fn loss_note(&self) -> Option<String> {
        let events = |lost: u64| counted(lost, "event", "events");
        let sides = self.lost.into_iter().zip(["A", "B"]).filter(|(lost, _)| *lost > 0);
        let sides: Vec<String> = sides.map(|(lost, side)| format!("{side} lost {}", events(lost))).collect();
        (!sides.is_empty()).then(|| format!("{}, so sure compares only the spans that are left", sides.join(" and ")))
    }

    /// Says which spans have instructions that no limit looks at. Returns `None` if there is no such span.
    #[must_use]
    pub fn exactness_note(&self) -> Option<String> {
        let is_counted = |span: &&ComparedSpan| span.values(Measure::Instructions).is_some() && !span.is_exact;
        let names: Vec<String> = self.spans.iter().filter(is_counted).map(ComparedSpan::full_name).collect();
        (!names.is_empty()).then(|| {
            format!(
                "not exact: {}; they were entered several times, as spans of futures are, or have such spans inside, so their instructions \
                 differ from run to run, and no limit looks at them",
                names.join(", ")
            )
        })
    }

    /// Says of which names a side has spans that are in no number, because it did not see them whole. Returns `None` if
    /// there is no such name.
    #[must_use]
    pub fn not_whole_note(&self) -> Option<String> {
        let sides = |span: &ComparedSpan| {
            let sides = span.not_whole.into_iter().zip(["A", "B"]).filter(|(number, _)| *number > 0);
            sides.map(|(number, side)| format!("{} in {side}", grouped(number))).collect::<Vec<_>>().join(", ")
        };
        let spans: Vec<&ComparedSpan> = self.spans.iter().filter(|span| span.not_whole != [0, 0]).collect();
        let mut names: Vec<String> =
            spans.iter().take(NAMES_SHOWN).map(|span| format!("{} ({})", span.full_name(), sides(span))).collect();
        if spans.len() > NAMES_SHOWN {
            names.push(counted((spans.len() - NAMES_SHOWN) as u64, "further name", "further names"));
        }
        (!names.is_empty()).then(|| {
            format!("not whole, so in no number: {}; open, or their beginning or end was not seen", names.join(", "))
        })
    }
}

/// The words for a span that only side B has, and for one that only side A has.
const NEW: &str = "new";
const GONE: &str = "gone";
/// The number of names that a note or an error shows.
pub(super) const NAMES_SHOWN: usize = 5;

impl ComparedSpan {
    /// Returns what has become of a span that not both sides have figures of: `new`, `gone`, or `none whole in A` if A
    /// has such spans, but no figures of them.
    #[must_use]
    pub fn one_sided(&self) -> Option<&'static str> {
        match (self.a.is_some(), self.b.is_some(), self.not_whole) {
            (false, true, [0, _]) => Some(NEW),
            (false, false, [0, _]) => Some("none whole in B"),
            (false, ..) => Some("none whole in A"),
            (_, false, [_, 0]) => Some(GONE),
            (_, false, _) => Some("none whole in B"),
            _ => None,
        }
    }

    /// Returns the name with the target before it.
    #[must_use]
    pub fn full_name(&self) -> String {
        full_name(&self.name, &self.target)
    }

    /// Returns the values of a measure on both sides. A span that a side does not have has 0 there. Returns `None` if
    /// the measure was not counted on a side that has the span, or if a side has such spans, but none whole.
    #[must_use]
    pub fn values(&self, measure: Measure) -> Option<(u64, u64)> {
        let sides = [self.a, self.b].into_iter().zip(self.not_whole);
        let has_none_whole = sides.into_iter().any(|(figures, not_whole)| figures.is_none() && not_whole > 0);
        self.seen(measure).filter(|_| !has_none_whole)
    }

    /// Returns the same for what was seen: 0 for a side that has none whole.
    pub(super) fn seen(&self, measure: Measure) -> Option<(u64, u64)> {
        let value = |side: &Option<SpanFigures>| side.as_ref().map_or(Some(0), |figures| figures.get(measure));
        value(&self.a).zip(value(&self.b))
    }

    /// Returns the value of side B minus that of side A.
    #[must_use]
    pub fn change(&self, measure: Measure) -> Option<i128> {
        self.values(measure).map(|(a, b)| i128::from(b) - i128::from(a))
    }

    /// Returns the change divided by the value of side A; `None` if that is 0.
    #[must_use]
    pub fn relative_change(&self, measure: Measure) -> Option<f64> {
        let (a, _) = self.values(measure)?;
        self.change(measure).filter(|_| a > 0).map(|change| change as f64 / a as f64)
    }

    /// Returns the value of a measure on both sides, for one call if the measure is a sum. Returns `None` for a side
    /// that does not have the span, or no call of it.
    #[must_use]
    pub fn per_call(&self, measure: Measure) -> [Option<f64>; 2] {
        [self.a, self.b].map(|side| {
            let value = side?.get(measure)? as f64;
            let Some(calls) = measure.calls() else { return Some(value) };
            let calls = side?.get(calls).filter(|calls| *calls > 0)?;
            Some(value / calls as f64)
        })
    }

    /// Returns the change of what one call takes; `None` if the measure is no sum, or if a side has no call.
    #[must_use]
    pub fn change_per_call(&self, measure: Measure) -> Option<f64> {
        let of_one = |(sum, calls): (u64, u64)| (calls > 0).then(|| sum as f64 / calls as f64);
        let ((a, b), (a_calls, b_calls)) = self.values(measure).zip(self.values(measure.calls()?))?;
        of_one((b, b_calls)).zip(of_one((a, a_calls))).map(|(b, a)| b - a)
    }

    /// Returns true if the durations of the span have changed, as far as the rate of false alarms allows to say so.
    /// Returns `None` if there are too few durations.
    #[must_use]
    pub fn is_significant(&self, alpha: f64) -> Option<bool> {
        self.p_value.map(|p_value| p_value <= alpha)
    }
}
