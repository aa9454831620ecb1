//! Finding the shards of a recorder as they are made.

use super::super::error::{ReaderError, ReaderErrorKind};
use super::super::handle::Reader;
use crate::reader::cursors::cursor::Seek;
#[cfg(all(target_os = "linux", not(eventring_unsupported)))]
use crate::reader::source::origin::OpenedBy;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The pause between two looks for further shards, for so long and later.
const LOOK_PAUSE: Duration = Duration::from_millis(2);
const LOOK_TIME: Duration = Duration::from_secs(5);
const LOOK_PAUSE_LATER: Duration = Duration::from_millis(20);

/// A sharded recorder of the set.
pub(super) struct ShardedRecorder {
    /// Index of its shard 0 in the set.
    pub(super) ring: usize,
    pub(super) finder: ShardFinder,
    /// The start position for the shards that `finder` finds next.
    pub(super) shard_start: Seek,
}

/// A finder of the shards of a sharded recorder. It finds the shards that exist, and later also the shards that the
/// recorder makes while the finder is in use.
///
/// The finder overlooks no shard, because a recorder counts a new shard in shard 0 before the shard's first event is
/// stamped. If a shard cannot be opened, in most cases the program has ended and removed the shard's file. The finder
/// then returns [`ShardItem::Missed`] with the number of events that the shard held. A recorder that ends in good
/// order leaves this number in shard 0.
#[derive(Debug)]
pub(super) struct ShardFinder {
    shard0: Reader,
    /// The place of the other shards. `None` if the ring is not shard 0, or if nobody can say where they are.
    source: Option<ShardSource>,
    /// The index of the next shard.
    next: u32,
    /// The shards that could not be opened. A shard is removed from this list when the number of its events is known
    /// or the recorder has ended.
    unopened: VecDeque<u32>,
    /// The shards that this finder and earlier ones have opened, if they are kept.
    opened: Option<OpenedShards>,
}

/// Shards that were opened. They stay open as long as this value lives, so a later finder of the same recorder has them
/// even if their files are gone by then. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct OpenedShards(Arc<Mutex<Vec<Reader>>>);

impl OpenedShards {
    /// Opens the shards that a recorder has, or makes while `work` goes on. When that is done, the program may have
    /// ended, and their files may be gone.
    pub fn open_during<T>(&self, shard0: &Reader, work: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            // The other end is dropped when the work is done, also if it panics.
            let (_working, is_done) = mpsc::channel::<()>();
            let mut finder = ShardFinder::new(shard0, 1, Some(self.clone()));
            let begin = Instant::now();
            let open = move || {
                loop {
                    while finder.next().is_some() {}
                    let pause = if begin.elapsed() < LOOK_TIME { LOOK_PAUSE } else { LOOK_PAUSE_LATER };
                    let is_over = finder.has_ended();
                    if is_over || is_done.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
            };
            // Without the thread, shards are found when the work is done.
            let _ = std::thread::Builder::new().name("find-shards".to_owned()).spawn_scoped(scope, open);
            work()
        })
    }

    fn find(&self, shard0: &Reader, index: u32) -> Option<Reader> {
        let opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        opened.iter().find(|reader| is_shard_of(shard0, index, reader)).cloned()
    }

    /// Returns the number of shards that are open.
    #[doc(hidden)]
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn keep(&self, reader: &Reader) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reader.clone());
    }
}

/// Place of the shards of a recorder.
#[derive(Debug)]
enum ShardSource {
    /// Files beside shard 0, which has this path.
    Files(PathBuf),
    /// The server from which shard 0 came.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Server,
    /// The program that holds shard 0 open, whose file was removed.
    #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
    Held(OpenedBy),
}

/// A shard that [`ShardFinder::next`] has found.
#[derive(Debug)]
pub(super) enum ShardItem {
    /// The shard with this index (from 1) was opened.
    Opened { index: u32, reader: Reader },
    /// A shard exists, but it cannot be opened, for the reason `error`. When the recorder has ended, [`Self::Missed`]
    /// follows with the number of events that the shard held.
    Unreadable { index: u32, error: ReaderError },
    /// A shard could not be opened, so all of its events are lost to this reader. `seqnos` is how many sequence numbers
    /// the shard has handed out, including numbers that writers skipped. If the writer did not end in good order, the
    /// number is not known, and `seqnos` is `None`. The shard then counts as one event, because a recorder makes a
    /// shard for a thread that is about to record its first event.
    Missed { index: u32, seqnos: Option<u64> },
}

impl ShardFinder {
    /// Makes a finder for the recorder whose shard 0 is `shard0`. It returns the shards from index `first` (at least
    /// 1) on; the caller has the others already.
    pub(super) fn new(shard0: &Reader, first: u32, opened: Option<OpenedShards>) -> Self {
        let source = ShardSource::new(shard0).filter(|_| shard0.is_shard_0());
        Self { shard0: shard0.clone(), source, next: first.max(1), unopened: VecDeque::new(), opened }
    }

    /// Returns true if this finder can find shards, now or later. This needs a shard 0 that has a path or a server.
    pub(super) fn can_find(&self) -> bool {
        self.source.is_some()
    }

