//! Cutting a file out of a rolling capture.

use crate::engine::options::CaptureOptions;
use crate::error::CaptureError;
use crate::files::output_entry::OutputEntry;
use crate::files::read_files::ReadFiles;
use crate::format::block;
use crate::format::columns::{BlockEncoder, BlockRecords, EncodedBlock, PayloadsWanted, RecordRange, RingLayout};
use crate::format::end::CaptureEnd;
use crate::format::fit::no_encoding;
use crate::format::header::{BlockKind, BlockRef, FileHeader, PAYLOAD_BYTES_MAX};
use crate::format::record::SortKey;
use crate::format::ring::CapturedRing;
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::tables;
use crate::format::write::CaptureWriter;
use crate::read::file::CaptureFile;
use crate::sinks::rolling::{CUT, RolledFiles, RollingCapture};
use eventring::internal::shm;
use eventring::reader::GapCause;
use eventring::recorder::Clock;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;

/// The largest difference between the order of a ring's events and that of their times. A block whose times are further
/// away is not looked into.
const DISORDER_NANOS: u64 = 1_000_000_000;

/// The reason why a cut does not hold the whole time that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Shortfall {
    /// The events before were overwritten in the ring before the capture began.
    Overwritten,
    /// The events before were forgotten, because there was no room for them.
    Memory,
    /// The events before were recorded too long ago to be kept.
    Forgotten,
    /// The last events could not be copied in time.
    Late,
    /// The capture failed before the end of the time, for example because there was no more room on the disk.
    /// [`RollingCapture::finish`] returns its error.
    Failed,
}

/// The content of a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CutSummary {
    /// The number of events.
    pub events: u64,
    /// The number of events of this time that were lost.
    pub lost: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The time from which on the cut holds all events that were not lost, in nanoseconds since the epoch.
    pub from_epoch_nanos: u64,
    /// The time until which it does so.
    pub to_epoch_nanos: u64,
    /// The part of the time, in nanoseconds, in which a ring existed and its events are missing for the reason in
    /// [`Self::shortfall`].
    pub missing_nanos: u64,
    /// The reason if this is less than what was asked for.
    pub shortfall: Option<Shortfall>,
}

impl RollingCapture {
    /// Writes the events that were recorded in a time, in nanoseconds since the epoch, into a capture file. Waits for
    /// up to some seconds until the last of them were copied. The file gets its name when it is complete.
    ///
    /// # Errors
    /// The file cannot be written, or it exists and `overwrite` is false.
    pub fn cut(&self, nanos: RangeInclusive<u64>, output: &Path, overwrite: bool) -> Result<CutSummary, CaptureError> {
        let (from, to) = nanos.into_inner();
        let kept = self.rolled.files(from)?;
        let mut captures = Vec::new();
        for file in &kept.files {
            let file = file.try_clone().map_err(|error| CaptureError::io("open the kept events", error))?;
            captures.push(CaptureFile::from_file(file)?);
        }
        let entry = OutputEntry::open(output)?;
        let unfinished = entry.create_unfinished()?;
        let out = unfinished.file().try_clone().map_err(|error| CaptureError::io_writing("write it", error))?;
        let summary = Cutter::new(&captures, from, to).write(Box::new(out), &kept).map_err(|error| error.at(output))?;
        unfinished.publish(overwrite, &ReadFiles::default())?;
        Ok(summary)
    }
}

/// The beginning of a cut in one ring.
#[derive(Clone, Copy)]
struct RingBegin {
    /// The file and the block with the first record.
    place: (usize, usize),
    first_seqno: u64,
    /// The time from which on no event of the ring was overwritten before the capture, if any was.
    known_from_nanos: u64,
}

/// A cut that is being made.
struct Cutter<'c> {
    captures: &'c [CaptureFile],
    from: u64,
    to: u64,
}

impl<'c> Cutter<'c> {
    fn new(captures: &'c [CaptureFile], from: u64, to: u64) -> Self {
        Self { captures, from, to }
    }

