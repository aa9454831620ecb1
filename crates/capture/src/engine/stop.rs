//! The stop of a capture, and the check that all events before the stop are copied.

use crate::engine::sources::{CopiedRing, RingInput};
use crate::format::end::EndReason;
use std::time::Instant;

/// The stop of a capture. Events that were recorded before it are still taken.
pub(crate) struct Stop {
    pub(crate) reason: EndReason,
    pub epoch_nanos: u64,
    /// The time after which the copying is done as soon as the rings bring no more events.
    pub(crate) deadline: Instant,
    /// For each ring, the last seqno to wait for. It is 0 if nothing is waited for.
    last_seqnos: Vec<u64>,
    /// For each ring, the last seqno that is taken: the last that it had handed out when the rings were noted. All
    /// rings that exist at the stop are noted at one moment, so it is at the same time in all of them, however long it
    /// takes to copy them.
    last_taken: Vec<u64>,
    /// For each ring, true if it has brought an event that was recorded after the stop.
    are_over: Vec<bool>,
}

impl Stop {
    pub(crate) fn new(reason: EndReason, epoch_nanos: u64, deadline: Instant) -> Self {
        Self { reason, epoch_nanos, deadline, last_seqnos: Vec::new(), last_taken: Vec::new(), are_over: Vec::new() }
    }

    /// Notes the rings that are not known yet.
    pub(crate) fn see(&mut self, rings: &[CopiedRing]) {
        if rings.len() == self.last_taken.len() {
            return;
        }
        let last = |input: &RingInput| input.cursor.next_seqno().saturating_add(input.cursor.lag()).saturating_sub(1);
        let new_rings = || rings.iter().skip(self.are_over.len()).map(|ring| ring.input.as_ref());
        self.last_taken.extend(new_rings().map(|input| input.map_or(0, last)));
        self.last_seqnos.extend(new_rings().map(|input| input.map_or(0, last_to_wait_for)));
        self.are_over.resize(rings.len(), false);
    }

    /// Returns the last seqno of a ring that is taken.
    pub(crate) fn last_taken(&self, ring: usize) -> u64 {
        self.last_taken.get(ring).copied().unwrap_or(u64::MAX)
    }

    /// Returns true if no more events of this ring are taken.
    pub(crate) fn is_over(&self, ring: usize) -> bool {
        self.are_over.get(ring).is_some_and(|is_over| *is_over)
    }

    /// Notes that the ring has brought an event that was recorded after the stop.
    pub(crate) fn note_later_event(&mut self, ring: usize) {
        if let Some(is_over) = self.are_over.get_mut(ring) {
            *is_over = true;
        }
    }

    /// Returns true if all rings have brought an event that was recorded after the end, or have ended.
    pub(crate) fn is_all_over(&self, rings: &[CopiedRing]) -> bool {
        let mut inputs = rings.iter().enumerate();
        inputs.all(|(index, ring)| ring.input.as_ref().is_none_or(|input| self.is_over(index) || has_ended(input)))
    }

    /// Returns true if the capture has taken, from every ring, all events whose seqnos were handed out before the stop.
    /// Usually a ring is over sooner, at its first event with a time stamp after the stop. But a writer may give all
    /// its events time stamps in the past. Then no event has a time stamp after the stop, and this check ends the
    /// copying.
    pub(crate) fn is_reached(&self, rings: &[CopiedRing]) -> bool {
        rings.iter().enumerate().zip(&self.last_seqnos).all(|((index, ring), last)| {
            let is_taken = |input: &RingInput| input.cursor.next_seqno() > *last;
            self.is_over(index) || ring.input.as_ref().is_none_or(is_taken)
        })
    }
}

/// Returns true if the ring is known to have ended and all of its events were taken.
pub(crate) fn has_ended(input: &RingInput) -> bool {
    input.cursor.is_known_to_be_finished()
}

/// Returns the last seqno that the ring has handed out.
fn last_to_wait_for(input: &RingInput) -> u64 {
    let info = input.reader.info();
    // The `last_seqno` of a damaged header can be any number, so it is bounded: a ring brings at most as many further
    // events as it has slots.
    let most = info.geometry.descriptor_capacity();
    info.last_seqno.min(input.cursor.next_seqno().saturating_add(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sources::Sources;
    use eventring::reader::{EventBatch, Reader};
    use eventring::recorder::{ContentDescription, Recorder};
    use std::time::Duration;

    #[test]
    fn what_is_recorded_after_the_stop_is_not_waited_for_whatever_its_stamp_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ring");
        let recorder = Recorder::builder(ContentDescription::new(300, "X"))
            .config(path.to_str().unwrap())
            .prefault(false)
            .build()
            .unwrap();
        let record = || (0..10).for_each(|_| assert_ne!(recorder.record(2, [0; 4], b"x"), 0));
        record();
        let mut sources = Sources::new(eventring::reader::Seek::Oldest, Default::default(), Default::default());
        sources.add_first(Reader::open(path).unwrap()).unwrap();
        let mut stop = Stop::new(EndReason::Duration, u64::MAX, Instant::now() + Duration::from_secs(3600));
        stop.see(&sources.rings);
        assert!(!stop.is_reached(&sources.rings));
        // `see` has set the stop to seqno 10. The ten events that are recorded now come after it (seqnos 11 to 20), so
        // `is_reached` does not wait for them.
        record();
        // A batch of one byte is full after each event.
        let mut one = EventBatch::new(1, 100);
        for taken in 1..10 {
            one.clear();
            sources.rings[0].input.as_mut().unwrap().cursor.copy_batch(&mut one);
            assert!(!stop.is_reached(&sources.rings), "{taken}");
        }
        one.clear();
        sources.rings[0].input.as_mut().unwrap().cursor.copy_batch(&mut one);
        assert!(stop.is_reached(&sources.rings));
    }
}
