//! A capture file that grows by batches, as a receiver gets them from a stream.
//!
//! After each batch stands a block with the place of the batch in the stream, and the account so far. A receiver that
//! was killed goes on after the last such block; what stands behind it is cut off. So each batch is in the file wholly
//! or not at all, and the file alone says where to go on.
//!
//! The account is by seqnos: what is there already is not added again, and what the stream lacks is a stated gap.

use super::batches::RingIdentity;
use super::block;
use super::columns::{BlockRecords, EncodedBlock, PayloadsWanted, PlacedGap, RingLayout};
use super::end::{CaptureEnd, EndReason};
use super::error::{CaptureError, CaptureErrorKind};
use super::fit::PartFinder;
use super::format::{BlockHeader, BlockKind, BlockRef, FileHeader, RINGS_MAX};
use super::options::CaptureOptions;
use super::output_entry::OutputEntry;
use super::read::CaptureFile;
use super::read_files::ReadFiles;
use super::record::SortKey;
use super::ring::{CapturedRing, RingRole};
use super::stats::{CaptureStats, RingStats};
use super::tables;
use super::wire::{Bytes, put_text, put_u32, put_u64};
use super::write::CaptureWriter;
use crate::clock::Clock;
use crate::reader::{Gap, GapCause};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// The remedy if a file cannot be gone on with.
const REMEDY: &str = "choose another name, or have it replaced (--force, `overwrite`)";

/// The file of a receiver.
pub(crate) struct ReceivedCapture {
    writer: CaptureWriter,
    finder: PartFinder,
    rings: Vec<ReceivedRing>,
    by_identity: HashMap<RingIdentity, u32>,
    /// The index of each process, by its host and key.
    processes: HashMap<(String, u64), u32>,
    /// The entries of tables that the file has.
    entries: HashSet<Vec<u8>>,
    stream: String,
    place: u64,
    /// The time at which the broker has stored the batch at this place, in nanoseconds since the epoch.
    stored_epoch_nanos: u64,
}

/// Adds a message to the file of a receiver, which is made if there is none, and ends the file. Returns false if the
/// message is no batch that the file can take. For tests of hostile messages and files.
///
/// # Errors
/// The file is not one of a receiver of the stream `S`, or cannot be written.
pub fn receive_message(path: &Path, message: &[u8]) -> Result<bool, CaptureError> {
    let mut file = ReceivedCapture::open(path, "S", false)?;
    let place = file.place().saturating_add(1);
    let added = super::batches::read_batch(message).and_then(|batch| file.add(&batch, (place, place), true));
    file.finish()?;
    Ok(added.is_ok())
}

/// A ring of the file.
struct ReceivedRing {
    key: SortKey,
    stats: RingStats,
    layout: RingLayout,
    has_ended: bool,
}

/// The fate of a batch that was given to [`ReceivedCapture::add`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Added {
    /// The file has all of it now.
    All,
    /// The file had all of it already.
    Nothing,
    /// Nothing was added: seqnos before the batch are missing, which an earlier batch may still bring.
    Lacks,
}

/// The place of a received batch in its stream, and the account of the file up to it.
struct Place {
    sequence: u64,
    stored_epoch_nanos: u64,
    stream: String,
    /// The indices of the rings whose writers have ended.
    ended: Vec<u32>,
    end: CaptureEnd,
}

impl Place {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_u64(&mut out, self.sequence);
        put_u64(&mut out, self.stored_epoch_nanos);
        put_text(&mut out, &self.stream);
        put_u32(&mut out, self.ended.len() as u32);
        self.ended.iter().for_each(|ring| put_u32(&mut out, *ring));
        out.extend(self.end.encode());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut bytes = Bytes::new(bytes);
        let (sequence, stored_epoch_nanos, stream) = (bytes.u64()?, bytes.u64()?, bytes.text()?);
        let count = bytes.u32()?;
        let ended: Option<Vec<u32>> = (0..count).map(|_| bytes.u32()).collect();
        let (ended, end) = (ended?, CaptureEnd::decode(bytes.rest())?);
        Some(Self { sequence, stored_epoch_nanos, stream, ended, end })
    }
}

