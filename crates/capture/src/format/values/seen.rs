//! The last values of a field, so that a repeated value is added once.

/// The number of values that are remembered.
const VALUES: usize = 32;

/// The last values of a field, as bytes with a type.
#[derive(Default)]
pub(super) struct Seen<'r> {
    values: [SeenValue<'r>; VALUES],
}

#[derive(Clone, Copy, Default)]
struct SeenValue<'r> {
    /// The first bytes.
    word: u64,
    /// The size and the type, plus one.
    kind: u64,
    rest: &'r [u8],
}

impl<'r> Seen<'r> {
    /// Returns true if the value is one of the last ones. From now on it is.
    #[inline]
    pub(super) fn has(&mut self, type_code: u8, bytes: &'r [u8]) -> bool {
        let (word, rest) = match bytes.split_first_chunk() {
            Some((first, rest)) => (u64::from_le_bytes(*first), rest),
            None => (number_of(bytes), &[][..]),
        };
        let kind = (bytes.len() as u64) << 8 | u64::from(type_code);
        // The high bits of the product depend on all bits of the word.
        let place = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % VALUES;
        let last = &mut self.values[place];
        if last.word == word && last.kind == kind + 1 && (rest.is_empty() || last.rest == rest) {
            return true;
        }
        *last = SeenValue { word, kind: kind + 1, rest };
        false
    }
}

/// Returns at most eight bytes as a number, little endian.
#[inline]
pub(super) fn number_of(bytes: &[u8]) -> u64 {
    match bytes {
        [] => 0,
        [a] => u64::from(*a),
        [a, b] => u64::from(u16::from_le_bytes([*a, *b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([*a, *b, *c, *d])),
        _ => bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}
