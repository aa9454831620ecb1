//! The output of a capture: the file that is being written, its size limits, the table entries that are not written
//! yet, and the file's end.

use crate::engine::fields_in_rings::FieldsInRings;
use crate::engine::options::CaptureOptions;
use crate::engine::sink::CaptureSink;
use crate::engine::sources::{SourceRecorder, SourceRing};
use crate::error::{CaptureError, CaptureErrorKind};
use crate::files::read_files::ReadFiles;
use crate::format::columns::{BlockRecords, EncodedBlock, PlacedGap, RecordRange};
use crate::format::end::{CaptureEnd, EndReason};
use crate::format::filter_bits::FilterBits;
use crate::format::fit::PartFinder;
use crate::format::header::{BLOCK_BYTES_MAX, FileHeader, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use crate::format::ring::RingRole;
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::write::{CaptureWriter, RingCounts, block_bytes_max};
use eventring::recorder::Clock;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The least free room, in bytes, for another block of events in a file with a size limit. A file with less room is
/// full. Without this bound, the last blocks before the limit would become smaller and smaller.
const LAST_BLOCK_BYTES: usize = 1024;
/// A file begins with an image of tables of the present if it has room for so many.
const BEGIN_SHARE: usize = 8;
/// The time between two batches with images of tables.
const BATCH_PAUSE: Duration = Duration::from_secs(10);

/// The files of a capture, and the file that is being written.
pub(crate) struct Output<'o> {
    options: &'o CaptureOptions,
    pub(crate) sink: &'o mut dyn CaptureSink,
    writer: CaptureWriter,
    finder: PartFinder,
    /// The rings that were found so far, by index.
    pub(crate) rings: Vec<SourceRing>,
    recorders: Vec<SourceRecorder>,
    /// The recorders whose shard 0 is not in `rings` yet.
    found_recorders: Vec<SourceRecorder>,
    part: u32,
    part_started: Instant,
    /// The largest allowed size of the current file.
    limit: u64,
    /// True once the current file has an event or a gap.
    has_records: bool,
    /// True if the current file is whole.
    has_ended: bool,
    /// Number of rings that the current file describes.
    described: usize,
    /// The encoded entries of call sites and threads that the current file does not hold yet.
    tables: Vec<u8>,
    table_entries: u64,
    /// Bytes of all tables in the current file, before compression.
    table_bytes: usize,
    /// The events of the current file that were compressed at a lower level than the requested one.
    lower_level_events: u64,
    /// Such events of the files before the current one.
    pub(crate) finished_lower_level_events: u64,
    /// Bytes of the files before the current one.
    pub(crate) finished_bytes: u64,
    /// The counts of all finished files together. The events of files that the capture has removed are subtracted.
    pub(crate) finished: CaptureStats,
    /// The counts and the size in bytes of each finished file that has not been removed, oldest first. Empty if the
    /// capture keeps all its files.
    pub(crate) removable: VecDeque<(CaptureStats, u64)>,
    pub(crate) removed_files: u32,
    pub(crate) removed_bytes: u64,
    /// What was seen in the tables of the present at the end of the file before, or is seen at the begin of this one.
    looks: Vec<Look>,
    /// The time of the last look for a batch, and whether the batch had room for it.
    looked: Option<(Instant, bool)>,
}

/// An image of the tables of the present of a recorder.
struct Look {
    shard0: u32,
    epoch_nanos: u64,
    image: Vec<u8>,
}

impl<'o> Output<'o> {
    /// Begins the first file.
    pub(crate) fn begin(
        sink: &'o mut dyn CaptureSink,
        options: &'o CaptureOptions,
        rings: Vec<SourceRing>,
        recorders: Vec<SourceRecorder>,
    ) -> Result<Self, CaptureError> {
        let part = u32::from(options.rotates()).max(options.start.part);
        let mut output = Self {
            writer: begin_file(sink, part, &rings)?,
            finder: PartFinder::new(options.level)?,
            options,
            sink,
            rings,
            recorders,
            found_recorders: Vec::new(),
            part,
            part_started: Instant::now(),
            limit: u64::MAX,
            has_records: false,
            has_ended: false,
            described: 0,
            tables: Vec::new(),
            table_entries: 0,
            table_bytes: 0,
            lower_level_events: 0,
            finished_lower_level_events: 0,
            finished_bytes: 0,
            finished: CaptureStats::default(),
            removable: VecDeque::new(),
            removed_files: 0,
            removed_bytes: 0,
            looks: Vec::new(),
            looked: None,
        };
        output.set_limit();
        if let Err(error) = output.describe_at_begin() {
            let error = output.named(error);
            output.sink.discard_current();
            return Err(error);
        }
        Ok(output)
    }

