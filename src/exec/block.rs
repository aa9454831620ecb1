//! Reading the block that an execution event belongs to.

use crate::layout::Descriptor;
use crate::layout::start_table::{START_BYTES, START_CODE, StartRecord, TAG_WORD};
use crate::reader::{Reader, SavedStart};
use crate::recorder::RecorderBuilder;
use crate::schema::exec::{BlockStart, BlockTag, ExecEvent, flow};
use crate::schema::{EventPayload, PayloadField};

/// The place of the block's id in the payload of BLOCK_START: 32 bytes.
const BLOCK_ID_OFFSET: usize = 0;
/// The place of the block's number in the payload of BLOCK_START: a u64.
const BLOCK_NUMBER_OFFSET: usize = 32;

// The layout of the table of start records, and the offsets above, name the parts of BLOCK_START by number.
const _: () = {
    assert!(ExecEvent::BlockStart as u16 == START_CODE && flow::BLOCK == TAG_WORD);
    assert!(<BlockStart as PayloadField>::WIRE_BYTES == START_BYTES);
    match (BlockStart::STRUCT.field("block_tag"), BlockTag::STRUCT.field("id"), BlockTag::STRUCT.field("block_number"))
    {
        (Some(tag), Some(id), Some(number)) => {
            assert!(tag.offset + id.offset == BLOCK_ID_OFFSET);
            assert!(tag.offset + number.offset == BLOCK_NUMBER_OFFSET);
        }
        _ => panic!("BLOCK_START has no such field"),
    }
};

/// A block, as its BLOCK_START described it. It comes from the ring's block table, or from the event itself.
#[derive(Clone, PartialEq, Eq)]
pub struct BlockInfo(SavedStart);

impl BlockInfo {
    /// Makes the description of the block that the event `start` begins. Returns `None` if the event is no BLOCK_START
    /// of a ring of execution events, as far as its code and its payload show.
    pub fn of_start(start: &Descriptor, payload: &[u8]) -> Option<Self> {
        let payload = payload.first_chunk::<START_BYTES>().filter(|_| start.event_type == START_CODE)?;
        let record =
            StartRecord { start_seqno: start.seqno, start_epoch_nanos: start.record_epoch_nanos, payload: *payload };
        Some(Self(SavedStart { tag: start.seqno, record }))
    }

    /// Returns the bytes with which a capture describes the block: flow tag, seqno and time of BLOCK_START, payload.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = [self.0.tag, self.0.record.start_seqno, self.0.record.start_epoch_nanos];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(self.0.record.payload);
        bytes
    }

    /// Decodes the bytes of a capture. Returns `None` if they describe no block.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let ([flow_tag, start_seqno, start_epoch_nanos], payload) = {
            let (words, payload) = bytes.split_first_chunk::<24>()?;
            let word = |index: usize| words.as_chunks::<8>().0.get(index).map(|word| u64::from_le_bytes(*word));
            ([word(0)?, word(1)?, word(2)?], payload.try_into().ok()?)
        };
        SavedStart::new(flow_tag, StartRecord { start_seqno, start_epoch_nanos, payload }).map(Self)
    }

    /// Returns the block's flow tag: the value of the extension word `block` of its events. It is the seqno of the
    /// block's BLOCK_START. In a snapshot that does not have the BLOCK_START, it is a number above 2^63.
    #[must_use]
    pub fn flow_tag(&self) -> u64 {
        self.0.tag
    }

    /// Returns the seqno of the block's BLOCK_START. The event may have been overwritten. Returns `None` in a snapshot
    /// that does not have the event.
    #[must_use]
    pub fn start_seqno(&self) -> Option<u64> {
        Some(self.0.record.start_seqno).filter(|seqno| *seqno != 0)
    }

    /// Returns the time of the block's BLOCK_START, in nanoseconds since the epoch.
    #[must_use]
    pub fn start_epoch_nanos(&self) -> u64 {
        self.0.record.start_epoch_nanos
    }

    /// Returns the number that the block has if it becomes final. Several blocks may be proposed for one number.
    #[must_use]
    pub fn number(&self) -> u64 {
        let bytes = self.0.record.payload[BLOCK_NUMBER_OFFSET..].first_chunk();
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Returns the hash that identifies the proposed block: `block_tag.id` of its BLOCK_START.
    #[must_use]
    pub fn id(&self) -> [u8; 32] {
        self.0.record.payload[BLOCK_ID_OFFSET..].first_chunk().copied().unwrap_or_default()
    }

    /// Returns the payload of the block's BLOCK_START. With the feature `exec`,
    /// `ExecPayload::decode(ExecEvent::BlockStart.code(), payload)` decodes it.
    #[must_use]
    pub fn start_payload(&self) -> &[u8] {
        &self.0.record.payload
    }
}

impl std::fmt::Debug for BlockInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockInfo")
            .field("number", &self.number())
            .field("id", &crate::schema::Hex(&self.id()))
            .field("flow_tag", &self.0.tag)
            .field("start_epoch_nanos", &self.start_epoch_nanos())
            .finish_non_exhaustive()
    }
}

/// Returns the flow tag of an execution event: the seqno of its block's BLOCK_START, or 0 if it belongs to no block.
pub fn flow_tag(event: &Descriptor) -> u64 {
    match event.content_ext[TAG_WORD] {
        // `record!` records a BLOCK_START without its own seqno in the word.
        0 if event.event_type == START_CODE => event.seqno,
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
        self.block_with_tag(flow_tag(event)).filter(|block| {
            // No event belongs to a block that starts later.
            block.start_seqno().is_none_or(|start| start <= event.seqno)
        })
    }

    /// Returns the block of the block table with this flow tag.
    pub(crate) fn block_with_tag(&self, flow_tag: u64) -> Option<BlockInfo> {
        self.kept_start(flow_tag).map(BlockInfo)
    }

    /// Returns the block that started last, or `None` if the ring's block table has no block, or if there is no table.
    #[must_use]
    pub fn last_block(&self) -> Option<BlockInfo> {
        self.kept_starts()?.next().map(BlockInfo)
    }

    /// Returns the blocks in the ring's block table, in the order in which they started. There are at most 4,096.
    /// Returns `None` if the ring has no block table. A block that is just being replaced by a writer is left out.
    #[must_use]
    pub fn blocks(&self) -> Option<Vec<BlockInfo>> {
        self.kept_starts().map(|starts| starts.rev().map(BlockInfo).collect())
    }
}

impl RecorderBuilder {
    /// Sets whether the ring keeps the start records of the last 4,096 blocks, in a table at the beginning of the
    /// context area. With it, a reader that comes after a block's BLOCK_START was overwritten still learns to which
    /// block an event belongs ([`Reader::block_of`](Reader::block_of)). The context area then has 4 MiB,
    /// or more if [`Self::context_shift`] says so; its first 2,396,160 bytes are the table's. Only a ring of execution
    /// events (content type 2) can have the table. Default: false.
    pub fn block_table(mut self, block_table: bool) -> Self {
        self.start_table = block_table;
        self
    }
}
