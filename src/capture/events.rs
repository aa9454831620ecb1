//! The events of a capture file, in the order of time.

use super::ahead::{BlocksAhead, FileBlock, memory_bytes};
use super::columns::{BlockRecords, PayloadsWanted};
use super::error::CaptureErrorKind;
use super::record::{CapturedContent, CapturedPayload, CapturedRecord, SortKey};
use crate::reader::{Descriptor, Gap, PayloadRead};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The limit of the memory for blocks that are open at the same time, in bytes. At the limit, no further block is
/// opened before records were returned, even if it has an earlier record. Real captures stay below the limit, because
/// each of their rings has one open block, and with many rings, blocks are small.
const OPEN_BYTES_MAX: u64 = 128 << 20;

/// An iterator over the events and gaps of a [`CaptureFile`](super::CaptureFile), in the order of time. The events of
/// one ring always come in the order of their sequence numbers, even if their time stamps are in another order.
///
/// Blocks are decoded ahead on other threads. Damaged blocks are left out. After the last event, [`Self::problems`] has
/// a line for each of them.
pub struct CaptureEvents {
    blocks: BlocksAhead,
    /// For each block that is not open yet, in the order of opening, the time before which it need not be opened.
    needed_from: VecDeque<u64>,
    open_bytes: u64,
    rings: Vec<OpenRing>,
    /// The rings that have a next record, each with the sort time of this record.
    heads: BinaryHeap<Reverse<(u64, u32)>>,
    /// The ring whose records come next, until one has this sort time or a later one.
    current: Option<(u32, u64)>,
    problems: Vec<String>,
}

/// A ring, and its open blocks.
#[derive(Default)]
struct OpenRing {
    /// The first one is being read. The second value of each is the memory that it takes.
    blocks: VecDeque<(BlockRecords, u64)>,
    next_event: usize,
    next_gap: usize,
    key: SortKey,
}

/// A record of a capture that is still in its block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordRef<'r> {
    /// Index of its ring in the capture.
    pub(crate) ring: u32,
    pub(crate) content: ContentRef<'r>,
}

/// The content of a [`RecordRef`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum ContentRef<'r> {
    Event {
        descriptor: &'r Descriptor,
        payload: PayloadRead<'r>,
        /// True if the payload is missing because it was too large for the capture.
        is_omitted: bool,
    },
    Gap(Gap),
}

/// The next record of a ring.
enum NextRecord {
    Event(usize),
    Gap(usize),
}

impl CaptureEvents {
    /// Makes an iterator over the blocks of files. The blocks of each ring are in the order of seqnos.
    pub(super) fn new(blocks: impl Iterator<Item = FileBlock>, rings: usize) -> Self {
        // A block is needed when a record with its first sort time, or a later one, is to be returned. The blocks of a
        // ring are opened in their order, whatever their headers say.
        let mut of_rings = vec![0; rings];
        let mut problems = Vec::new();
        let mut needed: Vec<(u64, FileBlock)> = Vec::new();
        for (file, block) in blocks {
            let Some(of_ring) = of_rings.get_mut(block.header.ring as usize) else {
                let (offset, lost) = (block.offset, block.header.records);
                problems.push(format!(
                    "the block at byte {offset} is damaged: it is of ring {}, and there are {rings}; {lost} events and gaps are left out; copy the \
                     file anew from where it was made",
                    block.header.ring
                ));
                continue;
            };
            *of_ring = block.header.first_nanos.max(*of_ring);
            needed.push((*of_ring, (file, block)));
        }
        needed.sort_by_key(|(from, _)| *from);
        let needed_from = needed.iter().map(|(from, _)| *from).collect();
        let blocks = needed.into_iter().map(|(_, block)| block).collect();
        Self {
            blocks: BlocksAhead::new(blocks, PayloadsWanted::All),
            needed_from,
            open_bytes: 0,
            rings: (0..rings).map(|_| OpenRing::default()).collect(),
            heads: BinaryHeap::new(),
            current: None,
            problems,
        }
    }