    /// Returns the error of a capture that has failed. An unfinished file without events is removed.
    pub(crate) fn failed(&mut self, error: CaptureError) -> CaptureError {
        let error = self.named(error);
        if !self.has_records && !self.has_ended {
            self.sink.discard_current();
        }
        error
    }

    fn set_limit(&mut self) {
        let left = self.options.max_bytes.map(|max| max.saturating_sub(self.finished_bytes));
        self.limit = left.unwrap_or(u64::MAX).min(self.options.rotation.file_bytes_max().unwrap_or(u64::MAX));
    }

    /// Writes the descriptions of all rings to the new file, even if they exceed its size limit. Without them, the
    /// file could not be read.
    fn describe_at_begin(&mut self) -> Result<(), CaptureError> {
        self.rings.iter().try_for_each(|ring| self.writer.ring(&ring.described))?;
        self.described = self.rings.len();
        Ok(())
    }

    /// Adds perf recorders that were found during the capture. Their rings are added next.
    pub(crate) fn recorders_found(&mut self, recorders: Vec<SourceRecorder>) {
        self.found_recorders.extend(recorders);
    }

    /// Adds a ring that was found during the capture. Returns false if there is no room for its description in the
    /// files.
    pub(crate) fn add_ring(&mut self, ring: SourceRing) -> Result<bool, CaptureError> {
        let bytes = ring.described.encode().len();
        let index = self.rings.len() as u32;
        self.rings.push(ring);
        let found = self.found_recorders.extract_if(.., |recorder| recorder.shard0 == index);
        self.recorders.extend(found);
        self.collect_tables(None)?;
        if !self.has_room(bytes) && !self.rotate_for(bytes)? {
            return Ok(false);
        }
        // A new file describes all rings already.
        if self.described < self.rings.len() {
            self.writer.ring(&self.rings[self.described].described)?;
            self.described += 1;
        }
        Ok(true)
    }

    /// Writes the records of a ring. `block` holds all of them. If they do not fit into the current file, writes the
    /// part that fits, and the rest into further files. Returns false if not all fit into the files.
    pub(crate) fn write(&mut self, records: &BlockRecords, block: &mut EncodedBlock) -> Result<bool, CaptureError> {
        let layout = self.rings[records.ring as usize].layout.clone();
        let mut part = records.all();
        loop {
            self.collect_tables(Some(&block.filter))?;
            let tables = (self.tables.len(), self.table_entries);
            self.collect_blocks(records, &part);
            let room = self.room();
            if block.bytes() as u64 > room {
                let is_large_enough = room >= LAST_BLOCK_BYTES as u64;
                let fitting =
                    if is_large_enough { self.finder.fit(records, &part, &layout, room, block)? } else { None };
                match fitting {
                    Some(fitting) => part = fitting,
                    None => {
                        let one = self.finder.first(records, &part, &layout, block)?;
                        // The blocks of these events go to the next file, too, because this one may have no room left.
                        let blocks_bytes = self.tables.len() - tables.0;
                        self.tables.truncate(tables.0);
                        self.table_entries = tables.1;
                        self.rings[records.ring as usize].blocks.restart();
                        let is_new = !self.has_records;
                        if !self.rotate_for(block.bytes() + blocks_bytes)? {
                            return Ok(false);
                        }
                        self.collect_blocks(records, &part);
                        if !is_new && block.bytes() as u64 <= self.room() {
                            // The next file may have room for more than one event. (A file that was new already has
                            // none, because of the tables that all these events need.)
                            let rest = records.part(one.events.start..records.events.len());
                            self.finder.encode(records, &rest, &layout, block)?;
                            part = rest;
                            continue;
                        }
                        // A batch that was just begun has none of the tables yet.
                        self.collect_tables(Some(&block.filter))?;
                        part = one;
                    }
                }
            }
            self.write_part(records, &part, block)?;
            if part.gaps.end == records.gaps.len() && part.events.end == records.events.len() {
                return Ok(true);
            }
            part = records.part(part.events.end..records.events.len());
            self.finder.encode(records, &part, &layout, block)?;
        }
    }

