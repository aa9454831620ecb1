//! The moment at which a capture that shall end is complete.

use super::end::EndReason;
use super::sources::SourceRing;
use crate::reader::Reader;
use std::time::Instant;

/// The decided end of a capture. Events that were recorded before this end are still taken.
pub(super) struct Stop {
    pub(super) reason: EndReason,
    pub(super) epoch_nanos: u64,
    /// The time after which the capture ends as soon as the rings bring no more events.
    pub(super) deadline: Instant,
    /// For each ring, the last seqno to wait for.
    last_seqnos: Vec<u64>,
}

impl Stop {
    pub(super) fn new(reason: EndReason, epoch_nanos: u64, deadline: Instant) -> Self {
        Self { reason, epoch_nanos, deadline, last_seqnos: Vec::new() }
    }

    /// Returns true if the capture has taken, from every ring, all events whose seqnos were handed out before the first
    /// call of this function. Usually the capture ends sooner, at the first event with a time stamp after the end. But
    /// a writer may give all its events time stamps in the past. Then no event has a time stamp after the end, and this
    /// check ends the capture.
    pub(super) fn is_reached(&mut self, rings: &[SourceRing]) -> bool {
        let new_rings = rings.iter().skip(self.last_seqnos.len());
        self.last_seqnos.extend(new_rings.map(|ring| {
            let Some(info) = ring.reader.as_ref().map(Reader::info) else { return 0 };
            // The `last_seqno` of a damaged header can be any number, so it is bounded. The ring set can still return
            // at most as many events of the ring as the ring has slots, and one more event that it has read already.
            let most = info.geometry.descriptor_capacity() + 1;
            info.last_seqno.min(given(ring).saturating_add(most))
        }));
        rings.iter().zip(&self.last_seqnos).all(|(ring, last)| given(ring) >= *last)
    }
}

/// Returns the seqno up to which the ring set has returned all events and gaps of the ring.
fn given(ring: &SourceRing) -> u64 {
    // `last_seqno` includes the events that were overwritten before the capture began, because the ring set returns the
    // first gap of every ring before it returns any event.
    ring.stats.last_seqno.saturating_add(ring.missing.map_or(0, |gap| gap.count))
}

#[cfg(test)]
mod tests {
    use super::super::sources::Sources;
    use super::*;
    use crate::recorder::{ContentDescription, Recorder};
    use std::time::Duration;

    #[test]
    fn what_is_recorded_after_the_end_is_not_waited_for_whatever_its_stamp_is() {
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
        // The first call of `is_reached` has set the end to seqno 10. The ten events that are recorded now come after
        // it (seqnos 11 to 20), so `is_reached` does not wait for them.
        record();
        for taken in 1..10 {
            sources.rings[0].stats.last_seqno = taken;
            assert!(!stop.is_reached(&sources.rings), "{taken}");
        }
        sources.rings[0].stats.last_seqno = 10;
        assert!(stop.is_reached(&sources.rings));
    }
}
