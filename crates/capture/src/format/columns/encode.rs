//! Making the columns of a block from its events and gaps.

use super::body::{BYTES_FORM, BodyHead, ColumnEntry, ColumnPart, code, state};
use super::group::{EventGroup, GroupFinder, OfBlock};
use super::ids::{IdWriter, NewIds};
use super::ints::{IntsScratch, PutForm};
use super::layout::RingLayout;
use super::put::PutColumns;
use crate::format::block_records::{BlockRecords, RecordRange};
use crate::format::filter_bits::FilterBits;
use crate::format::header::BLOCK_HEADER_BYTES;
use crate::format::values::collect::ValueCollector;
use crate::format::values::pages;
use crate::format::varint::{put_varint, zigzag};
use eventring::reader::{Descriptor, PayloadRead};
use eventring::schema::perf::PerfExt;
use std::io;

/// The smallest column that is compressed. zstd adds more to smaller ones than it saves.
const COMPRESSED_BYTES_MIN: usize = 64;

/// A maker of blocks. It keeps its memory from one block to the next.
pub struct BlockEncoder {
    ids: IdWriter,
    finder: GroupFinder,
    groups: Vec<EventGroup>,
    columns: ColumnMaker,
    values: Vec<u64>,
    new_ids: NewIds,
    codes: [Vec<u8>; 4],
    /// For each event, the word that goes with its id, as far as it is not predicted.
    rests: Vec<u64>,
    /// For each event, its time less that of the event before it (zigzag).
    nanos: Vec<u64>,
    collector: ValueCollector,
}

/// A block, ready to be written: `head` and then `data`.
#[derive(Default)]
pub struct EncodedBlock {
    /// The head and the list of columns.
    pub(crate) head: Vec<u8>,
    /// The columns.
    pub(crate) data: Vec<u8>,
    /// The size of all columns before compression.
    pub(crate) column_bytes: u64,
    /// The event types, call sites and threads of the block.
    pub(crate) filter: FilterBits,
    /// True if the block was compressed at a lower level than the requested one.
    pub(crate) is_lower_level: bool,
}

/// The columns that are made.
#[derive(Default)]
struct ColumnMaker {
    entries: Vec<ColumnEntry>,
    data: Vec<u8>,
    column_bytes: u64,
    /// The bytes of a column before compression.
    plain: Vec<u8>,
    ints: IntsScratch,
    compressor: Option<zstd::bulk::Compressor<'static>>,
    level: i32,
}

impl BlockEncoder {
    /// Makes an encoder that does not compress.
    pub fn new() -> Self {
        Self {
            ids: IdWriter::new(),
            finder: GroupFinder::default(),
            groups: Vec::new(),
            columns: ColumnMaker::default(),
            values: Vec::new(),
            new_ids: NewIds::default(),
            codes: Default::default(),
            rests: Vec::new(),
            nanos: Vec::new(),
            collector: ValueCollector::default(),
        }
    }

    /// Sets the compression level of zstd for the next blocks; 0 for none.
    pub(crate) fn set_level(&mut self, level: i32) -> io::Result<()> {
        let columns = &mut self.columns;
        if level == 0 {
            columns.compressor = None;
        } else if let Some(compressor) = &mut columns.compressor {
            if level != columns.level {
                compressor.set_compression_level(level)?;
            }
        } else {
            columns.compressor = Some(zstd::bulk::Compressor::new(level)?);
        }
        columns.level = level;
        Ok(())
    }

