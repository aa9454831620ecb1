//! Decimal numbers in untrusted text.

/// Reads a decimal number that is all of `text`; signs and blanks are no digits.
#[inline(never)]
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    let is_number = text.first()?.is_ascii_digit();
    is_number.then(|| str::from_utf8(text).ok()?.parse().ok()).flatten()
}
