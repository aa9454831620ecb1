//! Field values in payloads.
//!
//! The payload is a sequence of fields without padding. Each field is a header of [`FIELD_HEADER_BYTES`] bytes and a
//! value. The header holds:
//! - the index of the field in its call site (u8),
//! - the type (u8), with bit 7 set if the value was cut,
//! - the length of the value in bytes (u16).
//!
//! The last 4 bytes of a cut value are its original length in bytes, or a code if that length is not known or
//! formatting failed (see [`Cut::code`]).

use std::fmt;

/// Bytes before each field's value.
pub(crate) const FIELD_HEADER_BYTES: usize = 4;
/// Bit of the type byte: the value was cut.
pub(crate) const TRUNCATED: u8 = 0x80;
/// Bytes of the original length after a value that was cut.
pub(crate) const TRUNCATION_BYTES: usize = 4;

/// Makes an enum and the list of its variants, so that none can be missing from it.
macro_rules! listed {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$about:meta])* $variant:ident = $code:literal,)*
    }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$about])* $variant = $code,)*
        }

        impl $name {
            const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];
        }
    };
}

listed! {
    /// The type of a field's value, as it stands in the type byte.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[repr(u8)]
    #[non_exhaustive]
    pub enum ValueType {
        /// `i64`, 8 bytes, little endian like all numbers.
        I64 = 1,
        /// `u64`, 8 bytes.
        U64 = 2,
        /// `i128`, 16 bytes.
        I128 = 3,
        /// `u128`, 16 bytes.
        U128 = 4,
        /// `f64`, 8 bytes.
        F64 = 5,
        /// `bool`, 1 byte, 0 or 1.
        Bool = 6,
        /// Text.
        Str = 7,
        /// Bytes.
        Bytes = 8,
        /// An error's text, and the texts of its sources with `: ` before each.
        Error = 9,
        /// Text that the value's `Debug` or `Display` has written. The message of a log record is such a text, too.
        Debug = 10,
        /// A value that was not formatted. One byte holds the reason, see [`NotFormatted`].
        NotFormatted = 11,
        /// The text of a log record whose call site has a format string. The value holds the arguments; it is empty if
        /// the text is constant. A reader makes the text from both.
        Text = 12,
    }
}

impl ValueType {
    /// Returns the type with this code, or `None` if no type has it. The code is the low 7 bits of a type byte.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|ty| *ty as u8 == code)
    }
}

listed! {
    /// The kind of an argument of a text, as its first byte says. Numbers have the size of their type.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    #[repr(u8)]
    pub(crate) enum ArgKind {
        I8 = 1,
        I16 = 2,
        I32 = 3,
        I64 = 4,
        I128 = 5,
        U8 = 6,
        U16 = 7,
        U32 = 8,
        U64 = 9,
        U128 = 10,
        F32 = 11,
        F64 = 12,
        Bool = 13,
        /// A character, as u32.
        Char = 14,
        /// A text: its length in bytes (u16) and UTF-8.
        Str = 15,
        /// Text that the program has formatted, like `Str`.
        Formatted = 16,
        /// An option without a value.
        None = 17,
        /// An option with a value, which follows.
        Some = 18,
        /// A slice: the number of values (u16), and the values.
        Slice = 19,
    }
}

impl ArgKind {
    /// Returns the kind with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).checked_sub(1)?).copied()
    }
}

/// The reason why a value was not formatted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum NotFormatted {
    /// Formatting of `Debug` values is switched off.
    SwitchedOff = 1,
    /// The value was recorded while another value was being formatted, and such formatting was nested too deep.
    Nested = 2,
    /// The field is redacted, whatever its type.
    Redacted = 3,
    /// A reason that this version does not know.
    Unknown = 0,
}

/// A field's value, decoded.
///
/// `{}` prints a value for people. It prints text as it is, and bytes in hexadecimal. It prints a value that was not
/// formatted as `<not formatted>`, and a redacted value as `<redacted>`.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum FieldValue {
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A signed integer of 128 bits.
    I128(i128),
    /// An unsigned integer of 128 bits.
    U128(u128),
    /// A floating-point number.
    F64(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// An error's text.
    Error(String),
    /// Text that `Debug` or `Display` wrote.
    Debug(String),
    /// A value that was not formatted, with the reason.
    NotFormatted(NotFormatted),
    /// A value of a type that this version does not know, or a value whose bytes do not fit its type.
    Unknown {
        /// The code of the type.
        code: u8,
        /// The value's bytes.
        bytes: Vec<u8>,
    },
}

