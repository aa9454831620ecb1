//! The block table of a snapshot.

use super::super::handle::Reader;
use super::numbers::SeqnoRuns;
use crate::layout::block_table::{self as table, ENTRIES, TABLE_BYTES, record_offset, tag_offset};
use crate::ring::observe::SEQNO_MAX;
use std::collections::HashMap;

/// The bit that is set in the flow tag of a block whose BLOCK_START is not in the snapshot.
const WITHOUT_START: u64 = SEQNO_MAX + 1;

/// The blocks of the ring's table, with the flow tags that they have in the snapshot.
pub(super) struct SnapshotBlocks {
    /// The new flow tags, by the old ones.
    tags: HashMap<u64, u64>,
    /// The table's bytes.
    table: Vec<u8>,
}

impl SnapshotBlocks {
    /// Makes the table for a snapshot whose events have the numbers `seqnos`. Returns `None` if the ring has no table.
    pub(super) fn of(reader: &Reader, seqnos: &SeqnoRuns) -> Option<Self> {
        let blocks = reader.blocks()?;
        let mut this = Self { tags: HashMap::new(), table: vec![0; TABLE_BYTES as usize] };
        this.put(table::MAGIC_OFFSET, table::MAGIC);
        let mut entry = 0;
        for block in blocks.iter().take(ENTRIES as usize) {
            let start_seqno = block.start_seqno().map_or(0, |seqno| seqnos.renumber(seqno));
            // The events of the block keep a tag that no other block has.
            let new_tag = if start_seqno == 0 { WITHOUT_START | block.flow_tag() } else { start_seqno };
            // In a damaged table, two blocks may have the same tag.
            if this.tags.insert(block.flow_tag(), new_tag).is_some() {
                continue;
            }
            this.put(tag_offset(entry), new_tag);
            for (index, word) in block.words_in_snapshot(start_seqno).into_iter().enumerate() {
                this.put(record_offset(entry, index), word);
            }
            entry += 1;
        }
        this.put(table::STARTED_OFFSET, entry);
        Some(this)
    }

    /// Returns the block's flow tag in the snapshot, or 0 if the table does not have the block.
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
