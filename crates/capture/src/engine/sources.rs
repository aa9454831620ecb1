//! The rings that a capture reads.

use crate::engine::overlaps::PayloadExtent;
use crate::engine::start::BatchStart;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::columns::RingLayout;
use crate::format::header::RINGS_MAX;
use crate::format::record::SortKey;
use crate::format::ring::{CapturedRing, RingRole, process_key};
use crate::format::stats::RingStats;
use crate::format::tables::{CaptureTables, CapturedBlocks};
use crate::format::values::tables::RecorderTables;
use crate::select::batch_filter::BatchFilter;
use eventring::files::CONTENT_TYPE_PERF;
use eventring::now::NowReader;
use eventring::reader::{Cursor, Gap, GapCause, Reader, RingSet, Seek, ShardError, WriterInfo};
use eventring::schema::perf::PerfEvent;
use eventring::tracing::Catalog;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// All rings of a capture, on the thread that copies their events.
pub(crate) struct Sources {
    /// The rings, and the search for further shards. The cursors of the set are not used: the copying thread reads each
    /// ring by itself.
    set: RingSet,
    /// The rings of the set, by the same indices.
    pub(crate) rings: Vec<CopiedRing>,
    /// The descriptions of the rings that are not further shards of a recorder, by index.
    first_shards: BTreeMap<u32, CapturedRing>,
    writers: Vec<Option<WriterInfo>>,
    /// The place in rings that exist when the capture begins.
    first_place: Seek,
    start: BatchStart,
    filter: BatchFilter,
    /// The number of shard errors in the ring set's list that are already in the problems.
    known_shard_errors: usize,
    pub(crate) found: DiscoveredRings,
}

/// The rings and problems that were found since they were last taken, for the output of the capture.
#[derive(Default)]
pub(crate) struct DiscoveredRings {
    pub(crate) rings: Vec<SourceRing>,
    pub(crate) recorders: Vec<SourceRecorder>,
    /// Failures that do not end the capture, for example shards that could not be opened.
    pub(crate) problems: Vec<String>,
}

/// A ring, as the copying thread sees it.
pub(crate) struct CopiedRing {
    /// `None` for a shard that could not be opened.
    pub(crate) input: Option<RingInput>,
    pub(crate) layout: Arc<RingLayout>,
}

/// A ring that is copied, and how far.
pub(crate) struct RingInput {
    pub(crate) reader: Reader,
    pub(crate) cursor: Cursor,
    pub(crate) payloads: PayloadExtent,
    /// The time at which the ring was copied last. `None` at first: what a ring holds when it is found is copied at
    /// once.
    pub(crate) copied: Option<Instant>,
    /// The offset at which the newest payload that was copied ends.
    pub(crate) payload_end: u64,
    /// The ring's last seqno when it was last looked at.
    pub(crate) last_seqno: u64,
}

/// A ring, as the output of the capture sees it: its description and its counts.
pub(crate) struct SourceRing {
    /// `None` for a shard that could not be opened.
    pub(crate) reader: Option<Reader>,
    pub(crate) described: CapturedRing,
    /// The first seqno of the capture. `described` has that of the current file.
    pub(crate) first_seqno: u64,
    /// The gap that stands for all events of a shard that could not be opened. `None` for other rings, and after the
    /// gap was written.
    pub(crate) missing: Option<Gap>,
    pub(crate) key: SortKey,
    pub(crate) stats: RingStats,
    pub(crate) layout: Arc<RingLayout>,
    /// The blocks of execution that the current file describes.
    pub(crate) blocks: CapturedBlocks,
}

/// A perf recorder.
pub(crate) struct SourceRecorder {
    pub(crate) shard0: u32,
    pub(crate) tables: CaptureTables,
    /// Its tables of the present, if it has some.
    pub(crate) now: Option<NowReader>,
}

impl DiscoveredRings {
    pub(crate) fn is_empty(&self) -> bool {
        self.rings.is_empty() && self.recorders.is_empty() && self.problems.is_empty()
    }
}

impl Sources {
    /// Makes an empty set of rings. `first_place` is where the capture begins in those that exist at its start.
    pub(crate) fn new(first_place: Seek, start: BatchStart, filter: BatchFilter) -> Self {
        let mut set = RingSet::options().from_readers([]);
        if let Some(opened) = &start.opened {
            set.keep_shards(opened);
        }
        Self {
            set,
            rings: Vec::new(),
            first_shards: BTreeMap::new(),
            writers: Vec::new(),
            first_place,
            start,
            filter,
            known_shard_errors: 0,
            found: DiscoveredRings::default(),
        }
    }

    /// Adds a ring that exists at the start of the capture. A ring that was added before is not added again.
    pub(crate) fn add_first(&mut self, reader: Reader) -> Result<(), CaptureError> {
        self.add_ring(reader, self.first_place)
    }

