//! The rings that a capture reads.

use super::error::{CaptureError, CaptureErrorKind};
use super::format::RINGS_MAX;
use super::overlaps::PayloadExtent;
use super::record::SortKey;
use super::ring::{CapturedRing, RingRole};
use super::stats::RingStats;
use super::tables::CaptureTables;
use super::write::CaptureWriter;
use crate::layout::header::CONTENT_TYPE_PERF;
use crate::reader::{Gap, GapCause, Reader, RingSet, Seek, ShardError, WriterInfo};
use crate::schema::perf::PerfEvent;

/// All rings of a capture.
pub(super) struct Sources {
    pub(super) set: RingSet,
    /// The rings of the set, by the same indices.
    pub(super) rings: Vec<SourceRing>,
    pub(super) recorders: Vec<SourceRecorder>,
    writers: Vec<Option<WriterInfo>>,
    only_new: bool,
    /// The number of shard errors in the ring set's list that are already in `problems`.
    known_shard_errors: usize,
    /// Failures that do not end the capture, for example shards that could not be opened.
    pub(super) problems: Vec<String>,
}

/// A ring, and how far it has been captured.
pub(super) struct SourceRing {
    /// `None` for a shard that could not be opened.
    pub(super) reader: Option<Reader>,
    pub(super) described: CapturedRing,
    /// The gap that stands for all events of a shard that could not be opened. `None` for other rings, and after the
    /// gap was written.
    pub(super) missing: Option<Gap>,
    pub(super) key: SortKey,
    pub(super) stats: RingStats,
    pub(super) payloads: PayloadExtent,
}

/// A perf recorder.
pub(super) struct SourceRecorder {
    pub(super) shard0: u32,
    pub(super) tables: CaptureTables,
}

impl SourceRing {
    /// Writes and counts a gap.
    pub(super) fn write_gap(&mut self, writer: &mut CaptureWriter, ring: u32, gap: Gap) {
        writer.gap(ring, self.key.gap(), gap);
        self.stats.count_gap(gap);
    }
}

impl Sources {
    /// Makes an empty set of rings. With `only_new`, the capture leaves out the events that the rings hold at the
    /// start.
    pub(super) fn new(only_new: bool) -> Self {
        Self {
            set: RingSet::options().from_readers([]),
            rings: Vec::new(),
            recorders: Vec::new(),
            writers: Vec::new(),
            only_new,
            known_shard_errors: 0,
            problems: Vec::new(),
        }
    }

    /// Adds a ring that exists at the start of the capture. A ring that was added before is not added again.
    pub(super) fn add_first(&mut self, reader: Reader) -> Result<(), CaptureError> {
        self.add_ring(reader, if self.only_new { Seek::Newest } else { Seek::Oldest })
    }

    /// Adds the shards that exist at the start.
    pub(super) fn add_first_shards(&mut self) -> Result<(), CaptureError> {
        self.set.find_shards();
        self.take_new()
    }

    /// Adds a ring that was made during the capture, with all of its events. If the ring cannot be captured, it is
    /// left out, and the error is added to `problems`.
    pub(super) fn add_later(&mut self, reader: Reader) {
        if let Err(error) = self.add_ring(reader, Seek::Oldest) {
            self.problems.push(error.to_string());
        }
    }

    fn add_ring(&mut self, reader: Reader, start: Seek) -> Result<(), CaptureError> {
        // Rings are compared by file and not by path, because a later ring may have the path of an earlier one.
        let is_it = |ring: &SourceRing| ring.reader.as_ref().is_some_and(|known| known.file_id() == reader.file_id());
        if self.rings.iter().any(is_it) {
            return Ok(());
        }
        self.check_number()?;
        let is_perf = reader.info().content_type == CONTENT_TYPE_PERF;
        if is_perf {
            // The error of `check_events` explains how the schemas differ.
            reader.check_events::<PerfEvent>().map_err(CaptureError::ring)?;
        }
        let ring = self.set.add(reader, start) as u32;
        if is_perf {
            self.recorders.push(SourceRecorder { shard0: ring, tables: CaptureTables::default() });
        }
        self.take_new()
    }

