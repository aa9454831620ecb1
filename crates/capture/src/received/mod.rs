//! A capture file that grows by the batches that a receiver gets from a stream.
//!
//! After each batch, the receiver writes a *place*: a block with the batch's position in the stream, and with the
//! *account* (the counts of events read and lost so far).
//!
//! A receiver that is started again truncates its file after the last place, and continues there. So each batch is in
//! the file wholly or not at all.
//!
//! The receiver identifies events by their seqnos, and adds no event twice. Events that the stream lacks become a gap.
//!
//! A receiver may begin new files, which together are one rotated capture. Each file can be read alone. Its account
//! counts only its own events.
//!
//! | file | idea |
//! |---|---|
//! | `files` | the files, and the one that is being written |
//! | `place` | the position of a file's last batch in its stream |
//! | `add` | adding a batch |
//! | `claims` | checking the account of a batch |

mod add;
mod claims;
mod files;
mod place;

pub use files::ReceivedOptions;

use files::{FirstFile, ReceivedFiles};
use place::Place;

use crate::engine::options::CaptureOptions;
use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::block;
use crate::format::columns::RingLayout;
use crate::format::end::{CaptureEnd, EndReason};
use crate::format::fit::PartFinder;
use crate::format::header::{BlockKind, BlockRef, FileHeader};
use crate::format::identity::RingIdentity;
use crate::format::record::SortKey;
use crate::format::ring::CapturedRing;
use crate::format::stats::{CaptureStats, RingStats};
use crate::format::tables;
use crate::format::write::{CaptureWriter, RingCounts};
use crate::read::file::CaptureFile;
use eventring::recorder::Clock;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// The remedy if a file cannot be gone on with.
const REMEDY: &str = "choose another name, or have it replaced (--force)";

/// The file of a receiver, or its rotation set.
pub struct ReceivedCapture {
    files: ReceivedFiles,
    /// The time at which the present file was begun, in nanoseconds since the epoch.
    started_epoch_nanos: u64,
    writer: CaptureWriter,
    finder: PartFinder,
    rings: Vec<ReceivedRing>,
    by_identity: HashMap<RingIdentity, u32>,
    /// The index of each process, by its host and key.
    processes: HashMap<(String, u64), u32>,
    /// The entries of tables that the present file has.
    entries: HashSet<Vec<u8>>,
    /// The stream, and what of it is received, as a place says it.
    source: String,
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
    let mut file = ReceivedCapture::open(path, "S", ReceivedOptions::default())?;
    let place = file.place().saturating_add(1);
    let added = crate::sinks::batches::read_batch(message).and_then(|batch| file.add(&batch, (place, place), true));
    file.finish()?;
    Ok(matches!(added, Ok(Added::All | Added::Nothing)))
}

/// A ring of the files.
struct ReceivedRing {
    /// Its description, as a writer of captures writes it: a shard has no schema text if its shard 0 has the same.
    described: CapturedRing,
    key: SortKey,
    /// The counts of the present file.
    stats: RingStats,
    layout: RingLayout,
    has_ended: bool,
}

/// The fate of a batch that was given to [`ReceivedCapture::add`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Added {
    /// The file has all of it now.
    All,
    /// The file had all of it already.
    Nothing,
    /// Nothing was added: seqnos before the batch are missing, which an earlier batch may still bring.
    Lacks,
    /// Nothing was added: this is wrong with the batch.
    Refused(String),
}

impl ReceivedCapture {
    /// Opens the file of an earlier receiver of this stream, or makes a new file.
    ///
    /// # Errors
    /// The file exists, and no receiver of this stream has written it; another receiver writes it now; or it cannot be
    /// read, written or made.
    pub fn open(path: &Path, stream: &str, options: ReceivedOptions) -> Result<Self, CaptureError> {
        let (files, first) = ReceivedFiles::open(path, options).map_err(|error| error.at(path))?;
        let present = files.present();
        let opened = match first {
            FirstFile::New(file) => Self::begin(files, file, stream),
            FirstFile::Known(file, before) => Self::go_on(files, file, before.as_deref(), stream),
        };
        opened.map_err(|error| error.at(&present))
    }

    /// Sets the number of blocks up to which the file gets an index.
    #[cfg(test)]
    pub(super) fn set_indexed_blocks_max(&mut self, blocks: usize) {
        self.writer.indexed_blocks_max = blocks;
    }

    fn begin(files: ReceivedFiles, file: File, stream: &str) -> Result<Self, CaptureError> {
        let (writer, started_epoch_nanos) = begin_file(file, files.part())?;
        let mut begun = Self::with(files, writer, stream)?;
        begun.started_epoch_nanos = started_epoch_nanos;
        // Even an empty file says which stream it is of.
        begun.write_place()?;
        Ok(begun)
    }

    fn with(files: ReceivedFiles, writer: CaptureWriter, stream: &str) -> Result<Self, CaptureError> {
        let source = source_of(stream, &files.options);
        Ok(Self {
            files,
            started_epoch_nanos: 0,
            writer,
            finder: PartFinder::new(CaptureOptions::DEFAULT_LEVEL)?,
            rings: Vec::new(),
            by_identity: HashMap::new(),
            processes: HashMap::new(),
            entries: HashSet::new(),
            source,
            place: 0,
            stored_epoch_nanos: 0,
        })
    }

