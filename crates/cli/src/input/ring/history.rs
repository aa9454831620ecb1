//! The time span of the events in a ring, and the ring size that would hold more.

use crate::text::format::{duration, rate};
use eventring::files::{ByteCount, CONTENT_TYPE_FIRST_FREE, EventSizes, Shifts};
use eventring::reader::{Next, Reader, RingSet, Seek};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, SystemTime};

/// The past that a ring holds.
#[derive(Clone, Copy, Default, Serialize, JsonSchema)]
pub(crate) struct History {
    /// The events a second in `history_seconds`.
    #[serde(rename = "events_per_s")]
    pub(crate) per_second: f64,
    /// The part of the ring that is in use, 0 to 1: of its descriptors or of its payload buffer, whichever is more.
    pub(crate) fill: f64,
    /// The time from the oldest event in the ring to now, or to the newest event if the ring has ended. For a recorder,
    /// the newest event is that of all shards.
    #[serde(rename = "history_seconds")]
    pub(crate) seconds: f64,
    /// The time that the ring holds when all of it is in use, at the same number of events a second. 0 if it is not
    /// known.
    #[serde(rename = "history_seconds_when_full")]
    pub(crate) seconds_when_full: f64,
}

/// Returns the rings of a set that could be opened, with the shards of each recorder together.
pub(crate) fn by_recorder(set: &RingSet) -> Vec<Vec<&Reader>> {
    let mut found: Vec<(usize, Vec<&Reader>)> = Vec::new();
    for (index, ring) in set.rings().iter().enumerate() {
        let Some(reader) = ring.reader() else { continue };
        let recorder = ring.recorder().unwrap_or(index);
        match found.iter_mut().find(|(known, _)| *known == recorder) {
            Some((_, shards)) => shards.push(reader),
            None => found.push((recorder, vec![reader])),
        }
    }
    found.into_iter().map(|(_, shards)| shards).collect()
}

/// Returns the time of this system, in nanoseconds since the epoch.
pub(crate) fn now_epoch_nanos() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

impl History {
    /// Looks at the oldest and the newest event of a ring. `is_live` is true if the ring may get more events.
    pub(crate) fn read(reader: &Reader, is_live: bool) -> Self {
        Self::read_shards([reader], is_live)
    }

    /// Looks at all shards of a recorder. The past of a recorder is as long as that of its shard with the shortest. All
    /// shards have the same end: a thread that ended long ago has recorded nothing since. And those that have lost
    /// nothing yet have the same begin: there was nothing before.
    pub(crate) fn read_shards<'r>(shards: impl IntoIterator<Item = &'r Reader>, is_live: bool) -> Self {
        let mut shards: Vec<ShardPast> = shards.into_iter().map(ShardPast::read).collect();
        let first_nanos = shards.iter().filter_map(|shard| Some(shard.events?.1)).min();
        for shard in shards.iter_mut().filter(|shard| shard.is_whole) {
            shard.events = shard.events.map(|(events, from)| (events, first_nanos.unwrap_or(from)));
        }
        let until_nanos = match is_live {
            true => now_epoch_nanos(),
            false => shards.iter().map(|shard| shard.newest_nanos).max().unwrap_or(0),
        };
        shards.iter().map(|shard| shard.until(until_nanos)).reduce(Self::and).unwrap_or_default()
    }

    /// Adds a shard of the same recorder.
    fn and(self, shard: Self) -> Self {
        let shorter = |a: f64, b: f64| if a == 0.0 || (b > 0.0 && b < a) { b } else { a };
        Self {
            seconds: shorter(self.seconds, shard.seconds),
            per_second: self.per_second + shard.per_second,
            fill: self.fill.max(shard.fill),
            seconds_when_full: shorter(self.seconds_when_full, shard.seconds_when_full),
        }
    }

    /// Returns the past in words, or `None` if there are no two events. If `of` is a live ring, the text also says how
    /// long the past will be when the whole ring is in use, and which size would hold twice as much.
    pub(crate) fn in_words(self, of: Option<&Reader>) -> Option<String> {
        let words = |seconds| Duration::try_from_secs_f64(seconds).map(duration).unwrap_or_default();
        if self.seconds <= 0.0 {
            return None;
        }
        let past = format!("{} at {} events/s", words(self.seconds), rate(self.per_second));
        let Some(reader) = of else { return Some(past) };
        let size = twice_as_large(reader);
        Some(match self.fill < 1.0 {
            true => {
                let full = words(self.seconds_when_full);
                format!(
                    "{past}, with {:.0} % of the ring; a full ring holds about {full}, and twice that {size}",
                    self.fill * 100.0
                )
            }
            false => format!("{past}; about twice that {size}"),
        })
    }
}

