//! The fixed header: the first 192 bytes of a ring file, as in the published RING01 format.

/// The magic of every ring file: ASCII, no terminating NUL.
pub const MAGIC: [u8; 6] = *b"RING01";
/// Size of the fixed header in bytes.
pub const FIXED_BYTES: usize = 192;

/// Byte offset of the content type, a u16.
pub const CONTENT_TYPE: usize = 6;
/// Byte offset of the schema hash, 32 bytes.
pub const SCHEMA_HASH: usize = 8;
/// Byte offset of the descriptor capacity, a u64.
pub const DESCRIPTOR_CAPACITY: usize = 40;
/// Byte offset of the payload buffer size, a u64.
pub const PAYLOAD_BUF_SIZE: usize = 48;
/// Byte offset of the context area size, a u64.
pub const CONTEXT_AREA_SIZE: usize = 56;
/// Byte offset of the last seqno that was handed out, a u64 that writers increment.
pub const LAST_SEQNO: usize = 64;
/// Byte offset of the next payload byte to be handed out, a u64. The value is unwrapped: it does not start again at 0
/// when it passes the buffer's end.
pub const NEXT_PAYLOAD_BYTE: usize = 72;
/// Byte offset of the buffer window's start, a u64 that only grows. The value is unwrapped, as [`NEXT_PAYLOAD_BYTE`]
/// is.
pub const BUFFER_WINDOW_START: usize = 128;

/// Content type of a header that is not initialised; no valid ring has it.
pub const CONTENT_TYPE_NONE: u16 = 0;
/// Content type of the events used in simple tests.
pub const CONTENT_TYPE_TEST: u16 = 1;
/// Content type of execution events.
pub const CONTENT_TYPE_EXEC: u16 = 2;
/// Content type of the perf recorder: spans and log records of `tracing`.
pub const CONTENT_TYPE_PERF: u16 = 3;
/// First content type that programs may declare for their typed events.
pub const CONTENT_TYPE_FIRST_FREE: u16 = 256;

/// Returns the published name of a content type, or "unknown".
pub const fn content_type_name(content_type: u16) -> &'static str {
    match content_type {
        CONTENT_TYPE_NONE => "NONE",
        CONTENT_TYPE_TEST => "TEST",
        CONTENT_TYPE_EXEC => "EXEC",
        CONTENT_TYPE_PERF => "PERF",
        _ => "unknown",
    }
}

/// The part of the fixed header that never changes after creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedHeader {
    /// Kind of events in the ring, see the `CONTENT_TYPE_*` constants.
    pub content_type: u16,
    /// Hash of the schema text, which determines the binary layout of the events.
    pub schema_hash: [u8; 32],
    /// Number of descriptors; not checked, see [`super::Geometry`].
    pub descriptor_capacity: u64,
    /// Size of the payload buffer in bytes; not checked.
    pub payload_buf_bytes: u64,
    /// Size of the context area in bytes; not checked.
    pub context_area_bytes: u64,
}

impl FixedHeader {
    /// Returns the first 64 bytes of a ring file with these values.
    pub fn encode(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes[..6].copy_from_slice(&MAGIC);
        bytes[CONTENT_TYPE..SCHEMA_HASH].copy_from_slice(&self.content_type.to_le_bytes());
        bytes[SCHEMA_HASH..DESCRIPTOR_CAPACITY].copy_from_slice(&self.schema_hash);
        bytes[DESCRIPTOR_CAPACITY..PAYLOAD_BUF_SIZE].copy_from_slice(&self.descriptor_capacity.to_le_bytes());
        bytes[PAYLOAD_BUF_SIZE..CONTEXT_AREA_SIZE].copy_from_slice(&self.payload_buf_bytes.to_le_bytes());
        bytes[CONTEXT_AREA_SIZE..64].copy_from_slice(&self.context_area_bytes.to_le_bytes());
        bytes
    }

    /// Decodes the first 64 bytes of a ring file. Only the magic is checked.
    ///
    /// # Errors
    /// Fails if the magic is wrong. The error holds the six bytes that stand in place of the magic.
    pub fn decode(bytes: &[u8; 64]) -> Result<Self, [u8; 6]> {
        let magic = array::<6>(bytes, 0);
        if magic != MAGIC {
            return Err(magic);
        }
        Ok(Self {
            content_type: u16::from_le_bytes(array(bytes, CONTENT_TYPE)),
            schema_hash: array(bytes, SCHEMA_HASH),
            descriptor_capacity: u64::from_le_bytes(array(bytes, DESCRIPTOR_CAPACITY)),
            payload_buf_bytes: u64::from_le_bytes(array(bytes, PAYLOAD_BUF_SIZE)),
            context_area_bytes: u64::from_le_bytes(array(bytes, CONTEXT_AREA_SIZE)),
        })
    }
}

/// Returns the `N` bytes at `offset`. Callers pass constants, and all of these ranges lie within the 64 bytes.
fn array<const N: usize>(bytes: &[u8; 64], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_header_is_the_encoded_one_and_a_wrong_magic_is_an_error() {
        let header = FixedHeader {
            content_type: 2,
            schema_hash: [7; 32],
            descriptor_capacity: 1 << 16,
            payload_buf_bytes: 1 << 27,
            context_area_bytes: 0,
        };
        let mut bytes = header.encode();
        assert_eq!(FixedHeader::decode(&bytes), Ok(header));
        bytes[5] = b'9';
        assert_eq!(FixedHeader::decode(&bytes), Err(*b"RING09"));
    }
}
