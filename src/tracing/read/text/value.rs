//! Decoding the arguments of a text. `record/fields/args.rs` encodes them.

use crate::schema::perf::ArgKind;
use std::fmt;

/// How deep options and slices may be nested: as deep as `Deepest` in `record/fields/args.rs` says.
const DEPTH_MAX: u32 = 16;

/// An argument.
#[derive(Clone, PartialEq)]
pub(super) enum Value<'a> {
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    I128(i128),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    U128(u128),
    F32(f32),
    F64(f64),
    Bool(bool),
    Char(char),
    Str(&'a str),
    Option(Option<Box<Value<'a>>>),
    Slice(Vec<Value<'a>>),
    /// Text that the program has formatted, with the width and all else of its placeholder.
    Formatted(&'a str),
}

impl Value<'_> {
    /// Returns a width or precision.
    pub(super) fn as_count(&self) -> Option<usize> {
        match self {
            Self::U64(count) => usize::try_from(*count).ok(),
            _ => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        !matches!(
            self,
            Self::Bool(_) | Self::Char(_) | Self::Str(_) | Self::Option(_) | Self::Slice(_) | Self::Formatted(_)
        )
    }
}

/// Calls a trait's `fmt` of the value, which gets all flags of the formatter.
macro_rules! delegate {
    ($($trait:ident for $($variant:ident)|+, else $other:ident);* $(;)?) => {
        $(impl fmt::$trait for Value<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant(value) => fmt::$trait::fmt(value, f),)+
                    // A program does not compile that formats another value so; a file may say anything.
                    #[allow(unreachable_patterns, reason = "the first trait is one of all values")]
                    other => fmt::$other::fmt(other, f),
                }
            }
        })*
    };
}

delegate! {
    Debug for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128 | F32 | F64 | Bool | Char | Str | Option | Slice | Formatted, else Debug;
    Display for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128 | F32 | F64 | Bool | Char | Str | Formatted, else Debug;
    LowerHex for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128, else Debug;
    UpperHex for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128, else Debug;
    Octal for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128, else Debug;
    Binary for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128, else Debug;
    LowerExp for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128 | F32 | F64, else Debug;
    UpperExp for I8 | I16 | I32 | I64 | I128 | U8 | U16 | U32 | U64 | U128 | F32 | F64, else Debug;
}

/// The arguments, one after the other. They end before the first damaged one.
pub(super) struct Args<'a>(&'a [u8]);

impl<'a> Args<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Value<'a>> {
        let value = self.value(0);
        if value.is_none() {
            self.0 = &[];
        }
        value
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let bytes = u16::from_le_bytes(self.bytes()?);
        let (text, rest) = self.0.split_at_checked(bytes.into())?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn value(&mut self, depth: u32) -> Option<Value<'a>> {
        let [kind] = self.bytes()?;
        Some(match ArgKind::from_code(kind)? {
            ArgKind::I8 => Value::I8(i8::from_le_bytes(self.bytes()?)),
            ArgKind::I16 => Value::I16(i16::from_le_bytes(self.bytes()?)),
            ArgKind::I32 => Value::I32(i32::from_le_bytes(self.bytes()?)),
            ArgKind::I64 => Value::I64(i64::from_le_bytes(self.bytes()?)),
            ArgKind::I128 => Value::I128(i128::from_le_bytes(self.bytes()?)),
            ArgKind::U8 => Value::U8(u8::from_le_bytes(self.bytes()?)),
            ArgKind::U16 => Value::U16(u16::from_le_bytes(self.bytes()?)),
            ArgKind::U32 => Value::U32(u32::from_le_bytes(self.bytes()?)),
            ArgKind::U64 => Value::U64(u64::from_le_bytes(self.bytes()?)),
            ArgKind::U128 => Value::U128(u128::from_le_bytes(self.bytes()?)),
            ArgKind::F32 => Value::F32(f32::from_le_bytes(self.bytes()?)),
            ArgKind::F64 => Value::F64(f64::from_le_bytes(self.bytes()?)),
            ArgKind::Bool => Value::Bool(self.bytes::<1>()? != [0]),
            ArgKind::Char => Value::Char(char::from_u32(u32::from_le_bytes(self.bytes()?))?),
            ArgKind::Str => Value::Str(self.text()?),
            ArgKind::Formatted => Value::Formatted(self.text()?),
            ArgKind::None => Value::Option(None),
            _ if depth >= DEPTH_MAX => return None,
            ArgKind::Some => Value::Option(Some(Box::new(self.value(depth + 1)?))),
            ArgKind::Slice => {
                let count = u16::from_le_bytes(self.bytes()?);
                // Each value has a byte at least, so a count that was made up ends with the bytes.
                Value::Slice((0..count).map(|_| self.value(depth + 1)).collect::<Option<_>>()?)
            }
        })
    }
}
