//! The error of decoding.

use std::fmt;

/// A payload that does not fit its type.
///
/// The functions that decode typed payloads return this error: [`EventPayload::decode`](super::EventPayload::decode),
/// [`PayloadField::decode_field`](super::PayloadField::decode_field), views and [`ArrayView`](super::ArrayView). The
/// usual cause is that writer and reader were built with different schemas. Compare the schema hashes, or decode
/// the payload with the ring's own schema text ([`SchemaModel`](super::SchemaModel)).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DecodeError {
    kind: DecodeErrorKind,
    owner: &'static str,
    field: &'static str,
    found: i128,
    expected: u64,
}

/// The kinds of [`DecodeError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// Fewer bytes than the fixed struct or a trailing array needs.
    TooShort,
    /// Bytes remain after the fixed struct and every trailing array.
    LeftOver,
    /// A `bool` byte that is neither 0 nor 1.
    InvalidBool,
    /// A number that is no value of its enum.
    InvalidEnum,
    /// An event code that the schema does not have.
    UnknownEvent,
}

impl DecodeError {
    /// Makes the error for a payload that is too short: `owner`, or a part of it, needs `expected` bytes, and there
    /// are only `found`.
    #[must_use]
    pub const fn too_short(owner: &'static str, found: usize, expected: usize) -> Self {
        Self { kind: DecodeErrorKind::TooShort, owner, field: "", found: found as i128, expected: expected as u64 }
    }

    /// Makes the error for a payload that is too long: `found` bytes are left over after everything that `owner`
    /// describes.
    #[must_use]
    pub const fn left_over(owner: &'static str, found: usize) -> Self {
        Self { kind: DecodeErrorKind::LeftOver, owner, field: "", found: found as i128, expected: 0 }
    }

    /// Makes the error of a `bool` byte that is `found`.
    #[must_use]
    pub const fn invalid_bool(found: u8) -> Self {
        Self { kind: DecodeErrorKind::InvalidBool, owner: "", field: "", found: found as i128, expected: 1 }
    }

    /// Makes the error for the number `found`, which is no value of the enum `owner`.
    #[must_use]
    pub const fn invalid_enum(owner: &'static str, found: i128) -> Self {
        Self { kind: DecodeErrorKind::InvalidEnum, owner, field: "", found, expected: 0 }
    }

    /// Makes the error for an event code that the schema `owner` does not have.
    #[must_use]
    pub const fn unknown_event(owner: &'static str, code: u16) -> Self {
        Self { kind: DecodeErrorKind::UnknownEvent, owner, field: "", found: code as i128, expected: 0 }
    }

    /// Adds the place of the error: the field `field` of `owner`. If the error already names a field of an inner
    /// struct, leaves the error as it is.
    #[must_use]
    pub const fn inside(mut self, owner: &'static str, field: &'static str) -> Self {
        if self.field.is_empty() {
            self.field = field;
            if self.owner.is_empty() {
                self.owner = owner;
            }
        }
        self
    }

    /// Returns the kind of error.
    #[must_use]
    pub const fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// Returns the name of the struct, enum or schema that the bytes do not fit.
    #[must_use]
    pub const fn owner(&self) -> &'static str {
        self.owner
    }

    /// Returns the name of the field, or an empty text if the error is about the payload as a whole.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, owner, field, found, expected } = *self;
        match kind {
            DecodeErrorKind::TooShort => {
                write!(f, "payload of {owner} is too short: {found} bytes, expected at least {expected}")?
            }
            DecodeErrorKind::LeftOver => {
                write!(f, "payload of {owner} is too long: {found} bytes are left over, expected none")?
            }
            DecodeErrorKind::InvalidBool => write!(f, "bool in {owner} is {found}, expected 0 or 1")?,
            DecodeErrorKind::InvalidEnum => write!(f, "{found} is not a value of the enum {owner}")?,
            DecodeErrorKind::UnknownEvent => return write!(f, "event type {found} is not in schema {owner}"),
        }
        if !field.is_empty() {
            write!(f, " (field `{field}`)")?;
        }
        f.write_str("; was it written with another schema?")
    }
}

debug_as_displayed!(DecodeError);

impl std::error::Error for DecodeError {}
