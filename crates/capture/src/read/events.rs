//! The events of a capture file, in the order of time.

use crate::condition::Truth;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::columns::{BlockRecords, PayloadsWanted};
use crate::format::record::{CapturedContent, CapturedPayload, CapturedRecord, SortKey};
use crate::read::ahead::BlocksAhead;
use crate::read::file_block::FileBlock;
use crate::read::payloads::PayloadLosses;
use crate::select::block_filter::BlockFilter;
use eventring::reader::{Descriptor, Gap, PayloadRead};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

/// The limit of the memory for blocks that are open at the same time, in bytes. At the limit, no further block is
/// opened before records were returned, even if it has an earlier record. Real captures stay below the limit, because
/// each of their rings has one open block, and with many rings, blocks are small.
const OPEN_BYTES_MAX: u64 = 128 << 20;

/// An iterator over the events and gaps of a [`CaptureFile`](crate::CaptureFile), in the order of time. The events of
/// one ring always come in the order of their sequence numbers, even if their time stamps are in another order.
///
/// Blocks are decoded ahead on other threads. In place of a damaged block comes a gap of its seqnos, with the cause
/// [`GapCause::Damaged`](eventring::reader::GapCause::Damaged). After the last event, [`Self::problems`] has a line for
/// each damaged block.
pub struct CaptureEvents {
    blocks: BlocksAhead,
    /// The blocks that are not open yet, in the order of opening.
    closed: VecDeque<ClosedBlock>,
    open_bytes: u64,
    rings: Vec<OpenRing>,
    /// The rings that have a next record, each with the sort time of this record.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
    /// The ring whose records come next, until one has this sort time or a later one.
    current: Option<(u32, u64)>,
    problems: Vec<String>,
    /// The filter of records, if not all records are wanted.
    sieve: Option<BlockFilter>,
    progress: Option<Progress>,
    is_wanted: Option<IsWanted>,
    read_bytes: u64,
    /// By ring, the events that could not be tested because their payloads were lost.
    untested: Vec<PayloadLosses>,
}

/// A function that learns how many bytes of how many have been read.
pub(crate) type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// A function that says whether anybody still wants more events.
pub(crate) type IsWanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// The way in which the events of a capture are read.
pub(crate) struct ReadPlan {
    /// The number of rings.
    pub(crate) rings: usize,
    pub(crate) wanted: PayloadsWanted,
    pub(crate) sieve: Option<BlockFilter>,
    pub(crate) progress: Option<Progress>,
    pub(crate) is_wanted: Option<IsWanted>,
}

/// A block that is not open yet.
struct ClosedBlock {
    /// The time before which it need not be opened.
    needed_from: u64,
    /// The block, if it is needed only while spans are open that outlive the chosen ones around them. Such a block is
    /// not decoded ahead.
    if_open: Option<FileBlock>,
}

/// A block in memory.
struct OpenBlock {
    records: BlockRecords,
    memory_bytes: u64,
    first_nanos: u64,
}

/// A ring, and its open blocks.
#[derive(Default)]
struct OpenRing {
    /// The first one is being read.
    blocks: VecDeque<OpenBlock>,
    next_event: usize,
    next_gap: usize,
    key: SortKey,
}

/// A record of a capture that is still in its block.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'r> {
    /// Index of its ring in the capture.
    pub(crate) ring: u32,
    pub(crate) content: ContentRef<'r>,
    /// Of a gap in a selection, the time of the event after it, in nanoseconds since the epoch, if that is in the same
    /// block: the event may not be selected.
    pub(crate) gap_until_nanos: Option<u64>,
}

/// The content of a [`RecordRef`].
#[derive(Clone, Copy, Debug)]
pub enum ContentRef<'r> {
    /// An event.
    Event {
        /// The event without its payload.
        descriptor: &'r Descriptor,
        /// Its payload.
        payload: PayloadRead<'r>,
        /// True if the payload is missing because it was too large for the capture.
        is_omitted: bool,
    },
    /// A loss.
    Gap(Gap),
}

/// The next record of a ring.
enum NextRecord {
    Event(usize),
    Gap(usize),
}

