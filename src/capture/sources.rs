//! The rings that a capture reads.

use super::account::RingAccount;
use super::error::{CaptureError, CaptureErrorKind};
use super::format::RINGS_MAX;
use super::item::SortKey;
use super::ring::{CapturedRing, RingRole};
use super::tables::Tables;
use crate::layout::header::CONTENT_TYPE_PERF;
use crate::reader::{Merger, Reader, Seek, WriterInfo};
use crate::schema::perf::PerfEvent;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A header that says there are more shards than this is damaged.
const SHARDS_MAX: u64 = 1 << 12;

/// All rings of a capture; an index in `rings` is also one of `merger`.
pub(super) struct Sources {
    pub(super) rings: Vec<SourceRing>,
    pub(super) merger: Merger,
    pub(super) recorders: Vec<SourceRecorder>,
    writers: Vec<Option<WriterInfo>>,
    only_new: bool,
    /// Shards that could not be opened, and the like.
    pub(super) problems: Vec<String>,
}

/// A ring and how far it has been read.
pub(super) struct SourceRing {
    pub(super) reader: Reader,
    pub(super) described: CapturedRing,
    /// Events before the first one that is still there, to be told.
    pub(super) missing_before: u64,
    pub(super) key: SortKey,
    pub(super) account: RingAccount,
    /// Whether anything of it has been read.
    pub(super) has_read: bool,
}

/// A perf recorder.
pub(super) struct SourceRecorder {
    pub(super) shard0: u32,
    pub(super) tables: Tables,
    shards: u64,
    is_broken: bool,
}

impl Sources {
    pub(super) fn open(names: &[PathBuf], only_new: bool) -> Result<Self, CaptureError> {
        let mut sources = Self {
            rings: Vec::new(),
            merger: Merger::new([]),
            recorders: Vec::new(),
            writers: Vec::new(),
            only_new,
            problems: Vec::new(),
        };
        if names.is_empty() {
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, "no ring is named, expected one at least"));
        }
        for name in names {
            let reader = Reader::open(name).map_err(CaptureError::ring)?;
            if sources.rings.iter().any(|ring| ring.reader.path() == reader.path()) {
                continue;
            }
            if reader.info().content_type == CONTENT_TYPE_PERF {
                // The reader's message says what is wrong with the schema.
                let reader = Reader::open_typed::<PerfEvent>(name).map_err(CaptureError::ring)?;
                sources.add_recorder(reader)?;
            } else {
                sources.add(reader, RingRole::Single, only_new)?;
            }
        }
        sources.discover(only_new)?;
        Ok(sources)
    }

    fn add_recorder(&mut self, shard0: Reader) -> Result<(), CaptureError> {
        let ring = self.rings.len() as u32;
        let shard = shard0.info().extension.map_or(0, |extension| extension.shard_index) as u32;
        self.add(shard0, RingRole::Shard { recorder: ring, shard }, self.only_new)?;
        // Whoever names another shard gets that alone.
        let is_broken = shard != 0;
        self.recorders.push(SourceRecorder { shard0: ring, tables: Tables::default(), shards: 1, is_broken });
        Ok(())
    }

    fn add(&mut self, reader: Reader, role: RingRole, only_new: bool) -> Result<(), CaptureError> {
        if self.rings.len() >= RINGS_MAX {
            let message = format!("more than {RINGS_MAX} rings");
            return Err(CaptureError::new(CaptureErrorKind::BadOptions, message));
        }
        let mut cursor = reader.cursor();
        cursor.seek(if only_new { Seek::Newest } else { Seek::Oldest });
        let at = cursor.next_seqno();
        let (first_seqno, missing_before) = if only_new { (at, 0) } else { (1, at.saturating_sub(1)) };
        let process = self.process_of(&reader, role);
        let described = CapturedRing::describe(&reader, process, role, first_seqno);
        let account = RingAccount { last_seqno: first_seqno.saturating_sub(1), ..RingAccount::default() };
        self.merger.add(cursor);
        let key = SortKey::default();
        self.rings.push(SourceRing { reader, described, missing_before, key, account, has_read: false });
        Ok(())
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

    /// Opens shards that were made since the last look; true if there are any. Those that come during a capture are new as a
    /// whole: then `only_new` is false.
    pub(super) fn discover(&mut self, only_new: bool) -> Result<bool, CaptureError> {
        let known = self.rings.len();
        for index in 0..self.recorders.len() {
            let SourceRecorder { shard0, shards, is_broken, .. } = self.recorders[index];
            let reader = &self.rings[shard0 as usize].reader;
            let count = reader.info().extension.map_or(1, |extension| extension.shard_count.min(SHARDS_MAX));
            let Some(path) = reader.path().map(Path::to_path_buf).filter(|_| !is_broken) else { continue };
            for shard in shards..count {
                match Reader::open_typed::<PerfEvent>(shard_path(&path, shard)) {
                    Ok(reader) => {
                        let role = RingRole::Shard { recorder: shard0, shard: shard as u32 };
                        self.add(reader, role, only_new)?;
                        self.recorders[index].shards = shard + 1;
                    }
                    Err(error) => {
                        self.problems.push(format!("shard {shard} is left out: {error}"));
                        self.recorders[index].is_broken = true;
                        break;
                    }
                }
            }
        }
        Ok(self.rings.len() > known)
    }

    /// Asks the operating system whether the writers live.
    pub(super) fn check_liveness(&self) {
        self.rings.iter().for_each(|ring| {
            ring.reader.state();
        });
    }
}

/// The file of shard `index` (from 1) of the recorder whose shard 0 is at `path`.
fn shard_path(path: &Path, index: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{index}"));
    name.into()
}
