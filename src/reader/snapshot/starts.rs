//! The table of start records in a snapshot.

use super::super::handle::Reader;
use super::super::start_table::SavedStart;
use super::numbers::SeqnoRuns;
use crate::layout::start_table::{self as table, ENTRIES, StartRecord, TABLE_BYTES, record_offset, tag_offset};
use crate::ring::observe::SEQNO_MAX;
use std::collections::HashMap;

/// The bit that is set in the tag of a start that is not in the snapshot.
const WITHOUT_START: u64 = SEQNO_MAX + 1;

/// The starts in the ring's table, with the tags that they have in the snapshot.
pub(super) struct SnapshotStarts {
    /// The new tags, by the old ones.
    tags: HashMap<u64, u64>,
    /// The table's bytes.
    table: Vec<u8>,
}

impl SnapshotStarts {
    /// Makes the table for a snapshot whose events have the numbers `seqnos`. Returns `None` if the ring has no table.
    pub(super) fn new(reader: &Reader, seqnos: &SeqnoRuns) -> Option<Self> {
        let starts = reader.kept_starts()?;
        let mut this = Self { tags: HashMap::new(), table: vec![0; TABLE_BYTES as usize] };
        this.put(table::MAGIC_OFFSET, table::MAGIC);
        let mut entry = 0;
        for SavedStart { tag, record } in starts.rev().take(ENTRIES as usize) {
            let start_seqno = if record.start_seqno == 0 { 0 } else { seqnos.renumber(record.start_seqno) };
            // The events that belong to the start keep a tag that no other has.
            let new_tag = if start_seqno == 0 { WITHOUT_START | tag } else { start_seqno };
            // In a damaged table, two starts may have the same tag.
            if this.tags.insert(tag, new_tag).is_some() {
                continue;
            }
            this.put(tag_offset(entry), new_tag);
            for (index, word) in (StartRecord { start_seqno, ..record }).to_words().into_iter().enumerate() {
                this.put(record_offset(entry, index), word);
            }
            entry += 1;
        }
        this.put(table::STARTED_OFFSET, entry);
        Some(this)
    }

    /// Returns the tag of a start in the snapshot, or 0 if the table does not have the start.
    pub(super) fn tag(&self, old_tag: u64) -> u64 {
        self.tags.get(&old_tag).copied().unwrap_or(0)
    }

    /// Returns the bytes with which the context area of the snapshot begins.
    pub(super) fn table(&self) -> &[u8] {
        &self.table
    }

    fn put(&mut self, offset: u64, value: u64) {
        self.table[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }
}
