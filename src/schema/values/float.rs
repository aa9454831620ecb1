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
