//! When a capture that is to end is complete.

use super::sources::SourceRing;
use super::stats::EndReason;
use crate::reader::Reader;
use std::time::Instant;

/// An end that was decided on: what was recorded until then is still taken.
pub(super) struct Stop {
    pub(super) reason: EndReason,
    pub(super) epoch_nanos: u64,
    /// Rings in which nothing happens are not waited for after this.
    pub(super) deadline: Instant,
    /// For each ring, the last seqno that is waited for.
    last_seqnos: Vec<u64>,
}

impl Stop {
    pub(super) fn new(reason: EndReason, epoch_nanos: u64, deadline: Instant) -> Self {
        Self { reason, epoch_nanos, deadline, last_seqnos: Vec::new() }
    }

    /// Whether every ring has given what it had when it was first asked this. Where time stamps are right they tell it sooner; a
    /// writer that stamps what it records with the past must not keep a capture from ending.
    pub(super) fn is_reached(&mut self, rings: &[SourceRing]) -> bool {
        let new_rings = rings.iter().skip(self.last_seqnos.len());
        self.last_seqnos.extend(new_rings.map(|ring| {
            let Some(info) = ring.reader.as_ref().map(Reader::info) else { return 0 };
            // A header can say anything, but no more than a ringful is there at once, and one that the merger holds.
            let most = info.geometry.descriptor_capacity() + 1;
            info.last_seqno.min(given(ring).saturating_add(most))
        }));
        rings.iter().zip(&self.last_seqnos).all(|(ring, last)| given(ring) >= *last)
    }
}

/// Up to which seqno the ring has given everything.
fn given(ring: &SourceRing) -> u64 {
    // What had been overwritten before is in it: the merger gives no event before every ring has told its first gap.
    ring.stats.last_seqno.saturating_add(ring.missing.map_or(0, |gap| gap.count))
}

#[cfg(test)]
mod tests {
    use super::super::sources::Sources;
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};
    use std::time::Duration;

    #[test]
    fn what_is_recorded_behind_the_end_is_not_waited_for_whatever_its_stamp_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        let recorder = Recorder::builder(ContentDescription::new(300, "X"))
            .config(path.to_str().unwrap())
            .prefault(false)
            .build()
            .unwrap();
        let record = || (0..10).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b"x"), 0));
        record();
        let mut sources = Sources::new(false);
        sources.add_first(Reader::open(path).unwrap()).unwrap();
        let mut stop = Stop::new(EndReason::Duration, u64::MAX, Instant::now() + Duration::from_secs(3600));
        assert!(!stop.is_reached(&sources.rings));
        // More comes than is taken.
        record();
        for taken in 1..10 {
            sources.rings[0].stats.last_seqno = taken;
            assert!(!stop.is_reached(&sources.rings), "{taken}");
        }
        sources.rings[0].stats.last_seqno = 10;
        assert!(stop.is_reached(&sources.rings));
    }
}
