//! The comparison for programs.

use super::comparison::{ComparedSpan, Comparison};
use super::exceeded::{ExceededLimit, IncompleteLimit, LimitResults};
use super::measure::{Measure, SpanFigures};
use serde_json::{Map, Value, json};

impl Comparison {
    /// Returns the comparison as JSON: `{"alpha", "spans": [{"name", "target", "a", "b", "captures": {"a", "b"},
    /// "not_whole": {"a", "b"}, "change", "relative", "per_call", "p_value", "significant"}], "failed": [{"limit",
    /// "name", "target", "a", "b", "change", "relative"}], "incomplete": [{"limit", "name", "target", "reason"}]}`.
    #[must_use]
    pub fn to_json(&self, results: &LimitResults) -> Value {
        let spans: Vec<Value> = self.spans.iter().map(|span| self.span_to_json(span)).collect();
        let failed: Vec<Value> = results.exceeded.iter().map(ExceededLimit::to_json).collect();
        let incomplete: Vec<Value> = results.incomplete.iter().map(IncompleteLimit::to_json).collect();
        json!({ "alpha": self.alpha, "spans": spans, "failed": failed, "incomplete": incomplete })
    }

    fn span_to_json(&self, span: &ComparedSpan) -> Value {
        let figures = |side: &Option<SpanFigures>| side.map(|side| of_each(|measure| json!(side.get(measure))));
        json!({
            "name": span.name, "target": span.target, "a": figures(&span.a), "b": figures(&span.b),
            "exact": span.is_exact, "captures": { "a": span.captures[0], "b": span.captures[1] },
            "not_whole": { "a": span.not_whole[0], "b": span.not_whole[1] },
            "change": of_each(|measure| whole(span.change(measure))),
            "relative": of_each(|measure| json!(span.relative_change(measure))),
            "per_call": Measure::ALL
                .into_iter()
                .filter(|measure| measure.calls().is_some())
                .map(|measure| (measure.key().to_owned(), json!(span.change_per_call(measure))))
                .collect::<Map<String, Value>>(),
            "p_value": span.p_value, "significant": span.is_significant(self.alpha),
        })
    }
}

impl ExceededLimit {
    fn to_json(&self) -> Value {
        json!({
            "limit": self.limit.to_string(), "name": self.span.name, "target": self.span.target, "a": self.a,
            "b": self.b, "change": whole(Some(i128::from(self.b) - i128::from(self.a))),
            "relative": self.span.relative_change(self.limit.measure),
        })
    }
}

impl IncompleteLimit {
    fn to_json(&self) -> Value {
        json!({
            "limit": self.limit.to_string(),
            "name": self.span.as_ref().map(|span| &span.name),
            "target": self.span.as_ref().map(|span| &span.target),
            "reason": self.reason,
        })
    }
}

fn of_each(value: impl Fn(Measure) -> Value) -> Value {
    Measure::ALL.into_iter().map(|measure| (measure.key().to_owned(), value(measure))).collect::<Map<_, _>>().into()
}

/// Returns a change as a whole number, however large it is.
fn whole(change: Option<i128>) -> Value {
    let Some(change) = change else { return Value::Null };
    match (i64::try_from(change), u64::try_from(change)) {
        (Ok(change), _) => change.into(),
        (_, Ok(change)) => change.into(),
        _ => (change as f64).into(),
    }
}
