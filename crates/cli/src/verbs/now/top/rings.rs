//! The rings, and the time span of their events.

use super::model::TopRing;
use crate::input::ring::history::{History, by_recorder};
use eventring::reader::{Reader, RingSet, RingState};
use std::path::Path;

/// Looks at the rings of a set. The shards of a recorder are one ring here.
pub(super) fn look(set: &RingSet) -> Vec<TopRing> {
    let ring = |shards: Vec<&Reader>| {
        let first = shards[0];
        let name = first.path().and_then(Path::file_name).or(first.name().map(Path::as_os_str));
        let is_live = shards.iter().any(|shard| shard.state() == RingState::Live);
        let history = History::read_shards(shards.iter().copied(), is_live);
        TopRing {
            name: name.unwrap_or("ring".as_ref()).to_string_lossy().into_owned(),
            shards: shards.len(),
            fill: history.fill,
            past_seconds: history.seconds,
            events_per_second: history.per_second,
        }
    };
    by_recorder(set).into_iter().map(ring).collect()
}
