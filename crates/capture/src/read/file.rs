//! Opening a capture file. If the file is truncated, its readable part is opened.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::block;
use crate::format::end::CaptureEnd;
use crate::format::header::{
    BLOCK_HEADER_BYTES, BlockHeader, BlockKind, BlockRef, FOOTER_BYTES, FileHeader, HEADER_BYTES, MAGIC, RINGS_MAX,
    VERSION, decode_footer, decode_index, description_bytes, description_bytes_max,
};
use crate::format::ring::{CapturedRing, RingRole};
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::tables;
use crate::read::events::{IsWanted, Progress};
use crate::select::block_filter::Choice;
use eventring::exec::{KnownBlocks, SavedBlocks};
use eventring::internal::shm;
use eventring::tracing::Catalog;
use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A capture file, opened for reading.
///
/// The rings and tables of the capture are in memory. Its events are not: each call of [`Self::events`] reads them
/// from the file.
pub struct CaptureFile {
    pub(crate) file: Arc<File>,
    /// The beginning of messages about the blocks of this file: empty, or a text that tells it from the other files.
    pub(crate) label: Arc<str>,
    pub(crate) header: FileHeader,
    pub(crate) file_bytes: u64,
    pub(crate) blocks: Vec<BlockRef>,
    /// The place of the file's rings among the rings of all files that are read together.
    pub(crate) place: RingPlace,
    pub(crate) rings: Vec<CapturedRing>,
    /// The catalog of call sites and threads for each ring. It is empty unless the ring is shard 0 of a perf recorder.
    pub(crate) catalogs: Vec<Catalog>,
    /// The blocks of each ring, as far as the capture describes them. Only rings of execution events have blocks.
    pub(crate) blocks_of_rings: Vec<Arc<SavedBlocks>>,
    pub(crate) end: Option<CaptureEnd>,
    /// The captures that are read together, if they are several.
    pub(crate) merged: Vec<MergedCapture>,
    pub(crate) is_truncated: bool,
    pub(crate) problems: Vec<String>,
    /// The other files that are read together with this one.
    pub(crate) later: Vec<CaptureFile>,
    /// The part of the capture that was selected.
    pub(crate) choice: Option<Arc<Choice>>,
    /// The end of the rings, if the capture was just made of what rings held.
    pub(crate) rings_until_nanos: Option<u64>,
    pub(crate) progress: Option<Progress>,
    pub(crate) is_wanted: Option<IsWanted>,
    /// The offsets of the blocks of events that are read, if not all are.
    pub(crate) kept: Option<Arc<HashSet<u64>>>,
}

/// One of the captures that are read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergedCapture {
    /// The index of its first ring.
    pub(crate) first_ring: u32,
    /// The time of its end.
    pub(crate) ended_epoch_nanos: u64,
}

/// The rings of a file, as indices of the rings of all files that are read together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RingPlace {
    pub(crate) first: u32,
    pub(crate) rings: u32,
}

impl CaptureFile {
    /// Returns true if a file begins as capture files do.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn is_capture(path: &Path) -> io::Result<bool> {
        let mut start = [0; MAGIC.len()];
        let file = match shm::open_file(path) {
            Err(error) if shm::NotAFile::is_cause(&error) => return Ok(false),
            file => file?,
        };
        match shm::read_exact_at(&file, &mut start, 0) {
            Ok(()) => Ok(start == MAGIC),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the time at which a capture file was begun, in nanoseconds since the epoch, or `None` if the file is no
    /// capture or has no header.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    #[doc(hidden)]
    pub fn begun_epoch_nanos(path: &Path) -> io::Result<Option<u64>> {
        if !Self::is_capture(path)? {
            return Ok(None);
        }
        let mut start = [0; HEADER_BYTES as usize];
        let read = shm::read_exact_at(&shm::open_file(path)?, &mut start, 0);
        let header = read.ok().and_then(|()| FileHeader::decode(&start[MAGIC.len()..]));
        Ok(header.map(|(_, header)| header.started_epoch_nanos))
    }

    /// Opens a capture. A capture is truncated if the program that wrote it was killed, or if the disk was full. Of a
    /// truncated capture, all whole blocks can be read, and [`Self::problems`] reports the truncation.
    ///
    /// # Errors
    /// The file does not exist, is not a capture, or has a later version of the format. Or the description of a ring
    /// in it is damaged.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let file = shm::open_file(path).map_err(|error| CaptureError::io("open it", error).at(path))?;
        Self::from_file(file).map_err(|error| error.at(path))
    }

