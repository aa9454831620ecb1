//! Bytes as hex digits.

use std::fmt;

/// Writes bytes as hex digits, without a prefix.
pub(crate) fn write_hex(out: &mut impl fmt::Write, bytes: &[u8]) -> fmt::Result {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Ids are written often: one text is much cheaper than a formatted number for each byte.
    bytes.chunks(16).try_for_each(|bytes| {
        let mut digits = [0; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair.copy_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        out.write_str(str::from_utf8(&digits[..2 * bytes.len()]).map_err(|_| fmt::Error)?)
    })
}

/// Bytes that are displayed as hex digits, without a prefix.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(
    /// The bytes.
    pub &'a [u8],
);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, self.0)
    }
}

/// Reads exactly `out.len()` bytes of hex digits.
pub(crate) fn read_hex(digits: &str, out: &mut [u8]) -> Option<()> {
    let digits = digits.as_bytes();
    if digits.len() != out.len() * 2 {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(())
}
