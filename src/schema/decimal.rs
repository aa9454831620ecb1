//! Numbers of 256 bits as decimal digits.

/// The largest power of ten in a u64: the base in which the digits are found.
const TEN_POW_19: u64 = 10_000_000_000_000_000_000;

/// Returns the decimal digits of a number of four limbs, least significant limb first.
pub(super) fn decimal_digits(mut limbs: [u64; 4]) -> String {
    // 2^256 has 78 decimal digits: five digits of base 10^19, least significant first.
    let mut digits = [0u64; 5];
    let mut count = 0;
    while limbs != [0; 4] {
        digits[count] = divide(&mut limbs, TEN_POW_19);
        count += 1;
    }
    let (rest, first) = match &digits[..count] {
        [rest @ .., first] => (rest, *first),
        [] => (&[][..], 0),
    };
    rest.iter().rev().fold(first.to_string(), |text, digit| format!("{text}{digit:019}"))
}

/// Divides in place and returns the remainder.
fn divide(limbs: &mut [u64; 4], divisor: u64) -> u64 {
    let mut rest = 0u128;
    for limb in limbs.iter_mut().rev() {
        let dividend = rest << 64 | u128::from(*limb);
        *limb = (dividend / u128::from(divisor)) as u64;
        rest = dividend % u128::from(divisor);
    }
    rest as u64
}