    /// Adds an entry to `rings` for each ring that was added to the set since the last call.
    #[inline]
    pub(super) fn take_new(&mut self) -> Result<(), CaptureError> {
        let has_new = self.set.rings().len() > self.rings.len();
        if has_new || self.set.shard_errors().len() > self.known_shard_errors { self.take_new_slow() } else { Ok(()) }
    }

    #[cold]
    fn take_new_slow(&mut self) -> Result<(), CaptureError> {
        while self.rings.len() < self.set.rings().len() {
            self.check_number()?;
            let ring = self.describe(self.rings.len());
            self.rings.push(ring);
        }
        for ShardError { recorder, shard, error, .. } in &self.set.shard_errors()[self.known_shard_errors..] {
            let name = &self.rings[*recorder].described.name;
            self.problems.push(format!("{name}: shard {shard} is left out: {error}"));
        }
        self.known_shard_errors = self.set.shard_errors().len();
        Ok(())
    }

    /// Describes the ring of the set with this index.
    fn describe(&mut self, index: usize) -> SourceRing {
        let ring = &self.set.rings()[index];
        let recorder = ring.recorder().unwrap_or(index) as u32;
        let is_perf = self.recorders.iter().any(|known| known.shard0 == recorder);
        let (Some(reader), Some(cursor)) = (ring.reader().cloned(), ring.cursor()) else {
            return self.describe_missed(index, recorder);
        };
        // The capture begins at seqno 1, or at the next seqno if only new events are wanted. If the first events were
        // overwritten, the cursor reports them as a gap.
        let first_seqno = cursor.next_seqno();
        let role = match (is_perf, ring.recorder()) {
            (false, _) => RingRole::Single,
            (true, Some(_)) => RingRole::Shard { recorder, shard: ring.shard() },
            (true, None) => {
                let shard = reader.info().extension.map_or(0, |extension| extension.shard_index) as u32;
                RingRole::Shard { recorder, shard }
            }
        };
        let process = self.process_of(&reader, role);
        SourceRing {
            described: CapturedRing::describe(&reader, process, role, first_seqno),
            reader: Some(reader),
            missing: None,
            key: SortKey::default(),
            stats: RingStats { last_seqno: first_seqno.saturating_sub(1), ..RingStats::default() },
            payloads: PayloadExtent::default(),
        }
    }

    /// Describes a shard that could not be opened.
    fn describe_missed(&mut self, index: usize, recorder: u32) -> SourceRing {
        let ring = &self.set.rings()[index];
        let described = self.rings[recorder as usize].described.missed_shard(recorder, ring.shard());
        if ring.missed_seqnos().is_none() {
            let name = &described.name;
            self.problems.push(format!(
                "{name}: the shard could not be opened, and nobody knows how many events it held; they count as 1. A program that keeps its rings \
                 (EVENTRING_KEEP=1), or ends in good order, says how many"
            ));
        }
        SourceRing {
            reader: None,
            described,
            missing: Some(Gap { first_seqno: 1, count: ring.stats().lost, cause: GapCause::NeverOpened }),
            key: SortKey::default(),
            stats: RingStats::default(),
            payloads: PayloadExtent::default(),
        }
    }

    fn check_number(&self) -> Result<(), CaptureError> {
        if self.rings.len() < RINGS_MAX {
            return Ok(());
        }
        let message = format!(
            "there are more than {RINGS_MAX} rings and shards, which is all that a capture holds; capture fewer at a time"
        );
        Err(CaptureError::new(CaptureErrorKind::BadOptions, message))
    }

    /// Returns the index of the process that wrote the ring. All shards of a recorder have the index of their shard 0.
    /// A ring with an unknown writer gets an index that no other ring has.
    fn process_of(&mut self, reader: &Reader, role: RingRole) -> u32 {
        if let RingRole::Shard { recorder, .. } = role
            && let Some(shard0) = self.rings.get(recorder as usize)
        {
            return shard0.described.process;
        }
        let writer = reader.info().extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
        if let Some(known) = self.writers.iter().position(|known| writer.is_some() && *known == writer) {
            return known as u32;
        }
        self.writers.push(writer);
        (self.writers.len() - 1) as u32
    }
}
