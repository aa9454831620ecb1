//! Several rings and their shards, read as one stream in the order of time.
//!
//! | file | idea |
//! |---|---|
//! | `options` | how a set is opened |
//! | `ring` | one ring of the set: its cursor, and the event that it gives next |
//! | `merge` | which ring's event comes next |
//! | `shards` | finding the shards of a recorder as they are made |
//! | `last` | where the last events of all rings together begin |

mod last;
mod merge;
mod options;
mod ring;
mod shards;

pub use options::RingSetOptions;
pub use ring::SetRing;
#[cfg(feature = "tracing")]
pub(crate) use shards::shard_path;

use super::cursor::{Next, Seek};
use super::error::ReaderError;
use super::gap::Gap;
use super::handle::Reader;
use super::payload::PayloadRead;
use super::wait::{self, Awaited, WaitStrategy, Waited, Waiter};
use crate::clock::Clock;
use crate::layout::Descriptor;
use shards::{FoundShard, ShardFinder};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two looks at several rings. Shorter pauses would be of no use: young events are held back for some
/// milliseconds anyway.
const MERGE_PAUSE: Duration = Duration::from_micros(500);
/// The pause between two looks for the next rings in [`RingSet::reopen`].
const REOPEN_PAUSE: Duration = Duration::from_millis(20);
/// The largest expected difference between the clocks of reader and writer, while nobody sets the time.
const CLOCK_ERROR_NANOS: u64 = 20_000;

/// Several rings, and all shards of those that are sharded, as one stream in the order of time.
///
/// An event is handed out when no other ring can still bring an earlier one: when each ring has shown its next event or
/// has ended, or when the event is older than the *slack* and the other rings were silent meanwhile. A ring in which an
/// event is just being recorded is not silent: the set waits for that event, up to 20 ms. If a writer commits an event
/// even later, the event comes late, and so do the later events of its ring; none is lost. Within one ring, the order
/// of seqnos is kept where time stamps are equal. Where a ring's stamps run against its seqnos (because threads race by
/// nanoseconds), the order of seqnos wins.
///
/// Shards that a recorder makes later are found before their first event is due, and are read from their first event
/// on.
///
/// ```
/// use eventring::reader::{Reader, RingItem, RingSet};
/// use eventring::recorder::{ContentDescription, Recorder};
/// use std::time::Duration;
///
/// let [orders, stock] = [(); 2].map(|()| {
///     Recorder::builder(ContentDescription::new(300, "SHOP")).anonymous().shifts(16, 27).build().unwrap()
/// });
/// let readers = [&orders, &stock].map(|ring| Reader::options().open_fd(ring.as_fd()).unwrap());
/// let mut rings = RingSet::options().from_readers(readers);
/// orders.record(2, [0; 4], b"ordered");
/// stock.record(2, [0; 4], b"shipped");
///
/// let mut seen = Vec::new();
/// while let Some(item) = rings.next_timeout(Duration::from_millis(20)) {
///     if let RingItem::Event { ring, .. } = item {
///         seen.push((ring, rings.payload().valid().unwrap().to_vec()));
///     }
/// }
/// assert_eq!(seen, [(0, b"ordered".to_vec()), (1, b"shipped".to_vec())]);
/// assert_eq!((rings.rings()[0].stats().read, rings.rings()[1].stats().lost), (1, 0));
/// ```
pub struct RingSet {
    rings: Vec<SetRing>,
    recorders: Vec<ShardedRecorder>,
    shard_errors: Vec<ShardError>,
    /// Gaps of missed shards that were not handed out yet.
    missed: VecDeque<RingItem>,
    slack_nanos: u64,
    /// The event that was handed out last, and the index of its ring.
    last_event: (usize, Descriptor),
    waiter: Waiter,
}

/// A sharded recorder of the set.
struct ShardedRecorder {
    /// Index of its shard 0 in the set.
    ring: usize,
    finder: ShardFinder,
    /// Where its next shards begin.
    shard_start: Seek,
}

