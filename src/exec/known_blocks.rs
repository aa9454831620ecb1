//! The blocks of a ring of execution events that a reader has learned from the events it has read.

use super::block::{BlockInfo, flow_tag};
use crate::layout::Descriptor;
use crate::layout::start_table::{ENTRIES, START_CODE};
use crate::reader::{PayloadRead, Reader};
use crate::schema::EventPayload as _;
use crate::schema::exec::{BlockTag, BlockVerified, ExecEvent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The known blocks of one ring of execution events: those whose BLOCK_START was read, those of the ring's block table,
/// and those that a capture has kept.
///
/// ```
/// use eventring::exec::KnownBlocks;
/// use eventring::reader::{Next, Reader, Seek};
/// # use eventring::exec::BlockScope;
/// # use eventring::recorder::{ContentDescription, Recorder};
/// # use eventring::schema::exec::{BlockEnd, BlockStart, ExecEvent};
/// # let builder = Recorder::builder(ContentDescription::from_event_type::<ExecEvent>()).anonymous().block_table(true);
/// # let recorder = builder.prefault(false).build()?;
/// # let _guard = eventring::global::EXEC.override_with(recorder.clone());
/// # let mut start = BlockStart::default();
/// # start.block_tag.block_number = 17;
/// # let block = BlockScope::start(&start);
/// # eventring::record!(ExecEvent::BlockEnd, &BlockEnd::default());
/// let reader = Reader::options().open_fd(recorder.as_fd())?;
/// let mut blocks = KnownBlocks::of_ring(&reader);
/// let mut cursor = reader.cursor();
/// cursor.seek(Seek::Last(1)); // the BLOCK_START came before
/// let Next::Event(event) = cursor.next() else { panic!() };
/// let mut buffer = Vec::new();
/// let block = blocks.block_of(&event, || cursor.payload(&event, &mut buffer)).ok_or("unknown")?;
/// assert_eq!(block.number(), 17);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KnownBlocks {
    /// The ring, if it may have a block table.
    table: Option<Reader>,
    /// The blocks that a capture has kept.
    saved: Arc<SavedBlocks>,
    /// The blocks whose BLOCK_START was read: those with the largest flow tags, and as many as a table has.
    learned: BTreeMap<u64, Arc<BlockInfo>>,
    /// The answer for the last event: its flow tag, and the block. Neighbouring events mostly have the same tag.
    last: Option<(u64, Option<Arc<BlockInfo>>)>,
}

/// Blocks by flow tag.
pub type SavedBlocks = BTreeMap<u64, Arc<BlockInfo>>;

impl KnownBlocks {
    /// Makes an empty list, for a ring whose file is not there.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the list for the events of `reader`'s ring.
    #[must_use]
    pub fn of_ring(reader: &Reader) -> Self {
        Self { table: Some(reader.clone()), ..Self::default() }
    }

    /// Makes the list for the events of a ring in a capture.
    pub fn of_saved(saved: Arc<SavedBlocks>) -> Self {
        Self { saved, ..Self::default() }
    }

    /// Returns the block to which `event`, an execution event of this ring, belongs. Returns `None` if the event
    /// belongs to no block, or if the block is not known. `read_payload` returns the event's payload. It is called only
    /// if the event is a BLOCK_START; the block is then known for the events that follow.
    pub fn block_of<'p>(
        &mut self,
        event: &Descriptor,
        read_payload: impl FnOnce() -> PayloadRead<'p>,
    ) -> Option<Arc<BlockInfo>> {
        if event.event_type == START_CODE
            && let Some(block) = read_payload().valid().and_then(|payload| BlockInfo::of_start(event, payload))
        {
            self.last = None;
            self.learned.insert(block.flow_tag(), Arc::new(block));
            if self.learned.len() as u64 > ENTRIES {
                self.learned.pop_first();
            }
        }
        let tag = flow_tag(event);
        if tag == 0 {
            return None;
        }
        if self.last.as_ref().is_none_or(|(last, _)| *last != tag) {
            self.last = Some((tag, self.find(tag)));
        }
        let (_, block) = self.last.as_ref()?;
        // No event belongs to a block that starts later.
        block.clone().filter(|block| block.start_seqno().is_none_or(|start| start <= event.seqno))
    }

    /// Returns the number of the block that `event` is about: that of the block to which the event belongs, or, for
    /// BLOCK_QC, BLOCK_FINALIZED and BLOCK_VERIFIED, the number in the payload. Otherwise does what
    /// [`block_of`](Self::block_of) does.
    pub fn block_number_of<'p>(
        &mut self,
        event: &Descriptor,
        read_payload: impl FnOnce() -> PayloadRead<'p>,
    ) -> Option<u64> {
        const TAGGED: [u16; 2] = [ExecEvent::BlockQc as u16, ExecEvent::BlockFinalized as u16];
        if TAGGED.contains(&event.event_type) {
            // A certificate begins with the tag.
            return BlockTag::decode(read_payload().valid()?).ok().map(|(tag, _)| tag.block_number);
        }
        if event.event_type == ExecEvent::BlockVerified as u16 {
            return BlockVerified::decode(read_payload().valid()?).ok().map(|(verified, _)| verified.block_number);
        }
        self.block_of(event, read_payload).map(|block| block.number())
    }

    /// Returns an estimate of the bytes that the blocks whose BLOCK_START was read take in memory.
    pub fn kept_bytes(&self) -> u64 {
        const EACH: u64 = size_of::<BlockInfo>() as u64 + 64;
        self.learned.len() as u64 * EACH
    }

    fn find(&self, tag: u64) -> Option<Arc<BlockInfo>> {
        let known = self.learned.get(&tag).or_else(|| self.saved.get(&tag)).cloned();
        known.or_else(|| self.table.as_ref()?.block_with_tag(tag).map(Arc::new))
    }
}
