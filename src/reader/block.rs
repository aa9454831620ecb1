//! The block table of a ring of execution events, read: which block an event belongs to.

use super::handle::Reader;
use crate::layout::Descriptor;
use crate::layout::block_table::{
    BLOCK_ID_OFFSET, BLOCK_NUMBER_OFFSET, BLOCK_START_BYTES, BLOCK_START_CODE, FLOW_TAG_WORD, StartRecord,
};
use crate::layout::header::CONTENT_TYPE_EXEC;
use crate::ring::block_table::{self, RecordWords};
use crate::ring::observe::SEQNO_MAX;

/// A block, as its BLOCK_START described it. It comes from the ring's block table, or from the event itself.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockInfo {
    flow_tag: u64,
    record: StartRecord,
}

impl BlockInfo {
    /// Makes the description of the block that the event `start` begins. Returns `None` if the event is no BLOCK_START
    /// of a ring of execution events, as far as its code and its payload show.
    pub fn of_start(start: &Descriptor, payload: &[u8]) -> Option<Self> {
        let payload = payload.first_chunk::<BLOCK_START_BYTES>().filter(|_| start.event_type == BLOCK_START_CODE)?;
        let record =
            StartRecord { start_seqno: start.seqno, start_epoch_nanos: start.record_epoch_nanos, payload: *payload };
        Some(Self { flow_tag: start.seqno, record })
    }

    pub(crate) fn from_words(flow_tag: u64, words: &RecordWords) -> Option<Self> {
        Self::new(flow_tag, StartRecord::from_words(words))
    }

    /// Makes the description from a record that anybody may have written. Returns `None` if the record does not belong
    /// to the tag.
    fn new(flow_tag: u64, record: StartRecord) -> Option<Self> {
        // The tag is the seqno of BLOCK_START. Only in a snapshot without the BLOCK_START the tag names no seqno.
        let is_sound = match record.start_seqno {
            0 => flow_tag > SEQNO_MAX,
            seqno => seqno == flow_tag && seqno <= SEQNO_MAX,
        };
        is_sound.then_some(Self { flow_tag, record })
    }

    /// Returns the words of the record in a table in which the block has another flow tag.
    pub(super) fn words_in_snapshot(&self, start_seqno: u64) -> RecordWords {
        StartRecord { start_seqno, ..self.record.clone() }.to_words()
    }

    /// Returns the bytes with which a capture describes the block: flow tag, seqno and time of BLOCK_START, payload.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [self.flow_tag, self.record.start_seqno, self.record.start_epoch_nanos];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.record.payload);
        bytes
    }

    /// Decodes the bytes of a capture. Returns `None` if they describe no block.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([flow_tag, start_seqno, start_epoch_nanos], payload) = {
            let (words, payload) = bytes.split_first_chunk::<24>()?;
            let word = |index: usize| words.as_chunks::<8>().0.get(index).map(|word| u64::from_le_bytes(*word));
            ([word(0)?, word(1)?, word(2)?], payload.try_into().ok()?)
        };
        Self::new(flow_tag, StartRecord { start_seqno, start_epoch_nanos, payload })
    }

    /// Returns the block's flow tag: the value of the extension word `block` of its events. It is the seqno of the
    /// block's BLOCK_START. In a snapshot that does not have the BLOCK_START, it is a number above 2^63.
    #[must_use]
    pub fn flow_tag(&self) -> u64 {
        self.flow_tag
    }

    /// Returns the seqno of the block's BLOCK_START. The event may have been overwritten. Returns `None` in a snapshot
    /// that does not have the event.
    #[must_use]
    pub fn start_seqno(&self) -> Option<u64> {
        Some(self.record.start_seqno).filter(|seqno| *seqno != 0)
    }

    /// Returns the time of the block's BLOCK_START, in nanoseconds since the epoch.
    #[must_use]
    pub fn start_epoch_nanos(&self) -> u64 {
        self.record.start_epoch_nanos
    }

    /// Returns the number that the block has if it becomes final. Several blocks may be proposed for one number.
    #[must_use]
    pub fn number(&self) -> u64 {
        let bytes = self.record.payload[BLOCK_NUMBER_OFFSET..].first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the hash that identifies the proposed block: `block_tag.id` of its BLOCK_START.
    #[must_use]
    pub fn id(&self) -> [u8; 32] {
        self.record.payload[BLOCK_ID_OFFSET..].first_chunk().copied().unwrap_or_default()
    }

    /// Returns the payload of the block's BLOCK_START. With the feature `exec`,
    /// `ExecPayload::decode(ExecEvent::BlockStart.code(), payload)` decodes it.
    #[must_use]
    pub fn start_payload(&self) -> &[u8] {
        &self.record.payload
    }
}

