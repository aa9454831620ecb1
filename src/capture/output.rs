//! The output of a capture: the file that is being written, its size limits, the table entries that are not written
//! yet, and the file's end.

use super::end::{CaptureEnd, EndReason};
use super::error::{CaptureError, CaptureErrorKind};
use super::format::{FileHeader, HEADER_BYTES, PAYLOAD_BYTES_MAX};
use super::options::CaptureOptions;
use super::parts::Parts;
use super::read_files::ReadFiles;
use super::sources::{SourceRecorder, SourceRing};
use super::stats::{CaptureStats, RingStats};
use super::write::{CaptureWriter, block_bytes_max};
use crate::shm;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest time that events wait until they are written as a block.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// The least free room, in bytes, for another block of events in a file with a size limit. A file with less room is
/// full. Without this bound, the last blocks before the limit would become smaller and smaller.
const LAST_BLOCK_BYTES: usize = 1024;

/// The files of a capture, and the file that is being written.
pub(super) struct Output<'o> {
    options: &'o CaptureOptions,
    pub(super) parts: Parts,
    pub(super) writer: CaptureWriter,
    part: u32,
    part_started: Instant,
    last_flush: Instant,
    /// The largest allowed size of the current file.
    limit: u64,
    /// True once the current file has an event or a gap.
    has_records: bool,
    /// Number of rings that the current file describes.
    described: usize,
    /// The encoded entries of call sites and threads that the current file does not hold yet.
    tables: Vec<u8>,
    table_entries: u64,
    /// Bytes of all tables in the current file, before compression.
    table_bytes: usize,
    /// Bytes of the files before the current one.
    pub(super) finished_bytes: u64,
    /// The counts of all finished files together. The events of files that the capture has removed are subtracted.
    pub(super) finished: CaptureStats,
    /// The counts and the size in bytes of each finished file that has not been removed, oldest first. Empty if the
    /// capture keeps all its files.
    removable: VecDeque<(CaptureStats, u64)>,
    pub(super) removed_files: u32,
    pub(super) removed_bytes: u64,
}

impl<'o> Output<'o> {
    /// Begins the first file.
    pub(super) fn begin(
        mut parts: Parts,
        options: &'o CaptureOptions,
        rings: &[SourceRing],
    ) -> Result<Self, CaptureError> {
        let part = u32::from(options.rotates());
        let now = Instant::now();
        let mut output = Self {
            writer: begin_file(&mut parts, options, part, rings)?,
            options,
            parts,
            part,
            part_started: now,
            last_flush: now,
            limit: u64::MAX,
            has_records: false,
            described: 0,
            tables: Vec::new(),
            table_entries: 0,
            table_bytes: 0,
            finished_bytes: 0,
            finished: CaptureStats::default(),
            removable: VecDeque::new(),
            removed_files: 0,
            removed_bytes: 0,
        };
        output.set_limit();
        output.describe_at_begin(rings)?;
        Ok(output)
    }

    fn set_limit(&mut self) {
        let left = self.options.max_bytes.map(|max| max.saturating_sub(self.finished_bytes));
        self.limit = left.unwrap_or(u64::MAX).min(self.options.rotate_bytes.unwrap_or(u64::MAX));
    }

    /// Writes the descriptions of all rings to the new file, even if they exceed its size limit. Without them, the
    /// file could not be read.
    fn describe_at_begin(&mut self, rings: &[SourceRing]) -> Result<(), CaptureError> {
        rings.iter().try_for_each(|ring| self.writer.ring(&ring.described))?;
        self.described = rings.len();
        Ok(())
    }

    /// Writes the descriptions of the rings that the current file does not describe yet. Returns false if there is no
    /// room for them in the files.
    pub(super) fn describe(
        &mut self,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
    ) -> Result<bool, CaptureError> {
        while let Some(ring) = rings.get(self.described) {
            let bytes = ring.described.encode().len();
            if !self.make_room(bytes, rings, recorders)? {
                return Ok(false);
            }
            // If `make_room` has begun a new file, that file describes all `rings` already, and nothing is left to
            // write.
            if let Some(ring) = rings.get(self.described) {
                self.writer.ring(&ring.described)?;
                self.described += 1;
            }
        }
        Ok(true)
    }

