//! The events of one ring, or of several merged by time, as they come.

use super::last;
use super::rings::{AddedShard, Ring, Rings};
use crate::cli::exit::{Exit, Failure};
use eventring::clock::Clock;
use eventring::reader::{
    Cursor, Descriptor, Followed, Follower, Gap, MergedItem, Merger, PayloadRead, RingState, Seek, WaitStrategy,
};
use std::time::{Duration, Instant};

/// How often silent rings are asked whether they live.
const INTERVAL: Duration = Duration::from_millis(100);
/// The pause between looks at several rings in which nothing happens.
const PAUSE: Duration = Duration::from_millis(1);

/// Where to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Oldest,
    Newest,
    Block,
    Seqno(u64),
    /// So many before the newest.
    Last(u64),
}

/// Reads `--from`.
pub(super) fn parse_start(text: &str) -> Result<Start, String> {
    match text {
        "oldest" => Ok(Start::Oldest),
        "newest" => Ok(Start::Newest),
        "block" => Ok(Start::Block),
        number => match number.parse() {
            Ok(seqno) if seqno > 0 => Ok(Start::Seqno(seqno)),
            _ => Err("expected oldest, newest, block or a sequence number from 1".into()),
        },
    }
}

/// What comes next.
pub(super) enum Item {
    /// An event; its payload is had from [`Stream::payload`].
    Event {
        ring: usize,
        event: Descriptor,
    },
    Gap {
        ring: usize,
        gap: Gap,
    },
    /// Nothing came in the time given.
    Nothing,
    /// All has been read and nothing will come.
    Ended,
}

/// Stands in one or several rings.
pub(super) struct Stream {
    feed: Feed,
    /// The event returned last, and its payload once it was asked for.
    event: Descriptor,
    payload: Vec<u8>,
    next_check: Instant,
}

enum Feed {
    One(Follower),
    Many { merger: Merger, payload: Fetched },
}

/// What became of the payload that the merger fetched.
#[derive(Clone, Copy)]
enum Fetched {
    Valid,
    Expired,
    Malformed,
}

impl Stream {
    /// Starts at the oldest event of rings that have ended, behind the newest of live ones, or where it is told to.
    pub(super) fn new(rings: &Rings, start: Option<Start>) -> Result<Self, Failure> {
        if start == Some(Start::Block) {
            rings.need_exec("--from block")?;
        }
        let mut cursors: Vec<Cursor> = rings.iter().map(|ring| cursor(ring, start)).collect();
        if let (Some(Start::Seqno(_)), true) = (start, rings.has_several()) {
            return Err(Failure::new(Exit::Usage, "--from SEQNO needs a single ring: each ring has its own numbers"));
        }
        if let (Some(Start::Last(count)), true) = (start, rings.has_several()) {
            last::of_all(rings, &mut cursors, count);
        }
        let one = if rings.may_grow() || cursors.len() != 1 { None } else { cursors.pop() };
        let feed = match one {
            Some(cursor) => Feed::One(Follower::new(cursor, WaitStrategy::Adaptive)),
            None => Feed::Many { merger: Merger::new(cursors), payload: Fetched::Expired },
        };
        Ok(Self { feed, event: Descriptor::default(), payload: Vec::new(), next_check: Instant::now() })
    }

    /// The next item, waiting at most `patience`. New shards are added to `rings`.
    pub(super) fn next(&mut self, rings: &mut Rings, patience: Duration) -> Item {
        match &mut self.feed {
            Feed::One(follower) => match follower.next_timeout(patience) {
                Followed::Event(event) => {
                    self.event = event;
                    Item::Event { ring: 0, event }
                }
                Followed::Gap(gap) => Item::Gap { ring: 0, gap },
                Followed::TimedOut => Item::Nothing,
                Followed::Ended => Item::Ended,
            },
            Feed::Many { .. } => self.next_of_many(rings, patience),
        }
    }

    fn next_of_many(&mut self, rings: &mut Rings, patience: Duration) -> Item {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(item) = self.look_at_many(rings) {
                return item;
            }
            let now = Instant::now();
            if now >= self.next_check {
                self.next_check = now + INTERVAL;
                // The merger takes silent rings that have ended for what they are once they have been asked.
                for ring in rings.iter() {
                    let _ = ring.reader.state();
                }
                let Feed::Many { merger, .. } = &self.feed else { return Item::Ended };
                if merger.has_ended() && rings.have_all_shards() {
                    return Item::Ended;
                }
            }
            if now >= deadline {
                return Item::Nothing;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn look_at_many(&mut self, rings: &mut Rings) -> Option<Item> {
        let Feed::Many { merger, payload: fetched } = &mut self.feed else { return None };
        // Before the look for shards: one that is not found has no event that was stamped earlier.
        let now = Clock::global().now_epoch_nanos();
        while let Some(shard) = rings.next_shard() {
            match shard {
                AddedShard::Ring(index) => _ = merger.add(cursor(rings.get(index), None)),
                AddedShard::Missed { ring, gap } => return Some(Item::Gap { ring, gap }),
            }
        }
        let item = if rings.have_all_shards() { merger.next() } else { merger.next_at(now) };
        match item {
            MergedItem::Event { input, descriptor, payload } => {
                self.event = descriptor;
                self.payload.clear();
                *fetched = match payload {
                    PayloadRead::Valid(bytes) => {
                        self.payload.extend_from_slice(bytes);
                        Fetched::Valid
                    }
                    PayloadRead::Expired => Fetched::Expired,
                    PayloadRead::Malformed => Fetched::Malformed,
                };
                Some(Item::Event { ring: input, event: descriptor })
            }
            MergedItem::Gap { input, gap } => Some(Item::Gap { ring: input, gap }),
            MergedItem::NotReady => None,
        }
    }

    /// The event that is waited for, and the newest number handed out; `None` where there are several rings.
    pub(super) fn waits_for(&self) -> Option<(u64, u64)> {
        match &self.feed {
            Feed::One(follower) => Some((follower.cursor().next_seqno(), follower.cursor().reader().info().last_seqno)),
            Feed::Many { .. } => None,
        }
    }

    /// The payload of the event returned last.
    pub(super) fn payload(&mut self) -> PayloadRead<'_> {
        match &self.feed {
            Feed::One(follower) => follower.cursor().payload(&self.event, &mut self.payload),
            Feed::Many { payload: Fetched::Valid, .. } => PayloadRead::Valid(&self.payload),
            Feed::Many { payload: Fetched::Expired, .. } => PayloadRead::Expired,
            Feed::Many { payload: Fetched::Malformed, .. } => PayloadRead::Malformed,
        }
    }
}

/// A cursor at that start. What had been overwritten before it is what the cursor tells first.
fn cursor(ring: &Ring, start: Option<Start>) -> Cursor {
    let mut cursor = ring.reader.cursor();
    let may_come_more = matches!(ring.reader.state(), RingState::Live | RingState::Unknown);
    let place = match start {
        // Not at the oldest event: it may have gone round before we came, and what was overwritten is a loss.
        None | Some(Start::Oldest) if ring.is_new => Seek::Seqno(1),
        Some(Start::Newest) => Seek::Newest,
        Some(Start::Oldest) => Seek::Oldest,
        // In a ring without blocks beside one that has them: its newest event.
        Some(Start::Block) => ring.words.index_of("block").map_or(Seek::Last(1), Seek::NamedByWord),
        Some(Start::Seqno(seqno)) => Seek::Seqno(seqno),
        Some(Start::Last(count)) => Seek::Last(count),
        None if may_come_more => Seek::Newest,
        None => Seek::Oldest,
    };
    cursor.seek(place);
    cursor
}
