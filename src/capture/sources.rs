//! The rings that a capture reads.

use super::account::RingAccount;
use super::error::{CaptureError, CaptureErrorKind};
use super::format::RINGS_MAX;
use super::item::SortKey;
use super::overlaps::PayloadExtent;
use super::ring::{CapturedRing, RingRole};
use super::tables::Tables;
use super::write::CaptureWriter;
use crate::layout::header::CONTENT_TYPE_PERF;
use crate::reader::{FoundShard, Gap, Merger, Reader, Seek, ShardFinder, WriterInfo};
use crate::schema::perf::PerfEvent;
/// All rings of a capture.
pub(super) struct Sources {
    pub(super) rings: Vec<SourceRing>,
    pub(super) merger: Merger,
    /// Which ring each of the merger's inputs is.
    pub(super) ring_of_input: Vec<u32>,
    pub(super) recorders: Vec<SourceRecorder>,
    writers: Vec<Option<WriterInfo>>,
    only_new: bool,
    /// Shards that could not be opened, and the like.
    pub(super) problems: Vec<String>,
}

/// A ring and how far it has been read.
pub(super) struct SourceRing {
    /// `None` for a shard that could not be opened.
    pub(super) reader: Option<Reader>,
    pub(super) described: CapturedRing,
    /// Of a shard that could not be opened: what is missing, to be told.
    pub(super) missing: Option<Gap>,
    pub(super) key: SortKey,
    pub(super) account: RingAccount,
    pub(super) payloads: PayloadExtent,
}

/// A perf recorder.
pub(super) struct SourceRecorder {
    pub(super) shard0: u32,
    pub(super) tables: Tables,
    finder: ShardFinder,
}

impl SourceRing {
    /// Tells and counts what is missing.
    pub(super) fn tell_gap(&mut self, writer: &mut CaptureWriter, ring: u32, gap: Gap) {
        let Gap { first_seqno, count, cause } = gap;
        writer.gap(ring, self.key.gap(), first_seqno, count, cause.into());
        self.account.count_gap(first_seqno, count, cause.into());
    }
}

impl Sources {
    /// None yet. With `only_new`, what the rings hold that are there at the begin is left out.
    pub(super) fn new(only_new: bool) -> Self {
        Self {
            rings: Vec::new(),
            merger: Merger::new([]),
            ring_of_input: Vec::new(),
            recorders: Vec::new(),
            writers: Vec::new(),
            only_new,
            problems: Vec::new(),
        }
    }

    /// Adds a ring that is there at the begin; one that is there twice counts once.
    pub(super) fn add_first(&mut self, reader: Reader) -> Result<(), CaptureError> {
        self.add_ring(reader, self.only_new)
    }

    /// Adds the shards that there are at the begin.
    pub(super) fn add_first_shards(&mut self) -> Result<(), CaptureError> {
        self.add_shards(self.only_new)
    }

    /// Adds a ring that has come later, and is new as a whole. One that cannot be captured is left out, which is a problem.
    pub(super) fn add_later(&mut self, reader: Reader) {
        if let Err(error) = self.add_ring(reader, false) {
            self.problems.push(error.to_string());
        }
    }

    fn add_ring(&mut self, reader: Reader, only_new: bool) -> Result<(), CaptureError> {
        let path = reader.path();
        let is_it = |ring: &SourceRing| ring.reader.as_ref().and_then(Reader::path) == path;
        if path.is_some() && self.rings.iter().any(is_it) {
            return Ok(());
        }
        if reader.info().content_type == CONTENT_TYPE_PERF {
            // The reader's message says what is wrong with the schema.
            reader.check_events::<PerfEvent>().map_err(CaptureError::ring)?;
            self.add_recorder(reader, only_new)
        } else {
            self.add(reader, RingRole::Single, only_new)
        }
    }

    fn add_recorder(&mut self, shard0: Reader, only_new: bool) -> Result<(), CaptureError> {
        let ring = self.rings.len() as u32;
        let finder = ShardFinder::new(&shard0, 1);
        let shard = shard0.info().extension.map_or(0, |extension| extension.shard_index) as u32;
        self.add(shard0, RingRole::Shard { recorder: ring, shard }, only_new)?;
        self.recorders.push(SourceRecorder { shard0: ring, tables: Tables::default(), finder });
        Ok(())
    }

    fn add(&mut self, reader: Reader, role: RingRole, only_new: bool) -> Result<(), CaptureError> {
        self.check_number()?;
        let mut cursor = reader.cursor();
        cursor.seek(if only_new { Seek::Newest } else { Seek::Oldest });
        // The first, or the next one: what had been overwritten is told by the cursor.
        let first_seqno = cursor.next_seqno();
        let process = self.process_of(&reader, role);
        let described = CapturedRing::describe(&reader, process, role, first_seqno);
        let account = RingAccount { last_seqno: first_seqno.saturating_sub(1), ..RingAccount::default() };
        self.merger.add(cursor);
        self.ring_of_input.push(self.rings.len() as u32);
        let key = SortKey::default();
        let payloads = PayloadExtent::default();
        self.rings.push(SourceRing { reader: Some(reader), described, missing: None, key, account, payloads });
        Ok(())
    }

    /// Adds a shard of which there is nothing but the number of what it held.
    fn add_missed(&mut self, shard0: u32, shard: u32, seqnos: Option<u64>) -> Result<(), CaptureError> {
        self.check_number()?;
        let described = self.rings[shard0 as usize].described.missed_shard(shard0, shard);
        if seqnos.is_none() {
            let name = &described.name;
            self.problems.push(format!(
                "{name}: the shard could not be opened, and nobody knows how many events it held; they count as 1. A program that keeps its rings \
                 (EVENTRING_KEEP=1), or ends in good order, says how many"
            ));
        }
        self.rings.push(SourceRing {
            reader: None,
            described,
            missing: Some(Gap::of_missed_shard(seqnos)),
            key: SortKey::default(),
            account: RingAccount::default(),
            payloads: PayloadExtent::default(),
        });
        Ok(())
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

    /// Rings of one process have the same index; who does not say who writes stands alone.
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

    /// Whether shards may come, or are to be told of.
    pub(super) fn may_grow(&self) -> bool {
        self.recorders.iter().any(|recorder| !recorder.finder.has_ended())
    }

    /// Opens shards that were made since the last look. They are new as a whole.
    #[inline]
    pub(super) fn find_shards(&mut self) -> Result<(), CaptureError> {
        self.add_shards(false)
    }

    fn add_shards(&mut self, only_new: bool) -> Result<(), CaptureError> {
        for index in 0..self.recorders.len() {
            let recorder = self.recorders[index].shard0;
            while let Some(found) = self.recorders[index].finder.next() {
                match found {
                    FoundShard::Opened { index: shard, reader } => {
                        self.add(reader, RingRole::Shard { recorder, shard }, only_new)?;
                    }
                    FoundShard::Unreadable { index: shard, error } => {
                        let name = &self.rings[recorder as usize].described.name;
                        self.problems.push(format!("{name}: shard {shard} is left out: {error}"));
                    }
                    FoundShard::Missed { index: shard, seqnos } => self.add_missed(recorder, shard, seqnos)?,
                }
            }
        }
        Ok(())
    }

    /// Whether everything was read and nothing will come any more, as far as was noticed.
    pub(super) fn have_ended(&self) -> bool {
        self.merger.has_ended() && !self.may_grow()
    }

    /// Asks the operating system whether the writers live.
    pub(super) fn check_liveness(&self) {
        self.rings.iter().filter_map(|ring| ring.reader.as_ref()).for_each(|reader| {
            reader.state();
        });
    }
}