impl std::fmt::Debug for BlockInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockInfo")
            .field("number", &self.number())
            .field("id", &crate::schema::Hex(&self.id()))
            .field("flow_tag", &self.flow_tag)
            .field("start_epoch_nanos", &self.start_epoch_nanos())
            .finish_non_exhaustive()
    }
}

/// Returns the flow tag of an execution event: the seqno of its block's BLOCK_START, or 0 if it belongs to no block.
pub fn flow_tag(event: &Descriptor) -> u64 {
    match event.content_ext[FLOW_TAG_WORD] {
        // `record!` records a BLOCK_START without its own seqno in the word.
        0 if event.event_type == BLOCK_START_CODE => event.seqno,
        tag => tag,
    }
}

impl Reader {
    /// Returns the block to which `event`, an event of this ring, belongs. The ring's block table must have the block:
    /// the table holds the last 4,096 blocks, and only rings of recorders with
    /// [`block_table`](crate::recorder::RecorderBuilder::block_table) have one. The block's BLOCK_START need not be in
    /// the ring any more.
    ///
    /// Returns `None` if the event belongs to no block, if the ring or its table does not know the block, or if the
    /// block was replaced in the table meanwhile. The call costs some dozens of loads for a block that started lately,
    /// and some thousands for a block that the table does not have. So keep the result for the next event, which
    /// usually has the same flow tag.
    #[must_use]
    pub fn block_of(&self, event: &Descriptor) -> Option<BlockInfo> {
        self.has_block_table().then(|| self.block_with_tag(flow_tag(event)))?.filter(|block| {
            // No event belongs to a block that starts later.
            block.start_seqno().is_none_or(|start| start <= event.seqno)
        })
    }

    /// Returns the block of the block table with this flow tag.
    pub(crate) fn block_with_tag(&self, flow_tag: u64) -> Option<BlockInfo> {
        let words = block_table::find(self.memory(), flow_tag)?;
        BlockInfo::from_words(flow_tag, &words)
    }

    /// Returns the block that started last, or `None` if the ring's block table has no block, or if there is no table.
    #[must_use]
    pub fn last_block(&self) -> Option<BlockInfo> {
        let entries = block_table::newest_first(self.memory()).filter(|_| self.has_block_table());
        entries.filter_map(|entry| self.block_in(entry)).next()
    }

    /// Returns the blocks in the ring's block table, in the order in which they started. There are at most 4,096.
    /// Returns `None` if the ring has no block table. A block that is just being replaced by a writer is left out.
    #[must_use]
    pub fn blocks(&self) -> Option<Vec<BlockInfo>> {
        let entries = self.has_block_table().then(|| block_table::newest_first(self.memory()))?;
        Some(entries.rev().filter_map(|entry| self.block_in(entry)).collect())
    }

    fn block_in(&self, entry: u64) -> Option<BlockInfo> {
        let (flow_tag, words) = block_table::record_of(self.memory(), entry)?;
        BlockInfo::from_words(flow_tag, &words)
    }

    fn has_block_table(&self) -> bool {
        super::info::content_type(self.memory()) == CONTENT_TYPE_EXEC && block_table::exists(self.memory())
    }
}
