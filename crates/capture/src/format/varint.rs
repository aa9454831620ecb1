//! Numbers that take as few bytes as they need (LEB128). Each byte holds seven bits of the number, the lowest bits
//! first. The high bit of a byte is set if another byte follows.

/// The largest number of bytes that a number takes.
const BYTES_MAX: usize = 10;

/// Appends a number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number from the start of `bytes`. Returns `None` if the bytes end before the number does, or if the number
/// is longer than a u64.
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for index in 0..BYTES_MAX {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(first & 0x7f);
        if index == BYTES_MAX - 1 && bits > 1 {
            return None;
        }
        value |= bits << (7 * index);
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Maps numbers near 0 of either sign to small numbers: 0, −1, 1, −2 become 0, 1, 2, 3.
#[inline(always)]
pub(crate) fn zigzag(value: u64) -> u64 {
    (value << 1) ^ ((value as i64 >> 63) as u64)
}

/// Reverses [`zigzag`].
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_cut_or_overlong_ones_are_refused() {
        for value in [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut rest = &bytes[..];
            assert_eq!((take_varint(&mut rest), rest), (Some(value), &[][..]));
            assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(take_varint(&mut &[0x80; 11][..]), None);
        assert_eq!(take_varint(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..]), None);
        assert_eq!([0, u64::MAX, 1, u64::MAX - 1].map(zigzag), [0, 1, 2, 3]);
    }
}
