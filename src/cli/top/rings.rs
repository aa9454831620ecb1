//! The rings with the past that they hold.

use super::model::TopRing;
use crate::cli::history::History;
use eventring::reader::{RingSet, RingState};
use std::path::Path;

/// Looks at the rings of a set. The shards of a recorder are one ring here.
pub(super) fn look(set: &RingSet) -> Vec<TopRing> {
    let mut found: Vec<(usize, String, usize, History)> = Vec::new();
    for (index, ring) in set.rings().iter().enumerate() {
        let Some(reader) = ring.reader() else { continue };
        let history = History::of(reader, reader.state() == RingState::Live);
        let recorder = ring.recorder().unwrap_or(index);
        match found.iter_mut().find(|(known, ..)| *known == recorder) {
            Some((_, _, shards, all)) => (*shards, *all) = (*shards + 1, all.and(history)),
            None => {
                let file = reader.path().and_then(Path::file_name).or(reader.name().map(Path::as_os_str));
                let name = file.unwrap_or("ring".as_ref()).to_string_lossy().into_owned();
                found.push((recorder, name, 1, history));
            }
        }
    }
    let ring = |(_, name, shards, history): (usize, String, usize, History)| TopRing {
        name,
        shards,
        fill: history.fill,
        past_seconds: history.seconds,
        events_per_second: history.per_second,
    };
    found.into_iter().map(ring).collect()
}
