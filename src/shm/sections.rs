//! The sizes of a ring file's sections, and arithmetic on them that cannot overflow.

/// The offset of the byte in a ring file on which the writer takes its second lock. If the word at this offset is not
/// 0, the writer took that lock when it made the file.
pub const WRITE_LOCK_OFFSET: u64 = 0x198;

/// The sizes of the four sections of a ring file, in bytes. The fields have the order of the file.
///
/// There are no gaps between the sections. The sizes may come from an untrusted file, so they can have any value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sections {
    /// The header section, from file offset 0.
    pub header_bytes: u64,
    /// The descriptor array.
    pub descriptor_bytes: u64,
    /// The payload buffer, which is mapped twice.
    pub payload_bytes: u64,
    /// The context area. Its size may be 0.
    pub context_bytes: u64,
}

impl Sections {
    /// Returns the length in bytes that the file needs. Returns `None` if the length does not fit into 64 bits.
    #[must_use]
    pub fn file_bytes(&self) -> Option<u64> {
        self.context_offset()?.checked_add(self.context_bytes)
    }

    /// Returns the file offset of the payload buffer.
    #[must_use]
    pub fn payload_offset(&self) -> Option<u64> {
        self.header_bytes.checked_add(self.descriptor_bytes)
    }

    /// Returns the file offset of the context area.
    #[must_use]
    pub fn context_offset(&self) -> Option<u64> {
        self.payload_offset()?.checked_add(self.payload_bytes)
    }
}
