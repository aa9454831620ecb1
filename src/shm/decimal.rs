//! Decimal numbers in untrusted text.

/// Reads `text` as a decimal number. Every byte must be a digit; signs and blanks are not allowed.
#[inline(never)]
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    let is_number = text.first()?.is_ascii_digit();
    is_number.then(|| str::from_utf8(text).ok()?.parse().ok()).flatten()
}