impl FieldValue {
    /// Returns the value as a float, if it is a number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::I64(value) => Some(value as f64),
            Self::U64(value) => Some(value as f64),
            Self::I128(value) => Some(value as f64),
            Self::U128(value) => Some(value as f64),
            Self::F64(value) => Some(value),
            Self::Bool(_)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Error(_)
            | Self::Debug(_)
            | Self::NotFormatted(_)
            | Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::I64(value) => value.fmt(f),
            Self::U64(value) => value.fmt(f),
            Self::I128(value) => value.fmt(f),
            Self::U128(value) => value.fmt(f),
            Self::F64(value) => crate::schema::values::float::show(value, *value, f),
            Self::Bool(value) => value.fmt(f),
            Self::Str(text) | Self::Error(text) | Self::Debug(text) => f.write_str(text),
            Self::Bytes(bytes) | Self::Unknown { bytes, .. } => {
                write!(f, "0x{}", crate::schema::values::hex::Hex(bytes))
            }
            Self::NotFormatted(NotFormatted::Redacted) => f.write_str("<redacted>"),
            Self::NotFormatted(_) => f.write_str("<not formatted>"),
        }
    }
}

/// The reason why a value is not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cut {
    /// The value exceeded a limit.
    Limit {
        /// The length of the whole value in bytes, or `None` if the length is not known.
        original_bytes: Option<u32>,
    },
    /// The value's `Debug` or `Display` returned an error. The value is the text that it had written until then.
    Failed,
    /// The value's `Debug` or `Display` panicked. The value is the text that it had written until then, as far as the
    /// text lies in the first 1,024 bytes of all fields together. Later fields were not recorded.
    Panicked,
}

impl Cut {
    const UNKNOWN: u32 = u32::MAX;
    const FAILED: u32 = u32::MAX - 1;
    const PANICKED: u32 = u32::MAX - 2;

    /// Returns the number that follows the value in the payload.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::Limit { original_bytes: Some(bytes) } if bytes < Self::PANICKED => bytes,
            Self::Limit { .. } => Self::UNKNOWN,
            Self::Failed => Self::FAILED,
            Self::Panicked => Self::PANICKED,
        }
    }

    /// Returns the reason that the number stands for.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            Self::UNKNOWN => Self::Limit { original_bytes: None },
            Self::FAILED => Self::Failed,
            Self::PANICKED => Self::Panicked,
            bytes => Self::Limit { original_bytes: Some(bytes) },
        }
    }
}

/// A field of a payload, borrowed from the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawField<'a> {
    /// Index of the field among those of its call site.
    pub index: u8,
    /// Code of the value's type; see [`ValueType::from_code`].
    pub type_code: u8,
    /// The value's bytes, as far as they were kept.
    pub value: &'a [u8],
    /// The reason why the value is not whole, if it is not.
    pub cut: Option<Cut>,
}

impl RawField<'_> {
    /// Decodes the value. If text was cut in the middle of a character, drops the first part of this character.
    #[must_use]
    pub fn to_value(&self) -> FieldValue {
        let text = || match std::str::from_utf8(self.value) {
            Ok(text) => text.to_owned(),
            Err(error) if error.error_len().is_none() && self.cut.is_some() => {
                String::from_utf8_lossy(&self.value[..error.valid_up_to()]).into_owned()
            }
            Err(_) => String::from_utf8_lossy(self.value).into_owned(),
        };
        let unknown = || FieldValue::Unknown { code: self.type_code, bytes: self.value.to_vec() };
        let Some(ty) = ValueType::from_code(self.type_code) else { return unknown() };
        let number = match ty {
            ValueType::I64 => array(self.value).map(|bytes| FieldValue::I64(i64::from_le_bytes(bytes))),
            ValueType::U64 => array(self.value).map(|bytes| FieldValue::U64(u64::from_le_bytes(bytes))),
            ValueType::I128 => array(self.value).map(|bytes| FieldValue::I128(i128::from_le_bytes(bytes))),
            ValueType::U128 => array(self.value).map(|bytes| FieldValue::U128(u128::from_le_bytes(bytes))),
            ValueType::F64 => array(self.value).map(|bytes| FieldValue::F64(f64::from_le_bytes(bytes))),
            ValueType::Bool => match self.value {
                [0] => Some(FieldValue::Bool(false)),
                [1] => Some(FieldValue::Bool(true)),
                _ => None,
            },
            ValueType::NotFormatted => match self.value {
                [1] => Some(FieldValue::NotFormatted(NotFormatted::SwitchedOff)),
                [2] => Some(FieldValue::NotFormatted(NotFormatted::Nested)),
                [3] => Some(FieldValue::NotFormatted(NotFormatted::Redacted)),
                _ => Some(FieldValue::NotFormatted(NotFormatted::Unknown)),
            },
            ValueType::Str => Some(FieldValue::Str(text())),
            ValueType::Error => Some(FieldValue::Error(text())),
            ValueType::Debug => Some(FieldValue::Debug(text())),
            ValueType::Bytes => Some(FieldValue::Bytes(self.value.to_vec())),
            // Only the call site's format string says what the arguments mean.
            ValueType::Text => None,
        };
        number.unwrap_or_else(unknown)
    }
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

