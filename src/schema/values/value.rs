//! Decoded payloads of any schema.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::decimal::decimal_digits;
use super::float;
use super::hex::write_hex;

/// The length of the longest byte string that `{}` prints in full, in bytes.
const SHOWN_BYTES: usize = 32;
/// The number of elements of the longest array that `{}` prints in full.
const SHOWN_ELEMENTS: usize = 8;

/// The decoded content of a payload, or of a part of it. [`SchemaModel::decode`](crate::schema::SchemaModel::decode) returns
/// it.
///
/// A value borrows names from the schema and bytes from the payload. `{}` prints the value on one line for people, and
/// shortens long byte strings and arrays. `{:#}` prints everything.
///
/// With the feature `serde`, a value implements `serde::Serialize`:
///
/// - Integers up to 64 bits are numbers. Larger integers are strings of decimal digits.
/// - Byte strings are strings of `0x` and hex digits.
/// - Enums are their names, or numbers if they have no name.
/// - Redacted fields are null. In JSON, NaN and infinities are null, too.
/// - Malformed parts are maps of `malformed` (the problem as a text) and `rest` (the bytes as hex digits).
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned integer up to 64 bits.
    Uint(u64),
    /// A signed integer up to 64 bits.
    Int(i64),
    /// A `u128`.
    Uint128(u128),
    /// An `i128`.
    Int128(i128),
    /// An unsigned integer of 256 bits: four limbs of 64 bits, least significant first.
    Uint256([u64; 4]),
    /// An `f32`.
    F32(f32),
    /// An `f64`.
    F64(f64),
    /// A `bool`.
    Bool(bool),
    /// An array of `u8`: a hash, an address, data.
    Bytes(&'a [u8]),
    /// The text that the bytes of an array of [`Utf8`](crate::schema::Utf8) spell. U+FFFD replaces invalid UTF-8.
    Text(Cow<'a, str>),
    /// A value of an enum.
    Enum {
        /// The name of the value, or `None` if the enum has no value with this number.
        name: Option<&'a str>,
        /// Its number.
        number: i128,
    },
    /// An array.
    List(Vec<Value<'a>>),
    /// The fields of a struct, or the fields and trailing arrays of an event's payload, by name and in order.
    Struct(Vec<(&'a str, Value<'a>)>),
    /// A field that is never recorded.
    Redacted,
    /// Bytes that do not fit the schema.
    Malformed {
        /// The problem.
        problem: String,
        /// The bytes.
        rest: &'a [u8],
    },
}

impl<'a> Value<'a> {
    /// Returns the field at a dotted path (`txn_header.nonce`), or `None` if there is no such field.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&Value<'a>> {
        path.split('.').try_fold(self, |value, segment| match value {
            Value::Struct(fields) => fields.iter().find(|(name, _)| *name == segment).map(|(_, value)| value),
            _ => None,
        })
    }

    /// Returns true if the value, or any part of it, is [`Malformed`](Value::Malformed).
    #[must_use]
    pub fn has_malformed(&self) -> bool {
        match self {
            Value::Malformed { .. } => true,
            Value::List(elements) => elements.iter().any(Value::has_malformed),
            Value::Struct(fields) => fields.iter().any(|(_, value)| value.has_malformed()),
            _ => false,
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The outermost struct is printed without braces.
            Value::Struct(fields) => display_fields(f, fields),
            other => other.display(f),
        }
    }
}

impl Value<'_> {
    fn display(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Uint(number) => write!(f, "{number}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Uint128(number) => write!(f, "{number}"),
            Value::Int128(number) => write!(f, "{number}"),
            Value::Uint256(limbs) => f.write_str(&decimal_digits(*limbs)),
            Value::F32(number) => float::show(number, f64::from(*number), f),
            Value::F64(number) => float::show(number, *number, f),
            Value::Bool(bool) => write!(f, "{bool}"),
            Value::Bytes(bytes) => display_bytes(f, bytes),
            // Text is quoted and escaped. Otherwise text from a ring could control the terminal.
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Enum { name: Some(name), .. } => f.write_str(name),
            Value::Enum { name: None, number } => write!(f, "{number}"),
            Value::List(elements) => {
                let shown = if f.alternate() { elements.len() } else { elements.len().min(SHOWN_ELEMENTS) };
                f.write_char('[')?;
                for (i, element) in elements[..shown].iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    element.display(f)?;
                }
                if shown < elements.len() {
                    write!(f, ", … {} more", elements.len() - shown)?;
                }
                f.write_char(']')
            }
            Value::Struct(fields) => {
                f.write_char('{')?;
                display_fields(f, fields)?;
                f.write_char('}')
            }
            Value::Redacted => f.write_str("<redacted>"),
            Value::Malformed { problem, rest } => {
                write!(f, "<{problem}: ")?;
                display_bytes(f, rest)?;
                f.write_char('>')
            }
        }
    }
}

fn display_fields(f: &mut fmt::Formatter<'_>, fields: &[(&str, Value<'_>)]) -> fmt::Result {
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            f.write_char(' ')?;
        }
        write!(f, "{name}=")?;
        value.display(f)?;
    }
    Ok(())
}

fn display_bytes(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    if f.alternate() || bytes.len() <= SHOWN_BYTES {
        return write_hex(f, bytes);
    }
    write_hex(f, &bytes[..SHOWN_BYTES / 2])?;
    write!(f, "…({} bytes)", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::Value;

    #[test]
    fn a_number_is_shown_with_an_exponent_where_it_would_be_a_row_of_zeros() {
        let shown = |value: Value<'_>| value.to_string();
        let singles = [f32::MIN_POSITIVE, -f32::MAX, 0.1, 1e-5, 9e-6, 0.0, -0.0, f32::INFINITY, f32::NAN, 1e16, 3.0];
        assert_eq!(
            singles.map(|number| shown(Value::F32(number))),
            ["1.1754944e-38", "-3.4028235e38", "0.1", "1e-5", "9e-6", "0", "-0", "inf", "NaN", "1e16", "3"]
        );
        let doubles = [f64::MIN_POSITIVE, f64::MAX, 1e15, 123_456_789.5, 5e-324];
        assert_eq!(
            doubles.map(|number| shown(Value::F64(number))),
            ["2.2250738585072014e-308", "1.7976931348623157e308", "1000000000000000", "123456789.5", "5e-324"]
        );
        // Each reads as the number that it shows.
        for number in doubles {
            assert_eq!(shown(Value::F64(number)).parse(), Ok(number));
        }
    }
}