impl ReceivedCapture {
    /// Opens the file of an earlier receiver of this stream, or makes a new file.
    ///
    /// # Errors
    /// The file exists, and no receiver of this stream has written it; another receiver writes it now; or it cannot be
    /// read, written or made.
    pub(crate) fn open(path: &Path, stream: &str, overwrite: bool) -> Result<Self, CaptureError> {
        let entry = OutputEntry::open(path)?;
        let file = if overwrite { None } else { entry.open_to_append()? };
        let opened = match file {
            // A receiver was killed before it had written anything.
            Some(file) if is_empty(&file) => Self::begin(file, stream),
            Some(file) => Self::go_on(file, stream),
            None => Self::begin(entry.lock(entry.create(overwrite, &ReadFiles::default())?)?, stream),
        };
        opened.map_err(|error| error.at(path))
    }

    /// Sets the number of blocks up to which the file gets an index.
    #[cfg(test)]
    pub(super) fn set_indexed_blocks_max(&mut self, blocks: usize) {
        self.writer.indexed_blocks_max = blocks;
    }

    fn begin(file: File, stream: &str) -> Result<Self, CaptureError> {
        let header = FileHeader {
            part: 0,
            started_epoch_nanos: Clock::global().now_epoch_nanos(),
            started_boot_nanos: crate::shm::boottime_nanos(),
            started_monotonic_nanos: crate::shm::monotonic_nanos(),
        };
        let writer = CaptureWriter::new(Box::new(BufWriter::new(file)), &header)?;
        let mut begun = Self::with(writer, stream)?;
        // Even an empty file says which stream it is of.
        begun.write_place()?;
        Ok(begun)
    }

    fn with(writer: CaptureWriter, stream: &str) -> Result<Self, CaptureError> {
        Ok(Self {
            writer,
            finder: PartFinder::new(CaptureOptions::DEFAULT_LEVEL)?,
            rings: Vec::new(),
            by_identity: HashMap::new(),
            processes: HashMap::new(),
            entries: HashSet::new(),
            stream: stream.to_owned(),
            place: 0,
            stored_epoch_nanos: 0,
        })
    }

    /// Reads what the file has, and cuts off what stands behind its last place.
    fn go_on(file: File, stream: &str) -> Result<Self, CaptureError> {
        let read = file.try_clone().map_err(|error| CaptureError::io("open it", error))?;
        let known = CaptureFile::from_file(read)?;
        let refuse = |what: String| Err(CaptureError::new(CaptureErrorKind::Exists, what));
        let Some(last) = known.blocks.iter().rposition(|block| block.header.kind == BlockKind::Place) else {
            return refuse(format!("it exists, and no receiver has written it; {REMEDY}"));
        };
        let place = Place::decode(&block::content(&known.file, &known.blocks[last])?);
        let Some(Place { sequence, stored_epoch_nanos, stream: its, ended, end }) = place else {
            let message = "its place in the stream is damaged; receive into a new file";
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        };
        if its != stream {
            return refuse(format!("it was received from the stream {its:?}, expected {stream:?}; {REMEDY}"));
        }
        let blocks: Vec<BlockRef> = known.blocks[..=last].to_vec();
        let rings = &known.rings[..end.stats.rings.len().min(known.rings.len())];
        let end_offset = known.blocks[last].end();
        let cut = file.set_len(end_offset).and_then(|()| seek_to(&file, end_offset));
        cut.map_err(|error| CaptureError::io_writing("go on with it", error))?;
        let out = Box::new(BufWriter::new(file));
        let mut received = Self::with(CaptureWriter::after(out, blocks.clone(), rings)?, stream)?;
        (received.place, received.stored_epoch_nanos) = (sequence, stored_epoch_nanos);
        for (ring, stats) in rings.iter().zip(end.stats.rings) {
            received.processes.insert((ring.host.clone(), ring.process_key), ring.process);
            received.by_identity.insert(RingIdentity::of(ring), received.rings.len() as u32);
            received.rings.push(ReceivedRing { stats, ..ReceivedRing::of(ring) });
        }
        for ring in ended {
            if let Some(ring) = received.rings.get_mut(ring as usize) {
                ring.has_ended = true;
            }
        }
        for block in &blocks {
            match (block.header.kind, received.rings.get_mut(block.header.ring as usize)) {
                (BlockKind::Events, Some(ring)) => drop(ring.key.event(block.header.last_nanos)),
                (BlockKind::Tables, _) => {
                    let content = block::content(&known.file, block)?;
                    received.entries.extend(tables::entries(&content).map(<[u8]>::to_vec));
                }
                _ => {}
            }
        }
        Ok(received)
    }

