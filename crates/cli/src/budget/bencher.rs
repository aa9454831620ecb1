//! The numbers of a capture for Bencher, in the Bencher Metric Format.

use super::FiguresByName;
use eventring_report::compare::{Measure, SpanFigures};
use serde_json::{Map, Value, json};

/// Returns `{"shop::request": {"instructions": {"value": 1234}, …}, …}`.
pub(super) fn to_json(figures: &FiguresByName) -> Value {
    figures.iter().map(|(name, figures)| (name.clone(), of_span(figures))).collect::<Map<String, Value>>().into()
}

fn of_span(figures: &SpanFigures) -> Value {
    let valued = Measure::ALL.into_iter().filter_map(|measure| Some((measure, figures.get(measure)?)));
    valued.map(|(measure, value)| (measure.key().to_owned(), json!({ "value": value }))).collect::<Map<_, _>>().into()
}
