//! The comparison as JSON.

use super::comparison::{ComparedSpan, Comparison};
use super::exceeded::{ExceededLimit, IncompleteLimit, LimitResults};
use super::measure::Measure;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Number;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A comparison as it is printed in JSON.
#[derive(Serialize, JsonSchema)]
pub struct ComparisonAnswer<'a> {
    alpha: f64,
    spans: Vec<SpanRow<'a>>,
    /// The changes that limits forbid.
    failed: Vec<FailedRow<'a>>,
    /// The limits that cannot be judged.
    incomplete: Vec<IncompleteRow<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct SpanRow<'a> {
    name: &'a str,
    target: &'a str,
    /// The measures; null if the side has no whole span.
    a: Option<OfEach<Option<u64>>>,
    b: Option<OfEach<Option<u64>>>,
    /// True if the instructions are the same in each run.
    exact: bool,
    /// The number of captures that have the span.
    captures: Sides<usize>,
    not_whole: Sides<u64>,
    /// Null for a side that has no whole span. A span that does not occur on a side has 0 there.
    change: OfEach<Option<Number>>,
    relative: OfEach<Option<f64>>,
    per_call: OfEach<Option<f64>>,
    /// Corrected for the number of spans; null if there are too few.
    p_value: Option<f64>,
    significant: Option<bool>,
}

#[derive(Serialize, JsonSchema)]
struct Sides<T> {
    a: T,
    b: T,
}

#[derive(Serialize, JsonSchema)]
struct FailedRow<'a> {
    limit: String,
    name: &'a str,
    target: &'a str,
    a: u64,
    b: u64,
    change: Option<Number>,
    relative: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct IncompleteRow<'a> {
    limit: String,
    /// Null if nothing can be judged.
    name: Option<&'a str>,
    target: Option<&'a str>,
    reason: &'a str,
}

/// Values of measures, in their order.
#[derive(JsonSchema)]
#[schemars(with = "BTreeMap<Measure, T>", bound = "T: JsonSchema")]
struct OfEach<T>(Vec<(Measure, T)>);

impl<T: Serialize> Serialize for OfEach<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(measure, value)| (measure.key(), value)))
    }
}

impl JsonSchema for Measure {
    fn schema_name() -> Cow<'static, str> {
        "Measure".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Self::ALL.map(Self::key) })
    }
}

impl Comparison {
    /// Returns the comparison as it is printed in JSON.
    #[must_use]
    pub fn answer<'a>(&'a self, results: &'a LimitResults) -> ComparisonAnswer<'a> {
        ComparisonAnswer {
            alpha: self.alpha,
            spans: self.spans.iter().map(|span| SpanRow::new(span, self.alpha)).collect(),
            failed: results.exceeded.iter().map(FailedRow::from).collect(),
            incomplete: results.incomplete.iter().map(IncompleteRow::from).collect(),
        }
    }
}

impl<'a> SpanRow<'a> {
    fn new(span: &'a ComparedSpan, alpha: f64) -> Self {
        let sums = Measure::ALL.into_iter().filter(|measure| measure.calls().is_some());
        Self {
            name: &span.name,
            target: &span.target,
            a: span.a.map(|side| of_each(|measure| side.get(measure))),
            b: span.b.map(|side| of_each(|measure| side.get(measure))),
            exact: span.is_exact,
            captures: span.captures.into(),
            not_whole: span.not_whole.into(),
            change: of_each(|measure| span.change(measure).and_then(whole)),
            relative: of_each(|measure| span.relative_change(measure)),
            per_call: OfEach(sums.map(|measure| (measure, span.change_per_call(measure))).collect()),
            p_value: span.p_value,
            significant: span.is_significant(alpha),
        }
    }
}

impl<'a> From<&'a ExceededLimit> for FailedRow<'a> {
    fn from(ExceededLimit { limit, span, a, b }: &'a ExceededLimit) -> Self {
        let (limit, relative) = (limit.to_string(), span.relative_change(limit.measure));
        let change = whole(i128::from(*b) - i128::from(*a));
        Self { limit, name: &span.name, target: &span.target, a: *a, b: *b, change, relative }
    }
}

impl<'a> From<&'a IncompleteLimit> for IncompleteRow<'a> {
    fn from(IncompleteLimit { limit, span, reason }: &'a IncompleteLimit) -> Self {
        let (name, target) = span.as_ref().map(|span| (&*span.name, &*span.target)).unzip();
        Self { limit: limit.to_string(), name, target, reason }
    }
}

impl<T> From<[T; 2]> for Sides<T> {
    fn from([a, b]: [T; 2]) -> Self {
        Self { a, b }
    }
}

fn of_each<T>(value: impl Fn(Measure) -> T) -> OfEach<T> {
    OfEach(Measure::ALL.map(|measure| (measure, value(measure))).into())
}

/// Returns a change as a whole number, however large it is.
fn whole(change: i128) -> Option<Number> {
    let small = i64::try_from(change).map(Number::from).or_else(|_| u64::try_from(change).map(Number::from));
    small.ok().or_else(|| Number::from_f64(change as f64))
}