    /// Opens a capture as [`Self::open`] does, from an open file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_file(file: File) -> Result<Self, CaptureError> {
        let read = |error| CaptureError::io("read it", error);
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            let message = "not a capture: it is no regular file; copy what comes from it into one";
            return Err(CaptureError::new(CaptureErrorKind::NotACapture, message));
        }
        let file_bytes = metadata.len();
        let mut start = [0; HEADER_BYTES as usize];
        if file_bytes < HEADER_BYTES {
            let message = format!(
                "not a capture: it has {file_bytes} bytes, expected {HEADER_BYTES} at least; name a file that `eventring capture` has made"
            );
            return Err(CaptureError::new(CaptureErrorKind::NotACapture, message));
        }
        shm::read_exact_at(&file, &mut start, 0).map_err(read)?;
        let (magic, rest) = start.split_at(MAGIC.len());
        let decoded = FileHeader::decode(rest).filter(|_| magic == MAGIC);
        let Some((version, header)) = decoded else {
            let message = "not a capture: it does not begin with EVRCAPT1; `eventring capture` makes one from rings";
            return Err(CaptureError::new(CaptureErrorKind::NotACapture, message));
        };
        if version != VERSION {
            let which = if version > VERSION { "a later" } else { "an earlier" };
            let message = format!(
                "a capture of version {version}, expected {VERSION}; {which} eventring has made it, and can read it"
            );
            return Err(CaptureError::new(CaptureErrorKind::WrongVersion, message));
        }
        let mut capture = Self {
            file: Arc::new(file),
            label: "".into(),
            header,
            file_bytes,
            blocks: Vec::new(),
            place: RingPlace::default(),
            rings: Vec::new(),
            catalogs: Vec::new(),
            blocks_of_rings: Vec::new(),
            end: None,
            merged: Vec::new(),
            is_truncated: false,
            problems: Vec::new(),
            later: Vec::new(),
            choice: None,
            rings_until_nanos: None,
            progress: None,
            is_wanted: None,
            kept: None,
        };
        match capture.read_index() {
            Some(blocks) => capture.blocks = blocks,
            None => capture.find_blocks()?,
        }
        capture.read_descriptions()?;
        capture.place.rings = capture.rings.len() as u32;
        Ok(capture)
    }

    /// Returns the blocks of a whole file, from its index.
    fn read_index(&self) -> Option<Vec<BlockRef>> {
        let index = self.index()?;
        decode_index(&block::content(&self.file, &index).ok()?, index.offset)
    }

    /// Returns the block with the index, if the file is whole.
    fn index(&self) -> Option<BlockRef> {
        let footer_offset = self.file_bytes.checked_sub(FOOTER_BYTES)?;
        let mut footer = [0; FOOTER_BYTES as usize];
        shm::read_exact_at(&self.file, &mut footer, footer_offset).ok()?;
        let index = self.block_at(decode_footer(&footer, self.file_bytes)?).ok()??;
        (index.header.kind == BlockKind::Index && index.end() == footer_offset).then_some(index)
    }

    /// Finds the blocks of a truncated file, or of one with too many blocks for an index, one after the other.
    fn find_blocks(&mut self) -> Result<(), CaptureError> {
        let mut offset = HEADER_BYTES;
        while let Some(block) = self.block_at(offset).map_err(|error| CaptureError::io("read it", error))? {
            offset = block.end();
            self.blocks.push(block);
        }
        let empty_index = self.index().filter(|index| index.header.records == 0);
        if empty_index.is_some() && self.blocks.last() == empty_index.as_ref() {
            self.blocks.pop();
            return Ok(());
        }
        self.is_truncated = true;
        let events = self.blocks.iter().filter(|block| block.header.kind == BlockKind::Events);
        let records = events.fold(0_u64, |sum, block| sum.saturating_add(block.header.records));
        let readable = match self.file_bytes {
            bytes if bytes == offset => format!("all {bytes} bytes"),
            bytes => format!("{offset} of {bytes} bytes"),
        };
        self.problems.push(format!(
            "truncated: {readable} can be read, which hold {records} events and gaps; its end and index are missing: it \
             is still being written, or whoever wrote or copied it was stopped"
        ));
        Ok(())
    }

    /// Returns the block at this offset, if a whole block is there.
    fn block_at(&self, offset: u64) -> io::Result<Option<BlockRef>> {
        if offset.checked_add(BLOCK_HEADER_BYTES).is_none_or(|end| end > self.file_bytes) {
            return Ok(None);
        }
        let mut bytes = [0; BLOCK_HEADER_BYTES as usize];
        shm::read_exact_at(&self.file, &mut bytes, offset)?;
        let block = BlockHeader::decode(&bytes).map(|header| BlockRef { offset, header });
        Ok(block.filter(|block| block.end() <= self.file_bytes))
    }

    /// Reads the rings, the tables and the end.
    fn read_descriptions(&mut self) -> Result<(), CaptureError> {
        let damaged = |what: &str| {
            CaptureError::new(
                CaptureErrorKind::Damaged,
                format!("{what} is damaged; copy the file anew from where it was made"),
            )
        };
        let mut bytes_left = description_bytes_max(self.file_bytes);
        let blocks = self.blocks.clone();
        for kind in [BlockKind::Ring, BlockKind::Tables, BlockKind::End] {
            for block in blocks.iter().filter(|block| block.header.kind == kind) {
                bytes_left = bytes_left.checked_sub(description_bytes(&block.header)).ok_or_else(|| {
                    damaged("what it says about rings, more than a file of its size can have at most,")
                })?;
                match (kind, block::content(&self.file, block)) {
                    (BlockKind::Ring, bytes) => {
                        let ring = CapturedRing::decode(&bytes?);
                        let ring = ring.filter(|_| self.rings.len() < RINGS_MAX);
                        self.rings.push(ring.ok_or_else(|| damaged("the description of a ring"))?);
                        self.catalogs.push(Catalog::new());
                        self.blocks_of_rings.push(Arc::default());
                    }
                    (_, Err(error)) => self.problems.push(error.to_string()),
                    (BlockKind::Tables, Ok(bytes)) => {
                        if !tables::learn(&bytes, &self.rings, &mut self.catalogs, &mut self.blocks_of_rings) {
                            self.problems.push("a table of call sites, threads or blocks is damaged: some have a number and no name; copy the file anew from where it was made".into());
                        }
                    }
                    (_, Ok(bytes)) => {
                        self.end = CaptureEnd::decode(&bytes).filter(|end| self.can_have(&end.stats));
                        if self.end.is_none() {
                            self.problems.push("its account of events and losses is damaged; copy the file anew from where it was made".into());
                        }
                    }
                }
            }
        }
        self.share_schema_texts();
        let rings = self.rings.len() as u32;
        let is_there = |ring: &CapturedRing| match ring.role {
            RingRole::Shard { recorder, .. } => recorder < rings,
            RingRole::Single => true,
        };
        if self.rings.iter().all(is_there) { Ok(()) } else { Err(damaged("the description of a shard")) }
    }

    /// Returns true if the blocks of this file can have what an account says: for each ring, each seqno from the first
    /// to the last is an event or is missing, the last is that of the blocks, and they have so many events at least.
    fn can_have(&self, stats: &CaptureStats) -> bool {
        let mut held = vec![(0_u64, None::<u64>); self.rings.len()];
        for header in self.blocks.iter().map(|block| &block.header).filter(|header| header.kind == BlockKind::Events) {
            if let Some((records, last)) = held.get_mut(header.ring as usize) {
                *records = records.saturating_add(header.records);
                *last = Some(header.last_seqno).max(*last);
            }
        }
        let can_have = |((ring, stats), (records, last)): ((&CapturedRing, &RingStats), (u64, Option<u64>))| {
            let missing = stats.missing_by_cause.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
            let seqnos = stats.last_seqno.saturating_add(1).saturating_sub(ring.first_seqno);
            let is_whole = stats.events.saturating_add(missing) == seqnos && stats.events <= records;
            is_whole && (seqnos == 0 || last == Some(stats.last_seqno))
        };
        stats.rings.len() == self.rings.len() && self.rings.iter().zip(&stats.rings).zip(held).all(can_have)
    }

    /// Returns the last seqno of a ring that the blocks of this file account for.
    pub(crate) fn last_seqno_of(&self, ring: u32) -> Option<u64> {
        self.event_headers_of(ring).map(|header| header.last_seqno).max()
    }

    /// Returns the time of the last event of a ring in this file, in nanoseconds since the epoch.
    pub fn last_nanos_of(&self, ring: u32) -> Option<u64> {
        self.event_headers_of(ring).map(|header| header.last_nanos).max()
    }

    /// Returns the headers of the blocks of events of a ring in this file.
    fn event_headers_of(&self, ring: u32) -> impl Iterator<Item = &BlockHeader> {
        let headers = self.blocks.iter().map(|block| &block.header);
        headers.filter(move |header| header.kind == BlockKind::Events && header.ring == ring)
    }

    /// Gives the shards whose schema text was left out that of their shard 0.
    fn share_schema_texts(&mut self) {
        for index in 0..self.rings.len() {
            let ring = &self.rings[index];
            let shard0 = self.rings.get(ring.shard0(index as u32) as usize);
            let text = shard0.filter(|shard0| ring.schema_text.is_empty() && shard0.schema_hash == ring.schema_hash);
            if let Some(text) = text.map(|shard0| shard0.schema_text.clone()) {
                self.rings[index].schema_text = text;
            }
        }
    }

    /// Returns the rings, by index.
    #[must_use]
    pub fn rings(&self) -> &[CapturedRing] {
        &self.rings
    }

    /// Returns the call sites and threads of a perf recorder. `ring` is the index of the recorder's shard 0. For the
    /// index of any other ring, the catalog is empty.
    #[must_use]
    pub fn catalog(&self, ring: u32) -> Catalog {
        self.catalogs.get(ring as usize).cloned().unwrap_or_default()
    }

    /// Returns the blocks of a ring of execution events, as far as the capture describes them. It describes the blocks
    /// of the ring's block table to which captured events belong. Other blocks become known when their BLOCK_START is
    /// read from the capture. For a ring of other events there are no blocks.
    #[must_use]
    pub fn known_blocks(&self, ring: u32) -> KnownBlocks {
        self.blocks_of_rings.get(ring as usize).cloned().map_or_else(KnownBlocks::new, KnownBlocks::of_saved)
    }

    /// Returns the time of the last event, in nanoseconds since the epoch, as far as the file is whole.
    #[doc(hidden)]
    #[must_use]
    pub fn last_nanos(&self) -> Option<u64> {
        self.event_blocks().map(|block| block.block.header.last_nanos).max()
    }

    /// Returns the size of all files of the capture together.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.later.iter().fold(self.file_bytes, |sum, part| sum.saturating_add(part.file_bytes))
    }

    /// Returns this file and those that are read together with it.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.later)
    }

    /// Returns the files of the capture.
    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.all_files().map(|file| &*file.file)
    }

    /// Returns the end of the capture: why it ended, and its counts. Returns `None` if the end is missing or damaged.
    #[must_use]
    pub fn end(&self) -> Option<&CaptureEnd> {
        self.end.as_ref()
    }

    /// Returns the filters with which events were taken from the rings, in words. Empty if all were wanted.
    #[must_use]
    pub fn filters(&self) -> BTreeSet<&str> {
        self.rings().iter().map(|ring| ring.filter.as_str()).filter(|filter| !filter.is_empty()).collect()
    }

    /// Returns true if the end of the capture is missing.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// Returns the problems that were found when the capture was opened, one line for each problem. Problems that are
    /// found later, while events are read, are in [`CaptureEvents::problems`](crate::CaptureEvents::problems).
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Returns the start time of the capture, in nanoseconds since the epoch.
    #[must_use]
    pub fn started_epoch_nanos(&self) -> u64 {
        self.header.started_epoch_nanos
    }

    /// Says that the capture was just made of what rings held. Then [`Self::bounds_nanos`] are those of the rings: they
    /// end with their last event, or now if they are live.
    #[doc(hidden)]
    #[must_use]
    pub fn of_rings(self, are_live: bool) -> Self {
        let last_nanos = self.last_nanos().filter(|_| !are_live);
        Self { rings_until_nanos: Some(last_nanos.unwrap_or(self.started_epoch_nanos())), ..self }
    }

    /// Returns the times between which the capture lies, in nanoseconds since the epoch: its start and its end, or, if
    /// it was just made of what rings hold, the time of the first event and the end of the rings.
    #[must_use]
    pub fn bounds_nanos(&self) -> (u64, u64) {
        let started = self.started_epoch_nanos();
        match self.rings_until_nanos {
            Some(end) => (self.first_nanos().unwrap_or(end), end),
            None => (started, self.end().map_or(started, |end| end.ended_epoch_nanos)),
        }
    }

    /// Returns the time that is this many nanoseconds after the begin of the capture, or before it. In what rings hold,
    /// it is so much after the first event, or before the end.
    #[must_use]
    pub fn relative_nanos(&self, offset: i64) -> u64 {
        let (begin, end) = self.bounds_nanos();
        let from = if offset < 0 && self.rings_until_nanos.is_some() { end } else { begin };
        from.saturating_add_signed(offset)
    }

    /// Returns the capturing machine's CLOCK_BOOTTIME at [`Self::started_epoch_nanos`], in nanoseconds.
    #[must_use]
    pub fn started_boot_nanos(&self) -> u64 {
        self.header.started_boot_nanos
    }

    /// Returns the capturing machine's CLOCK_MONOTONIC at [`Self::started_epoch_nanos`], in nanoseconds.
    #[must_use]
    pub fn started_monotonic_nanos(&self) -> u64 {
        self.header.started_monotonic_nanos
    }

    /// Returns the number of this file in a rotated capture, from 1, or 0 if the capture was not rotated.
    #[must_use]
    pub fn part(&self) -> u32 {
        self.header.part
    }
}

impl std::fmt::Debug for CaptureFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("CaptureFile");
        shown.field("files", &(1 + self.later.len())).field("rings", &self.rings).finish_non_exhaustive()
    }
}