    /// Writes a part of `records`, which has room, and counts it.
    fn write_part(
        &mut self,
        records: &BlockRecords,
        part: &RecordRange,
        block: &EncodedBlock,
    ) -> Result<(), CaptureError> {
        self.write_tables()?;
        let ring = &mut self.rings[records.ring as usize];
        self.writer.events(records, part, block, &mut ring.key)?;
        ring.stats.count(records, part);
        self.has_records = true;
        if block.is_lower_level {
            self.lower_level_events += part.events.len() as u64;
        }
        Ok(())
    }

    /// Returns how many bytes a block of events may have, without its header, so that the finished file stays within
    /// its size limit.
    fn room(&self) -> u64 {
        if self.limit == u64::MAX { u64::MAX } else { self.limit.saturating_sub(self.bytes_if_finished(1) - 1) }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.bytes_if_finished(bytes) <= self.limit
    }

    fn counts(&self) -> RingCounts {
        let missing = self.rings.iter().filter(|ring| ring.missing.is_some()).count();
        RingCounts { all: self.rings.len(), missing }
    }

    fn bytes_if_finished(&self, bytes: usize) -> u64 {
        self.writer.bytes_if_finished(self.tables.len(), bytes, self.counts())
    }

    /// Begins a new file for a block of this size that has no room in the current one. Returns false if no file may
    /// take the block: all files together would exceed their limit, or only one file is written. If the current file
    /// is empty, a new one would have no more room: then the block goes into the current file.
    fn rotate_for(&mut self, bytes: usize) -> Result<bool, CaptureError> {
        if self.options.rotation.file_bytes_max().is_none() || (self.has_records && !self.rotate(bytes)?) {
            return Ok(false);
        }
        let max = self.options.max_bytes.unwrap_or(u64::MAX);
        Ok(self.finished_bytes.saturating_add(self.bytes_if_finished(bytes)) <= max)
    }

    /// Returns the largest possible size of a new file that holds all descriptions, all tables and one block of this
    /// many bytes.
    fn new_file_bytes(&self, bytes: usize) -> u64 {
        let descriptions = self.rings.iter().map(|ring| block_bytes_max(ring.described.encode().len()));
        let tables = block_bytes_max(self.table_bytes + self.tables.len());
        let fresh = CaptureWriter::bytes_if_fresh(bytes, self.counts());
        HEADER_BYTES + descriptions.sum::<u64>() + tables + fresh
    }

    /// Ends the current file and begins another one. Returns false, and changes nothing, if all files together would
    /// then exceed their limit.
    fn rotate(&mut self, bytes: usize) -> Result<bool, CaptureError> {
        let this = self.finished_bytes.saturating_add(self.bytes_if_finished(0));
        let all = this.saturating_add(self.new_file_bytes(bytes));
        if self.options.max_bytes.is_some_and(|max| all > max) {
            return Ok(false);
        }
        self.finish_part(EndReason::Rotated)?;
        self.part += 1;
        self.writer = begin_file(self.sink, self.part, &self.rings)?;
        self.part_started = Instant::now();
        (self.has_records, self.has_ended) = (false, false);
        (self.table_bytes, self.lower_level_events) = (0, 0);
        self.set_limit();
        self.recorders.iter_mut().for_each(|recorder| recorder.tables.restart());
        for ring in &mut self.rings {
            ring.blocks.restart();
            let last_seqno = ring.stats.last_seqno;
            ring.described.first_seqno = last_seqno.saturating_add(1);
            ring.stats = RingStats { last_seqno, removed: ring.stats.removed, ..RingStats::default() };
        }
        self.count_removed();
        self.describe_at_begin()?;
        self.collect_tables(None)?;
        // What was true when the file before ended is true now. A batch has one look at most, and at its end.
        if self.sink.wants_all_tables() {
            self.write_looks(BEGIN_SHARE)?;
        }
        Ok(true)
    }

    /// Moves the events of removed files from the captured to the removed counts. Files are removed when a new file is
    /// begun.
    fn count_removed(&mut self) {
        while self.removed_files < self.sink.removed() {
            let Some((stats, bytes)) = self.removable.pop_front() else { return };
            self.removed_files += 1;
            self.removed_bytes += bytes;
            self.finished.take_away(&stats);
            for (ring, removed) in self.rings.iter_mut().zip(&stats.rings) {
                ring.stats.removed = ring.stats.removed.saturating_add(removed.events);
            }
        }
    }

