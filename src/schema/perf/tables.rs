//! The tables of call sites and threads, in the context area of shard 0.
//!
//! Each table is a sequence of entries, and only grows. An entry consists of:
//! - a header of [`ENTRY_HEADER_BYTES`] bytes: length of the body in bytes (u32) and id (u32),
//! - a body: the bytes of the payload of CALL_SITE or THREAD_STARTED,
//! - zeros up to a multiple of 8 bytes.
//!
//! The writer writes a new entry, and then stores the size of all entries to the word "used", with release. A reader
//! loads "used" with acquire. So all bytes below this size are whole entries.
//!
//! The word "overflows" of a full table counts the call sites or threads that did not fit. A reader gets their
//! descriptions from their CALL_SITE or THREAD_STARTED events, as long as these events are in the ring. After that, it
//! has only ids.

/// The value of the first word of the context area, once the tables are made.
pub const MAGIC: u64 = u64::from_le_bytes(*b"EVRTABL1");
/// The offset of [`MAGIC`]. All offsets in this file are in bytes, from the start of the context area. All words are
/// u64.
pub const MAGIC_OFFSET: u64 = 0;
/// The offset of the word that counts shards that could not be made. Threads that would have used them share other
/// shards.
pub const SHARD_FAILURES_OFFSET: u64 = 0x08;
/// The offset of the word that counts spans that were not recorded, because too many spans were open.
pub const LOST_SPANS_OFFSET: u64 = 0x10;
/// The offset of the word that says whether the times of threads are measured, or why they are not: the code of a
/// [`ThreadTimeState`].
pub const THREAD_TIME_STATE_OFFSET: u64 = 0x18;
/// The offset of the word with the nanoseconds that the measurement of times has cost all threads together.
pub const THREAD_TIME_COST_OFFSET: u64 = 0x20;
/// The offset of the word that counts THREAD_TIME events.
pub const THREAD_TIMES_OFFSET: u64 = 0x28;
/// The offset of the word that counts THREAD_SWITCHED events.
pub const THREAD_SWITCHES_OFFSET: u64 = 0x30;
/// The words of the table of call sites.
pub const CALL_SITES: TableWords = TableWords { first: 0x40 };
/// The words of the table of threads.
pub const THREADS: TableWords = TableWords { first: 0x80 };
/// The smallest offset of a table.
pub const TABLES_START: u64 = 0x1000;
/// Number of bytes of the header before each entry's body.
pub const ENTRY_HEADER_BYTES: usize = 8;
/// The largest body, in bytes.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// The offsets of the words that describe one table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableWords {
    first: u64,
}

impl TableWords {
    /// Returns the offset of the word "start", which holds the offset of the table's first entry.
    #[must_use]
    pub const fn start(self) -> u64 {
        self.first
    }

    /// Returns the offset of the word "capacity", which holds the size of the table in bytes.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.first + 8
    }

    /// Returns the offset of the word "used", which holds the size of all entries in bytes.
    #[must_use]
    pub const fn used(self) -> u64 {
        self.first + 16
    }

    /// Returns the offset of the word "overflows", which counts the entries that did not fit.
    #[must_use]
    pub const fn overflows(self) -> u64 {
        self.first + 24
    }
}

/// An entry of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Id of the call site or thread.
    pub id: u32,
    /// Its body.
    pub body: &'a [u8],
}

/// Encodes an entry. Returns `None` if the body is larger than [`BODY_BYTES_MAX`].
#[must_use]
pub fn encode_entry(id: u32, body: &[u8]) -> Option<Vec<u8>> {
    if body.len() > BODY_BYTES_MAX {
        return None;
    }
    let mut entry = Vec::with_capacity(ENTRY_HEADER_BYTES + body.len() + 7);
    entry.extend((body.len() as u32).to_le_bytes());
    entry.extend(id.to_le_bytes());
    entry.extend(body);
    entry.resize(entry.len().next_multiple_of(8), 0);
    Some(entry)
}

/// Splits the first entry off `bytes`, which come from a file. Returns the entry and the bytes after it. Returns
/// `None` if `bytes` does not begin with a whole entry, or if the entry's header has an invalid size.
#[must_use]
pub fn split_entry(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (&body_bytes, rest) = bytes.split_first_chunk::<4>()?;
    let (&id, rest) = rest.split_first_chunk::<4>()?;
    let body_bytes = u32::from_le_bytes(body_bytes) as usize;
    if body_bytes > BODY_BYTES_MAX {
        return None;
    }
    let (padded, rest) = rest.split_at_checked(body_bytes.next_multiple_of(8))?;
    Some((Entry { id: u32::from_le_bytes(id), body: &padded[..body_bytes] }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_a_row_and_a_damaged_size_ends_the_table() {
        let mut bytes = encode_entry(7, b"abc").unwrap();
        bytes.extend(encode_entry(8, &[1; 16]).unwrap());
        assert_eq!(bytes.len(), 16 + 24);
        let (first, rest) = split_entry(&bytes).unwrap();
        assert_eq!(first, Entry { id: 7, body: b"abc" });
        let (second, rest) = split_entry(rest).unwrap();
        assert_eq!(second, Entry { id: 8, body: &[1; 16] });
        assert_eq!((split_entry(rest), rest.len()), (None, 0));
        assert_eq!(split_entry(&bytes[..15]), None);
        bytes[3] = 0xff;
        assert_eq!(split_entry(&bytes), None);
        assert_eq!(encode_entry(1, &vec![0; BODY_BYTES_MAX + 1]), None);
    }
}
