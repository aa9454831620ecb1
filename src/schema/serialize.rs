//! `serde::Serialize` for decoded values, in the form that [`Value`] documents.

use super::Hex;
use super::Value;
#[cfg(feature = "macros")]
use super::perf::FieldValue;
use super::values::decimal::decimal_digits;
use serde::ser::{Serialize, SerializeMap as _, Serializer};

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Uint(number) => serializer.serialize_u64(*number),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Uint128(number) => serializer.collect_str(number),
            Value::Int128(number) => serializer.collect_str(number),
            Value::Uint256(limbs) => serializer.serialize_str(&decimal_digits(*limbs)),
            // The `f32` is converted to an `f64` by its shortest decimal digits. So an `f32` of 0.1 is written as 0.1
            // and not as 0.10000000149011612.
            Value::F32(number) => serializer.serialize_f64(number.to_string().parse().unwrap_or(f64::NAN)),
            Value::F64(number) => serializer.serialize_f64(*number),
            Value::Bool(bool) => serializer.serialize_bool(*bool),
            Value::Bytes(bytes) => serializer.collect_str(&format_args!("0x{}", Hex(bytes))),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Enum { name: Some(name), .. } => serializer.serialize_str(name),
            Value::Enum { name: None, number } => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_u64(number),
                (_, Ok(number)) => serializer.serialize_i64(number),
                _ => serializer.collect_str(number),
            },
            Value::List(elements) => serializer.collect_seq(elements),
            Value::Struct(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
            Value::Redacted => serializer.serialize_unit(),
            Value::Malformed { problem, rest } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("malformed", problem.as_str())?;
                map.serialize_entry("rest", &Value::Bytes(rest))?;
                map.end()
            }
        }
    }
}

/// Numbers and truth values are serialized as such, and every other value as its text. Numbers that JSON cannot
/// represent become text, too: integers of 128 bits, NaN and the infinities.
#[cfg(feature = "macros")]
impl Serialize for FieldValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::I64(value) => serializer.serialize_i64(*value),
            Self::U64(value) => serializer.serialize_u64(*value),
            Self::F64(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::F64(_)
            | Self::I128(_)
            | Self::U128(_)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Error(_)
            | Self::Debug(_)
            | Self::NotFormatted(_)
            | Self::Unknown { .. } => serializer.collect_str(self),
        }
    }
}
