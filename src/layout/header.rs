//! The fixed header: the first 192 bytes of a ring file, as published.

/// The magic of every ring file: ASCII, no terminating NUL.
pub const MAGIC: [u8; 6] = *b"RING01";
/// Bytes of the fixed header.
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
/// Byte offset of the last allocated sequence number, a u64 that writers add to.
pub const LAST_SEQNO: usize = 64;
/// Byte offset of the next payload byte to allocate (unwrapped), a u64.
pub const NEXT_PAYLOAD_BYTE: usize = 72;
/// Byte offset of the buffer window's start (unwrapped), a u64 that only grows.
pub const BUFFER_WINDOW_START: usize = 128;

/// Content type of an uninitialised header; invalid in a ring.
pub const CONTENT_TYPE_NONE: u16 = 0;
/// Content type of the events used in simple tests.
pub const CONTENT_TYPE_TEST: u16 = 1;
/// Content type of execution events.
pub const CONTENT_TYPE_EXEC: u16 = 2;
/// Content type of the performance tracer: spans and log records.
pub const CONTENT_TYPE_PERF: u16 = 3;
/// Content types from here on are free for programs to declare.
pub const CONTENT_TYPE_FIRST_FREE: u16 = 256;

/// The published name of a content type, or "unknown".
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
    /// What kind of events the ring holds, see the `CONTENT_TYPE_*` constants.
    pub content_type: u16,
    /// Names the exact binary layout of the events.
    pub schema_hash: [u8; 32],
    /// Number of descriptors; unchecked, see [`super::Geometry`].
    pub descriptor_capacity: u64,
    /// Bytes of the payload buffer; unchecked.
    pub payload_buf_bytes: u64,
    /// Bytes of the context area; unchecked.
    pub context_area_bytes: u64,
}

impl FixedHeader {
    /// The first 64 bytes of a ring file with these values.
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

    /// Reads the first 64 bytes of a ring file. The values are as found, unchecked but for the magic.
    ///
    /// # Errors
    /// Gives back the six bytes found where the magic should be.
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

/// The `N` bytes at `offset`; callers pass constants within the 64 bytes.
fn array<const N: usize>(bytes: &[u8; 64], offset: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[offset..offset + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_round_trip_and_a_foreign_magic_is_given_back() {
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
