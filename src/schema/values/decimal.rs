//! Numbers of 256 bits as decimal digits.

/// The largest power of ten that fits a u64. A number is first split into digits of this base.
const TEN_POW_19: u64 = 10_000_000_000_000_000_000;

/// Returns the decimal digits of a number of 256 bits. `limbs` are its words of 64 bits, least significant first.
pub(in crate::schema) fn decimal_digits(mut limbs: [u64; 4]) -> String {
    // 2^256 has 78 decimal digits, so five digits of base 10^19 suffice. The least significant of them comes first.
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
