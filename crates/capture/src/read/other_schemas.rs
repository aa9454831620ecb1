//! Perf rings (rings of spans) that an eventring with another schema recorded. Exports and summaries of a capture leave
//! out only these rings.

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

    /// Checks that the capture has a perf ring of this version. A truncated or damaged capture passes, because it may
    /// have had a perf ring in the part that is missing. Its problems say what is missing.
    ///
    /// # Errors
    /// There is no perf ring, or all have the schema of another version.
    pub fn expect_spans(&self) -> Result<(), CaptureError> {
        self.check_schemas(true)?;
        let has_spans = self.rings().iter().any(CapturedRing::is_perf);
        if has_spans || !self.problems().is_empty() { Ok(()) } else { Err(no_spans(self)) }
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

/// Returns the error that a capture has no spans.
fn no_spans(capture: &CaptureFile) -> CaptureError {
    let rings: Vec<String> = capture
        .rings()
        .iter()
        .map(|ring| match ring.content_name.as_str() {
            "" => format!("{} (content type {})", ring.name, ring.content_type),
            name => format!("{} ({name})", ring.name),
        })
        .collect();
    let message = format!(
        "there are no spans in {}, expected a PERF ring (content type 3); typed events can be counted, watched and \
         exported in formats that do not need spans",
        if rings.is_empty() { "a capture without rings".into() } else { rings.join(", ") }
    );
    CaptureError::new(CaptureErrorKind::NoSpans, message)
}
