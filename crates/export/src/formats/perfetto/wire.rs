//! The wire format of protobuf, for frequent messages. The numbers of their fields are in `fields`.

/// A nested message that is being written. The byte at `at` is kept free for its length.
pub(super) struct Nested {
    at: usize,
}

/// Appends a field that is a varint.
#[inline]
pub(super) fn uint(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field << 3));
    varint(out, value);
}

/// Appends a field of eight bytes.
#[inline]
pub(super) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field << 3 | 1));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field that is text, bytes, or a message that is encoded already.
#[inline]
pub(super) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    varint(out, u64::from(field << 3 | 2));
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Begins a field that is a message. The fields of this message follow, then [`end`].
#[inline]
pub(super) fn begin(out: &mut Vec<u8>, field: u32) -> Nested {
    varint(out, u64::from(field << 3 | 2));
    out.push(0);
    Nested { at: out.len() - 1 }
}

/// Ends a message: writes its length where it began.
#[inline]
pub(super) fn end(out: &mut Vec<u8>, nested: Nested) {
    let length = out.len() - nested.at - 1;
    if length < 0x80 {
        out[nested.at] = length as u8;
        return;
    }
    let mut prefix = Vec::with_capacity(10);
    varint(&mut prefix, length as u64);
    out.splice(nested.at..=nested.at, prefix);
}

#[inline]
fn varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        varint_slow(out, value);
    }
}

fn varint_slow(out: &mut Vec<u8>, mut value: u64) {
    let (mut bytes, mut count) = ([0; 10], 0);
    while value >= 0x80 {
        bytes[count] = value as u8 | 0x80;
        value >>= 7;
        count += 1;
    }
    bytes[count] = value as u8;
    out.extend_from_slice(&bytes[..=count]);
}
