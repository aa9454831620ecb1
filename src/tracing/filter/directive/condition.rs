//! The condition that a directive puts on a field of a span.

use crate::schema::perf::{FieldValue, RawField};
use crate::tracing::filter::field_name::write_field_name;
use std::fmt;

/// A field that a span must have, and perhaps the value of this field.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::tracing) struct FieldCondition {
    name: Box<str>,
    /// The value as it is written in the directive. Without a value, every span that has the field meets the
    /// condition.
    value: Option<Box<str>>,
}

impl FieldCondition {
    pub(super) fn new(name: &str, value: Option<&str>) -> Self {
        Self { name: name.into(), value: value.map(Into::into) }
    }

    pub(in crate::tracing) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::tracing) fn has_value(&self) -> bool {
        self.value.is_some()
    }

    /// Returns true if a recorded value meets the condition:
    ///
    /// - An integer or a truth value meets a condition that is the same number or the same `true` or `false`.
    /// - A floating-point number meets a condition that parses to the same number; `NaN` meets `NaN`.
    /// - A text meets a condition of the same text. The condition may be in quotes. A text that `Debug` has written
    ///   may be in quotes, too.
    ///
    /// A value that is not whole, not formatted, or redacted meets no condition.
    pub(in crate::tracing) fn is_met_by(&self, field: &RawField<'_>) -> bool {
        let Some(written) = &self.value else { return true };
        if field.cut.is_some() {
            return false;
        }
        match field.to_value() {
            FieldValue::Bool(value) => written.parse() == Ok(value),
            FieldValue::I64(value) => written.parse() == Ok(value),
            FieldValue::U64(value) => written.parse() == Ok(value),
            FieldValue::I128(value) => written.parse() == Ok(value),
            FieldValue::U128(value) => written.parse() == Ok(value),
            FieldValue::F64(value) => is_float(written, value),
            FieldValue::Str(text) | FieldValue::Error(text) => is_text(written, &text),
            FieldValue::Debug(text) => is_text(written, &text) || is_text(written, without_quotes(&text)),
            FieldValue::Bytes(_) | FieldValue::NotFormatted(_) | FieldValue::Unknown { .. } => false,
        }
    }
}

fn is_float(written: &str, value: f64) -> bool {
    // As in `EnvFilter`, a condition that is an integer is met by integers only.
    if written.parse::<u64>().is_ok() || written.parse::<i64>().is_ok() {
        return false;
    }
    written.parse::<f64>().is_ok_and(|wanted| wanted == value || wanted.is_nan() && value.is_nan())
}

fn is_text(written: &str, text: &str) -> bool {
    written == text || without_quotes(written) == text
}

fn without_quotes(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

impl fmt::Display for FieldCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_field_name(f, &self.name)?;
        self.value.as_ref().map_or(Ok(()), |value| write!(f, "={value}"))
    }
}
