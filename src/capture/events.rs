//! The events of a capture file, in the order of time.

use super::error::CaptureErrorKind;
use super::format::{BLOCK_BYTES_TARGET, BlockRef};
use super::read::CaptureFile;
use super::record::{CapturedContent, CapturedPayload, CapturedRecord, GAP_BYTES, SortKey, take_record};
use super::wire::Bytes;
use std::collections::BTreeMap;

/// The limit of the memory for `waiting` records, in bytes. At the limit, records are returned before the next block is
/// loaded, even if this block has an earlier record. Real captures stay far below the limit, because the times of their
/// blocks overlap little.
const WAITING_BYTES_MAX: usize = 1 << 26;
/// An upper bound of the number of records in a block. A block is written as soon as it has [`BLOCK_BYTES_TARGET`]
/// bytes, and no record is smaller than a gap. The factor 2 is a margin.
const RECORDS_MAX: u64 = (2 * BLOCK_BYTES_TARGET / GAP_BYTES) as u64;

/// An iterator over the events and gaps of a [`CaptureFile`], in the order of time. The events of one ring always come
/// in the order of their sequence numbers, even if their time stamps are in another order.
///
/// Damaged blocks are left out. After the last event, [`Self::problems`] has a line for each of them.
#[derive(Debug)]
pub struct CaptureEvents<'f> {
    /// The blocks of events, each with its file.
    blocks: Vec<(&'f CaptureFile, BlockRef)>,
    next_block: usize,
    /// For each block, the earliest time in it and in later blocks.
    earliest: Vec<u64>,
    /// The records that were loaded and not returned yet, ordered by sort time (see [`SortKey`]) and then by the order
    /// of loading.
    waiting: BTreeMap<(u64, u64), CapturedRecord>,
    waiting_bytes: usize,
    keys: Vec<SortKey>,
    order: u64,
    problems: Vec<String>,
}

impl<'f> CaptureEvents<'f> {
    pub(super) fn new(blocks: impl Iterator<Item = (&'f CaptureFile, BlockRef)>, rings: usize) -> Self {
        let blocks: Vec<_> = blocks.collect();
        let mut earliest: Vec<u64> = blocks.iter().map(|(_, block)| block.header.first_nanos).collect();
        for index in (1..earliest.len()).rev() {
            earliest[index - 1] = earliest[index - 1].min(earliest[index]);
        }
        Self {
            blocks,
            next_block: 0,
            earliest,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            keys: vec![SortKey::default(); rings],
            order: 0,
            problems: Vec::new(),
        }
    }

    /// Returns the problems that were found so far, a line each.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    fn load_block(&mut self) {
        let (file, block) = self.blocks[self.next_block];
        self.next_block += 1;
        let bytes = match file.block_bytes(&block) {
            Ok(bytes) => bytes,
            Err(error) => {
                let lost = block.header.records;
                let left_out = match error.kind() {
                    CaptureErrorKind::Damaged => "",
                    _ => "a block cannot be read: ",
                };
                self.problems.push(format!(
                    "{left_out}{error}; {lost} events and gaps are left out; copy the file anew from where it was made"
                ));
                return;
            }
        };
        let mut rest = Bytes::new(&bytes);
        let mut records = 0;
        while !rest.is_empty() && records < block.header.records.min(RECORDS_MAX) {
            let Some(record) = take_record(&mut rest) else { break };
            let Some(key) = self.keys.get_mut(record.ring as usize) else { break };
            let key = match &record.content {
                CapturedContent::Event { descriptor, .. } => key.event(descriptor.record_epoch_nanos),
                CapturedContent::Gap { .. } => key.gap(),
            };
            records += 1;
            self.order += 1;
            self.waiting_bytes += waiting_bytes(&record);
            self.waiting.insert((key, self.order), record);
        }
        if records != block.header.records || !rest.is_empty() {
            let more = if rest.is_empty() { "" } else { " and something else" };
            self.problems.push(format!(
                "the block at byte {} is damaged: it holds {records} events and gaps{more}, expected {}; copy the file anew from where it was made",
                block.offset, block.header.records
            ));
        }
    }
}

impl Iterator for CaptureEvents<'_> {
    type Item = CapturedRecord;

    fn next(&mut self) -> Option<CapturedRecord> {
        loop {
            let first = self.waiting.first_key_value().map(|((key, _), _)| *key);
            match (first, self.earliest.get(self.next_block)) {
                (Some(first), Some(earliest)) if first >= *earliest && self.waiting_bytes < WAITING_BYTES_MAX => {}
                (Some(_), _) => break,
                (None, Some(_)) => {}
                (None, None) => return None,
            }
            self.load_block();
        }
        let (_, record) = self.waiting.pop_first()?;
        self.waiting_bytes -= waiting_bytes(&record);
        Some(record)
    }
}

fn waiting_bytes(record: &CapturedRecord) -> usize {
    let payload_bytes = match &record.content {
        CapturedContent::Event { payload: CapturedPayload::Valid(bytes), .. } => bytes.len(),
        _ => 0,
    };
    size_of::<((u64, u64), CapturedRecord)>() + payload_bytes
}