/// Bytes of a payload that are not fields.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MalformedFields {
    /// Their offset in the payload, in bytes.
    pub offset: usize,
}

impl fmt::Display for MalformedFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the field at byte {} of the payload is longer than what is left", self.offset)
    }
}

debug_as_displayed!(MalformedFields);

impl std::error::Error for MalformedFields {}

/// An iterator over the fields of a payload. It ends after the first malformed field.
#[derive(Clone, Debug)]
pub struct RawFields<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> RawFields<'a> {
    /// Reads the payload of a SPAN_NEW, SPAN_RECORD or EVENT.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, offset: 0 }
    }

    /// Returns the offset in the payload at which the next field begins.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    fn split(&self) -> Option<(RawField<'a>, &'a [u8])> {
        let (&[index, type_byte, low, high], rest) = self.rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
        let type_code = type_byte & !TRUNCATED;
        if type_byte & TRUNCATED == 0 {
            return Some((RawField { index, type_code, value, cut: None }, rest));
        }
        let (value, original) = value.split_last_chunk::<TRUNCATION_BYTES>()?;
        Some((RawField { index, type_code, value, cut: Some(Cut::from_code(u32::from_le_bytes(*original))) }, rest))
    }
}

impl<'a> Iterator for RawFields<'a> {
    type Item = Result<RawField<'a>, MalformedFields>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let Some((field, rest)) = self.split() else {
            self.rest = &[];
            return Some(Err(MalformedFields { offset: self.offset }));
        };
        self.offset += self.rest.len() - rest.len();
        self.rest = rest;
        Some(Ok(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Decoded = Result<(u8, FieldValue, Option<Cut>), MalformedFields>;

    fn decode(bytes: &[u8]) -> Vec<Decoded> {
        let decoded = |field: RawField<'_>| (field.index, field.to_value(), field.cut);
        RawFields::new(bytes).map(|field| field.map(decoded)).collect()
    }

    #[test]
    fn fields_are_read_as_documented() {
        let mut bytes = vec![3, 1, 8, 0];
        bytes.extend((-5i64).to_le_bytes());
        bytes.extend([4, 7 | 0x80, 6, 0, b'h', b'i', 9, 0, 0, 0]);
        bytes.extend([5, 6, 1, 0, 1]);
        bytes.extend([6, 99, 1, 0, 0xab]);
        assert_eq!(
            decode(&bytes),
            [
                Ok((3, FieldValue::I64(-5), None)),
                Ok((4, FieldValue::Str("hi".into()), Some(Cut::Limit { original_bytes: Some(9) }))),
                Ok((5, FieldValue::Bool(true), None)),
                Ok((6, FieldValue::Unknown { code: 99, bytes: vec![0xab] }, None)),
            ]
        );
    }

    #[test]
    fn why_a_value_is_not_whole_comes_back_from_its_code() {
        let limit = |original_bytes| Cut::Limit { original_bytes };
        for cut in [limit(Some(0)), limit(Some(u32::MAX - 3)), limit(None), Cut::Failed, Cut::Panicked] {
            assert_eq!(Cut::from_code(cut.code()), cut);
        }
        // `u32::MAX - 1` is also the code of the reason `Failed`. So a value of this length is written as one of
        // unknown length.
        assert_eq!(limit(Some(u32::MAX - 1)).code(), limit(None).code());
    }

    #[test]
    fn a_field_that_is_longer_than_the_payload_ends_the_reading_and_says_where() {
        let bytes = [5, 6, 1, 0, 1, 5, 7, 9, 0, b'x'];
        assert_eq!(decode(&bytes), [Ok((5, FieldValue::Bool(true), None)), Err(MalformedFields { offset: 5 })]);
        // The value is cut, but has no room for the original length.
        assert_eq!(decode(&[0, 0x87, 2, 0, b'a', b'b']), [Err(MalformedFields { offset: 0 })]);
        assert_eq!(decode(&[1, 2]), [Err(MalformedFields { offset: 0 })]);
    }

    #[test]
    fn a_value_of_the_wrong_size_is_unknown_and_a_cut_character_is_dropped() {
        assert_eq!(decode(&[0, 1, 1, 0, 7]), [Ok((0, FieldValue::Unknown { code: 1, bytes: vec![7] }, None))]);
        assert_eq!(decode(&[0, 6, 1, 0, 2]), [Ok((0, FieldValue::Unknown { code: 6, bytes: vec![2] }, None))]);
        let cut = [0, 0x87, 6, 0, b'a', 0xc3, 255, 255, 255, 255];
        assert_eq!(decode(&cut), [Ok((0, FieldValue::Str("a".into()), Some(Cut::Limit { original_bytes: None })))]);
    }
}