    /// Returns the place of the last batch in the stream; 0 if there was none.
    pub(crate) fn place(&self) -> u64 {
        self.place
    }

    /// Returns the time at which the broker has stored the last batch, in nanoseconds since the epoch.
    pub(crate) fn stored_epoch_nanos(&self) -> u64 {
        self.stored_epoch_nanos
    }

    /// Returns the account so far.
    pub(crate) fn stats(&self) -> CaptureStats {
        CaptureStats { rings: self.rings.iter().map(|ring| ring.stats.clone()).collect() }
    }

    /// Returns the present size of the file in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Returns true if the writers of all rings have ended. False if there is no ring.
    pub(crate) fn have_all_ended(&self) -> bool {
        !self.rings.is_empty() && self.rings.iter().all(|ring| ring.has_ended)
    }

    /// Adds what a batch has and the file has not. `place` is its place in the stream, and the time at which the broker
    /// has stored it. If seqnos before the batch are missing, they become a gap with `states_gaps`; without, the batch
    /// is not added.
    ///
    /// # Errors
    /// The batch is damaged: then nothing of it is in the file. Or the file has no room for its rings, or cannot be
    /// written.
    pub(crate) fn add(
        &mut self,
        batch: &CaptureFile,
        place: (u64, u64),
        states_gaps: bool,
    ) -> Result<Added, CaptureError> {
        let end = batch.end().filter(|_| !batch.is_truncated()).ok_or_else(|| {
            CaptureError::new(CaptureErrorKind::Damaged, "the batch has no account, expected a whole capture file")
        })?;
        self.check(batch, end)?;
        if !states_gaps && batch.rings.iter().any(|ring| ring.first_seqno > self.next_seqno_of(ring)) {
            return Ok(Added::Lacks);
        }
        let bytes_before = self.writer.bytes();
        let indices = self.describe(&batch.rings)?;
        self.add_tables(batch, &indices)?;
        for (ring, index) in batch.rings.iter().zip(&indices) {
            self.state_gap(*index, ring.first_seqno)?;
        }
        let mut added: Vec<Option<RingStats>> = vec![None; indices.len()];
        for (of_batch, index) in indices.iter().enumerate() {
            let (first, next) = (batch.rings[of_batch].first_seqno, self.rings[*index as usize].next_seqno());
            let stats = &end.stats.rings[of_batch];
            // What is there already was counted already.
            added[of_batch] = (first == next).then(|| stats.clone());
            self.rings[*index as usize].has_ended = end.reason.is_final();
        }
        for block in batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Events) {
            let Some(index) = indices.get(block.header.ring as usize) else { continue };
            match &added[block.header.ring as usize] {
                Some(_) => self.copy(batch, block, *index)?,
                None => self.add_rest(batch, block, *index)?,
            }
        }
        for ((index, stats), of_batch) in indices.iter().zip(added).zip(&end.stats.rings) {
            let ring = &mut self.rings[*index as usize];
            ring.stats = match stats {
                Some(stats) => stats.after(&ring.stats),
                None if of_batch.last_seqno < ring.stats.last_seqno => continue,
                None => ring.stats.clone().with_state_of(of_batch),
            };
        }
        if self.writer.bytes() == bytes_before {
            if place.0 > self.place {
                (self.place, self.stored_epoch_nanos) = place;
            }
            return Ok(Added::Nothing);
        }
        (self.place, self.stored_epoch_nanos) = place;
        self.write_place()?;
        Ok(Added::All)
    }

    /// Returns the next seqno that the file expects of a ring.
    fn next_seqno_of(&self, ring: &CapturedRing) -> u64 {
        let known = self.by_identity.get(&RingIdentity::of(ring)).and_then(|index| self.rings.get(*index as usize));
        known.map_or(1, ReceivedRing::next_seqno)
    }

    /// Checks all of a batch, before anything of it is written: a batch is in the file wholly or not at all. Blocks are
    /// decoded one by one, so that a hostile batch does not fill the memory.
    fn check(&self, batch: &CaptureFile, end: &CaptureEnd) -> Result<(), CaptureError> {
        let damaged = |what: &str| Err(CaptureError::new(CaptureErrorKind::Damaged, what));
        let identities: HashSet<RingIdentity> = batch.rings.iter().map(RingIdentity::of).collect();
        if identities.len() < batch.rings.len() {
            return damaged("the batch describes a ring twice, expected each ring once");
        }
        let ends_early =
            |(ring, stats): (&CapturedRing, &RingStats)| stats.last_seqno < ring.first_seqno.saturating_sub(1);
        if batch.rings.iter().zip(&end.stats.rings).any(ends_early) {
            return damaged("the account of the batch ends before its first seqno");
        }
        let new = identities.iter().filter(|identity| !self.by_identity.contains_key(identity)).count();
        if self.rings.len() + new > RINGS_MAX {
            let message = format!(
                "the file has {} rings, and a capture has at most {RINGS_MAX}; receive into a new file, or divide the \
                 hosts among several receivers (--share)",
                self.rings.len()
            );
            return Err(CaptureError::new(CaptureErrorKind::NoSpace, message));
        }
        for block in &batch.blocks {
            match block.header.kind {
                BlockKind::Tables => drop(block::content(&batch.file, block)?),
                BlockKind::Events => match batch.rings.get(block.header.ring as usize) {
                    // Only a part of such a block is written.
                    Some(ring) if ring.first_seqno < self.next_seqno_of(ring) => {
                        drop(block::records(&batch.file, block, PayloadsWanted::All)?);
                    }
                    _ => drop(block::stored(&batch.file, block)?),
                },
                _ => {}
            }
        }
        Ok(())
    }

    /// Ends the file. Returns the account, and the size of the file in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(mut self) -> Result<(CaptureStats, u64), CaptureError> {
        let end = self.end();
        self.writer.finish(&end)?;
        Ok((end.stats, self.writer.bytes()))
    }

    fn end(&self) -> CaptureEnd {
        let reason = if self.have_all_ended() { EndReason::WritersEnded } else { EndReason::Interrupted };
        let ended_epoch_nanos = Clock::global().now_epoch_nanos();
        CaptureEnd { reason, ended_epoch_nanos, hurried_events: 0, stats: self.stats() }
    }

    fn write_place(&mut self) -> Result<(), CaptureError> {
        let (sequence, stored_epoch_nanos) = (self.place, self.stored_epoch_nanos);
        let ended = (0..).zip(&self.rings).filter(|(_, ring)| ring.has_ended).map(|(index, _)| index).collect();
        let place = Place { sequence, stored_epoch_nanos, stream: self.stream.clone(), ended, end: self.end() };
        self.writer.place(&place.encode())
    }

    /// Returns the indices of the rings of a batch, and describes those that are new.
    fn describe(&mut self, rings: &[CapturedRing]) -> Result<Vec<u32>, CaptureError> {
        let known = self.rings.len() as u32;
        let mut indices: Vec<u32> = Vec::new();
        let mut new = Vec::new();
        for ring in rings {
            let next = known + new.len() as u32;
            let index = *self.by_identity.entry(RingIdentity::of(ring)).or_insert(next);
            if index == next {
                new.push(ring);
            }
            indices.push(index);
        }
        for ring in new {
            let processes = self.processes.len() as u32;
            let process = *self.processes.entry((ring.host.clone(), ring.process_key)).or_insert(processes);
            let role = match ring.role {
                RingRole::Single => RingRole::Single,
                RingRole::Shard { recorder, shard } => {
                    let recorder = indices.get(recorder as usize).copied().unwrap_or(0);
                    RingRole::Shard { recorder, shard }
                }
            };
            let described = CapturedRing { process, role, first_seqno: 1, ..ring.clone() };
            self.writer.ring(&described)?;
            self.rings.push(ReceivedRing::of(&described));
        }
        Ok(indices)
    }

    /// Adds the entries of tables that the file has not.
    fn add_tables(&mut self, batch: &CaptureFile, indices: &[u32]) -> Result<(), CaptureError> {
        let (mut out, mut count) = (Vec::new(), 0);
        for block in batch.blocks.iter().filter(|block| block.header.kind == BlockKind::Tables) {
            for entry in tables::entries(&block::content(&batch.file, block)?) {
                let Some(entry) = tables::entry_of_ring(entry, indices) else { continue };
                if self.entries.insert(entry.clone()) {
                    out.extend(entry);
                    count += 1;
                }
            }
        }
        if count > 0 { self.writer.tables(&out, count) } else { Ok(()) }
    }

    /// Writes the gap of the seqnos before `first_seqno` that the stream has not.
    fn state_gap(&mut self, index: u32, first_seqno: u64) -> Result<(), CaptureError> {
        let next = self.rings[index as usize].next_seqno();
        if first_seqno <= next {
            return Ok(());
        }
        let gap = Gap { first_seqno: next, count: first_seqno - next, cause: GapCause::OverwrittenBefore };
        let gaps = vec![PlacedGap { events_before: 0, gap }];
        self.write(&BlockRecords { ring: index, gaps, ..BlockRecords::default() })
    }

    /// Copies a block as it is.
    fn copy(&mut self, batch: &CaptureFile, block: &BlockRef, index: u32) -> Result<(), CaptureError> {
        let stored = block::stored(&batch.file, block)?;
        let key = &mut self.rings[index as usize].key;
        let first_nanos = key.event(block.header.first_nanos);
        let last_nanos = key.event(block.header.last_nanos);
        let header = BlockHeader { ring: index, first_nanos, last_nanos, ..block.header };
        self.writer.copied(header, &stored)
    }

    /// Writes the records of a block that the file has not.
    fn add_rest(&mut self, batch: &CaptureFile, block: &BlockRef, index: u32) -> Result<(), CaptureError> {
        let next = self.rings[index as usize].next_seqno();
        if block.header.last_seqno < next {
            return Ok(());
        }
        let mut records = block::records(&batch.file, block, PayloadsWanted::All)?;
        records.ring = index;
        records.cut_before(next);
        self.write(&records)
    }

    fn write(&mut self, records: &BlockRecords) -> Result<(), CaptureError> {
        let ring = &mut self.rings[records.ring as usize];
        let first = records.first_after_cut(ring.stats.last_seqno);
        let part = records.part(first..records.events.len());
        if part.len() == 0 {
            return Ok(());
        }
        let mut block = EncodedBlock::default();
        self.finder.encode(records, &part, &ring.layout, &mut block)?;
        self.writer.events(records, &part, &block, &mut ring.key)?;
        ring.stats.count(records, &part);
        Ok(())
    }
}

