//! The test by which `capture` and `forward` take events that fulfil a condition.

use super::known_spans::KnownSpans;
use super::ring::Ring;
use super::tested::Tested;
use eventring::reader::{Descriptor, PayloadRead, Reader};
use eventring_capture::{EventCondition, EventTest};
use eventring_live::{Condition, Subject as _, Truth};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The test of one recorder's events.
struct Taken {
    condition: Condition,
    ring: Ring,
    /// The spans that all recorders have open: typed events ask for those of the same program.
    known: Arc<Mutex<KnownSpans>>,
}

impl Taken {
    /// A panic of another thread leaves no span half known.
    fn known(&self) -> MutexGuard<'_, KnownSpans> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the condition for a capture.
pub(crate) fn taken_by(condition: &Condition) -> EventCondition {
    let by_recorder = condition.clone();
    let all_known = Arc::<Mutex<KnownSpans>>::default();
    EventCondition::new(condition.to_string(), move |shard0: &Reader| -> Box<dyn EventTest> {
        let (condition, ring) = (by_recorder.clone(), Ring::named(shard0));
        Box::new(Taken { condition, ring, known: all_known.clone() })
    })
}

impl EventTest for Taken {
    fn begins(&mut self, event: &Descriptor, payload: PayloadRead<'_>) -> Truth {
        let record = self.ring.perf.as_ref().map(|perf| perf.record(event, payload));
        let mut known = self.known();
        if let Some(record) = &record {
            known.learn(&self.ring, event, record);
        }
        let tested = Tested::new(&known, &self.ring, event, record.as_ref(), payload.valid()).by_itself();
        // Its log records may ask for its fields, even if it fulfils the condition in no case.
        let may_be_asked = || self.condition.field_paths().iter().any(|path| tested.may_have_lost(path));
        match self.condition.truth(&tested) {
            Truth::No if tested.has_lost_fields() && may_be_asked() => Truth::Unknown,
            truth => truth,
        }
    }

    fn holds(&mut self, event: &Descriptor, payload: PayloadRead<'_>) -> Truth {
        let record = self.ring.perf.as_ref().map(|perf| perf.record(event, payload));
        let known = self.known();
        let tested = Tested::new(&known, &self.ring, event, record.as_ref(), payload.valid());
        match self.condition.truth(&tested) {
            // The events of its span are kept, and say that fields were lost.
            Truth::Unknown if !tested.has_lost_fields() => Truth::No,
            truth => truth,
        }
    }

    fn ends(&mut self, span_id: u64) {
        self.known().close(&self.ring, span_id);
    }
}
