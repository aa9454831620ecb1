//! A ring set: several rings and their shards, read as one stream in the order of time.
//!
//! | file | idea |
//! |---|---|
//! | `item` | the items that the set returns, such as events and gaps |
//! | `options` | the options with which a set is opened |
//! | `ring` | one ring of the set: its cursor, and its next event |
//! | `merge` | choosing the ring that has the next event |
//! | `shards` | finding the shards of a recorder as the recorder makes them |
//! | `grow` | adding rings and shards to the set |
//! | `reopen` | switching to the new ring when a program makes another ring of the same name |
//! | `last` | finding the position from which on the set returns only the last events of all rings together |

mod grow;
mod item;
mod last;
mod merge;
pub(super) mod options;
mod reopen;
mod ring;
mod shards;

pub use item::{RingItem, ShardError};
pub use ring::SetRing;
pub use shards::OpenedShards;
pub use shards::shard_path;

use super::cursors::cursor::{Next, Seek};
use super::cursors::payload::PayloadRead;
use super::wait::{self, Awaited, WaitStrategy, Waited, Waiter};
use crate::clock::Clock;
use crate::layout::Descriptor;
use shards::ShardedRecorder;
use std::collections::VecDeque;
use std::time::Duration;

/// The largest expected difference between the clocks of the reader and the writer, unless somebody sets the time.
const CLOCK_ERROR_NANOS: u64 = 20_000;

/// A set of rings, with all shards of sharded recorders, that is read as one stream in the order of time.
///
/// The set hands out an event when no other ring can still bring an earlier event. This is certain in two cases.
/// Either the set knows the next event of every ring that has not ended. Or the event is older than the *slack* (2 ms
/// by default), and nothing came from the other rings in that time.
///
/// Before the set hands out an event, it waits for events that are being recorded in other rings, at most 20 ms. If a
/// writer takes longer, its event and the events after it in the same ring are handed out late, after events with
/// later time stamps. No event is lost.
///
/// The set hands out the events of one ring in the order of their seqnos, also if their time stamps are equal or in
/// another order. (Two threads that record at the same moment may get their stamps in one order and their seqnos in the
/// other.)
///
/// If a recorder makes another shard while the set is read, the set finds the shard in time: before the shard's first
/// event is due. It reads the shard from its first event on.
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
    /// The shards that were opened, if they are kept for a later set.
    opened: Option<shards::OpenedShards>,
    slack_nanos: u64,
    /// Events with a later stamp (nanoseconds since the epoch) are held back.
    hold_after_nanos: Option<u64>,
    /// The last event that was handed out: the index of its ring, and its descriptor.
    last_event: (usize, Descriptor),
    waiter: Waiter,
}

impl RingSet {
    fn new(slack: Duration) -> Self {
        Self {
            rings: Vec::new(),
            recorders: Vec::new(),
            shard_errors: Vec::new(),
            missed: VecDeque::new(),
            opened: None,
            slack_nanos: u64::try_from(slack.as_nanos()).unwrap_or(u64::MAX),
            hold_after_nanos: None,
            last_event: (0, Descriptor::default()),
            waiter: Waiter::new(WaitStrategy::Adaptive),
        }
    }

    /// Moves all rings to another position. [`Seek::Last`] counts the events of all rings together. [`Seek::Seqno`]
    /// moves each ring to the same seqno.
    pub fn seek(&mut self, to: Seek) {
        self.rings.iter_mut().for_each(|ring| ring.seek(to));
        if let (Seek::Last(count), true) = (to, self.rings.len() > 1) {
            last::seek_last_of_all(&mut self.rings, count);
        }
    }

