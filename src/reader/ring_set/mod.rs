//! A ring set: several rings and their shards, read as one stream in the order of time.
//!
//! | file | idea |
//! |---|---|
//! | `options` | the options with which a set is opened |
//! | `ring` | one ring of the set: its cursor, and the event that it gives next |
//! | `merge` | the choice of the ring whose event comes next |
//! | `shards` | finding the shards of a recorder as they are made |
//! | `grow` | adding rings and shards to the set |
//! | `reopen` | going on with the next ring of a name |
//! | `last` | the position at which the last events of all rings together begin |

mod grow;
mod last;
mod merge;
mod options;
mod reopen;
mod ring;
mod shards;

pub use grow::ShardError;
pub use options::RingSetOptions;
pub use ring::SetRing;
pub use shards::shard_path;

use super::cursor::{Next, Seek};
use super::error::ReaderError;
use super::gap::Gap;
use super::payload::PayloadRead;
use super::wait::{self, Awaited, WaitStrategy, Waited, Waiter};
use crate::clock::Clock;
use crate::layout::Descriptor;
use grow::ShardedRecorder;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// The pause between two searches of several rings for new events. Shorter pauses would be of no use, because young
/// events are held back for some milliseconds anyway.
const MERGE_PAUSE: Duration = Duration::from_micros(500);
/// The largest expected difference between the clocks of reader and writer, if nobody sets the time meanwhile.
const CLOCK_ERROR_NANOS: u64 = 20_000;

/// Several rings, and all shards of those that are sharded, as one stream in the order of time.
///
/// The set hands out an event when no other ring can still bring an earlier event. This is so if the next event of
/// every ring that has not ended is known. It is also so if the event is older than the *slack* and the other rings
/// were silent meanwhile.
///
/// A ring in which an event is just being recorded is not silent: the set waits for that event, up to 20 ms. If a
/// writer commits an event even later, this event and the later events of its ring are handed out late, but none is
/// lost.
///
/// Events of one ring are always handed out in the order of their seqnos, even if their time stamps are equal or are in
/// another order (because threads race by nanoseconds).
///
/// The set finds shards that a recorder makes later before their first event is due, and reads them from their first
/// event on.
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

    /// Goes to another position in all rings. [`Seek::Last`] counts the events of all rings together. [`Seek::Seqno`]
    /// goes to the same seqno in each ring.
    pub fn seek(&mut self, to: Seek) {
        self.rings.iter_mut().for_each(|ring| ring.seek(to));
        if let (Seek::Last(count), true) = (to, self.rings.len() > 1) {
            last::seek_last_of_all(&mut self.rings, count);
        }
    }

    /// Returns the next item, or `None` while there is none. Never waits. An event that is so young that another ring
    /// may still bring an earlier event is held back for a few milliseconds, and a later call returns it.
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
        // The clock is read before the search for shards. So a shard that the search does not find has no event with an
        // earlier stamp. The clock is also read before the rings are. So a ring that is found silent cannot bring an
        // event with a stamp earlier than this time less the slack.
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
    #[inline]
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<RingItem> {
        match wait::next_timeout(self, timeout) {
            Waited::Found(item) => Some(item),
            Waited::TimedOut | Waited::Ended => None,
        }
    }

    /// Returns the payload of the event that was handed out last. Call this before the next call of [`Self::next`]. In
    /// a set of several rings, the payload was copied when the event was first seen, so that it could not expire while
    /// the event was held back. In a set of one ring, this call copies the payload.
    #[inline]
    pub fn payload(&mut self) -> PayloadRead<'_> {
        let (ring, event) = &self.last_event;
        match self.rings.get_mut(*ring) {
            Some(ring) => ring.payload(event),
            None => PayloadRead::Expired,
        }
    }

    /// Returns true if the set has one ring, and no recorder can add another ring. Then there is nothing to merge.
    fn is_single(&self) -> bool {
        self.rings.len() == 1 && self.recorders.is_empty()
    }

    /// Returns true if everything was read and nothing will come any more, as far as [`Self::next_timeout`] or
    /// [`Self::check_liveness`] has noticed.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The rings are checked before `may_grow`: a recorder whose rings have ended makes no more shards.
        self.rings.iter().all(SetRing::has_ended) && !self.may_grow() && self.missed.is_empty()
    }

    /// Asks the operating system whether the writers live. [`Self::next_timeout`] does this while nothing comes.
    pub fn check_liveness(&self) {
        self.rings.iter().filter_map(SetRing::reader).for_each(|reader| {
            reader.state();
        });
    }

    /// Returns all rings of the set, by index: rings that were named or added, and shards that were found. They are in
    /// the order in which the set got them.
    #[must_use]
    pub fn rings(&self) -> &[SetRing] {
        &self.rings
    }

    /// Returns the shards that cannot be opened, in the order in which they were found.
    #[must_use]
    pub fn shard_errors(&self) -> &[ShardError] {
        &self.shard_errors
    }
}

impl Awaited for RingSet {
    type Item = RingItem;

    #[inline]
    fn look(&mut self) -> Option<RingItem> {
        self.next()
    }

    fn look_closely(&mut self) {
        // In a set of several rings, the merge itself asks the headers when an event is due.
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