    /// Makes a block of a part of `records`. Writes it to `block`, whose memory is used again.
    pub fn encode(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        layout: &RingLayout,
        block: &mut EncodedBlock,
    ) -> io::Result<()> {
        let descriptors = &records.events.descriptors()[part.events.clone()];
        std::mem::swap(&mut self.columns.data, &mut block.data);
        self.columns.clear();
        (block.filter, block.is_lower_level) = (FilterBits::default(), false);
        self.find_groups(records, part, layout, &mut block.filter);
        let values = &mut self.values;
        if self.groups.len() > 1 {
            values.clear();
            values.resize(descriptors.len(), 0);
            for (number, group) in self.groups.iter().enumerate().skip(1) {
                group.events.iter().for_each(|event| values[*event as usize] = number as u64);
            }
            self.columns.put_values(code::GROUP, 0, values)?;
        }
        values.clear();
        values.extend(descriptors.iter().map(|descriptor| descriptor.seqno));
        self.columns.put_values(code::SEQNO, 0, values)?;
        let nanos = descriptors.iter().map(|descriptor| descriptor.record_epoch_nanos);
        let mut before = nanos.clone().next().unwrap_or(0);
        let first_nanos = before;
        self.nanos.clear();
        self.nanos.extend(nanos.map(|nanos| {
            let difference = zigzag(nanos.wrapping_sub(before));
            before = nanos;
            difference
        }));
        self.put_ids(descriptors, layout)?;
        self.put_states(records, part)?;
        self.put_gaps(records, part)?;
        for (number, group) in self.groups.iter().enumerate() {
            let of_block =
                OfBlock { records, part, layout, nanos: &self.nanos, codes: &self.codes, rests: &self.rests };
            group.put(number as u64, &of_block, &mut self.columns, &mut self.values)?;
        }
        self.put_value_column(records, part, layout);
        let head = BodyHead {
            id_words: layout.id_words,
            word_of_id: layout.word_of_id,
            first_nanos,
            events: part.events.len(),
            gaps: part.gaps.len(),
            groups: self.groups.iter().map(|group| group.head()).collect(),
        };
        block.head.clear();
        head.put(&mut block.head);
        put_varint(&mut block.head, self.columns.entries.len() as u64);
        self.columns.entries.iter().for_each(|entry| entry.put(&mut block.head));
        block.column_bytes = self.columns.column_bytes;
        std::mem::swap(&mut self.columns.data, &mut block.data);
        Ok(())
    }

    /// Sorts the events into groups by their type.
    fn find_groups(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        layout: &RingLayout,
        filter: &mut FilterBits,
    ) {
        self.finder.clear();
        let descriptors = &records.events.descriptors()[part.events.clone()];
        let mut used = 0;
        for (event, descriptor) in descriptors.iter().enumerate() {
            let number = self.finder.number(descriptor.event_type);
            if number == used {
                used += 1;
                if self.groups.len() < used {
                    self.groups.push(EventGroup::default());
                }
                self.groups[number].begin(descriptor.event_type);
                filter.add_type(descriptor.event_type);
            }
            self.groups[number].events.push(event as u32);
        }
        self.groups.truncate(used);
        self.groups.iter_mut().for_each(|group| group.find_fields(records, part, layout));
        if layout.is_perf {
            for descriptor in descriptors {
                let ext = PerfExt::from_words(descriptor.content_ext);
                filter.add_call_site(ext.call_site_id);
                filter.add_thread(ext.thread_id);
            }
        }
    }

    fn put_ids(&mut self, descriptors: &[Descriptor], layout: &RingLayout) -> io::Result<()> {
        if layout.id_words == [false; 4] {
            return Ok(());
        }
        self.ids.clear();
        self.new_ids.clear();
        self.codes.iter_mut().for_each(Vec::clear);
        self.rests.clear();
        let id_word = layout.id_words.iter().position(|has_ids| *has_ids).unwrap_or(0);
        for Descriptor { content_ext, .. } in descriptors {
            for word in (0..4).filter(|word| layout.id_words[*word]) {
                self.codes[word].push(self.ids.code(content_ext[word], &mut self.new_ids));
                if let Some(with_id) = layout.word_of_id.filter(|_| word == id_word) {
                    let actual = content_ext[with_id];
                    self.rests.push(actual ^ self.ids.word_of(content_ext[word], actual));
                }
            }
        }
        self.columns.put_values(code::NEW_PLACES, 0, &self.new_ids.places)?;
        self.columns.put_values(code::NEW_GENERATIONS, 0, &self.new_ids.generations)
    }

    /// Adds the column of values, if there is room for it. It is the last one.
    fn put_value_column(&mut self, records: &BlockRecords, part: &RecordRange, layout: &RingLayout) {
        let block_bytes = self.columns.data.len() + BLOCK_HEADER_BYTES as usize;
        let (Some(names), Some(bytes_max)) = (&layout.names, pages::bytes_max(block_bytes)) else { return };
        let start = self.columns.data.len();
        if self.collector.collect(records, part, names, block_bytes)
            && self.collector.put(bytes_max, &mut self.columns.data)
        {
            let bytes = self.columns.data.len() - start;
            self.columns.column_bytes += bytes as u64;
            let parts = vec![ColumnPart { bytes, stored_bytes: bytes, is_compressed: false }];
            self.columns.entries.push(ColumnEntry { code: code::VALUES, group: 0, form: BYTES_FORM, parts });
        }
    }