impl CaptureEvents {
    /// Makes an iterator over the blocks of files. The blocks of each ring are in the order of seqnos.
    pub(crate) fn new(blocks: impl Iterator<Item = FileBlock>, plan: ReadPlan) -> Self {
        let ReadPlan { rings, wanted, sieve, progress, is_wanted } = plan;
        // A block is needed when a record with its first sort time, or a later one, is to be returned. The blocks of a
        // ring are opened in their order, whatever their headers say.
        let mut of_rings = vec![0; rings];
        let mut problems = sieve.as_ref().map_or_else(Vec::new, BlockFilter::problems);
        let mut needed: Vec<(u64, FileBlock)> = Vec::new();
        for block in blocks {
            let header = &block.block.header;
            let Some(of_ring) = of_rings.get_mut(block.ring as usize) else {
                problems.push(format!(
                    "{}the block at byte {} is damaged: it is of ring {}, which is not there; {} events and gaps are left out; copy the file anew \
                     from where it was made",
                    block.label, block.block.offset, header.ring, header.records
                ));
                continue;
            };
            if sieve.as_ref().is_some_and(|sieve| !sieve.may_ever_need(block.ring, header)) {
                continue;
            }
            *of_ring = header.first_nanos.max(*of_ring);
            needed.push((*of_ring, block));
        }
        needed.sort_by_key(|(from, _)| *from);
        let (mut closed, mut blocks) = (VecDeque::with_capacity(needed.len()), Vec::new());
        for (needed_from, block) in needed {
            let is_sure = sieve.as_ref().is_none_or(|sieve| sieve.needs(block.ring, &block.block.header));
            let if_open = if is_sure {
                blocks.push(block);
                None
            } else {
                Some(block)
            };
            closed.push_back(ClosedBlock { needed_from, if_open });
        }
        Self {
            blocks: BlocksAhead::new(blocks, wanted),
            closed,
            open_bytes: 0,
            rings: (0..rings).map(|_| OpenRing::default()).collect(),
            heads: BinaryHeap::new(),
            current: None,
            problems,
            sieve,
            progress,
            is_wanted,
            read_bytes: 0,
            untested: vec![PayloadLosses::default(); rings],
        }
    }

    /// Returns the problems that were found so far, a line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns for each ring how many events were left out so far because a condition depends on their lost payload.
    #[must_use]
    pub fn untested(&self) -> &[PayloadLosses] {
        &self.untested
    }

