//! Decoding payloads by schema text alone.

use std::borrow::Cow;

use super::model::{CountModel, EventModel, SchemaModel, TrailingModel, TypeModel};
use crate::layout::record_error::EVENT_TYPE as RECORD_ERROR_CODE;
use crate::schema::description::describe::Scalar;
use crate::schema::fields::field::PayloadField;
use crate::schema::fields::trailing::read_count;
use crate::schema::values::value::Value;

/// The largest number of values that the decoder makes from one payload. The limit bounds the memory that the decoder
/// uses, even for a hostile schema.
const MAX_VALUES: usize = 1 << 20;
/// This many bytes of a field's name count as one value, because output repeats a field's name with each value.
const NAME_BYTES_PER_VALUE: usize = 16;

/// The name of the field with which a [`Value::Struct`] reports a problem of the whole payload. No field of a schema
/// can have this name.
pub const MALFORMED: &str = "$malformed";

impl SchemaModel {
    /// Decodes the payload of event `code`.
    ///
    /// Never fails. If the schema has no event `code`, returns [`Value::Malformed`] with all bytes. If the payload is
    /// too short or too long for its event, returns the fields that could be decoded, followed by a field `$malformed`.
    /// This field holds the remaining bytes as a [`Value::Malformed`]. Decodes about a million values at most. The
    /// bytes of further values become a [`Value::Malformed`], too. Byte strings and valid text are borrowed from the
    /// payload.
    #[must_use]
    pub fn decode<'a>(&'a self, code: u16, payload: &'a [u8]) -> Value<'a> {
        match self.event(code) {
            // A RECORD_ERROR has no payload if the ring had no payload memory left to hold the reason of the error.
            Some(_) if code == RECORD_ERROR_CODE && payload.is_empty() => Value::Struct(Vec::new()),
            Some(event) => PayloadDecoder::new(self).event(event, payload),
            None => malformed(format!("event type {code} is not in schema {}", self.name), payload),
        }
    }
}

impl SchemaModel {
    /// Returns the number of elements of a trailing array and their size in bytes, as the fixed struct says or as
    /// `rest`, what is left of the payload, has room for them.
    pub(in crate::schema) fn size_of_array(&self, array: &TrailingModel, fixed: &[u8], rest: &[u8]) -> (u64, u64) {
        let element_bytes = self.bytes_of(&array.element);
        let count = match array.count {
            CountModel::At(offset, scalar) => read_count(fixed, offset, scalar),
            // The parser refuses an array whose elements have 0 bytes, so `element_bytes` is not 0 here. `max(1)` only
            // makes sure that the division cannot panic.
            CountModel::Rest => (rest.len() / element_bytes.max(1)) as u64,
        };
        (count, count.saturating_mul(element_bytes as u64))
    }
}

/// Returns the number with the noun, as `1 byte` or `2 bytes`.
fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn malformed(problem: impl Into<String>, rest: &[u8]) -> Value<'_> {
    Value::Malformed { problem: problem.into(), rest }
}

pub(in crate::schema) struct PayloadDecoder<'a> {
    model: &'a SchemaModel,
    values_left: usize,
}

impl<'a> PayloadDecoder<'a> {
    pub(in crate::schema) fn new(model: &'a SchemaModel) -> Self {
        Self { model, values_left: MAX_VALUES }
    }

