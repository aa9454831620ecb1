//! Floating-point numbers for people.

use std::fmt;

/// Writes a number with the fewest digits that tell it from all others, as `Display` does. A number that is so small or
/// so large that `Display` would write a row of zeros is written with an exponent: `1.1754944e-38`. The limits are
/// those of `Debug`. `double` is the same number.
pub(crate) fn show(number: impl fmt::Display + fmt::LowerExp, double: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = double.abs();
    let has_exponent = size.is_finite() && size != 0.0 && !(1e-5..1e16).contains(&size);
    if has_exponent { fmt::LowerExp::fmt(&number, f) } else { fmt::Display::fmt(&number, f) }
}

#[cfg(test)]
mod tests {
    use crate::schema::Value;

    #[test]
    fn a_number_is_shown_with_an_exponent_where_it_would_be_a_row_of_zeros() {
        let shown = |value: Value<'_>| value.to_string();
        let singles = [f32::MIN_POSITIVE, -f32::MAX, 0.1, 1e-5, 9e-6, 0.0, -0.0, f32::INFINITY, f32::NAN, 1e16, 3.0];
        assert_eq!(
            singles.map(|number| shown(Value::F32(number))),
            ["1.1754944e-38", "-3.4028235e38", "0.1", "1e-5", "9e-6", "0", "-0", "inf", "NaN", "1e16", "3"]
        );
        let doubles = [f64::MIN_POSITIVE, f64::MAX, 1e15, 123_456_789.5, 5e-324];
        assert_eq!(
            doubles.map(|number| shown(Value::F64(number))),
            ["2.2250738585072014e-308", "1.7976931348623157e308", "1000000000000000", "123456789.5", "5e-324"]
        );
        // Each reads as the number that it shows.
        for number in doubles {
            assert_eq!(shown(Value::F64(number)).parse(), Ok(number));
        }
    }
}