    /// Returns the next record. It stays in its block, so this is faster than [`Self::next`].
    #[inline]
    pub(crate) fn next_ref(&mut self) -> Option<RecordRef<'_>> {
        let (ring, record) = self.next_wanted()?;
        let of_ring = &self.rings[ring as usize];
        let open = &of_ring.blocks.front()?.records;
        let next = || open.events.descriptors().get(of_ring.next_event).map(|next| next.record_epoch_nanos);
        let is_gap = self.sieve.is_some() && matches!(record, NextRecord::Gap(_));
        let gap_until_nanos = if is_gap { next() } else { None };
        let content = match record {
            NextRecord::Gap(index) => ContentRef::Gap(open.gaps[index].gap),
            NextRecord::Event(index) => ContentRef::Event {
                descriptor: &open.events.descriptors()[index],
                payload: open.events.payload(index),
                is_omitted: open.events.is_left_out(index),
            },
        };
        Some(RecordRef { ring, content, gap_until_nanos })
    }

    /// Takes the next record that the sieve lets through.
    #[inline]
    fn next_wanted(&mut self) -> Option<(u32, NextRecord)> {
        loop {
            let ring = match self.current {
                Some((ring, until)) if self.rings[ring as usize].next_key().is_some_and(|key| key < until) => ring,
                _ => self.choose_ring()?,
            };
            let open = &mut self.rings[ring as usize];
            let record = open.take_next()?;
            let Some(sieve) = &mut self.sieve else { return Some((ring, record)) };
            let events = &open.blocks.front()?.records.events;
            let descriptors = events.descriptors();
            let is_wanted = match record {
                NextRecord::Event(index) => {
                    let accepted =
                        sieve.accepts_event(ring, open.key.gap(), &descriptors[index], events.payload(index));
                    if accepted == Truth::Indeterminate {
                        self.untested[ring as usize].add(events.payload(index), events.is_left_out(index));
                    }
                    accepted == Truth::Yes
                }
                NextRecord::Gap(_) => {
                    let next_nanos = descriptors.get(open.next_event).map(|next| next.record_epoch_nanos);
                    sieve.accepts_gap(ring, open.key.gap(), next_nanos)
                }
            };
            self.problems.extend(sieve.take_problem());
            if is_wanted {
                return Some((ring, record));
            }
        }
    }

    /// Finds the ring whose record comes next, and opens the blocks that may have an earlier record.
    #[cold]
    fn choose_ring(&mut self) -> Option<u32> {
        if let Some((ring, _)) = self.current.take() {
            self.put_back(ring);
        }
        if self.is_wanted.as_ref().is_some_and(|is_wanted| !is_wanted()) {
            return None;
        }
        loop {
            let first = self.heads.peek().map(|Reverse((key, _))| *key);
            match (first, self.closed.front()) {
                (Some(first), Some(next)) if next.needed_from <= first && self.open_bytes < OPEN_BYTES_MAX => {
                    self.open_block()
                }
                (None, Some(_)) => self.open_block(),
                (None, None) => return None,
                (Some(_), _) => break,
            }
        }
        let Reverse((_, ring)) = self.heads.pop()?;
        let of_heads = self.heads.peek().map(|Reverse((key, _))| *key);
        let until =
            of_heads.into_iter().chain(self.closed.front().map(|next| next.needed_from)).min().unwrap_or(u64::MAX);
        self.current = Some((ring, until));
        Some(ring)
    }

    /// Puts a ring among the heads if it has a next record. Closes its blocks that have none.
    fn put_back(&mut self, ring: u32) {
        let open = &mut self.rings[ring as usize];
        while open.next_key().is_none()
            && let Some(read) = open.blocks.pop_front()
        {
            self.open_bytes -= read.memory_bytes;
            open.begin_block();
        }
        if let Some(key) = open.next_key() {
            self.heads.push(Reverse((key, ring)));
        }
    }

    fn open_block(&mut self) {
        let Some(next) = self.closed.pop_front() else { return };
        let taken = match next.if_open {
            None => self.blocks.take(),
            Some(block) => {
                let is_needed = |sieve: &BlockFilter| sieve.needs_now(block.ring, &block.block.header);
                self.sieve.as_ref().is_some_and(is_needed).then(|| self.blocks.decode_now(block))
            }
        };
        let Some((block, records)) = taken else { return };
        self.read_bytes += block.block.header.stored_bytes;
        if let Some(progress) = &self.progress {
            progress(self.read_bytes, self.blocks.stored_bytes);
        }
        let (records, memory_bytes, first_nanos) = match records {
            Ok(records) => (records, block.memory_bytes(), block.block.header.first_nanos),
            Err(error) => {
                self.report_damage(&block, &error);
                (block.extent.lost_records(), 0, block.extent.first_nanos)
            }
        };
        self.open_bytes += memory_bytes;
        let ring = &mut self.rings[block.ring as usize];
        let is_first = ring.blocks.is_empty();
        ring.blocks.push_back(OpenBlock { records, memory_bytes, first_nanos });
        if is_first {
            ring.begin_block();
            self.put_back(block.ring);
        }
    }

    fn report_damage(&mut self, block: &FileBlock, error: &CaptureError) {
        let (label, lost) = (&block.label, block.block.header.records);
        let left_out = match error.kind() {
            CaptureErrorKind::Damaged => "",
            _ => "a block cannot be read: ",
        };
        let problem = format!(
            "{label}{left_out}{error}; {lost} events and gaps are left out; copy the file anew from where it was made"
        );
        // A block may have been read before, when the spans of a selection were chosen.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

impl OpenRing {
    /// Goes to the first record of the first block. Blocks before it may have been left out, so its sort time comes
    /// from its header.
    fn begin_block(&mut self) {
        (self.next_event, self.next_gap) = (0, 0);
        if let Some(block) = self.blocks.front() {
            self.key.event(block.first_nanos);
        }
    }

    /// Returns true if the next record of these is a gap.
    #[inline]
    fn is_gap_next(&self, records: &BlockRecords) -> bool {
        records.gaps.get(self.next_gap).is_some_and(|gap| gap.events_before <= self.next_event)
    }

    /// Returns the sort time of the next record of the first block.
    #[inline]
    fn next_key(&self) -> Option<u64> {
        let records = &self.blocks.front()?.records;
        if self.is_gap_next(records) {
            return Some(self.key.gap());
        }
        let descriptor = records.events.descriptors().get(self.next_event)?;
        Some(self.key.gap().max(descriptor.record_epoch_nanos))
    }

    /// Takes the next record of the first block.
    #[inline]
    fn take_next(&mut self) -> Option<NextRecord> {
        let records = &self.blocks.front()?.records;
        if self.is_gap_next(records) {
            self.next_gap += 1;
            return Some(NextRecord::Gap(self.next_gap - 1));
        }
        let descriptor = records.events.descriptors().get(self.next_event)?;
        self.key.event(descriptor.record_epoch_nanos);
        self.next_event += 1;
        Some(NextRecord::Event(self.next_event - 1))
    }
}

impl Iterator for CaptureEvents {
    type Item = CapturedRecord;

    fn next(&mut self) -> Option<CapturedRecord> {
        let RecordRef { ring, content, .. } = self.next_ref()?;
        let content = match content {
            ContentRef::Gap(Gap { first_seqno, count, cause }) => CapturedContent::Gap { first_seqno, count, cause },
            ContentRef::Event { descriptor, payload, is_omitted } => {
                let payload = match payload {
                    PayloadRead::Valid(bytes) => CapturedPayload::Valid(bytes.to_vec()),
                    PayloadRead::Malformed => CapturedPayload::Malformed,
                    PayloadRead::Expired if is_omitted => CapturedPayload::Omitted,
                    PayloadRead::Expired => CapturedPayload::Expired,
                };
                CapturedContent::Event { descriptor: *descriptor, payload }
            }
        };
        Some(CapturedRecord { ring, content })
    }
}

impl std::fmt::Debug for CaptureEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let closed = self.closed.len();
        f.debug_struct("CaptureEvents").field("rings", &self.rings.len()).field("closed_blocks", &closed).finish()
    }
}
