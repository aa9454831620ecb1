//! The values of the fields that this crate's own macros record. Their types are known at compile time, so encoding
//! needs no virtual call.

use crate::tracing::record::fields::args::LogArgs;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::num::{NonZero, Wrapping};
use tracing_core::Metadata;
use tracing_core::field::{self, DebugValue, DisplayValue, Field, Visit};

/// An encoder of fields. `index` is the index of the field in its call site, from 0.
pub trait FieldEncoder {
    /// Encodes a signed integer.
    fn i64(&mut self, index: usize, value: i64);
    /// Encodes an unsigned integer.
    fn u64(&mut self, index: usize, value: u64);
    /// Encodes a signed integer of 128 bits.
    fn i128(&mut self, index: usize, value: i128);
    /// Encodes an unsigned integer of 128 bits.
    fn u128(&mut self, index: usize, value: u128);
    /// Encodes a floating-point number.
    fn f64(&mut self, index: usize, value: f64);
    /// Encodes a truth value.
    fn bool(&mut self, index: usize, value: bool);
    /// Encodes a text.
    fn str(&mut self, index: usize, value: &str);
    /// Encodes bytes.
    fn bytes(&mut self, index: usize, value: &[u8]);
    /// Encodes an error with its sources, as text.
    fn error(&mut self, index: usize, value: &(dyn Error + 'static));
    /// Encodes what `Debug` writes.
    fn debug(&mut self, index: usize, value: &dyn fmt::Debug);
    /// Encodes the text of a log record whose format string readers know, by its arguments. An encoder that cannot do
    /// so encodes what `whole` writes.
    fn text(&mut self, index: usize, args: &impl LogArgs, whole: &dyn fmt::Debug);
}

/// A type whose values the macros [`scope!`](crate::scope) and those of [`log`](crate::log) record as fields: numbers,
/// truth values, texts, bytes and errors. A value of another type is recorded as text, by `?value` (`Debug`) or
/// `%value` (`Display`). An `Option` that is `None` is not recorded.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not recorded as a field as it is",
    note = "record it as text: `field = ?value` (`Debug`) or `field = %value` (`Display`)"
)]
pub trait RecordedValue {
    /// Passes the value to the encoder.
    #[doc(hidden)]
    fn encode(&self, index: usize, encoder: &mut impl FieldEncoder);
}

macro_rules! recorded_value {
    ($($ty:ty => $method:ident),* $(,)?) => {
        $(impl RecordedValue for $ty {
            #[inline(always)]
            fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
                encoder.$method(index, (*self).into());
            }
        })*
    };
}

recorded_value! {
    i8 => i64, i16 => i64, i32 => i64, i64 => i64, u8 => u64, u16 => u64, u32 => u64, u64 => u64, i128 => i128,
    u128 => u128, f32 => f64, f64 => f64, bool => bool
}

macro_rules! recorded_by {
    ($($ty:ty => $method:ident, $value:ident: $as:expr);* $(;)?) => {
        $(impl RecordedValue for $ty {
            #[inline(always)]
            fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
                let $value = self;
                encoder.$method(index, $as);
            }
        })*
    };
}

// No machine has more than 64 bits.
recorded_by! {
    isize => i64, value: *value as i64;
    usize => u64, value: *value as u64;
    char => str, value: value.encode_utf8(&mut [0; 4]);
    str => str, value: value;
    String => str, value: value;
    Cow<'_, str> => str, value: value;
    [u8] => bytes, value: value;
    Vec<u8> => bytes, value: value;
    fmt::Arguments<'_> => debug, value: value;
    dyn Error + 'static => error, value: value;
    dyn Error + Send + 'static => error, value: value;
    dyn Error + Sync + 'static => error, value: value;
    dyn Error + Send + Sync + 'static => error, value: value;
}

macro_rules! recorded_as {
    ($([$($generics:tt)*] $ty:ty => $value:ident: $inner:expr;)*) => {
        $(impl<$($generics)*> RecordedValue for $ty {
            #[inline(always)]
            fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
                let $value = self;
                ($inner).encode(index, encoder);
            }
        })*
    };
}

recorded_as! {
    [T: RecordedValue + ?Sized] &T => value: **value;
    [T: RecordedValue + ?Sized] &mut T => value: **value;
    [T: RecordedValue + ?Sized] Box<T> => value: **value;
    [T: RecordedValue] Wrapping<T> => value: value.0;
    [const N: usize] [u8; N] => value: value[..];
}

macro_rules! recorded_non_zero {
    ($($ty:ty),*) => {
        recorded_as! { $([] NonZero<$ty> => value: value.get();)* }
    };
}

recorded_non_zero! { i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize }

