//! Bytes of UTF-8 text, as payload fields.

use super::field::PayloadField;
use crate::schema::description::describe::{FieldType, Scalar};
use crate::schema::error::DecodeError;

/// One byte of UTF-8 text.
///
/// This is an element type for a trailing array (`trailing(message: Utf8)`), or for an array in a fixed struct
/// (`[Utf8; 16]`, padded with zeros). Readers show such an array as text and not as hex. They replace invalid UTF-8.
///
/// ```
/// use eventring::schema::Utf8;
/// assert_eq!(Utf8::padded::<8>("eth0"), [b'e', b't', b'h', b'0', 0, 0, 0, 0].map(Utf8));
/// assert_eq!(Utf8::padded::<2>("aé"), [Utf8(b'a'), Utf8(0)]); // cut between characters
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Utf8(
    /// The byte.
    pub u8,
);

impl Utf8 {
    /// Returns the text as `N` bytes. Cuts a text of more than `N` bytes at a character boundary. Pads a shorter text
    /// with zeros.
    #[must_use]
    pub fn padded<const N: usize>(text: &str) -> [Self; N] {
        let mut bytes = [Self(0); N];
        for (byte, source) in bytes.iter_mut().zip(&text.as_bytes()[..text.floor_char_boundary(N)]) {
            byte.0 = *source;
        }
        bytes
    }
}

impl PayloadField for Utf8 {
    const WIRE_BYTES: usize = 1;
    const WIRE_ALIGN: usize = 1;
    const TYPE: FieldType = FieldType::Scalar(Scalar::Utf8);
    const ZERO_IS_VALID: bool = true;

    #[inline(always)]
    fn encode_field(&self, out: &mut [u8]) {
        out[0] = self.0;
    }

    #[inline]
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        u8::decode_field(bytes).map(Self)
    }
}
