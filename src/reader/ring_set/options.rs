//! The options with which a ring set is opened.

use super::super::error::ReaderError;
use super::super::handle::Reader;
use super::RingSet;
use crate::reader::cursors::cursor::Seek;
use crate::reader::source::options::ReaderOptions;
use std::path::Path;
use std::time::Duration;

/// The default of [`RingSetOptions::slack`]. A writer usually needs less time from an event's stamp to its commit,
/// even if it is preempted in between.
const DEFAULT_SLACK: Duration = Duration::from_millis(2);

/// Options for a [`RingSet`]. Made by [`RingSet::options`].
#[derive(Clone, Debug)]
#[must_use]
pub struct RingSetOptions {
    reader: ReaderOptions,
    start: Seek,
    slack: Duration,
}

impl Default for RingSetOptions {
    fn default() -> Self {
        Self { reader: ReaderOptions::default(), start: Seek::Oldest, slack: DEFAULT_SLACK }
    }
}

impl RingSetOptions {
    /// Sets the options with which each ring is opened: for example the events that it must hold, and whether to wait
    /// for a ring that does not exist yet ([`ReaderOptions::wait`]).
    pub fn reader(mut self, options: ReaderOptions) -> Self {
        self.reader = options;
        self
    }

    /// Sets the position at which reading begins. Default: [`Seek::Oldest`]. [`Seek::Last`] counts the events of all
    /// rings together. If the reader had to wait for a ring to be made, [`Seek::Oldest`] means the ring's first event:
    /// events that were overwritten before the reader opened the ring count as lost.
    pub fn start(mut self, start: Seek) -> Self {
        self.start = start;
        self
    }

    /// Sets the longest expected time between an event's time stamp and its commit. The set holds events back for this
    /// time, see [`RingSet`]. Default: 2 ms.
    pub fn slack(mut self, slack: Duration) -> Self {
        self.slack = slack;
        self
    }

    /// Opens the rings of these names or paths, with their shards.
    ///
    /// # Errors
    /// Returns an error if a named ring cannot be opened; see [`ReaderOptions::open`]. A shard that cannot be opened
    /// is no error here: [`RingSet::shard_errors`] returns it.
    pub fn open(&self, names: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<RingSet, ReaderError> {
        let readers = names.into_iter().map(|name| self.reader.open(name));
        Ok(self.from_readers(readers.collect::<Result<Vec<_>, _>>()?))
    }

    /// Makes a set of rings that the caller has opened. Adds their shards to the set.
    #[must_use]
    pub fn from_readers(&self, readers: impl IntoIterator<Item = Reader>) -> RingSet {
        let mut set = RingSet::new(self.slack);
        for reader in readers {
            let is_new = reader.source.was_awaited && self.start == Seek::Oldest;
            set.add(reader, if is_new { Seek::Seqno(1) } else { self.start });
        }
        set.find_shards();
        if let Seek::Last(_) = self.start {
            set.seek(self.start);
        }
        set
    }
}

impl RingSet {
    /// Returns the default options: the set begins with the oldest events of each ring.
    pub fn options() -> RingSetOptions {
        RingSetOptions::default()
    }

    /// Opens the rings of these names or paths, and their shards. Reads each from its oldest event on.
    ///
    /// # Errors
    /// Returns an error if a named ring cannot be opened; see [`ReaderOptions::open`]. A
    /// shard that cannot be opened is no error here: [`Self::shard_errors`] returns it.
    pub fn open(names: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ReaderError> {
        Self::options().open(names)
    }
}
