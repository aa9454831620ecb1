//! Finding the shards of a recorder as they are made.

use super::error::{ReaderError, ReaderErrorKind};
use super::open::Reader;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Finds the shards of a sharded recorder: those that there are, and those that it makes meanwhile.
///
/// None is overlooked. One that cannot be opened (mostly because the program has ended and removed it before we came) is told by
/// [`FoundShard::Missed`], with the number of its events, which the recorder leaves in shard 0 when it ends in good order.
///
/// To merge shards strictly by time, take the time first, then all shards that [`Self::next`] gives, and ask
/// [`Merger::next_at`](super::Merger::next_at) with that time. A recorder makes a shard known before its first event is stamped.
#[derive(Debug)]
pub struct ShardFinder {
    shard0: Reader,
    /// `None`: shards have no names by which they could be found.
    path: Option<PathBuf>,
    /// The index of the next one.
    next: u32,
    /// Those that could not be opened, until it is known what they held.
    unopened: VecDeque<u32>,
}

/// What [`ShardFinder::next`] has found.
#[derive(Debug)]
pub enum FoundShard {
    /// A shard.
    Opened {
        /// Its index, from 1.
        index: u32,
        /// The shard. A cursor for all that was recorded in it begins at seqno 1.
        reader: Reader,
    },
    /// A shard that is still needed, or was never seen, cannot be opened. Once the recorder has ended, [`Self::Missed`] says what it held.
    Unreadable {
        /// Its index, from 1.
        index: u32,
        /// Why.
        error: ReaderError,
    },
    /// All events of a shard are lost to this reader, for it could not be opened.
    Missed {
        /// Its index, from 1.
        index: u32,
        /// How many sequence numbers it had handed out: as many events, less those that were given up. `None` if nobody knows,
        /// because the writer did not end in good order; then it was one at least, for a shard is made for an event.
        seqnos: Option<u64>,
    },
}

impl ShardFinder {
    /// For the recorder whose shard 0 this is. Shards below `first` (at least 1) are known to the caller.
    #[must_use]
    pub fn new(shard0: &Reader, first: u32) -> Self {
        let path = shard0.path().map(Path::to_path_buf).filter(|_| shard0.is_shard_0());
        Self { shard0: shard0.clone(), path, next: first.max(1), unopened: VecDeque::new() }
    }

    /// Whether it can find shards at all, now or later: a ring without a path, or one that is not shard 0, has none.
    #[must_use]
    pub fn can_find(&self) -> bool {
        self.path.is_some()
    }

    /// The next shard; `None` while there are no others. One load and a comparison then.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a recorder goes on")]
    pub fn next(&mut self) -> Option<FoundShard> {
        let has_grown = self.path.is_some() && self.shard0.shard_count() > self.next.into();
        if has_grown || !self.unopened.is_empty() { self.look() } else { None }
    }

    #[cold]
    fn look(&mut self) -> Option<FoundShard> {
        // Before the count: what has ended makes no more.
        let has_ended = self.shard0.is_finished();
        while self.shard0.shard_count() > self.next.into() {
            let index = self.next;
            self.next += 1;
            match self.open(index) {
                Ok(reader) => return Some(FoundShard::Opened { index, reader }),
                // It was there, for it was counted; so it was removed, and what it held was published before.
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

    /// Opens the shard, and checks that it is one of this recorder.
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

    /// Whether the recorder is known to have ended and all its shards were given. Asks nobody; see [`Reader::state`].
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // In this order: what has ended makes no more.
        let is_over =
            self.shard0.is_finished() && self.shard0.shard_count() <= self.next.into() && self.unopened.is_empty();
        self.path.is_none() || is_over
    }
}

/// The file of shard `index` (from 1) of the recorder whose shard 0 is at `path`.
pub(crate) fn shard_path(path: &Path, index: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{index}"));
    name.into()
}