    /// Reads what the file has, and cuts off what stands behind its last place. `before` is the file before it.
    fn go_on(
        mut files: ReceivedFiles,
        file: File,
        before: Option<&CaptureFile>,
        stream: &str,
    ) -> Result<Self, CaptureError> {
        let read = file.try_clone().map_err(|error| CaptureError::io("open it", error))?;
        let refuse = |what: String| Err(CaptureError::new(CaptureErrorKind::Exists, what));
        let known = match CaptureFile::from_file(read) {
            Err(error) if error.kind() == CaptureErrorKind::NotACapture => {
                return refuse(format!("it exists, and no receiver has written it; {REMEDY}"));
            }
            known => known?,
        };
        let Some(last) = known.blocks.iter().rposition(|block| block.header.kind == BlockKind::Place) else {
            return refuse(format!("it exists, and no receiver has written it; {REMEDY}"));
        };
        let place = Place::decode(&block::content(&known.file, &known.blocks[last])?);
        let Some(Place { sequence, stored_epoch_nanos, source, ended, end }) = place else {
            let message = "its place in the stream is damaged; receive into a new file";
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        };
        let its = source.split(' ').next().unwrap_or_default();
        if its != stream {
            return refuse(format!("it was received from the stream {its:?}, expected {stream:?}; {REMEDY}"));
        }
        if source != source_of(stream, &files.options) {
            let part =
                |source: &str| source.split_once(' ').map_or("all hosts".to_owned(), |(_, part)| part.to_owned());
            let (its, expected) = (part(&source), part(&source_of(stream, &files.options)));
            return refuse(format!(
                "{its} of the stream were received into it, and not {expected}: it would lack what came earlier; {REMEDY}"
            ));
        }
        files.remove_begun()?;
        let blocks: Vec<BlockRef> = known.blocks[..=last].to_vec();
        let rings = &known.rings[..end.stats.rings.len().min(known.rings.len())];
        let end_offset = known.blocks[last].end();
        let out = file.try_clone().map_err(|error| CaptureError::io("open it", error))?;
        let writer = CaptureWriter::after(Box::new(BufWriter::new(out)), blocks.clone(), rings)?;
        if !writer.has_room_for(0, rings.len()) {
            let message = "it has more descriptions than a file of its size can have; receive into a new file";
            return Err(CaptureError::new(CaptureErrorKind::Damaged, message));
        }
        let cut = file.set_len(end_offset).and_then(|()| seek_to(&file, end_offset));
        cut.map_err(|error| CaptureError::io_writing("go on with it", error))?;
        let mut received = Self::with(files, writer, stream)?;
        received.started_epoch_nanos = known.header.started_epoch_nanos;
        (received.place, received.stored_epoch_nanos) = (sequence, stored_epoch_nanos);
        for (ring, stats) in rings.iter().zip(end.stats.rings) {
            received.processes.insert((ring.host.clone(), ring.process_key), ring.process);
            received.by_identity.insert(RingIdentity::new(ring), received.rings.len() as u32);
            let described = without_shared_text(ring, &received.rings);
            received.rings.push(ReceivedRing { stats, ..ReceivedRing::new(ring, described) });
        }
        for ring in ended {
            if let Some(ring) = received.rings.get_mut(ring as usize) {
                ring.has_ended = true;
            }
        }
        for block in before.iter().flat_map(|before| &before.blocks) {
            received.go_on_after(block);
        }
        for block in &blocks {
            received.go_on_after(block);
            if block.header.kind == BlockKind::Tables {
                let content = block::content(&known.file, block)?;
                received.entries.extend(tables::entries(&content).map(<[u8]>::to_vec));
            }
        }
        Ok(received)
    }

    /// Returns true if the present file has seqnos of its own.
    fn has_any(&self) -> bool {
        self.rings.iter().any(|ring| ring.stats.last_seqno >= ring.described.first_seqno)
    }

    /// Lets sort times go on after a block of events.
    fn go_on_after(&mut self, block: &BlockRef) {
        if block.header.kind == BlockKind::Events
            && let Some(ring) = self.rings.get_mut(block.header.ring as usize)
        {
            ring.key.event(block.header.last_nanos);
        }
    }