    /// Makes sure that this many more bytes fit into the current file, and begins a new file if they do not fit.
    /// Returns false if no file may take the bytes, because all files together would exceed their limit.
    #[inline]
    pub(super) fn make_room(
        &mut self,
        bytes: usize,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
    ) -> Result<bool, CaptureError> {
        if self.limit != u64::MAX {
            self.collect_tables(rings, recorders)?;
            if !self.has_room(bytes, rings.len()) && !self.find_room(bytes, rings, recorders)? {
                return Ok(false);
            }
        }
        self.has_records = true;
        Ok(true)
    }

    #[cold]
    fn find_room(
        &mut self,
        bytes: usize,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
    ) -> Result<bool, CaptureError> {
        // Before waiting events are written, their compressed size is not known, and `has_room` assumes the largest
        // possible size. The flush writes them. So there may be room enough afterwards.
        self.flush(rings, recorders)?;
        if self.has_room(bytes.max(LAST_BLOCK_BYTES), rings.len()) {
            return Ok(true);
        }
        if self.options.rotate_bytes.is_none() {
            return Ok(false);
        }
        // If the current file has no record yet, a new file would have no more room than the current one. So no new
        // file is begun.
        if self.has_records && !self.rotate(bytes, rings, recorders)? {
            return Ok(false);
        }
        let max = self.options.max_bytes.unwrap_or(u64::MAX);
        Ok(self.finished_bytes.saturating_add(self.bytes_if_finished(bytes, rings.len())) <= max)
    }

    /// Returns true if the finished file would stay within its size limit with this many more bytes of events.
    fn has_room(&self, bytes: usize, rings: usize) -> bool {
        self.bytes_if_finished(bytes, rings) <= self.limit
    }

    fn bytes_if_finished(&self, bytes: usize, rings: usize) -> u64 {
        self.writer.bytes_if_finished(self.tables.len(), bytes, rings)
    }

    /// Returns the largest possible size of a new file that holds all descriptions, all tables and one record of this
    /// many bytes.
    fn new_file_bytes(&self, bytes: usize, rings: &[SourceRing]) -> u64 {
        let descriptions = rings.iter().map(|ring| block_bytes_max(ring.described.encode().len()));
        let tables = block_bytes_max(self.table_bytes + self.tables.len());
        let fresh = CaptureWriter::bytes_if_fresh(bytes, rings.len());
        HEADER_BYTES + descriptions.sum::<u64>() + tables + fresh
    }

    /// Ends the current file and begins another one. Returns false, and changes nothing, if all files together would
    /// then exceed their limit.
    fn rotate(
        &mut self,
        bytes: usize,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
    ) -> Result<bool, CaptureError> {
        let this = self.finished_bytes.saturating_add(self.bytes_if_finished(0, rings.len()));
        let all = this.saturating_add(self.new_file_bytes(bytes, rings));
        if self.options.max_bytes.is_some_and(|max| all > max) {
            return Ok(false);
        }
        self.finish_part(rings, recorders, EndReason::Rotated)?;
        self.part += 1;
        self.writer = begin_file(&mut self.parts, self.options, self.part, rings)?;
        self.part_started = Instant::now();
        (self.has_records, self.table_bytes) = (false, 0);
        self.set_limit();
        recorders.iter_mut().for_each(|recorder| recorder.tables.restart());
        for ring in rings.iter_mut() {
            let last_seqno = ring.stats.last_seqno;
            ring.described.first_seqno = last_seqno.saturating_add(1);
            ring.stats = RingStats { last_seqno, removed: ring.stats.removed, ..RingStats::default() };
        }
        self.count_removed(rings);
        self.describe_at_begin(rings)?;
        self.collect_tables(rings, recorders)?;
        Ok(true)
    }

    /// Moves the events of removed files from the captured to the removed counts. Files are removed when a new file is
    /// begun.
    fn count_removed(&mut self, rings: &mut [SourceRing]) {
        while self.removed_files < self.parts.removed() {
            let Some((stats, bytes)) = self.removable.pop_front() else { return };
            self.removed_files += 1;
            self.removed_bytes += bytes;
            self.finished.take_away(&stats);
            for (ring, removed) in rings.iter_mut().zip(&stats.rings) {
                ring.stats.removed = ring.stats.removed.saturating_add(removed.events);
            }
        }
    }