impl<T: RecordedValue> RecordedValue for Option<T> {
    #[inline(always)]
    fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
        if let Some(value) = self {
            value.encode(index, encoder);
        }
    }
}

impl<T: fmt::Debug> RecordedValue for DebugValue<T> {
    fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
        encoder.debug(index, self);
    }
}

impl<T: fmt::Display> RecordedValue for DisplayValue<T> {
    fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
        encoder.debug(index, self);
    }
}

/// The text of a log record: its arguments, and a function that formats all of it.
#[derive(Debug)]
pub struct LogText<A, F>(pub A, pub F);

impl<A: LogArgs, F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> RecordedValue for LogText<A, F> {
    #[inline(always)]
    fn encode(&self, index: usize, encoder: &mut impl FieldEncoder) {
        encoder.text(index, &self.0, &Whole(&self.1));
    }
}

/// The whole text, formatted by the program.
struct Whole<'f, F>(&'f F);

impl<F: Fn(&mut fmt::Formatter<'_>) -> fmt::Result> fmt::Debug for Whole<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0)(f)
    }
}

/// A value of any type: it is recorded as it is if it can be, and otherwise as its `Debug` text. The compiler chooses:
/// it looks for a method of `&AnyOf` before one of `&&AnyOf`.
#[derive(Debug)]
pub struct AnyOf<'v, T: ?Sized>(pub &'v T);

/// The choice of a value as it is.
pub trait RecordedAsIs {
    /// The value.
    type Value;
    /// Returns the value.
    fn __eventring_recorded(&self) -> Self::Value;
}

impl<'v, T: RecordedValue + ?Sized> RecordedAsIs for AnyOf<'v, T> {
    type Value = &'v T;

    #[inline(always)]
    fn __eventring_recorded(&self) -> &'v T {
        self.0
    }
}

/// The choice of the `Debug` text.
pub trait RecordedAsDebug {
    /// The value.
    type Value;
    /// Returns the value.
    fn __eventring_recorded(&self) -> Self::Value;
}

impl<'v, T: fmt::Debug + ?Sized> RecordedAsDebug for &AnyOf<'v, T> {
    type Value = DebugValue<&'v T>;

    #[inline(always)]
    fn __eventring_recorded(&self) -> DebugValue<&'v T> {
        field::debug(self.0)
    }
}

/// The values of a call, as nested pairs `(((), first), second)`.
pub trait FieldValues {
    /// The number of values.
    const COUNT: usize;

    /// Passes the values to the encoder. The first has this index.
    fn encode_all(&self, index: usize, encoder: &mut impl FieldEncoder);
}

impl FieldValues for () {
    const COUNT: usize = 0;

    #[inline(always)]
    fn encode_all(&self, _: usize, _: &mut impl FieldEncoder) {}
}

impl<F: FieldValues, V: RecordedValue> FieldValues for (F, V) {
    const COUNT: usize = F::COUNT + 1;

    #[inline(always)]
    fn encode_all(&self, index: usize, encoder: &mut impl FieldEncoder) {
        self.0.encode_all(index, encoder);
        self.1.encode(index + F::COUNT, encoder);
    }
}

/// Passes the values to a visitor of `tracing`, which gets the fields of the call site.
pub(in crate::tracing::record) fn visit_values(
    values: &impl FieldValues,
    metadata: &'static Metadata<'static>,
    visitor: &mut dyn Visit,
) {
    values.encode_all(0, &mut VisitorEncoder { visitor, metadata });
}

/// A visitor of `tracing` as an encoder.
struct VisitorEncoder<'v> {
    visitor: &'v mut dyn Visit,
    metadata: &'static Metadata<'static>,
}

impl VisitorEncoder<'_> {
    fn with_field(&mut self, index: usize, visit: impl FnOnce(&mut dyn Visit, &Field)) {
        if let Some(field) = self.metadata.fields().iter().nth(index) {
            visit(self.visitor, &field);
        }
    }
}

macro_rules! visited {
    ($($method:ident: $ty:ty => $visit:ident),*) => {
        $(fn $method(&mut self, index: usize, value: $ty) {
            self.with_field(index, |visitor, field| visitor.$visit(field, value));
        })*
    };
}

impl FieldEncoder for VisitorEncoder<'_> {
    visited! {
        i64: i64 => record_i64, u64: u64 => record_u64, i128: i128 => record_i128, u128: u128 => record_u128,
        f64: f64 => record_f64, bool: bool => record_bool, str: &str => record_str, bytes: &[u8] => record_bytes,
        error: &(dyn Error + 'static) => record_error, debug: &dyn fmt::Debug => record_debug
    }

    fn text(&mut self, index: usize, _: &impl LogArgs, whole: &dyn fmt::Debug) {
        self.debug(index, whole);
    }
}
