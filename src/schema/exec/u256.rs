//! 256-bit unsigned integers as payload fields.

use std::fmt;
use std::str::FromStr;

use super::bytes::ParseBytesError;
use crate::schema::description::describe::{FieldType, Scalar};
use crate::schema::error::DecodeError;
use crate::schema::fields::field::PayloadField;
use crate::schema::values::decimal::decimal_digits;

/// An unsigned integer of 256 bits: four limbs of 64 bits, least significant first. In a payload, it has 32 bytes and
/// is aligned to 8 bytes.
///
/// A number can be compared, converted and printed, but there is no arithmetic. `{}` prints decimal digits; `{:x}` and
/// `{:#x}` print hex digits.
///
/// ```
/// use eventring::schema::exec::U256;
/// let wei: U256 = "1000000000000000000000".parse().unwrap();
/// assert_eq!(format!("{wei} {wei:#x}"), "1000000000000000000000 0x3635c9adc5dea00000");
/// assert!(wei > U256::from(u64::MAX));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct U256([u64; 4]);

impl U256 {
    /// 0.
    pub const ZERO: Self = Self([0; 4]);
    /// 2^256 − 1.
    pub const MAX: Self = Self([u64::MAX; 4]);

    /// Makes a number of limbs, least significant first.
    #[must_use]
    pub const fn from_limbs(limbs: [u64; 4]) -> Self {
        Self(limbs)
    }

    /// Returns the limbs, least significant first.
    #[must_use]
    pub const fn limbs(&self) -> [u64; 4] {
        self.0
    }

    /// Makes a number from 32 bytes, least significant byte first. Payloads have this order.
    #[must_use]
    pub fn from_le_bytes(bytes: [u8; 32]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(std::array::from_fn(|i| u64::from_le_bytes(words[i])))
    }

    /// Returns 32 bytes, least significant first, as in a payload.
    #[must_use]
    #[inline]
    pub fn to_le_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, limb) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&limb.to_le_bytes());
        }
        bytes
    }

    /// Makes a number from 32 bytes, most significant byte first. Hashes and words of the EVM are written in this
    /// order.
    #[must_use]
    pub fn from_be_bytes(mut bytes: [u8; 32]) -> Self {
        bytes.reverse();
        Self::from_le_bytes(bytes)
    }

    /// Returns 32 bytes, most significant first.
    #[must_use]
    pub fn to_be_bytes(&self) -> [u8; 32] {
        let mut bytes = self.to_le_bytes();
        bytes.reverse();
        bytes
    }

    /// Returns `self × factor + addend`, or `None` if the result needs more than 256 bits.
    fn multiply_add(self, factor: u64, addend: u64) -> Option<Self> {
        let mut carry = u128::from(addend);
        let limbs = self.0.map(|limb| {
            let product = u128::from(limb) * u128::from(factor) + carry;
            carry = product >> 64;
            product as u64
        });
        (carry == 0).then_some(Self(limbs))
    }
}

impl Ord for U256 {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }
}

impl PartialOrd for U256 {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for U256 {
    fn from(value: u64) -> Self {
        Self([value, 0, 0, 0])
    }
}

impl From<u128> for U256 {
    fn from(value: u128) -> Self {
        Self([value as u64, (value >> 64) as u64, 0, 0])
    }
}

impl TryFrom<U256> for u64 {
    type Error = std::num::TryFromIntError;

    fn try_from(value: U256) -> Result<Self, Self::Error> {
        u64::try_from(u128::try_from(value)?)
    }
}

impl TryFrom<U256> for u128 {
    type Error = std::num::TryFromIntError;

    fn try_from(value: U256) -> Result<Self, Self::Error> {
        let [low, high, 0, 0] = value.0 else {
            // This conversion always fails. It makes the error, because the standard library has no public constructor
            // for it.
            return u128::try_from(-1i32);
        };
        Ok(u128::from(high) << 64 | u128::from(low))
    }
}

impl fmt::Display for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(true, "", &decimal_digits(self.0))
    }
}

impl fmt::LowerHex for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = self.0.iter().rev().map(|limb| format!("{limb:016x}")).collect();
        let digits = text.trim_start_matches('0');
        f.pad_integral(true, "0x", if digits.is_empty() { "0" } else { digits })
    }
}

impl fmt::Debug for U256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for U256 {
    type Err = ParseBytesError;

    /// Parses decimal digits, or hex digits after `0x`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, radix) = match text.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (text, 10),
        };
        let error = || ParseBytesError::new("U256", "decimal digits, or 0x and hex digits, up to 2^256 - 1");
        if digits.is_empty() {
            return Err(error());
        }
        digits.chars().try_fold(Self::ZERO, |value, c| {
            let digit = c.to_digit(radix).ok_or_else(error)?;
            value.multiply_add(u64::from(radix), u64::from(digit)).ok_or_else(error)
        })
    }
}

impl PayloadField for U256 {
    const WIRE_BYTES: usize = 32;
    const WIRE_ALIGN: usize = 8;
    const TYPE: FieldType = FieldType::Scalar(Scalar::U256);
    const ZERO_IS_VALID: bool = true;

    #[inline(always)]
    fn encode_field(&self, out: &mut [u8]) {
        out[..32].copy_from_slice(&self.to_le_bytes());
    }

    #[inline]
    fn decode_field(bytes: &[u8]) -> Result<Self, DecodeError> {
        <[u64; 4]>::decode_field(bytes).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_value_prints_all_78_digits() {
        let decimal = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        assert_eq!(U256::MAX.to_string(), decimal);
        assert_eq!(decimal.parse::<U256>().unwrap(), U256::MAX);
        assert_eq!(format!("{:#x}", U256::MAX), format!("0x{}", "f".repeat(64)));
        assert_eq!(format!("{:#x} {}", U256::ZERO, U256::ZERO), "0x0 0");
    }

    #[test]
    fn text_that_is_no_number_below_2_to_the_256_is_refused() {
        for text in
            ["", "0x", "12a", "-1", "115792089237316195423570985008687907853269984665640564039457584007913129639936"]
        {
            assert!(text.parse::<U256>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn small_values_print_and_compare_like_u128(a: u128, b: u128) {
            let (x, y) = (U256::from(a), U256::from(b));
            prop_assert_eq!(x.to_string(), a.to_string());
            prop_assert_eq!(format!("{x:#x}"), format!("{a:#x}"));
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(u128::try_from(x).unwrap(), a);
        }

        #[test]
        fn every_form_comes_back(limbs: [u64; 4]) {
            let value = U256::from_limbs(limbs);
            prop_assert_eq!(value.to_string().parse::<U256>().unwrap(), value);
            prop_assert_eq!(format!("{value:#x}").parse::<U256>().unwrap(), value);
            prop_assert_eq!(U256::from_be_bytes(value.to_be_bytes()), value);
            prop_assert_eq!(U256::from_le_bytes(value.to_le_bytes()), value);
            prop_assert_eq!(u128::try_from(value).is_ok(), limbs[2] == 0 && limbs[3] == 0);
        }
    }
}
