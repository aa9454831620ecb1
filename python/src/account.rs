//! Counts of events and of losses.

use eventring::reader::GapCause;
use eventring_parquet::SeqnoCounts;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The counts of all rings.
#[derive(Clone)]
pub(crate) struct Account {
    rings: Vec<SeqnoCounts>,
    /// False if the end is missing, so that nobody knows how many events were lost.
    has_end: bool,
}

/// A count of a ring.
type Count = fn(&SeqnoCounts) -> u64;

/// The counts that a ring has, and all rings together.
const COUNTS: [(&str, Count); 6] = [
    ("read", |ring| ring.read),
    (LOST, SeqnoCounts::lost),
    ("given_up", |ring| ring.missing_by(GapCause::Skipped)),
    ("filtered", |ring| ring.missing_by(GapCause::Filtered)),
    ("damaged", |ring| ring.missing_by(GapCause::Damaged)),
    ("lost_payloads", |ring| ring.lost_payloads),
];
const LOST: &str = "lost";

impl Account {
    pub(crate) fn new(rings: Vec<SeqnoCounts>, has_end: bool) -> Self {
        Self { rings, has_end }
    }

    /// Adds the counts of the next batch.
    pub(crate) fn add(&mut self, batch: Vec<SeqnoCounts>) {
        for (index, counts) in batch.into_iter().enumerate() {
            match self.rings.get_mut(index) {
                Some(ring) => ring.add(&counts),
                None => self.rings.push(counts),
            }
        }
    }

    /// Returns the counts as a dictionary: those of all rings, and of each ring.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let account = PyDict::new(py);
        self.set_counts(&account, &self.rings)?;
        let rings: PyResult<Vec<_>> = self.rings.iter().map(|ring| self.of_ring(py, ring)).collect();
        account.set_item("rings", rings?)?;
        Ok(account)
    }

    fn of_ring<'py>(&self, py: Python<'py>, ring: &SeqnoCounts) -> PyResult<Bound<'py, PyDict>> {
        let account = PyDict::new(py);
        account.set_item("ring", &ring.name)?;
        self.set_counts(&account, std::slice::from_ref(ring))?;
        let by_cause = PyDict::new(py);
        for cause in GapCause::ALL {
            match ring.missing_by(cause) {
                0 => {}
                count => by_cause.set_item(cause.name(), count)?,
            }
        }
        account.set_item("missing_by_cause", by_cause)?;
        account.set_item("first_seqno", ring.first_seqno)?;
        account.set_item("last_seqno", ring.last_seqno)?;
        Ok(account)
    }

    fn set_counts(&self, account: &Bound<'_, PyDict>, rings: &[SeqnoCounts]) -> PyResult<()> {
        for (name, count) in COUNTS {
            let sum = rings.iter().map(count).fold(0, u64::saturating_add);
            let is_known = self.has_end || name != LOST;
            account.set_item(name, is_known.then_some(sum))?;
        }
        Ok(())
    }
}