    /// Begins the next file if the present one has something, and has no room for a batch of this size, or is old.
    fn begin_next_if_full(&mut self, batch_bytes: usize) -> Result<(), CaptureError> {
        let options = &self.files.options;
        let counts = RingCounts { all: self.rings.len(), missing: 0 };
        let is_full = || {
            options
                .rotation
                .file_bytes_max()
                .is_some_and(|max| self.writer.bytes_if_finished(0, batch_bytes, counts) > max)
        };
        let age_nanos = Clock::global().now_epoch_nanos().saturating_sub(self.started_epoch_nanos);
        let is_old = options.rotation.rotate_every.is_some_and(|time| u128::from(age_nanos) >= time.as_nanos());
        if !self.has_any() || !(is_full() || is_old) {
            return Ok(());
        }
        let end = CaptureEnd { reason: EndReason::Rotated, ..self.end() };
        self.writer.finish(&end)?;
        // The present file stays locked until the next one is.
        let (file, removed) = self.files.next(self.writer.bytes(), end.stats)?;
        for (ring, removed) in self.rings.iter_mut().zip(removed.rings) {
            ring.stats.removed = ring.stats.removed.saturating_add(removed.events);
        }
        (self.writer, self.started_epoch_nanos) = begin_file(file, self.files.part())?;
        self.entries.clear();
        for ring in &mut self.rings {
            let RingStats { last_seqno, removed, .. } = ring.stats;
            ring.described.first_seqno = ring.next_seqno();
            ring.stats = RingStats { last_seqno, removed, ..RingStats::default() }.with_state_of(&ring.stats);
            self.writer.ring(&ring.described)?;
        }
        self.write_place()
    }

    /// Checks that the present file has its name still.
    ///
    /// # Errors
    /// It has been removed or moved away.
    pub fn check_name(&self) -> Result<(), CaptureError> {
        self.files.check_name()
    }

    /// Returns the place of the last batch in the stream; 0 if there was none.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// Returns the time at which the broker has stored the last batch, in nanoseconds since the epoch.
    pub fn stored_epoch_nanos(&self) -> u64 {
        self.stored_epoch_nanos
    }

    /// Returns the account of all files so far.
    pub fn stats(&self) -> CaptureStats {
        self.files.stats_with(&self.stats_of_present())
    }

    fn stats_of_present(&self) -> CaptureStats {
        CaptureStats { rings: self.rings.iter().map(|ring| ring.stats.clone()).collect() }
    }

    /// Returns the present size of all files in bytes.
    pub fn bytes(&self) -> u64 {
        self.files.bytes_with(self.writer.bytes())
    }

    /// Returns the paths of all files, the oldest first.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.files.paths()
    }

    /// Returns true if the writers of all rings have ended. False if there is no ring.
    pub fn have_all_ended(&self) -> bool {
        !self.rings.is_empty() && self.rings.iter().all(|ring| ring.has_ended)
    }

    /// Ends the file. Returns the account of all files, and their size in bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<(CaptureStats, u64), CaptureError> {
        let end = self.end();
        self.writer.finish(&end)?;
        Ok((self.stats(), self.bytes()))
    }

    fn end(&self) -> CaptureEnd {
        let reason = if self.have_all_ended() { EndReason::WritersEnded } else { EndReason::Interrupted };
        let ended_epoch_nanos = Clock::global().now_epoch_nanos();
        CaptureEnd { reason, ended_epoch_nanos, lower_level_events: 0, stats: self.stats_of_present() }
    }

    fn write_place(&mut self) -> Result<(), CaptureError> {
        let (sequence, stored_epoch_nanos) = (self.place, self.stored_epoch_nanos);
        let ended = (0..).zip(&self.rings).filter(|(_, ring)| ring.has_ended).map(|(index, _)| index).collect();
        let place = Place { sequence, stored_epoch_nanos, source: self.source.clone(), ended, end: self.end() };
        self.writer.place(&place.encode())
    }
}

impl ReceivedRing {
    /// Makes the state of a ring from which nothing has come. `described` is as [`without_shared_text`] returns it.
    fn new(ring: &CapturedRing, described: CapturedRing) -> Self {
        Self {
            layout: RingLayout::of_ring(ring.content_type, ring.schema_hash, &ring.schema_text),
            key: SortKey::default(),
            stats: RingStats { last_seqno: described.first_seqno.saturating_sub(1), ..RingStats::default() },
            has_ended: false,
            described,
        }
    }

    fn next_seqno(&self) -> u64 {
        self.stats.last_seqno.saturating_add(1)
    }
}

/// Returns the description of a new ring, without a schema text that its shard 0 among `rings` has, too: the same text
/// would be in memory once for each shard.
fn without_shared_text(ring: &CapturedRing, rings: &[ReceivedRing]) -> CapturedRing {
    let shard0 = rings.get(ring.shard0(rings.len() as u32) as usize);
    let is_shared = shard0.is_some_and(|shard0| shard0.described.schema_hash == ring.schema_hash);
    let schema_text = if is_shared { String::new() } else { ring.schema_text.clone() };
    CapturedRing { schema_text, ..ring.clone() }
}

/// Returns what a place says about the stream.
fn source_of(stream: &str, options: &ReceivedOptions) -> String {
    match options.selection.as_str() {
        "" => stream.to_owned(),
        selection => format!("{stream} {selection}"),
    }
}

/// Writes the header of a file. Returns the time that it states.
fn begin_file(file: File, part: u32) -> Result<(CaptureWriter, u64), CaptureError> {
    let header = FileHeader::of_now(part);
    Ok((CaptureWriter::new(Box::new(BufWriter::new(file)), &header)?, header.started_epoch_nanos))
}

fn seek_to(mut file: &File, offset: u64) -> std::io::Result<()> {
    use std::io::Seek as _;
    file.seek(std::io::SeekFrom::Start(offset)).map(drop)
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