    fn event(mut self, event: &'a EventModel, payload: &'a [u8]) -> Value<'a> {
        let fixed_bytes = event.payload.map_or(0, |index| self.model.structs[index].bytes);
        let Some((fixed, mut rest)) = payload.split_at_checked(fixed_bytes) else {
            let (found, expected) = (counted(payload.len() as u64, "byte"), counted(fixed_bytes as u64, "byte"));
            let problem = format!("{found}, event {} has at least {expected}", event.name);
            return Value::Struct(vec![(MALFORMED, malformed(problem, payload))]);
        };
        let mut fields = match event.payload {
            Some(index) => self.fields(index, fixed),
            None => Vec::new(),
        };
        for array in &event.trailing {
            let (count, wanted) = self.model.size_of_array(array, fixed, rest);
            let Some((bytes, after)) = usize::try_from(wanted).ok().and_then(|wanted| rest.split_at_checked(wanted))
            else {
                let left = counted(rest.len() as u64, "byte");
                let (elements, wanted) = (counted(count, "element"), counted(wanted, "byte"));
                let problem = format!("{left} left, array `{}` of {elements} needs {wanted}", array.name);
                fields.push((MALFORMED, malformed(problem, rest)));
                return Value::Struct(fields);
            };
            fields.push((&array.name, self.array(&array.element, count, bytes)));
            rest = after;
        }
        if !rest.is_empty() {
            fields.push((MALFORMED, malformed(format!("{} left over", counted(rest.len() as u64, "byte")), rest)));
        }
        Value::Struct(fields)
    }

    fn fields(&mut self, index: usize, bytes: &'a [u8]) -> Vec<(&'a str, Value<'a>)> {
        let model = self.model;
        let fields = &model.structs[index].fields;
        let mut values = Vec::with_capacity(fields.len().min(self.values_left));
        for field in fields {
            self.values_left = self.values_left.saturating_sub(field.name.len() / NAME_BYTES_PER_VALUE);
            let value = if field.redacted {
                Value::Redacted
            } else {
                let field_bytes = bytes.get(field.offset..field.offset + model.bytes_of(&field.ty)).unwrap_or_default();
                self.value(&field.ty, field_bytes)
            };
            values.push((field.name.as_str(), value));
        }
        values
    }

    pub(in crate::schema) fn value(&mut self, ty: &'a TypeModel, bytes: &'a [u8]) -> Value<'a> {
        let Some(values_left) = self.values_left.checked_sub(1) else {
            return malformed("too many values to show", bytes);
        };
        self.values_left = values_left;
        match ty {
            TypeModel::Scalar(scalar) => scalar_value(*scalar, bytes),
            TypeModel::Array { element, len } => match self.array(element, *len as u64, bytes) {
                // Text in a fixed array is padded with zeros.
                Value::Text(text) => Value::Text(trim_padding(text)),
                other => other,
            },
            TypeModel::Struct(index) => Value::Struct(self.fields(*index, bytes)),
            TypeModel::Enum(index) => {
                let info = &self.model.enums[*index];
                let Some(number) = integer(&scalar_value(info.repr, bytes)) else {
                    return malformed("not an integer", bytes);
                };
                let name = info
                    .values
                    .binary_search_by_key(&number, |(value, _)| *value)
                    .ok()
                    .map(|i| info.values[i].1.as_str());
                Value::Enum { name, number }
            }
        }
    }

    pub(in crate::schema) fn array(&mut self, element: &'a TypeModel, count: u64, bytes: &'a [u8]) -> Value<'a> {
        match element {
            TypeModel::Scalar(Scalar::U8) => return Value::Bytes(bytes),
            TypeModel::Scalar(Scalar::Utf8) => return Value::Text(String::from_utf8_lossy(bytes)),
            _ => {}
        }
        let element_bytes = self.model.bytes_of(element);
        let mut elements = Vec::new();
        let mut rest = bytes;
        for _ in 0..count {
            let (bytes, after) = rest.split_at_checked(element_bytes).unwrap_or((rest, &[]));
            if self.values_left == 0 {
                elements.push(malformed("too many values to show", rest));
                break;
            }
            elements.push(self.value(element, bytes));
            rest = after;
        }
        Value::List(elements)
    }
}

/// Removes the zeros at the end of a text.
fn trim_padding(text: Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_end_matches('\0')),
        Cow::Owned(text) => Cow::Owned(text.trim_end_matches('\0').to_owned()),
    }
}

fn integer(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Uint(number) => Some((*number).into()),
        Value::Int(number) => Some((*number).into()),
        _ => None,
    }
}

fn scalar_value(scalar: Scalar, bytes: &[u8]) -> Value<'_> {
    let decoded = match scalar {
        Scalar::U8 => u8::decode_field(bytes).map(|number| Value::Uint(number.into())),
        Scalar::U16 => u16::decode_field(bytes).map(|number| Value::Uint(number.into())),
        Scalar::U32 => u32::decode_field(bytes).map(|number| Value::Uint(number.into())),
        Scalar::U64 => u64::decode_field(bytes).map(Value::Uint),
        Scalar::U128 => u128::decode_field(bytes).map(Value::Uint128),
        Scalar::U256 => <[u64; 4]>::decode_field(bytes).map(Value::Uint256),
        Scalar::I8 => i8::decode_field(bytes).map(|number| Value::Int(number.into())),
        Scalar::I16 => i16::decode_field(bytes).map(|number| Value::Int(number.into())),
        Scalar::I32 => i32::decode_field(bytes).map(|number| Value::Int(number.into())),
        Scalar::I64 => i64::decode_field(bytes).map(Value::Int),
        Scalar::I128 => i128::decode_field(bytes).map(Value::Int128),
        Scalar::F32 => f32::decode_field(bytes).map(Value::F32),
        Scalar::F64 => f64::decode_field(bytes).map(Value::F64),
        Scalar::Bool => bool::decode_field(bytes).map(Value::Bool),
        Scalar::Utf8 => return Value::Text(String::from_utf8_lossy(bytes)),
    };
    decoded.unwrap_or_else(|error| malformed(error.to_string(), bytes))
}
