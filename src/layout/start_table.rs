//! The table of start records, at the beginning of the context area of a ring. A *start event* has the type
//! [`START_CODE`]; in `schema/exec/`, it begins a block. Later events that belong to the start event carry its seqno as
//! their *tag*, in the extension word [`TAG_WORD`].
//!
//! The table keeps copies (*records*) of the last start events, for readers that have missed a start event.
//!
//! The table has [`ENTRIES`] entries, each with a tag word and a record. The tag word is 0 while the entry has no valid
//! record. All tag words are adjacent, so that a reader searches few cache lines. Offsets are in bytes from the start
//! of the context area. Words are u64, little endian.

use super::header::CONTENT_TYPE_EXEC;

/// The content type of the rings that may have the table.
pub const CONTENT_TYPE: u16 = CONTENT_TYPE_EXEC;
/// The value of the first word of the context area if the area has the table.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EVRBLOK1");
/// The offset of [`MAGIC`].
pub const MAGIC_OFFSET: u64 = 0x00;
/// The offset of the word that counts the starts for which a writer took an entry. Start *n* (from 0) takes entry
/// *n* modulo [`ENTRIES`].
pub const STARTED_OFFSET: u64 = 0x08;
/// The offset of the tag words.
pub const TAGS_OFFSET: u64 = if cfg!(any(loom, shuttle)) { 0x10 } else { 0x1000 };
/// The number of entries, a power of two. (Model checks use a smaller table.)
pub const ENTRIES: u64 = if cfg!(any(loom, shuttle)) { 2 } else { 1 << 12 };
/// The offset of the records.
pub const RECORDS_OFFSET: u64 = TAGS_OFFSET + 8 * ENTRIES;
/// The number of words of a record. (Model checks use smaller records.)
pub const RECORD_WORDS: usize = if cfg!(any(loom, shuttle)) { 2 } else { StartRecord::WORDS };
/// The number of bytes of the table.
pub const TABLE_BYTES: u64 = RECORDS_OFFSET + 8 * ENTRIES * RECORD_WORDS as u64;
/// The shift of the smallest context area that has room for the table: 4 MiB.
pub const CONTEXT_SHIFT: u32 = 22;

/// The type of the events that are starts.
pub const START_CODE: u16 = 2;
/// The index of the extension word that holds the tag of an event.
pub const TAG_WORD: usize = 0;
/// The size of the payload of a start in bytes.
pub const START_BYTES: usize = 528;

const _: () = assert!(TABLE_BYTES <= 1 << CONTEXT_SHIFT);

/// Returns the offset of an entry's tag word.
pub const fn tag_offset(entry: u64) -> u64 {
    TAGS_OFFSET + 8 * (entry % ENTRIES)
}

/// Returns the offset of a word of an entry's record.
pub const fn record_offset(entry: u64, word: usize) -> u64 {
    RECORDS_OFFSET + 8 * ((entry % ENTRIES) * RECORD_WORDS as u64 + word as u64)
}

/// The record of an entry: what the start said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartRecord {
    /// Seqno of the start in this file. It is 0 in a snapshot that has the record, but not the event.
    pub start_seqno: u64,
    /// Time of the start, nanoseconds since the epoch.
    pub start_epoch_nanos: u64,
    /// Payload of the start.
    pub payload: [u8; START_BYTES],
}

impl StartRecord {
    /// The number of words of a record: the seqno, the time, two words that are 0, the payload, and two words that are
    /// 0.
    pub const WORDS: usize = 72;
    const PAYLOAD: usize = 4;

    /// Returns the words of the record, in the order of the file.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        (words[0], words[1]) = (self.start_seqno, self.start_epoch_nanos);
        for (word, bytes) in words[Self::PAYLOAD..].iter_mut().zip(self.payload.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    /// Decodes the words of a record. Every word may have any value.
    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let mut payload = [0; START_BYTES];
        for (bytes, word) in payload.as_chunks_mut::<8>().0.iter_mut().zip(&words[Self::PAYLOAD..]) {
            *bytes = word.to_le_bytes();
        }
        Self { start_seqno: words[0], start_epoch_nanos: words[1], payload }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_and_the_table_has_its_documented_size() {
        let record = StartRecord {
            start_seqno: 7,
            start_epoch_nanos: 9,
            payload: std::array::from_fn(|index| (index % 251) as u8),
        };
        let words = record.to_words();
        assert_eq!(StartRecord::from_words(&words), record);
        assert_eq!((words[0], words[1], words[2], words[3], words[70], words[71]), (7, 9, 0, 0, 0, 0));
        assert_eq!(words[4], u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]));
        if !cfg!(any(loom, shuttle)) {
            assert_eq!((RECORDS_OFFSET, TABLE_BYTES), (0x9000, 2_396_160));
        }
    }
}