    /// Adds the shards that were made since the last call.
    ///
    /// # Errors
    /// There are more rings than a capture holds.
    pub(crate) fn find_shards(&mut self) -> Result<(), CaptureError> {
        self.set.find_shards();
        self.take_new()
    }

    /// Returns true if a recorder may still make shards, or has made shards that were not found yet.
    pub(crate) fn may_grow(&self) -> bool {
        self.set.may_grow()
    }

    /// Returns the index of the ring that is shard 0 of this ring's recorder: its own, if it is no further shard.
    pub(crate) fn recorder_of(&self, ring: usize) -> usize {
        self.set.rings().get(ring).and_then(|ring| ring.recorder()).unwrap_or(ring)
    }

    /// Returns true if a ring is only read, for the spans in which events of the captured recorder were recorded. That
    /// recorder, the first, is the only one that a capture with such a start has.
    pub(crate) fn is_beside(&self, ring: usize) -> bool {
        self.is_of_one_recorder() && self.recorder_of(ring) != 0
    }

    /// Returns true if only one recorder is captured.
    pub(crate) fn is_of_one_recorder(&self) -> bool {
        self.start.is_of_one_recorder()
    }

    /// Returns the rings that are captured and not only read.
    pub(crate) fn captured(&self) -> impl Iterator<Item = &CopiedRing> {
        self.rings.iter().enumerate().filter(|(index, _)| !self.is_beside(*index)).map(|(_, ring)| ring)
    }

    /// Adds a ring that was made during the capture, with all of its events: those that it has overwritten meanwhile
    /// are lost. If the ring cannot be captured, it is left out, and the error is added to `problems`.
    pub(crate) fn add_later(&mut self, reader: Reader) {
        if let Err(error) = self.add_ring(reader, Seek::Seqno(1)) {
            self.found.problems.push(error.to_string());
        }
    }

    fn add_ring(&mut self, reader: Reader, start: Seek) -> Result<(), CaptureError> {
        if reader.info().extension.is_some_and(|extension| extension.shard_index > 0) {
            // Its recorder may be there, and then has it.
            self.find_shards()?;
        }
        // Rings are compared by file and not by path, because a later ring may have the path of an earlier one.
        let is_it = |ring: &CopiedRing| ring.input.as_ref().is_some_and(|it| it.reader.file_id() == reader.file_id());
        if self.rings.iter().any(is_it) {
            return Ok(());
        }
        self.check_number()?;
        let is_perf = reader.info().content_type == CONTENT_TYPE_PERF;
        if is_perf {
            // The error of `check_events` explains how the schemas differ.
            match reader.check_events::<PerfEvent>() {
                // It cannot be read for its spans; whoever captures it says why.
                Err(_) if self.is_beside(self.rings.len()) => return Ok(()),
                checked => checked.map_err(CaptureError::ring)?,
            }
        }
        // Opened now: a recorder that ends removes the file. Where it cannot be read, the rings are captured without it.
        let now = if is_perf { NowReader::open_beside(&reader).ok().flatten() } else { None };
        let ring = self.set.add(reader, start) as u32;
        if is_perf && !self.is_beside(ring as usize) {
            self.found.recorders.push(SourceRecorder { shard0: ring, tables: CaptureTables::default(), now });
        }
        self.take_new()
    }

    /// Adds an entry to `rings` for each ring that was added to the set since the last call.
    #[inline]
    fn take_new(&mut self) -> Result<(), CaptureError> {
        let has_new = self.set.rings().len() > self.rings.len();
        if has_new || self.set.shard_errors().len() > self.known_shard_errors { self.take_new_slow() } else { Ok(()) }
    }

    #[cold]
    fn take_new_slow(&mut self) -> Result<(), CaptureError> {
        while self.rings.len() < self.set.rings().len() {
            self.check_number()?;
            let (index, known_problems) = (self.rings.len(), self.found.problems.len());
            let ring = self.describe(index);
            match self.is_beside(index) {
                // Whoever captures it says what is wrong with it.
                true => self.found.problems.truncate(known_problems),
                false => self.found.rings.push(ring),
            }
        }
        for ShardError { recorder, shard, error, .. } in &self.set.shard_errors()[self.known_shard_errors..] {
            if self.is_beside(*recorder) {
                continue;
            }
            let name = self.first_shards.get(&(*recorder as u32)).map_or("", |ring| &ring.name);
            self.found.problems.push(format!("{name}: shard {shard} is left out: {error}"));
        }
        self.known_shard_errors = self.set.shard_errors().len();
        Ok(())
    }