impl ReceivedRing {
    fn of(described: &CapturedRing) -> Self {
        Self {
            layout: RingLayout::of_ring(described.content_type, described.schema_hash, &described.schema_text),
            key: SortKey::default(),
            stats: RingStats { last_seqno: described.first_seqno.saturating_sub(1), ..RingStats::default() },
            has_ended: false,
        }
    }

    fn next_seqno(&self) -> u64 {
        self.stats.last_seqno.saturating_add(1)
    }
}

impl BlockRecords {
    /// Takes the seqnos before `next` out of the gaps. The events before it stay.
    fn cut_before(&mut self, next: u64) {
        self.gaps.retain_mut(|PlacedGap { gap, .. }| {
            let old = next.saturating_sub(gap.first_seqno).min(gap.count);
            gap.first_seqno += old;
            gap.count -= old;
            gap.count > 0
        });
    }

    /// Returns the place of the first event after this seqno.
    fn first_after_cut(&self, last_seqno: u64) -> usize {
        self.events.descriptors().partition_point(|event| event.seqno <= last_seqno)
    }
}

fn is_empty(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.len() == 0)
}

fn seek_to(mut file: &File, offset: u64) -> std::io::Result<()> {
    use std::io::Seek as _;
    file.seek(std::io::SeekFrom::Start(offset)).map(drop)
}
