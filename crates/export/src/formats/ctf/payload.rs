//! Payloads of typed events, by the schema of their ring.

use super::identifiers::Identifiers;
use super::metadata::{put_text, quoted};
use eventring::schema::{Scalar, Shape, Value};
use std::io::Write as _;

/// Returns the declarations of the fields of a struct.
pub(super) fn declarations(fields: &[(&str, Shape<'_>)]) -> String {
    let mut text = String::new();
    let mut identifiers = Identifiers::default();
    for (name, shape) in fields {
        let place = match shape {
            // The number of elements is a field of its own. LTTng gives it the same name.
            Shape::List(_) => {
                let length = identifiers.add(&format!("_{name}_length"));
                text.push_str(&format!("uint32_t {length}; "));
                format!("{}[{length}]", identifiers.add(name))
            }
            _ => identifiers.add(name),
        };
        declare(shape, &place, &mut text);
    }
    text
}

/// Appends the declaration of a field. `place` is its name, with the lengths of the arrays around it.
fn declare(shape: &Shape<'_>, place: &str, text: &mut String) {
    match shape {
        Shape::Array(length, element) => declare(element, &format!("{place}[{length}]"), text),
        Shape::List(element) => declare(element, place, text),
        Shape::Struct(fields) => text.push_str(&format!("struct {{ {}}} {place}; ", declarations(fields))),
        Shape::Enum(scalar, labels) if !labels.is_empty() => {
            let labels: Vec<String> =
                labels.iter().map(|(number, name)| format!("{} = {number}", quoted(name))).collect();
            text.push_str(&format!("enum : {} {{ {} }} {place}; ", type_name(*scalar), labels.join(", ")));
        }
        Shape::Enum(scalar, _) | Shape::Scalar(scalar) => text.push_str(&format!("{} {place}; ", type_name(*scalar))),
        Shape::Text | Shape::Bytes | Shape::Redacted => text.push_str(&format!("string {place}; ")),
    }
}

/// Returns the type of a scalar. The format has no integers of more than 64 bits, so they are text.
fn type_name(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::U8 | Scalar::Bool => "uint8_t",
        Scalar::U16 => "uint16_t",
        Scalar::U32 => "uint32_t",
        Scalar::U64 => "uint64_t",
        Scalar::I8 => "int8_t",
        Scalar::I16 => "int16_t",
        Scalar::I32 => "int32_t",
        Scalar::I64 => "int64_t",
        Scalar::F32 => "float32_t",
        Scalar::F64 => "float64_t",
        _ => "string",
    }
}

/// Appends a value as its declaration says. Returns false if the value has another structure, because a part of the
/// payload does not fit the schema. Then a part of the value may have been appended.
pub(super) fn put(shape: &Shape<'_>, value: &Value<'_>, out: &mut Vec<u8>) -> bool {
    match (shape, value) {
        (Shape::Struct(fields), Value::Struct(values)) => {
            fields.len() == values.len()
                && fields.iter().zip(values).all(|((_, shape), (_, value))| put(shape, value, out))
        }
        (Shape::Array(length, element), Value::List(values)) => {
            *length == values.len() && values.iter().all(|value| put(element, value, out))
        }
        (Shape::List(element), Value::List(values)) => {
            let Ok(length) = u32::try_from(values.len()) else { return false };
            out.extend(length.to_le_bytes());
            values.iter().all(|value| put(element, value, out))
        }
        (Shape::Enum(scalar, _), Value::Enum { number, .. }) => {
            out.extend(&number.to_le_bytes()[..scalar.bytes()]);
            true
        }
        (Shape::Text, Value::Text(text)) => {
            put_text(out, text);
            true
        }
        (Shape::Bytes, Value::Bytes(_)) | (Shape::Redacted, Value::Redacted) => put_as_text(value, out),
        (Shape::Scalar(scalar), value) => put_scalar(*scalar, value, out),
        _ => false,
    }
}

fn put_scalar(scalar: Scalar, value: &Value<'_>, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Uint(number) => out.extend(&number.to_le_bytes()[..scalar.bytes()]),
        Value::Int(number) => out.extend(&number.to_le_bytes()[..scalar.bytes()]),
        Value::F32(number) => out.extend(number.to_le_bytes()),
        Value::F64(number) => out.extend(number.to_le_bytes()),
        Value::Bool(is_true) => out.push(u8::from(*is_true)),
        Value::Uint128(_) | Value::Int128(_) | Value::Uint256(_) => return put_as_text(value, out),
        _ => return false,
    }
    true
}

/// Appends the text that `value` has for people. It has no NUL.
fn put_as_text(value: &Value<'_>, out: &mut Vec<u8>) -> bool {
    let is_written = write!(out, "{value:#}").is_ok();
    out.push(0);
    is_written
}

/// Returns the number of types in a structure.
pub(super) fn parts(shape: &Shape<'_>) -> u64 {
    1 + match shape {
        Shape::Array(_, element) | Shape::List(element) => parts(element),
        Shape::Struct(fields) => fields.iter().map(|(_, shape)| parts(shape)).sum(),
        _ => 0,
    }
}