    /// Writes the waiting events if they have waited for [`FLUSH_INTERVAL`], and begins a new file if the current file
    /// is old enough. Returns false if the new file would make all files together too large.
    pub(super) fn tick(
        &mut self,
        now: Instant,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
    ) -> Result<bool, CaptureError> {
        if now.duration_since(self.last_flush) >= FLUSH_INTERVAL {
            self.flush(rings, recorders)?;
        }
        let is_old = self.options.rotate_every.is_some_and(|time| now.duration_since(self.part_started) >= time);
        if is_old { self.rotate(LAST_BLOCK_BYTES, rings, recorders) } else { Ok(true) }
    }

    /// Collects the new entries of the recorders' tables.
    fn collect_tables(&mut self, rings: &[SourceRing], recorders: &mut [SourceRecorder]) -> Result<(), CaptureError> {
        for recorder in recorders {
            if let Some(shard0) = &rings[recorder.shard0 as usize].reader {
                self.table_entries += recorder.tables.put_new(&mut self.tables, recorder.shard0, shard0);
            }
            // The entries of all recorders together may be too large for one block, so they are written as several
            // blocks.
            if self.tables.len() > PAYLOAD_BYTES_MAX / 2 {
                self.write_tables()?;
            }
        }
        Ok(())
    }

    /// Writes the waiting table entries, and then the waiting events, which refer to these entries.
    pub(super) fn flush(&mut self, rings: &[SourceRing], recorders: &mut [SourceRecorder]) -> Result<(), CaptureError> {
        self.last_flush = Instant::now();
        // Without a size limit, the new table entries are collected here. With a limit, `make_room` collects them
        // before each record, because it must make sure that there is room for them. There may be no room for entries
        // that are newer than the last record. So they are not collected here.
        if self.limit == u64::MAX {
            self.collect_tables(rings, recorders)?;
        }
        self.write_tables()?;
        self.writer.flush_events()
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
    pub(super) fn finish_part(
        &mut self,
        rings: &mut [SourceRing],
        recorders: &mut [SourceRecorder],
        reason: EndReason,
    ) -> Result<(), CaptureError> {
        for (index, ring) in rings[..self.described].iter_mut().enumerate() {
            if let Some(gap) = ring.missing.take() {
                ring.write_gap(&mut self.writer, index as u32, gap);
            }
            if let Some(reader) = &ring.reader {
                ring.stats.close(reader);
            }
        }
        self.flush(rings, recorders)?;
        let rings = rings[..self.described].iter().map(|ring| ring.stats.clone()).collect();
        let stats = CaptureStats { rings };
        self.finished.add(&stats);
        let end = CaptureEnd { reason, ended_epoch_nanos: now_epoch_nanos(), stats };
        self.writer.finish(&end)?;
        self.finished_bytes += self.writer.bytes();
        if self.options.keep_files.is_some() {
            self.removable.push_back((end.stats, self.writer.bytes()));
        }
        Ok(())
    }

    /// Returns the number of bytes that were written so far, to the current file and to earlier files.
    pub(super) fn bytes(&self) -> u64 {
        self.finished_bytes + self.writer.bytes()
    }

    /// Returns the number of files that were begun.
    pub(super) fn files(&self) -> u32 {
        self.part.max(1)
    }

    /// Adds the name of the file to an error of writing.
    pub(super) fn named(&self, error: CaptureError) -> CaptureError {
        match self.parts.current() {
            Some(path) if error.kind() != CaptureErrorKind::Ring => error.at(path),
            _ => error,
        }
    }
}

fn begin_file(
    parts: &mut Parts,
    options: &CaptureOptions,
    part: u32,
    rings: &[SourceRing],
) -> Result<CaptureWriter, CaptureError> {
    let header = FileHeader {
        part,
        started_epoch_nanos: now_epoch_nanos(),
        started_boot_nanos: shm::boottime_nanos(),
        started_monotonic_nanos: shm::monotonic_nanos(),
    };
    let mut read = ReadFiles::default();
    rings.iter().filter_map(|ring| ring.reader.as_ref()).for_each(|reader| read.add_ring(reader));
    let out = parts.next(part, &read)?;
    let writer = CaptureWriter::new(out, options.level, &header);
    writer.map_err(|error| match parts.current() {
        Some(path) => error.at(path),
        None => error,
    })
}

fn now_epoch_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
