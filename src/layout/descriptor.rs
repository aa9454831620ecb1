//! The event descriptor: 64 bytes, eight words.

use super::limits::DESCRIPTOR_WORDS;

/// Word index of the sequence number.
pub const WORD_SEQNO: usize = 0;
/// Index of the word with the event type in its low 16 bits and the payload size in its high 32 bits. The 16 bits
/// between them are unused.
pub const WORD_TYPE_AND_SIZE: usize = 1;
/// Word index of the record time.
pub const WORD_EPOCH_NANOS: usize = 2;
/// Word index of the unwrapped payload offset.
pub const WORD_PAYLOAD_OFFSET: usize = 3;
/// Word index of the first of four content extension words.
pub const WORD_CONTENT_EXT: usize = 4;

/// One event descriptor, copied out of a ring.
///
/// The fields have the order and the widths of the published RING01 format: 64 bytes, little endian in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
// `repr(C)` keeps the fields in the order of the file. So the compiler can copy whole words instead of single fields.
#[repr(C)]
pub struct Descriptor {
    /// Sequence number, from 1.
    pub seqno: u64,
    /// Event code. The ring's content type defines what a code means. Code 1 is RECORD_ERROR in every ring.
    pub event_type: u16,
    /// Size of the payload in bytes.
    pub payload_size: u32,
    /// Time of recording, nanoseconds since the Unix epoch.
    pub record_epoch_nanos: u64,
    /// Unwrapped byte offset of the payload in the payload buffer.
    pub payload_buf_offset: u64,
    /// Four extension words. The ring's content type defines what they mean.
    pub content_ext: [u64; 4],
}

impl Descriptor {
    /// Returns the descriptor as eight words, in the order of the file.
    #[inline]
    pub const fn to_words(self) -> [u64; DESCRIPTOR_WORDS] {
        [
            self.seqno,
            pack_type_and_size(self.event_type, self.payload_size),
            self.record_epoch_nanos,
            self.payload_buf_offset,
            self.content_ext[0],
            self.content_ext[1],
            self.content_ext[2],
            self.content_ext[3],
        ]
    }

    /// Reads a descriptor from its eight words. Every bit pattern is a descriptor; the unused bits are ignored.
    #[inline]
    pub const fn from_words(words: [u64; DESCRIPTOR_WORDS]) -> Self {
        Self {
            seqno: words[WORD_SEQNO],
            event_type: words[WORD_TYPE_AND_SIZE] as u16,
            payload_size: (words[WORD_TYPE_AND_SIZE] >> 32) as u32,
            record_epoch_nanos: words[WORD_EPOCH_NANOS],
            payload_buf_offset: words[WORD_PAYLOAD_OFFSET],
            content_ext: [words[4], words[5], words[6], words[7]],
        }
    }
}

/// Returns word 1 of a descriptor.
#[inline]
pub const fn pack_type_and_size(event_type: u16, payload_size: u32) -> u64 {
    event_type as u64 | (payload_size as u64) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn words_lie_at_the_published_offsets() {
        let d = Descriptor {
            seqno: 1,
            event_type: 0x0203,
            payload_size: 0x0405_0607,
            record_epoch_nanos: 8,
            payload_buf_offset: 9,
            content_ext: [10, 11, 12, 13],
        };
        let bytes: Vec<u8> = d.to_words().iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(bytes.len(), 64);
        assert_eq!(bytes[8..10], 0x0203u16.to_le_bytes());
        assert_eq!(bytes[10..12], [0, 0]);
        assert_eq!(bytes[12..16], 0x0405_0607u32.to_le_bytes());
        assert_eq!((bytes[16], bytes[24], bytes[32], bytes[56]), (8, 9, 10, 13));
        assert_eq!(Descriptor::from_words(d.to_words()), d);
        // `ring::memory` transmutes eight words to a `Descriptor`. So each field must lie where `from_words` reads it.
        let offsets = (offset_of!(Descriptor, event_type), offset_of!(Descriptor, payload_size));
        assert_eq!((size_of::<Descriptor>(), offset_of!(Descriptor, seqno), offsets), (64, 0, (8, 12)));
        let offsets = (offset_of!(Descriptor, record_epoch_nanos), offset_of!(Descriptor, payload_buf_offset));
        assert_eq!((offsets, offset_of!(Descriptor, content_ext)), ((16, 24), 32));
    }
}