    /// Begins a new file if the current file is old enough. Returns false if the new file would make all files together
    /// too large.
    pub(crate) fn tick(&mut self, now: Instant) -> Result<bool, CaptureError> {
        self.sink.remove_now_and_then()?;
        self.count_removed();
        let may_rotate = self.has_records || self.sink.wants_empty();
        let is_old = may_rotate
            && self.options.rotation.rotate_every.is_some_and(|time| now.duration_since(self.part_started) >= time);
        let is_asked = self.sink.note(&self.rings);
        // A sink that asks needs a whole file only if there is anything in it.
        let goes_on = if is_old || (is_asked && self.has_records) { self.rotate(LAST_BLOCK_BYTES)? } else { true };
        if is_asked {
            self.sink.answer();
        }
        Ok(goes_on)
    }

    /// Collects the new entries of the recorders' tables. Entries that the next events refer to are then in the file
    /// before these events. A batch gets only entries that the events of a block with these filter bits may need.
    fn collect_tables(&mut self, needed: Option<&FilterBits>) -> Result<(), CaptureError> {
        let needed = match (self.sink.wants_all_tables(), needed) {
            (true, _) => None,
            (false, None) => return Ok(()),
            (false, needed) => needed,
        };
        self.put_new_tables(needed);
        // The entries of all recorders together may be too large for one block.
        if self.tables.len() > PAYLOAD_BYTES_MAX / 2 { self.write_tables() } else { Ok(()) }
    }

    fn put_new_tables(&mut self, needed: Option<&FilterBits>) {
        for recorder in &mut self.recorders {
            if let Some(shard0) = &self.rings[recorder.shard0 as usize].reader {
                self.table_entries += recorder.tables.put_new(&mut self.tables, recorder.shard0, shard0, needed);
            }
        }
    }

    /// Collects the blocks to which the execution events of a part belong.
    fn collect_blocks(&mut self, records: &BlockRecords, part: &RecordRange) {
        let ring = &mut self.rings[records.ring as usize];
        if let Some(reader) = &ring.reader
            && let Some(events) = records.events.descriptors().get(part.events.clone())
        {
            self.table_entries += ring.blocks.put_new(&mut self.tables, records.ring, reader, events);
        }
    }

    fn write_tables(&mut self) -> Result<(), CaptureError> {
        if self.table_entries > 0 {
            self.writer.tables(&self.tables, self.table_entries)?;
            self.table_bytes += self.tables.len();
            self.tables.clear();
            self.table_entries = 0;
        }
        Ok(())
    }

    /// Ends the current file.
    pub(crate) fn finish_part(&mut self, reason: EndReason) -> Result<(), CaptureError> {
        if self.limit == u64::MAX {
            self.collect_tables(None)?;
        }
        self.write_tables()?;
        // The time is that before the last look at the rings: earlier events are in the counts, or among `unread`.
        let ended_epoch_nanos = Clock::global().now_epoch_nanos();
        for index in 0..self.described {
            if let Some(gap) = self.rings[index].missing.take() {
                let gaps = vec![PlacedGap { events_before: 0, gap }];
                let records = BlockRecords { ring: index as u32, gaps, ..BlockRecords::default() };
                let mut block = EncodedBlock::default();
                self.finder.encode(&records, &records.all(), &self.rings[index].layout, &mut block)?;
                self.write_part(&records, &records.all(), &block)?;
            }
            let ring = &mut self.rings[index];
            if let Some(reader) = &ring.reader {
                ring.stats.close(reader);
            }
        }
        self.look_at_end(reason)?;
        let rings = self.rings[..self.described].iter().map(|ring| ring.stats.clone()).collect();
        let stats = CaptureStats { rings };
        self.finished.add(&stats);
        let lower_level_events = self.lower_level_events;
        let end = CaptureEnd { reason, ended_epoch_nanos, lower_level_events, stats };
        self.writer.finish(&end)?;
        self.sink.end(&end, &self.rings)?;
        self.has_ended = true;
        self.finished_bytes += self.writer.bytes();
        self.finished_lower_level_events += lower_level_events;
        if self.options.rotation.removes() {
            self.removable.push_back((end.stats, self.writer.bytes()));
        }
        Ok(())
    }

