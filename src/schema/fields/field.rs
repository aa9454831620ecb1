//! The types that a field of a payload can have, and their bytes.

use arrayvec::ArrayVec;

use crate::schema::description::describe::{FieldType, Scalar};
use crate::schema::error::DecodeError;
#[cfg(feature = "macros")]
pub use eventring_macros::PayloadField;

/// A type that can be a field of an event's payload: its size, alignment and bytes are the same on every machine.
///
/// The integers of fixed size, `bool`, `f32`, `f64`, arrays, [`Utf8`](crate::schema::Utf8), and the numbers and byte strings
/// of the schema [`exec`](crate::schema::exec) implement this trait. `#[derive(EventPayload)]` implements it for structs.
/// `#[derive(PayloadField)]` implements it for enums without fields and for newtypes. All numbers are little endian.
/// Each field has the offset that a C compiler for x86-64 gives it.
///
/// `#[event(alias = "…")]` on a value of an enum gives an earlier name of it, as schema text has it (`BOUGHT`), for
/// readers of rings with another version of the schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of an event payload",
    label = "not a payload field",
    note = "fields have a fixed size: u8..u128, i8..i128, f32, f64, bool, arrays of fields, Utf8, structs with #[derive(EventPayload)], enums without fields and newtypes with #[derive(PayloadField)]",
    note = "write u64 for usize; put text, Vec and slices into a trailing array of the event"
)]
pub trait PayloadField: Sized {
    /// The size in bytes.
    const WIRE_BYTES: usize;
    /// The alignment in bytes, a power of two.
    const WIRE_ALIGN: usize;
    /// The description for schema text.
    const TYPE: FieldType;
    /// True if the type can be decoded from bytes that are all zero. Only such a field may be redacted, because a ring
    /// holds zeros in place of a redacted field.
    const ZERO_IS_VALID: bool;

    /// Writes the value to the first [`WIRE_BYTES`](Self::WIRE_BYTES) bytes of `out`. Writes zeros for padding and for
    /// redacted fields.
    ///
    /// # Panics
    /// Panics if `out` is shorter.
    fn encode_field(&self, out: &mut [u8]);

    /// Reads the value from exactly [`WIRE_BYTES`](Self::WIRE_BYTES) bytes. Ignores padding.
    ///
    /// # Errors
    /// Returns an error if the slice has another length, or if a bool or enum in it has an invalid value.
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError>;
}

macro_rules! number_field {
    ($($type:ty, $scalar:ident);* $(;)?) => {$(
        impl PayloadField for $type {
            const WIRE_BYTES: usize = size_of::<$type>();
            // The alignment is the size. `align_of` would be wrong, because it differs between machines, and the
            // format must be the same on every machine.
            const WIRE_ALIGN: usize = size_of::<$type>();
            const TYPE: FieldType = FieldType::Scalar(Scalar::$scalar);
            const ZERO_IS_VALID: bool = true;

            #[inline(always)]
            fn encode_field(&self, out: &mut [u8]) {
                out[..size_of::<$type>()].copy_from_slice(&self.to_le_bytes());
            }

            #[inline(always)]
            fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
                match bytes.try_into() {
                    Ok(bytes) => Ok(Self::from_le_bytes(bytes)),
                    Err(_) => Err(DecodeError::too_short(stringify!($type), bytes.len(), size_of::<$type>())),
                }
            }
        }
    )*};
}

number_field! {
    u8, U8; u16, U16; u32, U32; u64, U64; u128, U128;
    i8, I8; i16, I16; i32, I32; i64, I64; i128, I128;
    f32, F32; f64, F64;
}

impl PayloadField for bool {
    const WIRE_BYTES: usize = 1;
    const WIRE_ALIGN: usize = 1;
    const TYPE: FieldType = FieldType::Scalar(Scalar::Bool);
    const ZERO_IS_VALID: bool = true;

    #[inline(always)]
    fn encode_field(&self, out: &mut [u8]) {
        out[0] = u8::from(*self);
    }

    #[inline(always)]
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(DecodeError::invalid_bool(*other)),
            _ => Err(DecodeError::too_short("bool", bytes.len(), 1)),
        }
    }
}

impl<T: PayloadField, const N: usize> PayloadField for [T; N] {
    const WIRE_BYTES: usize = T::WIRE_BYTES * N;
    const WIRE_ALIGN: usize = T::WIRE_ALIGN;
    const TYPE: FieldType = FieldType::Array { element: &T::TYPE, len: N };
    const ZERO_IS_VALID: bool = T::ZERO_IS_VALID;

    #[inline(always)]
    fn encode_field(&self, out: &mut [u8]) {
        let out = &mut out[..Self::WIRE_BYTES];
        for (i, element) in self.iter().enumerate() {
            element.encode_field(&mut out[i * T::WIRE_BYTES..(i + 1) * T::WIRE_BYTES]);
        }
    }

    #[inline]
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() != Self::WIRE_BYTES {
            return Err(DecodeError::too_short("array", bytes.len(), Self::WIRE_BYTES));
        }
        let elements = (0..N).map(|i| T::decode_field(&bytes[i * T::WIRE_BYTES..(i + 1) * T::WIRE_BYTES]));
        let elements: ArrayVec<T, N> = elements.collect::<Result<_, _>>()?;
        elements
            .into_inner()
            .map_err(|short| DecodeError::too_short("array", short.len() * T::WIRE_BYTES, Self::WIRE_BYTES))
    }
}
