//! Byte strings of fixed size as payload fields: addresses, hashes, bloom filters.

use std::fmt;
use std::str::FromStr;

use crate::schema::description::describe::FieldType;
use crate::schema::error::DecodeError;
use crate::schema::fields::field::PayloadField;
use crate::schema::values::hex::{read_hex, write_hex};

/// Text that is not a number or byte string of the wanted type.
#[derive(Clone, PartialEq, Eq)]
pub struct ParseBytesError {
    type_name: &'static str,
    expected: &'static str,
}

impl ParseBytesError {
    pub(super) fn new(type_name: &'static str, expected: &'static str) -> Self {
        Self { type_name, expected }
    }
}

impl fmt::Display for ParseBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a {}: expected {}", self.type_name, self.expected)
    }
}

debug_as_displayed!(ParseBytesError);

impl std::error::Error for ParseBytesError {}

macro_rules! byte_string {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        ///
        /// `{}` prints `0x` and hex digits, and `parse` reads the same form. In a payload, the alignment is 1 byte.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(
            /// The bytes, in the order in which they stand in the payload.
            pub [u8; $bytes],
        );

        impl $name {
            /// All bytes zero.
            pub const ZERO: Self = Self([0; $bytes]);
        }

        impl Default for $name {
            fn default() -> Self {
                Self::ZERO
            }
        }

        impl From<[u8; $bytes]> for $name {
            fn from(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if f.alternate() {
                    f.write_str("0x")?;
                }
                write_hex(f, &self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self:#x}")
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self:#x}")
            }
        }

        impl FromStr for $name {
            type Err = ParseBytesError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let mut bytes = [0; $bytes];
                text.strip_prefix("0x")
                    .and_then(|digits| read_hex(digits, &mut bytes))
                    .map(|()| Self(bytes))
                    .ok_or(ParseBytesError::new(stringify!($name), concat!("0x and two hex digits for each of ", $bytes, " bytes")))
            }
        }

        impl PayloadField for $name {
            const WIRE_BYTES: usize = $bytes;
            const WIRE_ALIGN: usize = 1;
            const TYPE: FieldType = <[u8; $bytes]>::TYPE;
            const ZERO_IS_VALID: bool = true;

            #[inline(always)]
            fn encode_field(&self, out: &mut [u8]) {
                out[..$bytes].copy_from_slice(&self.0);
            }

            #[inline]
            fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
                let bytes: [u8; $bytes] =
                    bytes.try_into().map_err(|_| DecodeError::too_short(stringify!($name), bytes.len(), $bytes))?;
                Ok(Self(bytes))
            }
        }
    };
}

byte_string!(
    /// An account address: 20 bytes.
    Address,
    20
);
byte_string!(
    /// A hash, storage key or storage value: 32 bytes, in the order of its hex digits.
    Bytes32,
    32
);
byte_string!(
    /// Eight bytes that are not a number, for example the nonce of a block header.
    Bytes8,
    8
);
byte_string!(
    /// A bloom filter over logs: 256 bytes.
    Bloom256,
    256
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_string_prints_as_it_parses() {
        let text = "0x00112233445566778899aabbccddeeff00112233";
        let address: Address = text.parse().unwrap();
        assert_eq!(address.0[1], 0x11);
        assert_eq!(format!("{address} {address:?} {address:x}"), format!("{text} {text} {}", &text[2..]));
    }

    #[test]
    fn text_of_the_wrong_length_or_alphabet_is_no_byte_string() {
        for text in [
            "",
            "0x",
            "0011223344556677",
            "0x001122334455667",
            "0x00112233445566zz",
            "0x001122334455667788",
            "0x+0112233445566zz",
        ] {
            assert!(text.parse::<Bytes8>().is_err(), "{text}");
        }
    }
}
