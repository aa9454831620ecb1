//! The integers of fields and of conditions.

use std::fmt;
use std::str::FromStr;

/// An integer: a negative one of up to 128 bits, or another of up to 256 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Integer(Signed);

/// The order of the variants is that of the numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Signed {
    Negative(i128),
    /// The high and the low half.
    Natural(u128, u128),
}

impl Integer {
    /// Returns the nearest float.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self.0 {
            Signed::Negative(number) => number as f64,
            Signed::Natural(0, low) => low as f64,
            Signed::Natural(high, low) => {
                // The 128 highest bits. Of the bits below, it matters only whether there are any.
                let free = high.leading_zeros();
                let highest = high << free | low.checked_shr(128 - free).unwrap_or(0);
                let are_below = low << free != 0;
                (highest | u128::from(are_below)) as f64 * 2_f64.powi(128 - free as i32)
            }
        }
    }
}

impl From<[u64; 4]> for Integer {
    /// Makes the number of these limbs, the least significant first.
    fn from(limbs: [u64; 4]) -> Self {
        let half = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
        Self(Signed::Natural(half(limbs[2], limbs[3]), half(limbs[0], limbs[1])))
    }
}

impl From<u128> for Integer {
    fn from(number: u128) -> Self {
        Self(Signed::Natural(0, number))
    }
}

impl From<i128> for Integer {
    fn from(number: i128) -> Self {
        u128::try_from(number).map_or(Self(Signed::Negative(number)), Self::from)
    }
}

impl From<u64> for Integer {
    fn from(number: u64) -> Self {
        u128::from(number).into()
    }
}

impl From<i64> for Integer {
    fn from(number: i64) -> Self {
        i128::from(number).into()
    }
}

/// Reads a decimal number. The error says that the text is none, or one with more bits.
impl FromStr for Integer {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Ok(number) = text.parse::<i128>() {
            return Ok(number.into());
        }
        let digits = text.strip_prefix('+').unwrap_or(text);
        if digits.is_empty() {
            return Err(());
        }
        let mut limbs = [0_u64; 4];
        for digit in digits.chars() {
            let mut carry = u128::from(digit.to_digit(10).ok_or(())?);
            for limb in &mut limbs {
                carry += u128::from(*limb) * 10;
                (*limb, carry) = (carry as u64, carry >> 64);
            }
            if carry > 0 {
                return Err(());
            }
        }
        Ok(limbs.into())
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = match self.0 {
            Signed::Negative(number) => return write!(f, "{number}"),
            Signed::Natural(0, low) => return write!(f, "{low}"),
            Signed::Natural(high, low) => (high, low),
        };
        let mut limbs = [(high >> 64) as u64, high as u64, (low >> 64) as u64, low as u64];
        let mut digits = Vec::new();
        while limbs != [0; 4] {
            let mut rest = 0;
            for limb in &mut limbs {
                let number = rest << 64 | u128::from(*limb);
                (*limb, rest) = ((number / 10) as u64, number % 10);
            }
            digits.push(char::from(b'0' + rest as u8));
        }
        f.write_str(&digits.iter().rev().collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_written_and_ordered_up_to_256_bits() {
        let largest = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
        let texts = [
            "-170141183460469231731687303715884105728",
            "-1",
            "0",
            "18446744073709551616",
            "170141183460469231731687303715884105727",
            "170141183460469231731687303715884105728",
            "340282366920938463463374607431768211455",
            "340282366920938463463374607431768211456",
            largest,
        ];
        let numbers = texts.map(|text| text.parse::<Integer>().unwrap());
        assert_eq!(numbers.map(|number| number.to_string()), texts);
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1] && pair[0].to_f64() <= pair[1].to_f64()));
        assert_eq!(numbers[8], [u64::MAX; 4].into());
        assert_eq!((numbers[7], numbers[6]), ([0, 0, 1, 0].into(), u128::MAX.into()));
        for number in numbers {
            assert_eq!(Ok(number.to_f64()), number.to_string().parse());
        }
        for wrong in ["", "+", "1.5", "ten", "1e3", &format!("{largest}0"), "-170141183460469231731687303715884105729"]
        {
            assert!(wrong.parse::<Integer>().is_err(), "{wrong}");
        }
    }
}