/// The past of one shard, whose end is not known yet.
struct ShardPast {
    fill: f64,
    /// The number of events in the ring, and the time of the oldest; `None` if there is none.
    events: Option<(u64, u64)>,
    /// True if it has all events that were ever recorded in it.
    is_whole: bool,
    /// The time of the newest event; 0 if there is none.
    newest_nanos: u64,
}

impl ShardPast {
    fn read(reader: &Reader) -> Self {
        let info = reader.info();
        let part = |used: u64, all: u64| (used as f64 / all.max(1) as f64).min(1.0);
        let fill = part(info.last_seqno, info.geometry.descriptor_capacity())
            .max(part(info.next_payload_byte, info.geometry.payload_buf_bytes()));
        let mut cursor = reader.cursor();
        let mut first_from = |place| {
            cursor.seek(place);
            // The first answers may be gaps: of overwritten events, and of events that are just being recorded.
            (0..4).find_map(|_| match cursor.next() {
                Next::Event(event) => Some((event.seqno, event.record_epoch_nanos)),
                _ => None,
            })
        };
        let oldest = first_from(Seek::Oldest);
        let newest_nanos = first_from(Seek::Last(1)).or(oldest).map_or(0, |(_, nanos)| nanos);
        let events = oldest.map(|(seqno, from)| (info.last_seqno.saturating_sub(seqno) + 1, from));
        let is_whole = oldest.is_some_and(|(seqno, _)| seqno == 1);
        Self { fill, events, is_whole, newest_nanos }
    }

    fn until(&self, until_nanos: u64) -> History {
        let fill = self.fill;
        let Some((events, from)) = self.events else { return History { fill, ..History::default() } };
        let seconds = until_nanos.saturating_sub(from) as f64 / 1e9;
        let per_second = if seconds > 0.0 { events as f64 / seconds } else { 0.0 };
        let seconds_when_full = if fill > 0.0 { seconds / fill } else { 0.0 };
        History { seconds, per_second, fill, seconds_when_full }
    }
}

/// Returns the condition on which a ring, or each shard of a recorder, would hold twice as many events and payloads.
fn twice_as_large(reader: &Reader) -> String {
    let info = reader.info();
    let [descriptor, payload] = [info.geometry.descriptor_capacity(), info.geometry.payload_buf_bytes()];
    let twice = Shifts { descriptor: descriptor.ilog2() + 1, payload: payload.ilog2() + 1 };
    let is_sharded = info.extension.is_some_and(|extension| extension.shard_limit > 0);
    // The memory in words is divided in a way of its own. It is named only if it gives these very shifts.
    let context_bytes = info.geometry.context_area_bytes();
    let bytes = twice.ring_bytes(context_bytes);
    let is_compact = info.content_type >= CONTENT_TYPE_FIRST_FREE;
    let of_words = Shifts::within(bytes, context_bytes, is_compact, EventSizes::Any);
    let size = if !is_sharded && of_words == Some(twice) {
        ByteCount(bytes).to_string().replace(' ', "")
    } else {
        format!("{}:{}", twice.descriptor, twice.payload)
    };
    let what = if is_sharded { "its rings" } else { "it" };
    format!("if the program's configuration gives {what} the size `:{size}`")
}
