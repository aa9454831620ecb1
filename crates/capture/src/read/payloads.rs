//! Counts of events whose payload is lost.

use eventring::reader::PayloadRead;
use schemars::JsonSchema;
use serde::Serialize;

/// The number of events of one ring that have lost their payload, while the rest of the event is in the recording.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct PayloadLosses {
    /// The name of the ring.
    pub ring: String,
    /// The number of events whose payload was overwritten in the ring before it could be copied.
    pub expired: u64,
    /// The number of events whose descriptor names a payload place or size that the ring cannot have.
    pub malformed: u64,
    /// Events whose payload was larger than a capture keeps.
    pub omitted: u64,
}

impl PayloadLosses {
    /// Returns the number of all these events.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.expired.saturating_add(self.malformed).saturating_add(self.omitted)
    }

    pub(crate) fn of_ring(ring: &str) -> Self {
        Self { ring: ring.to_owned(), ..Self::default() }
    }

    /// Returns the sums of these counts and those of other events of the ring.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            ring: self.ring.clone(),
            expired: self.expired.saturating_add(other.expired),
            malformed: self.malformed.saturating_add(other.malformed),
            omitted: self.omitted.saturating_add(other.omitted),
        }
    }

    /// Counts a payload that was read. `is_omitted` is true if it was too large for the capture.
    pub(crate) fn add(&mut self, payload: PayloadRead<'_>, is_omitted: bool) {
        match payload {
            PayloadRead::Valid(_) => {}
            PayloadRead::Expired if is_omitted => self.omitted += 1,
            PayloadRead::Expired => self.expired += 1,
            PayloadRead::Malformed => self.malformed += 1,
        }
    }
}

/// Returns the number of events of all rings.
pub fn count(losses: &[PayloadLosses]) -> u64 {
    losses.iter().map(PayloadLosses::count).fold(0, u64::saturating_add)
}
