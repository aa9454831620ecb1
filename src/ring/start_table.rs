//! The table of start records: how writers store a start record, and how readers load it whole.
//!
//! The tag word of an entry protects the entry's record, as the seqno protects a descriptor. A writer claims the entry
//! (tag := 0), stores the record, and stores the new tag. A reader takes a record only if the tag was equal before and
//! after the copy.

use super::memory::RingMemory;
use super::mutation::{self, Mutation};
use crate::layout::start_table::{
    ENTRIES, MAGIC, MAGIC_OFFSET, RECORD_WORDS, STARTED_OFFSET, TABLE_BYTES, record_offset, tag_offset,
};
use crate::sync::{AtomicU64, Ordering, fence};

/// The words of a record.
pub(crate) type RecordWords = [u64; RECORD_WORDS];

/// Makes an empty table in a new ring's context area, which is zero and large enough.
pub(crate) fn make<M: RingMemory>(memory: &M) {
    if let Some(magic) = memory.context_word(MAGIC_OFFSET) {
        // Relaxed: no reader can see the file yet.
        magic.store(MAGIC, Ordering::Relaxed);
    }
}

/// Returns true if the ring has the table.
pub(crate) fn exists<M: RingMemory>(memory: &M) -> bool {
    // Relaxed: the magic is stored before the file has a name.
    memory.geometry().context_area_bytes() >= TABLE_BYTES
        && memory.context_word(MAGIC_OFFSET).is_some_and(|magic| magic.load(Ordering::Relaxed) == MAGIC)
}

/// Stores the record of the start with this tag, in place of the oldest record. Returns false if another writer is
/// stalled inside the entry, or if the entry already belongs to a later start. The table then has no record of this
/// one.
pub(crate) fn put<M: RingMemory>(memory: &M, start_tag: u64, record: &RecordWords) -> bool {
    let Some(started) = memory.context_word(STARTED_OFFSET) else { return false };
    // Relaxed: the number only chooses the entry.
    let entry = started.fetch_add(1, Ordering::Relaxed);
    let Some(tag) = memory.context_word(tag_offset(entry)) else { return false };
    if !claim(tag, entry, start_tag) {
        return false;
    }
    if !mutation::active(Mutation::MissingWriterFence) {
        // Pairs with the acquire fence in `record_of`: a reader that copied one of the words below sees, after its
        // fence, that the entry was claimed.
        fence(Ordering::Release);
    }
    for (index, word) in record.iter().enumerate() {
        if let Some(to) = memory.context_word(record_offset(entry, index)) {
            to.store(*word, Ordering::Relaxed);
        }
    }
    let order = if mutation::active(Mutation::RelaxedCommit) { Ordering::Relaxed } else { Ordering::Release };
    // Release, pairs with the acquire load in `record_of`.
    tag.store(start_tag, order);
    true
}

/// Claims an entry for the start number `started` (from 0): exchanges an older tag for 0. So at most one writer is ever
/// inside an entry. A tag that is 0 already belongs to an entry that was never used, and only the entry's first start
/// may take such an entry. For a later start, it belongs to a writer that is stalled inside the entry.
fn claim(tag: &AtomicU64, started: u64, start_tag: u64) -> bool {
    if mutation::active(Mutation::MissingClaim) {
        tag.store(0, Ordering::Relaxed);
        return true;
    }
    let seen = tag.load(Ordering::Relaxed);
    if seen == 0 {
        return started < ENTRIES;
    }
    // Acquire, pairs with the release of the tag that is replaced: the previous writer's stores to the record happen
    // before this writer's stores.
    let order = if mutation::active(Mutation::RelaxedClaim) { Ordering::Relaxed } else { Ordering::Acquire };
    seen < start_tag && tag.compare_exchange(seen, 0, order, Ordering::Relaxed).is_ok()
}

/// Returns the number of starts for which a writer took an entry.
pub(crate) fn started<M: RingMemory>(memory: &M) -> u64 {
    memory.context_word(STARTED_OFFSET).map_or(0, |started| started.load(Ordering::Relaxed))
}

/// Returns the record of the start with this tag, or `None` if the table does not have the record, or if a writer
/// replaced it meanwhile. Looks at each entry at most once, whatever the table holds.
pub(crate) fn find<M: RingMemory>(memory: &M, start_tag: u64) -> Option<RecordWords> {
    let tag_of = |entry: &u64| memory.context_word(tag_offset(*entry)).map(|tag| tag.load(Ordering::Relaxed));
    // 0 is no tag: it marks entries without a valid record.
    let entry = newest_first(memory).find(|entry| start_tag != 0 && tag_of(entry) == Some(start_tag))?;
    record_of(memory, entry).filter(|(tag, _)| *tag == start_tag).map(|(_, record)| record)
}

/// Returns the numbers of all entries, beginning with the entry that was taken last.
pub(crate) fn newest_first<M: RingMemory>(memory: &M) -> impl DoubleEndedIterator<Item = u64> + use<M> {
    let started = started(memory);
    (1..=ENTRIES).map(move |back| started.wrapping_sub(back) % ENTRIES)
}

/// Returns the tag and the record of an entry. Returns `None` if the entry has no valid record, or if a writer replaced
/// the record meanwhile.
pub(crate) fn record_of<M: RingMemory>(memory: &M, entry: u64) -> Option<(u64, RecordWords)> {
    let tag = memory.context_word(tag_offset(entry))?;
    // Acquire, pairs with the release store in `put`.
    let seen = tag.load(Ordering::Acquire);
    if seen == 0 {
        return None;
    }
    let mut record = [0; RECORD_WORDS];
    for (index, word) in record.iter_mut().enumerate() {
        *word = memory.context_word(record_offset(entry, index))?.load(Ordering::Relaxed);
    }
    if !mutation::active(Mutation::MissingReaderFence) {
        // Pairs with the release fence in `put`: if a later writer stored one of the words that we loaded, the load
        // below sees that writer's claim.
        fence(Ordering::Acquire);
    }
    (tag.load(Ordering::Relaxed) == seen).then_some((seen, record))
}