    /// Returns the next item, or `None` if there is none yet. Never waits. As long as another ring may still bring an
    /// earlier event, the set holds an event back, usually for a few milliseconds. A later call then returns it.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator would end; a set goes on")]
    pub fn next(&mut self) -> Option<RingItem> {
        if let [ring] = self.rings.as_mut_slice()
            && self.recorders.is_empty()
            && self.hold_after_nanos.is_none()
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
        // The clock is read before the search for shards. So if the search does not find a shard, the shard has no
        // event with a stamp before `now` less `CLOCK_ERROR_NANOS`. The clock is also read before the rings are read.
        // So if a ring is then found silent, it brings no event with a stamp before `now` less the slack.
        let now = Clock::global().now_epoch_nanos();
        let latest = if self.may_grow() {
            self.find_shards();
            now.saturating_sub(CLOCK_ERROR_NANOS)
        } else {
            u64::MAX
        };
        let looked = self.hold_after_nanos.map_or(u64::MAX, |nanos| nanos.saturating_sub(CLOCK_ERROR_NANOS));
        let latest = latest.min(looked);
        if let Some(missed) = self.missed.pop_front() {
            return Some(missed);
        }
        let item = merge::next(&mut self.rings, self.slack_nanos, now, latest);
        if let Some(RingItem::Event { ring, event }) = item {
            self.last_event = (ring, event);
        }
        item
    }

    /// Holds back all events that were recorded after this time (nanoseconds since the epoch): the caller has looked
    /// for further rings only until then, and what the set hands out may depend on what they hold. `None`, the default,
    /// holds nothing back.
    pub fn hold_after(&mut self, epoch_nanos: Option<u64>) {
        self.hold_after_nanos = epoch_nanos;
    }

    /// Returns the time after which events are held back, in nanoseconds since the epoch; `None` if none are.
    #[must_use]
    pub fn held_after(&self) -> Option<u64> {
        self.hold_after_nanos
    }

    /// Returns the next item. Waits for it at most `timeout`. Returns `None` if no item came in this time, or if
    /// nothing more will come (see [`Self::has_ended`]).
    #[inline]
    pub fn next_timeout(&mut self, timeout: Duration) -> Option<RingItem> {
        match wait::next_timeout(self, timeout) {
            Waited::Found(item) => Some(item),
            Waited::TimedOut | Waited::Ended => None,
        }
    }

    /// Returns the payload of the event that was handed out last. Call this before the next call of [`Self::next`]. A
    /// set of several rings copies each payload when it first sees the event, so that the payload cannot expire while
    /// the event is held back. A set of one ring copies the payload in this call.
    #[inline]
    pub fn payload(&mut self) -> PayloadRead<'_> {
        let (ring, event) = &self.last_event;
        match self.rings.get_mut(*ring) {
            Some(ring) => ring.payload(event),
            None => PayloadRead::Expired,
        }
    }

    /// Sets how [`Self::next_timeout`] waits.
    pub fn set_wait(&mut self, strategy: WaitStrategy) {
        self.waiter = Waiter::new(strategy);
    }

    /// Returns true if the set has one ring and no recorder can add another. The set then has nothing to merge.
    fn is_single(&self) -> bool {
        self.rings.len() == 1 && self.recorders.is_empty()
    }

    /// Returns true if everything was read and nothing more will come. The set notices this only in
    /// [`Self::next_timeout`] and [`Self::check_liveness`].
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The rings are checked before `may_grow`. If all rings of a recorder have ended, the recorder makes no more
        // shards, so `may_grow` cannot become true after this check.
        self.rings.iter().all(SetRing::has_ended) && !self.may_grow() && self.missed.is_empty()
    }

    /// Asks the operating system whether the writers live. [`Self::next_timeout`] also does this while no event comes.
    pub fn check_liveness(&self) {
        self.rings.iter().filter_map(SetRing::reader).for_each(|reader| {
            reader.state();
        });
    }

    /// Returns all rings of the set: named rings, added rings, and the shards that were found. They are in the order
    /// in which they came into the set.
    #[must_use]
    pub fn rings(&self) -> &[SetRing] {
        &self.rings
    }

    /// Returns the shards that the reader could not open, in the order in which it found them.
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

    fn probe(&mut self) {
        // In a set of several rings, `merge::next` itself loads the headers when an event is due.
        if self.is_single() {
            self.rings.iter_mut().for_each(SetRing::probe);
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