    /// Returns the next shard, or `None` if no further shard exists yet. If it returns `None`, the call costs one load
    /// and one comparison.
    #[inline]
    pub(super) fn next(&mut self) -> Option<ShardItem> {
        let has_grown = self.source.is_some() && self.shard0.shard_count() > self.next.into();
        if has_grown || !self.unopened.is_empty() { self.look() } else { None }
    }

    #[cold]
    fn look(&mut self) -> Option<ShardItem> {
        // The end is loaded before the count. If the recorder has ended, it makes no more shards, so the count that is
        // loaded afterwards is final.
        let has_ended = self.shard0.is_finished();
        while self.shard0.shard_count() > self.next.into() {
            let index = self.next;
            self.next += 1;
            match self.open(index) {
                Ok(reader) => return Some(ShardItem::Opened { index, reader }),
                // The recorder has counted this shard, so the shard existed. Before the recorder removed the shard's
                // file, it stored the shard's last seqno in shard 0. So the loss is known, and becomes a gap instead of
                // an error.
                Err(_) if self.shard0.shard_last_seqno(index).is_some() => self.unopened.push_back(index),
                Err(error) => {
                    self.unopened.push_back(index);
                    return Some(ShardItem::Unreadable { index, error });
                }
            }
        }
        let is_told = |index: &u32| has_ended || self.shard0.shard_last_seqno(*index).is_some();
        loop {
            let at = self.unopened.iter().position(is_told)?;
            let index = self.unopened.remove(at)?;
            match self.shard0.shard_last_seqno(index) {
                Some(0) => {}
                seqnos => return Some(ShardItem::Missed { index, seqnos }),
            }
        }
    }

    /// Opens the shard, and checks that the shard belongs to the same recorder as shard 0.
    fn open(&self, index: u32) -> Result<Reader, ReaderError> {
        if let Some(reader) = self.opened.as_ref().and_then(|opened| opened.find(&self.shard0, index)) {
            return Ok(reader);
        }
        let (reader, path) = match &self.source {
            Some(ShardSource::Files(path)) => {
                let path = shard_path(path, index.into());
                (Reader::open(&path)?, path)
            }
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Some(ShardSource::Server) => match &self.shard0.source.served_by {
                Some(server) => (server.open_shard(index)?, server.label().into()),
                None => return Err(ReaderError::new(ReaderErrorKind::NotFound, "the server is not known")),
            },
            #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
            Some(ShardSource::Held(held_by)) => {
                // It was removed, too, or was made after the removal.
                let path = shard_path(&held_by.was_at, index.into());
                (held_by.open_other(&path).unwrap_or_else(|| Reader::open(&path))?, path)
            }
            None => return Err(ReaderError::new(ReaderErrorKind::NotFound, "nobody says where the shards are")),
        };
        let (owner, its_owner) = (self.shard0.source.file.owner(), reader.source.file.owner());
        if its_owner != owner {
            let message = format!(
                "the file of shard {index} belongs to user {its_owner}, expected user {owner}, who owns shard 0; remove it, and start the program again"
            );
            return Err(ReaderError::new(ReaderErrorKind::PermissionDenied, message).at(&path));
        }
        if is_shard_of(&self.shard0, index, &reader) {
            if let Some(opened) = &self.opened {
                opened.keep(&reader);
            }
            return Ok(reader);
        }
        let message = format!(
            "the file is not shard {index} of the recorder that is read: another one has taken its name meanwhile; read that from its own shard 0"
        );
        Err(ReaderError::new(ReaderErrorKind::NotFound, message).at(&path))
    }

    /// Returns true if no further shard will be found: the recorder is known to have ended, and the finder has
    /// returned all shards. Makes no system call.
    pub(super) fn has_ended(&self) -> bool {
        // The end is checked before the count. A recorder that has ended makes no more shards, so the count is then
        // final.
        let is_over =
            self.shard0.is_finished() && self.shard0.shard_count() <= self.next.into() && self.unopened.is_empty();
        self.source.is_none() || is_over
    }
}

impl ShardSource {
    fn new(shard0: &Reader) -> Option<Self> {
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(server) = &shard0.source.served_by {
            return server.is_shard().then_some(Self::Server);
        }
        #[cfg(all(target_os = "linux", not(eventring_unsupported)))]
        if let Some(held_by) = &shard0.source.held_by {
            return Some(Self::Held(held_by.clone()));
        }
        shard0.path().map(|path| Self::Files(path.to_path_buf()))
    }
}

/// Returns true if a ring is the shard `index` of the recorder whose shard 0 is `shard0`.
fn is_shard_of(shard0: &Reader, index: u32, ring: &Reader) -> bool {
    let (ours, its) = (shard0.info(), ring.info());
    let is_ours = match (&ours.extension, &its.extension) {
        (Some(ours), Some(its)) => {
            (its.shard_index, its.shard_group) == (index.into(), ours.shard_group)
                && its.writer.identity == ours.writer.identity
        }
        _ => false,
    };
    is_ours && (its.content_type, its.schema_hash) == (ours.content_type, ours.schema_hash)
}

/// Returns the path of shard `index` (from 1) of the recorder whose shard 0 has the path `path`.
#[must_use]
pub fn shard_path(path: &Path, index: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{index}"));
    name.into()
}
