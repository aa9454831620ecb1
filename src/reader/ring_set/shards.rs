//! Finding the shards of a recorder as they are made.

use super::super::error::{ReaderError, ReaderErrorKind};
use super::super::handle::Reader;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A finder of the shards of a sharded recorder: the shards that exist, and the shards that the recorder makes later.
///
/// No shard is overlooked. A recorder makes a shard known before the shard's first event is stamped. A shard that
/// cannot be opened (mostly because the program has ended and removed it already) becomes a [`FoundShard::Missed`],
/// with the number of its events, which the recorder leaves in shard 0 when it ends in good order.
#[derive(Debug)]
pub(super) struct ShardFinder {
    shard0: Reader,
    /// The path of shard 0, from which the paths of the other shards are made. `None` if the ring has no path or is not
    /// shard 0.
    path: Option<PathBuf>,
    /// The index of the next shard.
    next: u32,
    /// Shards that could not be opened. A shard stays here until its number of events is known or the recorder has
    /// ended.
    unopened: VecDeque<u32>,
}

/// A shard that [`ShardFinder::next`] has found.
#[derive(Debug)]
pub(super) enum FoundShard {
    /// The shard with this index (from 1) was opened.
    Opened { index: u32, reader: Reader },
    /// A shard that the recorder has made cannot be opened, for the reason `error`. When the recorder has ended,
    /// [`Self::Missed`] follows with the number of events that the shard held.
    Unreadable { index: u32, error: ReaderError },
    /// All events of a shard are lost to this reader, because the shard could not be opened. `seqnos` is the number of
    /// sequence numbers that the shard has handed out: one for each event, and one for each number that was given up.
    /// It is `None` if nobody knows the number because the writer did not end in good order. In that case there was at
    /// least one event, because a shard is made for an event.
    Missed { index: u32, seqnos: Option<u64> },
}

impl ShardFinder {
    /// Makes a finder for the recorder whose shard 0 this is. Shards below `first` (at least 1) are known to the
    /// caller.
    pub(super) fn new(shard0: &Reader, first: u32) -> Self {
        let path = shard0.path().map(Path::to_path_buf).filter(|_| shard0.is_shard_0());
        Self { shard0: shard0.clone(), path, next: first.max(1), unopened: VecDeque::new() }
    }

    /// Returns true if shards may be found, now or later. Returns false for a ring without a path, and for a ring that
    /// is not shard 0: no shards belong to them.
    pub(super) fn can_find(&self) -> bool {
        self.path.is_some()
    }

    /// Returns the next shard, or `None` while there is no further shard. In the latter case, the call costs one load
    /// and a comparison.
    #[inline]
    pub(super) fn next(&mut self) -> Option<FoundShard> {
        let has_grown = self.path.is_some() && self.shard0.shard_count() > self.next.into();
        if has_grown || !self.unopened.is_empty() { self.look() } else { None }
    }

    #[cold]
    fn look(&mut self) -> Option<FoundShard> {
        // The end is loaded before the count. A recorder that has ended makes no more shards, so the count is then
        // final.
        let has_ended = self.shard0.is_finished();
        while self.shard0.shard_count() > self.next.into() {
            let index = self.next;
            self.next += 1;
            match self.open(index) {
                Ok(reader) => return Some(FoundShard::Opened { index, reader }),
                // The shard existed, because it was counted. It cannot be opened, because it was removed when the
                // recorder ended. Before that, the recorder published the shard's last seqno, so the loss is reported
                // as a gap and not as an error.
                Err(_) if self.shard0.shard_last_seqno(index).is_some() => self.unopened.push_back(index),
                Err(error) => {
                    self.unopened.push_back(index);
                    return Some(FoundShard::Unreadable { index, error });
                }
            }
        }
        let is_told = |index: &u32| has_ended || self.shard0.shard_last_seqno(*index).is_some();
        loop {
            let at = self.unopened.iter().position(is_told)?;
            let index = self.unopened.remove(at)?;
            match self.shard0.shard_last_seqno(index) {
                Some(0) => {}
                seqnos => return Some(FoundShard::Missed { index, seqnos }),
            }
        }
    }

    /// Opens the shard, and checks that it belongs to this recorder.
    fn open(&self, index: u32) -> Result<Reader, ReaderError> {
        let path = shard_path(self.path.as_deref().unwrap_or("".as_ref()), index.into());
        let reader = Reader::open(&path)?;
        let (owner, its_owner) = (self.shard0.file_owner(), reader.file_owner());
        if its_owner != owner {
            let message = format!(
                "the file of shard {index} belongs to user {its_owner}, expected user {owner}, who owns shard 0; remove it, and start the program again"
            );
            return Err(ReaderError::new(ReaderErrorKind::PermissionDenied, message).at(&path));
        }
        let (ours, its) = (self.shard0.info(), reader.info());
        let is_ours = match (&ours.extension, &its.extension) {
            (Some(ours), Some(its)) => {
                (its.shard_index, its.shard_group) == (index.into(), ours.shard_group)
                    && its.writer.identity == ours.writer.identity
            }
            _ => false,
        };
        if is_ours && (its.content_type, its.schema_hash) == (ours.content_type, ours.schema_hash) {
            return Ok(reader);
        }
        let message = format!(
            "the file is not shard {index} of the recorder that is read: another one has taken its name meanwhile; read that from its own shard 0"
        );
        Err(ReaderError::new(ReaderErrorKind::NotFound, message).at(&path))
    }

    /// Returns true if no further shard will be found: the recorder is known to have ended, and all of its shards were
    /// returned. Makes no system call.
    pub(super) fn has_ended(&self) -> bool {
        // The end is checked before the count, because a recorder that has ended makes no more shards.
        let is_over =
            self.shard0.is_finished() && self.shard0.shard_count() <= self.next.into() && self.unopened.is_empty();
        self.path.is_none() || is_over
    }
}

/// Returns the path of shard `index` (from 1) of the recorder whose shard 0 is at `path`: `path`, a dot, and the index.
#[must_use]
pub fn shard_path(path: &Path, index: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{index}"));
    name.into()
}
