//! Which events are without their payload.

use crate::capture::CapturedPayload;
use serde_json::{Value, json};

/// The events of one ring that are in a recording without the payload that they had.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct PayloadLosses {
    /// The ring's name.
    pub ring: String,
    /// It was overwritten before it could be copied.
    pub expired: u64,
    /// Their descriptor names a payload that the ring cannot have.
    pub malformed: u64,
    /// It was larger than a capture keeps.
    pub omitted: u64,
}

impl PayloadLosses {
    /// All of them.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.expired.saturating_add(self.malformed).saturating_add(self.omitted)
    }

    pub(super) fn of_ring(ring: &str) -> Self {
        Self { ring: ring.to_owned(), ..Self::default() }
    }

    pub(super) fn add(&mut self, payload: &CapturedPayload) {
        match payload {
            CapturedPayload::Valid(_) => {}
            CapturedPayload::Expired => self.expired += 1,
            CapturedPayload::Malformed => self.malformed += 1,
            CapturedPayload::Omitted => self.omitted += 1,
        }
    }
}

/// For programs.
pub(super) fn to_json(losses: &[PayloadLosses]) -> Value {
    let object = |of: &PayloadLosses| json!({ "ring": of.ring, "expired": of.expired, "malformed": of.malformed, "omitted": of.omitted });
    losses.iter().map(object).collect()
}

/// Of all rings together.
pub(super) fn count(losses: &[PayloadLosses]) -> u64 {
    losses.iter().map(PayloadLosses::count).fold(0, u64::saturating_add)
}