/// An item of a [`RingSet`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingItem {
    /// The next event of all rings. [`RingSet::payload`] gives its payload.
    Event {
        /// Index of its ring in [`RingSet::rings`].
        ring: usize,
        /// The event.
        event: Descriptor,
    },
    /// A ring has lost events.
    Gap {
        /// Index of the ring.
        ring: usize,
        /// The missing events.
        gap: Gap,
    },
}

/// A shard that is still needed, or was never seen, and cannot be opened. Once its recorder has ended, a
/// [`RingItem::Gap`] says how many events it held.
#[derive(Debug)]
#[non_exhaustive]
pub struct ShardError {
    /// Index of the recorder's shard 0 in the set.
    pub recorder: usize,
    /// Index of the shard, from 1.
    pub shard: u32,
    /// The reason.
    pub error: ReaderError,
}

impl RingSet {
    /// Returns options for a set that begins with the oldest events.
    pub fn options() -> RingSetOptions {
        RingSetOptions::default()
    }

    /// Opens the rings of these names or paths, with their shards, from their oldest events on.
    ///
    /// # Errors
    /// A ring cannot be opened; see [`ReaderOptions::open`](super::ReaderOptions::open). Shards that cannot be opened
    /// are in [`Self::shard_errors`].
    pub fn open(names: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Self, ReaderError> {
        Self::options().open(names)
    }

    fn new(slack: Duration) -> Self {
        Self {
            rings: Vec::new(),
            recorders: Vec::new(),
            shard_errors: Vec::new(),
            missed: VecDeque::new(),
            slack_nanos: u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX),
            last_event: (0, Descriptor::default()),
            waiter: Waiter::new(WaitStrategy::Adaptive),
        }
    }

    /// Adds a ring, from `start` on, and returns its index. The shards that it has by then are added, from `start` on,
    /// too, by the next call of [`Self::find_shards`] or [`Self::next`].
    pub fn add(&mut self, reader: Reader, start: Seek) -> usize {
        self.add_recorder([reader], start)
    }

    /// Adds a recorder whose first shards are open already, shard 0 first. Returns the index of shard 0.
    pub(crate) fn add_recorder(&mut self, shards: impl IntoIterator<Item = Reader>, start: Seek) -> usize {
        let ring = self.rings.len();
        self.rings.extend(shards.into_iter().enumerate().map(|(shard, reader)| {
            let recorder = if shard == 0 { None } else { Some(ring) };
            SetRing::read(reader, recorder, shard as u32, start)
        }));
        if let Some(shard0) = self.rings.get(ring).and_then(SetRing::reader) {
            let finder = ShardFinder::new(shard0, (self.rings.len() - ring) as u32);
            if finder.can_find() {
                self.recorders.push(ShardedRecorder { ring, finder, shard_start: start });
            }
        }
        let strategy = if self.is_single() { WaitStrategy::Adaptive } else { WaitStrategy::Sleep(MERGE_PAUSE) };
        self.waiter = Waiter::new(strategy);
        ring
    }

    /// Opens the shards that were made since the last look. [`Self::next`] does this, too.
    #[inline]
    pub fn find_shards(&mut self) {
        for index in 0..self.recorders.len() {
            while let Some(found) = self.recorders[index].finder.next() {
                let ShardedRecorder { ring, shard_start, .. } = self.recorders[index];
                self.add_shard(ring, found, shard_start);
            }
            // A shard that is made while the set is read is read as a whole: events that it has overwritten count, too.
            self.recorders[index].shard_start = Seek::Seqno(1);
        }
    }

    fn add_shard(&mut self, recorder: usize, found: FoundShard, start: Seek) {
        match found {
            FoundShard::Opened { index, reader } => {
                self.rings.push(SetRing::read(reader, Some(recorder), index, start));
            }
            FoundShard::Unreadable { index, error } => {
                self.shard_errors.push(ShardError { recorder, shard: index, error });
            }
            FoundShard::Missed { index, seqnos } => {
                let gap = Gap::of_missed_shard(seqnos);
                self.missed.push_back(RingItem::Gap { ring: self.rings.len(), gap });
                self.rings.push(SetRing::missed(recorder, index, seqnos));
            }
        }
    }