    fn put_states(&mut self, records: &BlockRecords, part: &RecordRange) -> io::Result<()> {
        if records.events.has_all_payloads() {
            return Ok(());
        }
        self.values.clear();
        let mut states = Vec::new();
        for (event, index) in part.events.clone().enumerate() {
            let state = match records.events.payload(index) {
                PayloadRead::Valid(_) => continue,
                PayloadRead::Malformed => state::MALFORMED,
                PayloadRead::Expired if records.events.is_left_out(index) => state::OMITTED,
                PayloadRead::Expired => state::EXPIRED,
            };
            self.values.push(event as u64);
            states.push(state);
        }
        if states.is_empty() {
            return Ok(());
        }
        self.columns.put_values(code::STATE_EVENTS, 0, &self.values)?;
        self.columns.put_with(code::STATES, 0, |plain, _| {
            plain.extend_from_slice(&states);
            PutForm::plain(BYTES_FORM)
        })
    }

    fn put_gaps(&mut self, records: &BlockRecords, part: &RecordRange) -> io::Result<()> {
        let gaps = &records.gaps[part.gaps.clone()];
        if gaps.is_empty() {
            return Ok(());
        }
        let before = |gap: usize| (gaps[gap].events_before - part.events.start) as u64;
        let columns: [(u64, &dyn Fn(usize) -> u64); 4] = [
            (code::GAP_EVENTS, &before),
            (code::GAP_SEQNOS, &|gap| gaps[gap].gap.first_seqno),
            (code::GAP_COUNTS, &|gap| gaps[gap].gap.count),
            // The cause's code is its index in `GapCause::OF_RINGS`.
            (code::GAP_CAUSES, &|gap| gaps[gap].gap.cause as u64),
        ];
        for (code, value) in columns {
            self.values.clear();
            self.values.extend((0..gaps.len()).map(value));
            self.columns.put_values(code, 0, &self.values)?;
        }
        Ok(())
    }
}

impl EncodedBlock {
    /// Returns the size in bytes of the block without its header.
    pub(crate) fn bytes(&self) -> usize {
        self.head.len() + self.data.len()
    }
}

impl ColumnMaker {
    fn clear(&mut self) {
        self.entries.clear();
        self.data.clear();
        self.column_bytes = 0;
    }

    /// Appends a part of a column, compressed if that makes it smaller.
    fn put_part(&mut self, plain: &[u8]) -> io::Result<ColumnPart> {
        let (start, bytes) = (self.data.len(), plain.len());
        let mut is_compressed = false;
        if let Some(compressor) = self.compressor.as_mut().filter(|_| bytes >= COMPRESSED_BYTES_MIN) {
            self.data.resize(start + zstd::zstd_safe::compress_bound(bytes), 0);
            let compressed_bytes = compressor.compress_to_buffer(plain, &mut self.data[start..])?;
            is_compressed = compressed_bytes < bytes;
            self.data.truncate(start + compressed_bytes);
        }
        if !is_compressed {
            self.data.truncate(start);
            self.data.extend_from_slice(plain);
        }
        Ok(ColumnPart { bytes, stored_bytes: self.data.len() - start, is_compressed })
    }
}

impl PutColumns for ColumnMaker {
    fn put_with(
        &mut self,
        code: u64,
        group: u64,
        put: impl FnOnce(&mut Vec<u8>, &mut IntsScratch) -> PutForm,
    ) -> io::Result<()> {
        if self.compressor.is_none() {
            let start = self.data.len();
            let PutForm { form, .. } = put(&mut self.data, &mut self.ints);
            let bytes = self.data.len() - start;
            self.column_bytes += bytes as u64;
            let parts = vec![ColumnPart { bytes, stored_bytes: bytes, is_compressed: false }];
            self.entries.push(ColumnEntry { code, group, form, parts });
            return Ok(());
        }
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        let form = put(&mut plain, &mut self.ints);
        self.column_bytes += plain.len() as u64;
        // The numbers before the planes are short, and go with the first plane.
        let rest = form.plane_bytes * form.planes().saturating_sub(1);
        let (first, planes) = plain.split_at(plain.len() - rest);
        let parts = std::iter::once(first).chain(planes.chunks_exact(form.plane_bytes.max(1)));
        let parts = parts.map(|part| self.put_part(part)).collect::<io::Result<Vec<_>>>()?;
        self.entries.push(ColumnEntry { code, group, form: form.form, parts });
        self.plain = plain;
        Ok(())
    }
}