    fn write(&self, out: Box<dyn std::io::Write>, kept: &RolledFiles) -> Result<CutSummary, CaptureError> {
        // The last file knows all rings.
        let rings: &[CapturedRing] = self.captures.last().map_or(&[], CaptureFile::rings);
        let begins: Vec<Option<RingBegin>> = self.begins(rings.len())?;
        let ends = self.captures.last().and_then(CaptureFile::end);
        // The cut begins with its time, by all clocks.
        let (now_nanos, boot_nanos) = (Clock::global().now_epoch_nanos(), shm::boottime_nanos());
        let monotonic_nanos = shm::monotonic_nanos();
        let ago_nanos = now_nanos.saturating_sub(self.from).min(monotonic_nanos).min(boot_nanos);
        let header = FileHeader {
            part: 0,
            started_epoch_nanos: now_nanos - ago_nanos,
            started_boot_nanos: boot_nanos - ago_nanos,
            started_monotonic_nanos: monotonic_nanos - ago_nanos,
        };
        let mut writer = CaptureWriter::new(out, &header)?;
        let mut stats: Vec<RingStats> = Vec::new();
        for (index, ring) in rings.iter().enumerate() {
            let end = ends.and_then(|end| end.stats.rings.get(index)).cloned().unwrap_or_default();
            let first_seqno = begins[index].map_or(end.last_seqno.saturating_add(1), |begin| begin.first_seqno);
            writer.ring(&CapturedRing { first_seqno, ..ring.clone() })?;
            stats.push(RingStats {
                last_seqno: first_seqno.saturating_sub(1),
                was_live: end.was_live,
                end: end.end,
                record_errors: end.record_errors,
                table_losses: end.table_losses,
                ..RingStats::default()
            });
        }
        self.write_tables(&mut writer)?;
        self.write_looks(&mut writer)?;
        self.write_events(&mut writer, rings, &begins, &mut stats)?;
        for (index, ring) in stats.iter_mut().enumerate() {
            let last = ends.and_then(|end| end.stats.rings.get(index)).map_or(0, |end| end.last_seqno);
            ring.unread = last.saturating_sub(ring.last_seqno);
        }
        let stats = CaptureStats { rings: stats };
        let lower_level_events = 0;
        let (events, lost) = (stats.events(), stats.lost());
        let end = CaptureEnd { reason: CUT, ended_epoch_nanos: self.to.min(now_nanos), lower_level_events, stats };
        writer.finish(&end)?;
        // A ring has no events from before it was made.
        let made = |ring: &CapturedRing| self.from.max(ring.created_epoch_nanos);
        let missing = |ring: &CapturedRing, kept_from: u64| kept_from.saturating_sub(made(ring));
        let of_rings = rings.iter().zip(&begins);
        let overwritten = of_rings.map(|(ring, begin)| begin.map_or(0, |begin| missing(ring, begin.known_from_nanos)));
        let overwritten = overwritten.max().unwrap_or(0);
        let forgotten = rings.iter().map(|ring| missing(ring, kept.kept_from_nanos)).max().unwrap_or(0);
        let asked_nanos = self.to.saturating_sub(self.from);
        // What was not copied in time was recorded after the last event that was.
        let copied_until = || self.captures.iter().filter_map(CaptureFile::last_nanos).max().unwrap_or(0);
        let late = if kept.is_late { self.to.saturating_sub(copied_until().max(self.from)) } else { 0 };
        let missing_nanos = overwritten.max(forgotten).max(late).min(asked_nanos);
        let failed_nanos = kept.failed_nanos.filter(|failed| *failed < self.to);
        let shortfall = match missing_nanos {
            _ if failed_nanos.is_some() => Some(Shortfall::Failed),
            0 => kept.is_late.then_some(Shortfall::Late),
            _ if late > overwritten.max(forgotten) => Some(Shortfall::Late),
            _ if overwritten > forgotten => Some(Shortfall::Overwritten),
            _ if kept.lacks_memory => Some(Shortfall::Memory),
            _ => Some(Shortfall::Forgotten),
        };
        let known_from = begins.iter().flatten().map(|begin| begin.known_from_nanos).max().unwrap_or(0);
        let kept_from = if missing_nanos > 0 { kept.kept_from_nanos.max(known_from) } else { 0 };
        let to_nanos = failed_nanos.map_or(self.to, |failed| failed.max(self.from));
        Ok(CutSummary {
            events,
            lost,
            bytes: writer.bytes(),
            from_epoch_nanos: self.from.max(kept_from).min(to_nanos),
            to_epoch_nanos: to_nanos,
            missing_nanos: missing_nanos.saturating_add(self.to - to_nanos).min(asked_nanos),
            shortfall,
        })
    }

    /// Finds the first record of each ring.
    fn begins(&self, rings: usize) -> Result<Vec<Option<RingBegin>>, CaptureError> {
        let mut begins = vec![None; rings];
        for (place, file, block) in self.blocks() {
            let Some(begin) = begins.get_mut(block.header.ring as usize).filter(|begin| begin.is_none()) else {
                continue;
            };
            let records = records(file, block)?;
            let Some(part) = self.first_part(&records, block) else { continue };
            let gaps = &records.gaps[part.gaps.clone()];
            let first_event = records.events.descriptors().get(part.events.start);
            let seqnos = gaps.iter().map(|gap| gap.gap.first_seqno).chain(first_event.map(|event| event.seqno));
            let lacks_more = gaps.iter().any(|gap| gap.gap.cause == GapCause::OverwrittenBefore);
            let known_from_nanos = first_event.filter(|_| lacks_more).map_or(0, |event| event.record_epoch_nanos);
            *begin = seqnos.min().map(|first_seqno| RingBegin { place, first_seqno, known_from_nanos });
        }
        Ok(begins)
    }

