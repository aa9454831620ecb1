//! Reading the table of start records.

use super::handle::Reader;
use crate::layout::start_table::{self as table, StartRecord};
use crate::ring::observe::SEQNO_MAX;
use crate::ring::start_table::{self, RecordWords};

/// A start, and its tag.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SavedStart {
    pub(crate) tag: u64,
    pub(crate) record: StartRecord,
}

impl SavedStart {
    /// Makes it from a record that anybody may have written. Returns `None` if the record does not belong to the tag.
    pub(crate) fn new(tag: u64, record: StartRecord) -> Option<Self> {
        // The tag is the seqno of the start. Only in a snapshot without the start the tag names no seqno.
        let is_sound = match record.start_seqno {
            0 => tag > SEQNO_MAX,
            seqno => seqno == tag && seqno <= SEQNO_MAX,
        };
        is_sound.then_some(Self { tag, record })
    }

    fn of_words(tag: u64, words: &RecordWords) -> Option<Self> {
        Self::new(tag, StartRecord::from_words(words))
    }
}

impl Reader {
    /// Returns the start with this tag, if the ring's table has it.
    pub(crate) fn kept_start(&self, tag: u64) -> Option<SavedStart> {
        let words = self.has_start_table().then(|| start_table::find(&self.source.memory, tag))??;
        SavedStart::of_words(tag, &words)
    }

    /// Returns the starts in the ring's table, the newest first. Returns `None` if the ring has no table. A start that
    /// is just being replaced by a writer is left out.
    pub(crate) fn kept_starts(&self) -> Option<impl DoubleEndedIterator<Item = SavedStart>> {
        let entries = self.has_start_table().then(|| start_table::newest_first(&self.source.memory))?;
        Some(entries.filter_map(|entry| {
            let (tag, words) = start_table::record_of(&self.source.memory, entry)?;
            SavedStart::of_words(tag, &words)
        }))
    }

    fn has_start_table(&self) -> bool {
        super::info::content_type(&self.source.memory) == table::CONTENT_TYPE
            && start_table::exists(&self.source.memory)
    }
}
