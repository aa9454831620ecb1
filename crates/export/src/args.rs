//! Fields and payloads as named values, for all formats.

use eventring::schema::Value;
use eventring::schema::perf::{Allocated, Cut, FieldValue};
use eventring::tracing::{Field, FieldsProblem, Span, SpanInstructions, TimeSpent};
use serde::{Serialize, Serializer};
use serde_json::Map;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A value of an argument.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum ArgValue {
    Int(i64),
    Uint(u64),
    Float(#[serde(serialize_with = "float")] f64),
    Bool(bool),
    Text(Cow<'static, str>),
    /// A number that is not known.
    Unknown,
}

/// Writes a number, or the text of one that JSON does not have: NaN and the infinities.
fn float<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() { to.serialize_f64(*number) } else { to.collect_str(number) }
}

/// A named value.
#[derive(Clone, PartialEq, Debug)]
pub struct Arg {
    pub name: ArgName,
    pub value: ArgValue,
    /// The reason why the value is not whole; `None` if it is whole. The reason is either the number of bytes that the
    /// value had before it was cut, or a word for the problem.
    pub cut: Option<Box<ArgValue>>,
}

/// The name of an argument.
#[derive(Clone, PartialEq, Debug)]
pub enum ArgName {
    Fixed(&'static str),
    Shared(Arc<str>),
}

/// Named values in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Args(pub Vec<Arg>);

/// The name of the JSON object that describes incomplete values. Each entry of the object has the name of a value, and
/// the problem of this value. The output of `eventring watch` uses the same name.
pub(super) const CUT: &str = "cut";

/// The name of a flag on a span whose fields were recorded but are lost. Without the flag, the span would look as if
/// it had no fields.
const FIELDS_LOST: &str = "fields_lost";

impl Args {
    /// Makes a single value.
    pub(crate) fn one(name: &'static str, value: ArgValue) -> Self {
        Self(vec![Arg { name: ArgName::Fixed(name), value, cut: None }])
    }

    pub fn push(&mut self, name: &'static str, value: ArgValue) {
        self.0.push(Arg { name: ArgName::Fixed(name), value, cut: None });
    }

    /// Adds a value if it is there.
    pub(crate) fn push_some(&mut self, name: &'static str, value: Option<ArgValue>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    /// Adds a value whose name comes from the capture.
    pub fn push_named(&mut self, name: &str, value: ArgValue) {
        self.0.push(Arg { name: ArgName::Shared(name.into()), value, cut: None });
    }

    pub fn push_field(&mut self, field: Field) {
        let cut = field.cut.map(|cut| Box::new(cut_value(cut)));
        self.0.push(Arg { name: ArgName::Shared(field.name), value: ArgValue::from(field.value), cut });
    }

    /// Adds values that say that fields are missing, if some are.
    pub fn push_problems(&mut self, missing: u16, problem: Option<FieldsProblem>) {
        if missing > 0 {
            self.push("missing_fields", ArgValue::Uint(missing.into()));
        }
        if let Some(problem) = problem {
            self.push(FIELDS_LOST, ArgValue::Bool(true));
            self.push("problem", ArgValue::Text(problem_text(problem).into()));
        }
    }

    /// Adds the mark of a span or slice that was open at the end, and how long it lasted at least.
    pub(super) fn push_open(&mut self, start_nanos: u64, end_nanos: u64) {
        self.push("open", ArgValue::Bool(true));
        self.push("open_at_least_ns", ArgValue::Uint(end_nanos.saturating_sub(start_nanos)));
    }

    /// Adds the instructions of a span or slice, if they were counted.
    pub fn push_instructions(&mut self, instructions: Option<SpanInstructions>) {
        if let Some(SpanInstructions { all, own, .. }) = instructions {
            self.push("instructions", ArgValue::Uint(all));
            self.push("self_instructions", ArgValue::Uint(own));
        }
    }

    /// Adds how threads spent the time of a span or slice, if any of it was measured.
    pub fn push_times(&mut self, times: Option<TimeSpent>) {
        if let Some(times) = times.filter(TimeSpent::is_measured) {
            self.push("cpu_ns", ArgValue::Uint(times.cpu_nanos));
            self.push("queue_ns", ArgValue::Uint(times.queue_nanos));
            self.push("sleep_ns", ArgValue::Uint(times.sleep_nanos));
            self.push("unmeasured_ns", ArgValue::Uint(times.unmeasured_nanos));
        }
    }

    /// Adds what threads have allocated in a span, if it was counted.
    pub fn push_allocated(&mut self, allocated: Option<Allocated>) {
        for (name, count) in allocated.iter().flat_map(allocated_values) {
            self.push(name, ArgValue::Uint(count));
        }
    }

    /// Says of a scope that its guard did not end it, if it is one.
    pub(crate) fn push_scope_end(&mut self, span: Option<&Span>) {
        if span.is_some_and(Span::has_ended_with_parent) {
            self.push("end", ArgValue::Text("with its parent".into()));
        }
    }

    /// Adds a decoded payload: its fields if it is a struct.
    pub fn push_payload(&mut self, value: &Value<'_>) {
        match value {
            Value::Struct(fields) => {
                fields.iter().for_each(|(name, value)| self.push_named(name, ArgValue::from(value)))
            }
            other => self.push("payload", ArgValue::from(other)),
        }
    }

    /// Gives the program's values other names, `name#field`, if they have the name of a fact: of one of the first
    /// `facts` values, or one that `is_fact` says.
    pub(crate) fn tell_from_facts(&mut self, facts: usize, is_fact: fn(&str) -> bool) {
        let (facts, values) = self.0.split_at_mut(facts);
        for Arg { name, .. } in values {
            if let ArgName::Shared(shared) = name
                && (is_fact(shared) || facts.iter().any(|fact| *fact.name == **shared))
            {
                *shared = beside(shared);
            }
        }
    }

    /// Returns the values as a JSON object. If several values have the same name, the object has the last one.
    pub(super) fn values(&self) -> Map<String, serde_json::Value> {
        self.0.iter().map(|arg| (arg.name.in_chrome().into_owned(), arg.value.to_json())).collect()
    }

    /// Returns the problems of incomplete values as a JSON object. The object is empty if all values are whole.
    pub(super) fn cuts(&self) -> Map<String, serde_json::Value> {
        let mut cuts = Map::new();
        for arg in &self.0 {
            match &arg.cut {
                Some(cut) => cuts.insert(arg.name.in_chrome().into_owned(), cut.to_json()),
                // Several values may have this name, and only the last one is shown. If the last one is whole, the
                // problem of an earlier one is removed.
                None => cuts.remove(&*arg.name.in_chrome()),
            };
        }
        cuts
    }

    /// Returns the values and their problems as one JSON object.
    pub(super) fn to_json(&self) -> Map<String, serde_json::Value> {
        let (mut object, cuts) = (self.values(), self.cuts());
        if !cuts.is_empty() {
            object.insert(CUT.into(), cuts.into());
        }
        object
    }
}

impl Arg {
    /// Returns an estimate of the bytes that the value takes.
    pub(super) fn kept_bytes(&self) -> u64 {
        let text = match &self.value {
            ArgValue::Text(Cow::Owned(text)) => text.capacity(),
            _ => 0,
        };
        let cut = self.cut.as_ref().map_or(0, |_| size_of::<ArgValue>());
        // Lists of values have room for as many again.
        2 * size_of::<Self>() as u64 + (text + cut) as u64
    }
}

/// Returns the reason why a value is not whole, as [`Arg::cut`] has it.
pub(super) fn cut_value(cut: Cut) -> ArgValue {
    match cut {
        Cut::Limit { original_bytes: Some(bytes) } => ArgValue::Uint(bytes.into()),
        Cut::Failed => ArgValue::Text("failed".into()),
        Cut::Panicked => ArgValue::Text("panicked".into()),
        _ => ArgValue::Unknown,
    }
}

/// Returns the counts of allocations with their names in all formats.
pub fn allocated_values(allocated: &Allocated) -> [(&'static str, u64); 4] {
    let Allocated { allocations, bytes, frees, freed_bytes } = *allocated;
    [("allocations", allocations), ("allocated_bytes", bytes), ("frees", frees), ("freed_bytes", freed_bytes)]
}

/// Returns the words for the problem of fields that are lost.
pub fn problem_text(problem: FieldsProblem) -> &'static str {
    match problem {
        FieldsProblem::Expired => "overwritten before they were read",
        _ => "damaged",
    }
}

impl ArgValue {
    fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Returns true if traces tell a fact of spans under this name.
pub(crate) fn is_of_span(name: &str) -> bool {
    matches!(
        name,
        "span_id"
            | "parent_span_id"
            | "follows_from"
            | "trace_id"
            | "start"
            | "end"
            | "exit"
            | "open"
            | "open_at_least_ns"
    ) || matches!(name, "busy_ns" | "cpu_ns" | "queue_ns" | "sleep_ns" | "unmeasured_ns")
        || matches!(name, "allocations" | "allocated_bytes" | "frees" | "freed_bytes")
        || matches!(name, "instructions" | "self_instructions" | "missing_fields" | "fields_lost" | "problem")
}

/// Returns true if traces tell a fact of log records, or of typed events, under this name.
pub(crate) fn is_of_event(name: &str) -> bool {
    matches!(name, "level" | "target" | "span_id" | "missing_fields" | "fields_lost" | "problem")
}

/// Returns another name for a value of the program that has the name of a fact. Fields of one name are told apart by
/// numbers, as `name#2`.
fn beside(name: &str) -> Arc<str> {
    format!("{name}#field").into()
}

impl ArgName {
    /// Returns the name in a Chrome trace, which has members of its own among the arguments.
    pub(super) fn in_chrome(&self) -> Cow<'_, str> {
        match self {
            Self::Shared(name) if matches!(&**name, "source" | "data" | CUT) => beside(name).to_string().into(),
            name => Cow::Borrowed(name),
        }
    }
}

impl Deref for ArgName {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Fixed(name) => name,
            Self::Shared(name) => name,
        }
    }
}

impl From<FieldValue> for ArgValue {
    fn from(value: FieldValue) -> Self {
        match value {
            FieldValue::I64(value) => Self::Int(value),
            FieldValue::U64(value) => Self::Uint(value),
            FieldValue::F64(value) => Self::Float(value),
            FieldValue::Bool(value) => Self::Bool(value),
            FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) => Self::Text(text.into()),
            other => Self::Text(other.to_string().into()),
        }
    }
}

impl From<&Value<'_>> for ArgValue {
    fn from(value: &Value<'_>) -> Self {
        match value {
            Value::Uint(value) => Self::Uint(*value),
            Value::Int(value) => Self::Int(*value),
            Value::F32(value) => Self::Float(f64::from(*value)),
            Value::F64(value) => Self::Float(*value),
            Value::Bool(value) => Self::Bool(*value),
            Value::Text(text) => Self::Text(text.clone().into_owned().into()),
            // A nested list or struct becomes text, in the compact form that is also printed on a terminal.
            other => Self::Text(other.to_string().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_fields_are_counted_from_the_first_on_and_a_loss_has_its_reason() {
        let problems = |missing, problem| {
            let mut args = Args::default();
            args.push_problems(missing, problem);
            serde_json::Value::from(args.to_json())
        };
        assert_eq!(problems(0, None), json!({}));
        assert_eq!(problems(1, None), json!({"missing_fields": 1}));
        let lost = |problem: &str| json!({"fields_lost": true, "problem": problem});
        assert_eq!(problems(0, Some(FieldsProblem::Malformed)), lost("damaged"));
        assert_eq!(problems(0, Some(FieldsProblem::Expired)), lost("overwritten before they were read"));
    }
}