    /// Returns the problems that were found so far, a line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the next record. It stays in its block, so this is faster than [`Self::next`].
    #[inline]
    pub(crate) fn next_ref(&mut self) -> Option<RecordRef<'_>> {
        let ring = match self.current {
            Some((ring, until)) if self.rings[ring as usize].next_key().is_some_and(|key| key < until) => ring,
            _ => self.choose_ring()?,
        };
        let record = self.rings[ring as usize].take_next()?;
        let open = &self.rings[ring as usize].blocks.front()?.0;
        let content = match record {
            NextRecord::Gap(index) => ContentRef::Gap(open.gaps[index].gap),
            NextRecord::Event(index) => ContentRef::Event {
                descriptor: &open.events.descriptors()[index],
                payload: open.events.payload(index),
                is_omitted: open.events.is_left_out(index),
            },
        };
        Some(RecordRef { ring, content })
    }

    /// Finds the ring whose record comes next, and opens the blocks that may have an earlier record.
    #[cold]
    fn choose_ring(&mut self) -> Option<u32> {
        if let Some((ring, _)) = self.current.take() {
            self.put_back(ring);
        }
        loop {
            let first = self.heads.peek().map(|Reverse((key, _))| *key);
            match (first, self.needed_from.front()) {
                (Some(first), Some(from)) if *from <= first && self.open_bytes < OPEN_BYTES_MAX => self.open_block(),
                (None, Some(_)) => self.open_block(),
                (None, None) => return None,
                (Some(_), _) => break,
            }
        }
        let Reverse((_, ring)) = self.heads.pop()?;
        let of_heads = self.heads.peek().map(|Reverse((key, _))| *key);
        let until = of_heads.into_iter().chain(self.needed_from.front().copied()).min().unwrap_or(u64::MAX);
        self.current = Some((ring, until));
        Some(ring)
    }

    /// Puts a ring among the heads if it has a next record. Closes its blocks that have none.
    fn put_back(&mut self, ring: u32) {
        let open = &mut self.rings[ring as usize];
        while open.next_key().is_none()
            && let Some((_, bytes)) = open.blocks.pop_front()
        {
            self.open_bytes -= bytes;
            (open.next_event, open.next_gap) = (0, 0);
        }
        if let Some(key) = open.next_key() {
            self.heads.push(Reverse((key, ring)));
        }
    }

    fn open_block(&mut self) {
        self.needed_from.pop_front();
        let Some((block, records)) = self.blocks.take() else { return };
        match records {
            Ok(records) => {
                let bytes = memory_bytes(&block);
                self.open_bytes += bytes;
                let ring = &mut self.rings[block.header.ring as usize];
                let is_first = ring.blocks.is_empty();
                ring.blocks.push_back((records, bytes));
                if is_first {
                    self.put_back(block.header.ring);
                }
            }
            Err(error) => {
                let lost = block.header.records;
                let left_out = match error.kind() {
                    CaptureErrorKind::Damaged => "",
                    _ => "a block cannot be read: ",
                };
                self.problems.push(format!(
                    "{left_out}{error}; {lost} events and gaps are left out; copy the file anew from where it was made"
                ));
            }
        }
    }
}

impl OpenRing {
    /// Returns the sort time of the next record of the first block.
    #[inline]
    fn next_key(&self) -> Option<u64> {
        let (records, _) = self.blocks.front()?;
        if records.gaps.get(self.next_gap).is_some_and(|gap| gap.events_before <= self.next_event) {
            return Some(self.key.gap());
        }
        let descriptor = records.events.descriptors().get(self.next_event)?;
        Some(self.key.gap().max(descriptor.record_epoch_nanos))
    }

    /// Takes the next record of the first block.
    #[inline]
    fn take_next(&mut self) -> Option<NextRecord> {
        let (records, _) = self.blocks.front()?;
        if records.gaps.get(self.next_gap).is_some_and(|gap| gap.events_before <= self.next_event) {
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
        let RecordRef { ring, content } = self.next_ref()?;
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
        let closed = self.needed_from.len();
        f.debug_struct("CaptureEvents").field("rings", &self.rings.len()).field("closed_blocks", &closed).finish()
    }
}