    /// Goes to another position in all rings. [`Seek::Last`] counts the events of all rings together.
    pub fn seek(&mut self, to: Seek) {
        self.rings.iter_mut().for_each(|ring| ring.seek(to));
        if let (Seek::Last(count), true) = (to, self.rings.len() > 1) {
            last::seek_last_of_all(&mut self.rings, count);
        }
    }

    /// Returns the next item; `None` while there is none. Never waits: events so young that an earlier event of another
    /// ring may still be on its way are held back for a few milliseconds, and come at a later call.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a set goes on")]
    pub fn next(&mut self) -> Option<RingItem> {
        if let [ring] = self.rings.as_mut_slice()
            && self.recorders.is_empty()
        {
            let item = match ring.next_unmerged()? {
                Next::Event(event) => {
                    self.last_event = (0, event);
                    RingItem::Event { ring: 0, event }
                }
                Next::Gap(gap) => RingItem::Gap { ring: 0, gap },
                Next::NotReady => return None,
            };
            return Some(item);
        }
        self.next_merged()
    }

    fn next_merged(&mut self) -> Option<RingItem> {
        // The time is taken before the search for shards: a shard that is not found has no event that was stamped
        // earlier. It is taken before the looks at the rings, too: a ring that is found silent cannot bring an event
        // stamped earlier than this time less the slack.
        let now = Clock::global().now_epoch_nanos();
        let latest = if self.may_grow() {
            self.find_shards();
            now.saturating_sub(CLOCK_ERROR_NANOS)
        } else {
            u64::MAX
        };
        if let Some(missed) = self.missed.pop_front() {
            return Some(missed);
        }
        let item = merge::next(&mut self.rings, self.slack_nanos, now, latest);
        if let Some(RingItem::Event { ring, event }) = item {
            self.last_event = (ring, event);
        }
        item
    }

    /// Returns the next item, waiting for it at most `timeout`. Returns `None` if none came, or nothing will come any
    /// more ([`Self::has_ended`]).
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<RingItem> {
        match wait::next_timeout(self, timeout) {
            Waited::Found(item) => Some(item),
            Waited::TimedOut | Waited::Ended => None,
        }
    }