    /// Returns the blocks of events that may have events of the time, in their order, with the places of their files
    /// and of themselves.
    fn blocks(&self) -> impl Iterator<Item = ((usize, usize), &'c CaptureFile, &'c BlockRef)> {
        let all = self.captures.iter().enumerate().flat_map(|(number, file)| {
            file.blocks.iter().enumerate().map(move |(place, block)| ((number, place), file, block))
        });
        let (from, to) = (self.from.saturating_sub(DISORDER_NANOS), self.to.saturating_add(DISORDER_NANOS));
        all.filter(move |(_, _, block)| {
            let header = &block.header;
            header.kind == BlockKind::Events && header.last_nanos >= from && header.first_nanos <= to
        })
    }

    /// Returns the part of a block from the first record of the time on.
    fn first_part(&self, records: &BlockRecords, block: &BlockRef) -> Option<RecordRange> {
        let events = records.events.descriptors();
        if events.is_empty() {
            return (block.header.first_nanos >= self.from).then(|| records.all());
        }
        let first = events.iter().position(|event| event.record_epoch_nanos >= self.from)?;
        let last = self.end_in(records);
        (first < last).then(|| records.part(first..last))
    }

    /// Returns the number of events up to the last one of the time.
    fn end_in(&self, records: &BlockRecords) -> usize {
        let events = records.events.descriptors();
        events.iter().rposition(|event| event.record_epoch_nanos <= self.to).map_or(0, |last| last + 1)
    }

    fn write_events(
        &self,
        writer: &mut CaptureWriter,
        rings: &[CapturedRing],
        begins: &[Option<RingBegin>],
        stats: &mut [RingStats],
    ) -> Result<(), CaptureError> {
        let layout = |ring: &CapturedRing| RingLayout::of_ring(ring.content_type, ring.schema_hash, &ring.schema_text);
        let layouts: Vec<RingLayout> = rings.iter().map(layout).collect();
        let mut keys = vec![SortKey::default(); rings.len()];
        let mut are_over = vec![false; rings.len()];
        let mut encoder = BlockEncoder::new();
        encoder.set_level(CaptureOptions::DEFAULT_LEVEL).map_err(no_encoding)?;
        let mut encoded = EncodedBlock::default();
        for (place, file, block) in self.blocks() {
            let index = block.header.ring as usize;
            let Some(begin) = begins.get(index).copied().flatten() else { continue };
            if place < begin.place || are_over[index] {
                continue;
            }
            let records = records(file, block)?;
            let part = match place == begin.place {
                true => self.first_part(&records, block),
                false if records.events.is_empty() => Some(records.all()),
                false => Some(records.part(0..self.end_in(&records))),
            };
            let Some(part) = part else { continue };
            are_over[index] = part.events.end < records.events.len();
            if part.len() == 0 {
                continue;
            }
            encoder.encode(&records, &part, &layouts[index], &mut encoded).map_err(no_encoding)?;
            writer.events(&records, &part, &encoded, &mut keys[index])?;
            stats[index].count(&records, &part);
        }
        Ok(())
    }

    /// Writes the looks of the time at the tables of the present.
    fn write_looks(&self, writer: &mut CaptureWriter) -> Result<(), CaptureError> {
        let mut known: HashSet<(u32, u64)> = HashSet::new();
        for (file, block) in self.captures.iter().flat_map(|file| file.blocks.iter().map(move |block| (file, block))) {
            let is_in_time = (self.from..=self.to).contains(&block.header.last_nanos);
            if block.header.kind == BlockKind::Present
                && is_in_time
                && known.insert((block.header.ring, block.header.last_nanos))
            {
                writer.copied(block.header, &block::stored(&file.file, block)?)?;
            }
        }
        Ok(())
    }

    /// Writes the tables of all files, each entry once.
    fn write_tables(&self, writer: &mut CaptureWriter) -> Result<(), CaptureError> {
        let mut known: HashSet<Vec<u8>> = HashSet::new();
        let (mut entries, mut count) = (Vec::new(), 0);
        for file in self.captures {
            for block in file.blocks.iter().filter(|block| block.header.kind == BlockKind::Tables) {
                for entry in tables::entries(&block::content(&file.file, block)?) {
                    if known.contains(entry) {
                        continue;
                    }
                    known.insert(entry.to_vec());
                    entries.extend_from_slice(entry);
                    count += 1;
                    if entries.len() > PAYLOAD_BYTES_MAX / 2 {
                        writer.tables(&entries, count)?;
                        (entries, count) = (Vec::new(), 0);
                    }
                }
            }
        }
        if count > 0 { writer.tables(&entries, count) } else { Ok(()) }
    }
}

fn records(file: &CaptureFile, block: &BlockRef) -> Result<BlockRecords, CaptureError> {
    block::records(&file.file, block, PayloadsWanted::All)
}
