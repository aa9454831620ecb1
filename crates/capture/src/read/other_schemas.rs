//! Perf rings with the schema of another version: their spans cannot be read, and those of the other rings can.

use crate::error::{CaptureError, CaptureErrorKind};
use crate::format::ring::CapturedRing;
use crate::read::file::CaptureFile;
use eventring::schema::perf::PerfEvent;
use eventring::schema::{EventType as _, Hex};

impl CapturedRing {
    /// Returns true for a perf ring with another schema than the one that this program knows.
    #[must_use]
    pub(crate) fn has_other_perf_schema(&self) -> bool {
        self.is_perf() && self.schema_hash != PerfEvent::schema_hash()
    }

    /// Returns what is said of a perf ring with another schema.
    pub(crate) fn other_perf_schema(&self) -> String {
        let of_host = if self.host.is_empty() { String::new() } else { format!(" of the host {}", self.host) };
        format!(
            "the perf ring {}{of_host} has the schema {}…, expected {}…: use the eventring with which it was recorded",
            self.name,
            Hex(&self.schema_hash[..8]),
            Hex(&PerfEvent::schema_hash()[..8])
        )
    }
}

impl CaptureFile {
    /// Returns a line for each perf ring that exports, summaries and states of this capture leave out, because it has
    /// the schema of another version. [`Self::events`] has its events still. A ring that was not
    /// [selected](Self::select) is not named.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let others = self.wanted_rings().filter(|ring| ring.has_other_perf_schema());
        others.map(|ring| format!("left out: {}", ring.other_perf_schema())).collect()
    }

    /// Checks that not all rings have the schema of another version. With `needs_spans`, only perf rings count.
    ///
    /// # Errors
    /// They all have.
    pub(crate) fn check_schemas(&self, needs_spans: bool) -> Result<(), CaptureError> {
        let mut counted = self.wanted_rings().filter(|ring| ring.is_perf() || !needs_spans);
        let other = self.wanted_rings().find(|ring| ring.has_other_perf_schema());
        match other.filter(|_| counted.all(CapturedRing::has_other_perf_schema)) {
            Some(ring) => Err(CaptureError::new(CaptureErrorKind::WrongSchema, ring.other_perf_schema())),
            None => Ok(()),
        }
    }

    fn wanted_rings(&self) -> impl Iterator<Item = &CapturedRing> {
        let is_wanted = |index: usize| self.choice.as_ref().is_none_or(|choice| choice.rings[index].is_wanted);
        self.rings.iter().enumerate().filter(move |(index, _)| is_wanted(*index)).map(|(_, ring)| ring)
    }
}