    /// Returns the payload of the event that was handed out last; ask for it before the next item. Where rings are
    /// merged the payload was copied when the event was met, lest it expire while the event waited for its turn. In a
    /// set of one ring this call copies it.
    #[inline]
    pub fn payload(&mut self) -> PayloadRead<'_> {
        let (ring, event) = &self.last_event;
        match self.rings.get_mut(*ring) {
            Some(ring) => ring.payload(event),
            None => PayloadRead::Expired,
        }
    }

    /// Returns true if the set has one ring, and none can be added by a recorder: then nothing is merged.
    fn is_single(&self) -> bool {
        self.rings.len() == 1 && self.recorders.is_empty()
    }

    /// Returns true if recorders may make further shards, or have made some that were not found yet.
    fn may_grow(&self) -> bool {
        self.recorders.iter().any(|recorder| !recorder.finder.has_ended())
    }

    /// Returns true if everything was read and nothing will come any more, as far as [`Self::next_timeout`] or
    /// [`Self::check_liveness`] has noticed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The rings come first: a recorder that has ended makes no more shards.
        self.rings.iter().all(SetRing::has_ended) && !self.may_grow() && self.missed.is_empty()
    }

    /// Asks the operating system whether the writers live. [`Self::next_timeout`] does this while nothing comes.
    pub fn check_liveness(&self) {
        self.rings.iter().filter_map(SetRing::reader).for_each(|reader| {
            reader.state();
        });
    }

    /// Returns the rings by index: those that were named or added, and the shards that were found, in the order in
    /// which they came.
    #[must_use]
    pub fn rings(&self) -> &[SetRing] {
        &self.rings
    }

    /// Returns the shards that cannot be opened, in the order in which they were found.
    #[must_use]
    pub fn shard_errors(&self) -> &[ShardError] {
        &self.shard_errors
    }

    /// Goes on with the next rings of the same names: waits at most `timeout` until the name of a ring that has ended,
    /// and was read to its end, leads to another ring. That ring takes the place of the old one and of its shards, and
    /// is read from its first event on. Returns the index of the first such ring in [`Self::rings`]; the rings before
    /// it are those that stay, under indices that may be smaller than they were. Returns `None` if there is no such
    /// ring.
    ///
    /// # Errors
    /// The next ring of a name cannot be opened; see [`ReaderOptions::open`](super::ReaderOptions::open). The set is as
    /// it was.
    pub fn reopen(&mut self, timeout: Duration) -> Result<Option<usize>, ReaderError> {
        let start = Instant::now();
        loop {
            let found = self.reopen_now()?;
            let left = timeout.saturating_sub(start.elapsed());
            if found.is_some() || left.is_zero() {
                return Ok(found);
            }
            std::thread::sleep(REOPEN_PAUSE.min(left));
        }
    }

    fn reopen_now(&mut self) -> Result<Option<usize>, ReaderError> {
        self.check_liveness();
        let mut replaced = Vec::new();
        let mut successors = Vec::new();
        for (index, ring) in self.rings.iter().enumerate().filter(|(_, ring)| ring.recorder().is_none()) {
            if let (Some(reader), true) = (ring.reader(), self.is_read_to_its_end(index))
                && let Some(successor) = reader.reopen()?
            {
                replaced.push(index);
                successors.push(successor);
            }
        }
        if successors.is_empty() {
            return Ok(None);
        }
        self.remove(&replaced);
        let first = self.rings.len();
        for successor in successors {
            self.add(successor, Seek::Seqno(1));
        }
        self.find_shards();
        Ok(Some(first))
    }

    /// Returns true if the ring, and all of its shards, have ended and nothing of them is left to be handed out.
    fn is_read_to_its_end(&self, index: usize) -> bool {
        let mut rings = self.rings.iter().enumerate();
        self.missed.is_empty()
            && rings.all(|(at, ring)| (at != index && ring.recorder() != Some(index)) || ring.has_ended())
            && self.recorders.iter().all(|recorder| recorder.ring != index || recorder.finder.has_ended())
    }

    /// Removes rings, with their shards.
    fn remove(&mut self, removed: &[usize]) {
        let mut kept = 0;
        let indices = self.rings.iter().enumerate().map(|(index, ring)| {
            let is_kept = !removed.contains(&ring.recorder().unwrap_or(index));
            kept += usize::from(is_kept);
            is_kept.then(|| kept - 1)
        });
        let new_indices: Vec<Option<usize>> = indices.collect();
        let mut is_kept = new_indices.iter().map(Option::is_some);
        self.rings.retain(|_| is_kept.next().unwrap_or(true));
        self.rings.iter_mut().for_each(|ring| ring.move_recorder(&new_indices));
        let moves = |index: &mut usize| new_indices[*index].map(|new| *index = new).is_some();
        self.recorders.retain_mut(|recorder| moves(&mut recorder.ring));
        self.shard_errors.retain_mut(|error| moves(&mut error.recorder));
        // The event that was handed out last has no payload any more.
        self.last_event = (usize::MAX, Descriptor::default());
    }
}

impl Awaited for RingSet {
    type Item = RingItem;

    #[inline]
    fn look(&mut self) -> Option<RingItem> {
        self.next()
    }

    fn look_closely(&mut self) {
        // The merge asks the headers itself, when an event is due.
        if self.is_single() {
            self.rings.iter_mut().for_each(SetRing::look_closely);
        }
    }

    fn has_known_end(&self) -> bool {
        Self::has_ended(self)
    }

    fn has_ended(&mut self) -> bool {
        self.check_liveness();
        Self::has_ended(self)
    }

    fn waiter(&mut self) -> &mut Waiter {
        &mut self.waiter
    }
}

impl std::fmt::Debug for RingSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingSet").field("rings", &self.rings).finish_non_exhaustive()
    }
}