    /// Writes what the tables of the present show into the first file, before all events: so readers know what was open
    /// whose begin is overwritten. Meanwhile the rings are read.
    pub(crate) fn look_at_begin(&mut self) -> Result<(), CaptureError> {
        // A batch has them at its end.
        if !self.sink.wants_all_tables() || !self.look() {
            return Ok(());
        }
        self.collect_tables(None)?;
        self.write_looks(BEGIN_SHARE).map(drop)
    }

    /// Looks at the tables of the present at the end of a file. Batches have them if readers need them: the first and
    /// the last one, those that state losses, and now and then one, because a receiver may begin a file with any.
    fn look_at_end(&mut self, reason: EndReason) -> Result<(), CaptureError> {
        if self.sink.wants_all_tables() {
            self.look();
            return self.write_looks(1).map(drop);
        }
        let has_losses = self.rings.iter().any(|ring| ring.stats.lost() > 0);
        let is_due = self.looked.is_none_or(|(at, has_room)| {
            let pause = if has_losses || !has_room { BATCH_PAUSE / 10 } else { BATCH_PAUSE };
            reason != EndReason::Rotated || at.elapsed() >= pause
        });
        if self.options.start.host.is_some() && is_due && self.look() {
            self.put_new_tables(None);
            self.looked = Some((Instant::now(), self.write_looks(1)?));
            // Names that found no room are of no use in the next batch.
            (self.table_entries, self.tables) = (0, Vec::new());
        }
        Ok(())
    }

    /// Looks at the tables of the present of all recorders. Returns false if there are none, or if only some of the
    /// events are captured.
    fn look(&mut self) -> bool {
        self.looks.clear();
        let recorders = self.recorders.iter().filter(|_| self.options.filter.keeps_all());
        for SourceRecorder { shard0, now, .. } in recorders {
            let (Some(now), shard0) = (now, *shard0) else { continue };
            let epoch_nanos = Clock::global().now_epoch_nanos();
            if shard0 as usize >= self.described {
                continue;
            }
            let shard_of = |ring: &SourceRing| match ring.described.role {
                RingRole::Shard { recorder, shard } => (recorder == shard0).then_some(shard),
                RingRole::Single => None,
            };
            let shards = self.rings.iter().filter_map(|ring| Some((shard_of(ring)?, ring.reader.as_ref())));
            let mut fields = FieldsInRings::new(shards.chain([(0, self.rings[shard0 as usize].reader.as_ref())]));
            let image = now.image(|span| fields.of(span));
            self.looks.push(Look { shard0, epoch_nanos, image });
        }
        !self.looks.is_empty()
    }

    /// Writes what was seen, after the names that it needs, if `share` times as much has room. Returns false if not.
    fn write_looks(&mut self, share: usize) -> Result<bool, CaptureError> {
        let mut has_room = true;
        for at in 0..self.looks.len() {
            let bytes = self.looks[at].image.len();
            has_room = bytes as u64 <= BLOCK_BYTES_MAX && self.has_room(bytes.saturating_mul(share));
            if has_room {
                self.write_tables()?;
                let Look { shard0, epoch_nanos, image } = &self.looks[at];
                self.writer.present(*shard0, *epoch_nanos, image)?;
            }
        }
        Ok(has_room)
    }

    /// Returns the number of bytes that were written so far, to the current file and to earlier files.
    pub(crate) fn bytes(&self) -> u64 {
        self.finished_bytes + self.writer.bytes()
    }

    /// Returns the number of files that were begun.
    pub(crate) fn files(&self) -> u32 {
        self.part.max(1)
    }

    /// Adds the name of the file to an error of writing.
    fn named(&self, error: CaptureError) -> CaptureError {
        match self.sink.current() {
            Some(path) if error.kind() != CaptureErrorKind::Ring => error.at(path),
            _ => error,
        }
    }
}

fn begin_file(sink: &mut dyn CaptureSink, part: u32, rings: &[SourceRing]) -> Result<CaptureWriter, CaptureError> {
    let header = FileHeader::of_now(part);
    let mut read = ReadFiles::default();
    rings.iter().filter_map(|ring| ring.reader.as_ref()).for_each(|reader| read.add_ring(reader));
    let out = sink.begin(part, &read)?;
    CaptureWriter::new(out, &header).map_err(|error| {
        let error = match sink.current() {
            Some(path) => error.at(path),
            None => error,
        };
        sink.discard_current();
        error
    })
}