    /// Describes the ring of the set with this index, and adds it to `rings`.
    fn describe(&mut self, index: usize) -> SourceRing {
        let ring = &self.set.rings()[index];
        let recorder = ring.recorder().unwrap_or(index) as u32;
        let (Some(reader), Some(mut cursor)) = (ring.reader().cloned(), ring.cursor().cloned()) else {
            return self.describe_missed(index, recorder);
        };
        // The capture begins at seqno 1, or at the next seqno if only new events are wanted. If the first events were
        // overwritten, the cursor reports them as a gap.
        // A ring that was captured before goes on where that ended.
        let info = reader.info();
        if let Some(seqno) = self.start.next_seqno(&reader, info.last_seqno) {
            cursor.seek(Seek::Seqno(seqno));
        }
        let first_seqno = cursor.next_seqno();
        let role = match (info.content_type == CONTENT_TYPE_PERF, ring.recorder()) {
            (false, _) => RingRole::Single,
            (true, Some(_)) => RingRole::Shard { recorder, shard: ring.shard() },
            (true, None) => {
                let shard = info.extension.map_or(0, |extension| extension.shard_index) as u32;
                RingRole::Shard { recorder, shard }
            }
        };
        let process = self.process_of(&reader, role);
        let mut described = CapturedRing::describe(&reader, process, role, first_seqno);
        if let Some(host) = &self.start.host {
            described.host.clone_from(host);
            described.process_key = process_key(&reader);
        }
        described.filter = self.filter.to_string();
        described.sampled_per_million = self.filter.rate_per_million();
        if ring_is_first(recorder, index) {
            self.first_shards.insert(index as u32, described.clone());
        }
        let layout = self.layout_of(recorder, index, &described);
        let input = RingInput {
            reader: reader.clone(),
            cursor,
            payloads: PayloadExtent::default(),
            copied: None,
            payload_end: 0,
            last_seqno: 0,
        };
        self.rings.push(CopiedRing { input: Some(input), layout: layout.clone() });
        SourceRing {
            described,
            first_seqno,
            reader: Some(reader),
            missing: None,
            key: SortKey::default(),
            stats: RingStats { last_seqno: first_seqno.saturating_sub(1), ..RingStats::default() },
            layout,
            blocks: CapturedBlocks::default(),
        }
    }

    /// Returns the layout of a ring. All shards of a recorder have that of their shard 0.
    fn layout_of(&self, recorder: u32, index: usize, described: &CapturedRing) -> Arc<RingLayout> {
        match self.rings.get(recorder as usize).filter(|_| !ring_is_first(recorder, index)) {
            Some(shard0) => shard0.layout.clone(),
            None => {
                let layout = RingLayout::of_ring(described.content_type, described.schema_hash, &described.schema_text);
                let reader = self.set.rings()[index].reader().cloned();
                Arc::new(layout.with_tables(|| RecorderTables::new(Catalog::new(), reader)))
            }
        }
    }

    /// Describes a shard that could not be opened, and adds it to `rings`.
    fn describe_missed(&mut self, index: usize, recorder: u32) -> SourceRing {
        let ring = &self.set.rings()[index];
        let mut described = self.first_shards[&recorder].missed_shard(recorder, ring.shard());
        let known = self.start.of_missed_shard(&described);
        if let Some((created_epoch_nanos, next_seqno)) = known {
            (described.created_epoch_nanos, described.first_seqno) = (created_epoch_nanos, next_seqno);
        }
        let first_seqno = described.first_seqno;
        let missing = match (known, ring.missed_seqnos()) {
            (None, _) => ring.stats().lost,
            // An earlier capture into batches has taken the seqnos before.
            (Some(_), handed_out) => handed_out.unwrap_or(0).saturating_add(1).saturating_sub(first_seqno),
        };
        if ring.missed_seqnos().is_none() {
            let name = &described.name;
            let those = match known {
                Some(_) => {
                    format!("nobody knows how many events it held from seqno {first_seqno} on; they are not counted")
                }
                None => "nobody knows how many events it held; they count as 1".into(),
            };
            self.found.problems.push(format!(
                "{name}: the shard could not be opened, and {those}. A program that keeps its rings (EVENTRING_KEEP=1), or ends in good order, says how many"
            ));
        }
        let layout = self.layout_of(recorder, index, &described);
        self.rings.push(CopiedRing { input: None, layout: layout.clone() });
        SourceRing {
            reader: None,
            first_seqno,
            missing: (missing > 0).then_some(Gap { first_seqno, count: missing, cause: GapCause::NeverOpened }),
            key: SortKey::default(),
            stats: RingStats { last_seqno: first_seqno.saturating_sub(1), ..RingStats::default() },
            described,
            layout,
            blocks: CapturedBlocks::default(),
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
            && let Some(shard0) = self.first_shards.get(&recorder)
        {
            return shard0.process;
        }
        let writer = reader.info().extension.map(|extension| extension.writer).filter(|writer| writer.pid != 0);
        if let Some(known) = self.writers.iter().position(|known| writer.is_some() && *known == writer) {
            return known as u32;
        }
        self.writers.push(writer);
        (self.writers.len() - 1) as u32
    }
}

/// Returns true if a ring is the shard 0 of its recorder, or no shard.
fn ring_is_first(recorder: u32, index: usize) -> bool {
    recorder as usize == index
}
