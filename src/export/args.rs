//! Fields and payloads as named values that every format can show.

use crate::schema::Value;
use crate::schema::perf::{Cut, FieldValue};
use crate::tracing::{Field, Fields, FieldsProblem};
use serde_json::{Map, Number, json};
use std::sync::Arc;

/// A value of an argument.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ArgValue {
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
    Text(String),
}

/// Named values in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Args(pub(super) Vec<(Arc<str>, ArgValue)>);

impl Args {
    pub(super) fn push(&mut self, name: &str, value: ArgValue) {
        self.0.push((name.into(), value));
    }

    /// Fields, and what is known to be missing of them.
    pub(super) fn push_fields(&mut self, fields: &Fields) {
        fields.values.iter().for_each(|field| self.push_field(field));
        self.push_problems(fields);
    }

    pub(super) fn push_field(&mut self, field: &Field) {
        self.0.push((field.name.clone(), ArgValue::from(&field.value)));
        if let Some(cut) = field.cut {
            let why = match cut {
                Cut::Limit { original_bytes: Some(bytes) } => format!("cut, had {bytes} bytes"),
                Cut::Failed => "its Debug or Display failed".into(),
                Cut::Panicked => "its Debug or Display panicked; fields behind it are missing".into(),
                _ => "cut".into(),
            };
            self.push(&format!("{} (cut)", field.name), ArgValue::Text(why));
        }
    }

    pub(super) fn push_problems(&mut self, fields: &Fields) {
        if fields.missing > 0 {
            self.push("fields that did not fit", ArgValue::Uint(fields.missing.into()));
        }
        if let Some(problem) = fields.problem {
            let text = match problem {
                FieldsProblem::Expired => "overwritten before they were read",
                _ => "damaged",
            };
            self.push("fields", ArgValue::Text(text.into()));
        }
    }

    /// A decoded payload: its fields if it has some.
    pub(super) fn push_payload(&mut self, value: &Value<'_>) {
        match value {
            Value::Struct(fields) => fields.iter().for_each(|(name, value)| self.push(name, ArgValue::from(value))),
            other => self.push("payload", ArgValue::from(other)),
        }
    }

    /// As a JSON object. Of values with the same name the last one counts.
    pub(super) fn to_json(&self) -> Map<String, serde_json::Value> {
        self.0.iter().map(|(name, value)| (name.to_string(), value.to_json())).collect()
    }
}

impl ArgValue {
    pub(super) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Int(value) => json!(value),
            Self::Uint(value) => json!(value),
            Self::Float(value) => match Number::from_f64(*value) {
                Some(number) => number.into(),
                // JSON has no such number.
                None => value.to_string().into(),
            },
            Self::Bool(value) => json!(value),
            Self::Text(text) => json!(text),
        }
    }
}

impl From<&FieldValue> for ArgValue {
    fn from(value: &FieldValue) -> Self {
        match value {
            FieldValue::I64(value) => Self::Int(*value),
            FieldValue::U64(value) => Self::Uint(*value),
            FieldValue::F64(value) => Self::Float(*value),
            FieldValue::Bool(value) => Self::Bool(*value),
            other => Self::Text(other.to_string()),
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
            Value::Text(text) => Self::Text(text.clone().into_owned()),
            // A list or struct within is shown compactly, as on a terminal.
            other => Self::Text(other.to_string()),
        }
    }
}
