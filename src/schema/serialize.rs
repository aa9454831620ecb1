//! `serde::Serialize` for decoded values, in the form that [`Value`] documents.

use super::Hex;
use super::Value;
use super::decimal::decimal_digits;
#[cfg(feature = "macros")]
use super::perf::FieldValue;
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
            other => serializer.collect_str(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn values_have_their_documented_form_in_json() {
        let malformed = Value::Malformed { problem: "too short".into(), rest: &[1, 255] };
        let numbers = [Value::Uint(u64::MAX), Value::Int(-5), Value::Uint128(7), Value::Int128(-7), Value::F64(-0.0)];
        let floats = [0.1, 1e20, f32::MIN_POSITIVE, f32::NAN, f32::INFINITY].map(Value::F32);
        let enums = [Some("GREEN"), None].map(|name| Value::Enum { name, number: -3 });
        let value = Value::Struct(vec![
            ("text", Value::Text(Cow::Borrowed("a\"\u{1b}\n"))),
            ("list", Value::List([&numbers[..], &floats, &enums].concat())),
            ("twice", Value::Bool(true)),
            ("twice", Value::Redacted),
            ("rest", malformed),
            ("bytes", Value::Bytes(&[0, 16])),
        ]);
        let numbers = r#"18446744073709551615,-5,"7","-7",-0.0"#;
        let floats = "0.1,1e+20,1.1754944e-38,null,null";
        let rest = r#""rest":{"malformed":"too short","rest":"0x01ff"},"bytes":"0x0010""#;
        assert_eq!(
            serde_json::to_string(&value).unwrap(),
            format!(
                r#"{{"text":"a\"\u001b\n","list":[{numbers},{floats},"GREEN",-3],"twice":true,"twice":null,{rest}}}"#
            )
        );
    }
}
