//! The past that a ring holds: how long it is.

use eventring::reader::{Next, Reader, Seek};
use std::time::SystemTime;

/// The past that a ring holds.
#[derive(Clone, Copy, Default)]
pub(super) struct History {
    /// The time from the oldest event in the ring to now, or to the newest event if the ring has ended.
    pub(super) seconds: f64,
    /// The events a second in this time.
    pub(super) per_second: f64,
    /// The part of the ring that is in use, 0 to 1: of its descriptors or of its payload buffer, whichever is more.
    pub(super) fill: f64,
}

impl History {
    /// Looks at the oldest and the newest event of a ring. `is_live` is true if the ring may get more events.
    pub(super) fn of(reader: &Reader, is_live: bool) -> Self {
        let info = reader.info();
        let part = |used: u64, all: u64| (used as f64 / all.max(1) as f64).min(1.0);
        let fill = part(info.last_seqno, info.geometry.descriptor_capacity())
            .max(part(info.next_payload_byte, info.geometry.payload_buf_bytes()));
        let mut cursor = reader.cursor();
        let mut nanos_from = |place| {
            cursor.seek(place);
            // The first answers may be gaps: of overwritten events, and of events that are just being recorded.
            (0..4).find_map(|_| match cursor.next() {
                Next::Event(event) => Some((event.seqno, event.record_epoch_nanos)),
                _ => None,
            })
        };
        let Some((oldest_seqno, from)) = nanos_from(Seek::Oldest) else { return Self { fill, ..Self::default() } };
        let until = match is_live {
            true => SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64),
            false => nanos_from(Seek::Last(1)).map_or(from, |(_, nanos)| nanos),
        };
        let seconds = until.saturating_sub(from) as f64 / 1e9;
        let events = info.last_seqno.saturating_sub(oldest_seqno) + 1;
        let per_second = if seconds > 0.0 { events as f64 / seconds } else { 0.0 };
        Self { seconds, per_second, fill }
    }

    /// Adds a shard of the same recorder. The past of a recorder is as long as that of its shard with the shortest.
    pub(super) fn and(self, shard: Self) -> Self {
        let shorter = |a: f64, b: f64| if a == 0.0 || (b > 0.0 && b < a) { b } else { a };
        Self {
            seconds: shorter(self.seconds, shard.seconds),
            per_second: self.per_second + shard.per_second,
            fill: self.fill.max(shard.fill),
        }
    }
}
