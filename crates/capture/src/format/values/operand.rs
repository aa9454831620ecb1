//! The value of a field, as conditions compare it. The writer of a block's values and the test of an event use the same
//! rules.

use super::integer::Integer;
use eventring::schema::Value;
use eventring::schema::perf::FieldValue;

/// The value of a field, as conditions compare it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand<'a> {
    /// An integer.
    Integer(Integer),
    /// A number that is not an integer.
    Float(f64),
    /// The same of 32 bits.
    Float32(f32),
    /// A truth value.
    Bool(bool),
    /// A text, or any other value as text.
    Text(&'a str),
}

impl Operand<'_> {
    /// Calls `take` with the value of a field of a span or log record.
    pub fn with_field(value: &FieldValue, take: &mut dyn FnMut(Operand<'_>)) {
        match value {
            FieldValue::I64(number) => take(Operand::Integer((*number).into())),
            FieldValue::U64(number) => take(Operand::Integer((*number).into())),
            FieldValue::I128(number) => take(Operand::Integer((*number).into())),
            FieldValue::U128(number) => take(Operand::Integer((*number).into())),
            FieldValue::F64(number) => take(Operand::Float(*number)),
            FieldValue::Bool(value) => take(Operand::Bool(*value)),
            FieldValue::Str(text) | FieldValue::Error(text) | FieldValue::Debug(text) => take(Operand::Text(text)),
            _ => take(Operand::Text(&value.to_string())),
        }
    }

    /// Calls `take` with the value of a field of a typed event.
    pub fn with_value(value: &Value<'_>, take: &mut dyn FnMut(Operand<'_>)) {
        match value {
            Value::Uint(number) => take(Operand::Integer((*number).into())),
            Value::Int(number) => take(Operand::Integer((*number).into())),
            Value::Uint128(number) => take(Operand::Integer((*number).into())),
            Value::Int128(number) => take(Operand::Integer((*number).into())),
            Value::Uint256(limbs) => take(Operand::Integer((*limbs).into())),
            Value::F32(number) => take(Operand::Float32(*number)),
            Value::F64(number) => take(Operand::Float(*number)),
            Value::Bool(value) => take(Operand::Bool(*value)),
            Value::Text(text) => take(Operand::Text(text)),
            Value::Enum { name: Some(name), .. } => take(Operand::Text(name)),
            other => take(Operand::Text(&other.to_string())),
        }
    }
}
