//! How many events there are, and how many were lost.

use eventring::capture::{CaptureFile, CaptureStats, CapturedRing};
use eventring::reader::GapCause;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;

/// The counts of one ring.
#[derive(Clone, Default)]
struct RingAccount {
    name: String,
    read: u64,
    lost: u64,
    given_up: u64,
    by_cause: BTreeMap<&'static str, u64>,
    first_seqno: u64,
    last_seqno: u64,
}

/// The counts of all rings. Of each ring, ``read + lost + given_up`` are all seqnos from ``first_seqno`` to
/// ``last_seqno``.
#[derive(Clone, Default)]
pub(crate) struct Account(Vec<RingAccount>);

impl Account {
    /// Adds the counts of a capture, or of the next batch of one.
    pub(crate) fn add(&mut self, capture: &CaptureFile) {
        let Some(end) = capture.end() else { return };
        self.add_stats(capture.rings(), &end.stats);
    }

    fn add_stats(&mut self, rings: &[CapturedRing], stats: &CaptureStats) {
        for (index, (ring, stats)) in rings.iter().zip(&stats.rings).enumerate() {
            if self.0.len() <= index {
                let (name, first_seqno) = (ring.name.clone(), ring.first_seqno);
                self.0.push(RingAccount { name, first_seqno, ..RingAccount::default() });
            }
            let account = &mut self.0[index];
            account.read += stats.events;
            account.lost += stats.lost();
            account.given_up += stats.given_up();
            account.last_seqno = account.last_seqno.max(stats.last_seqno);
            for cause in GapCause::OF_RINGS {
                match stats.missing_by(cause) {
                    0 => {}
                    count => *account.by_cause.entry(cause.name()).or_default() += count,
                }
            }
        }
    }

    /// Returns the counts as a dictionary: those of all rings, and of each ring.
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let account = PyDict::new(py);
        let sum = |count: fn(&RingAccount) -> u64| self.0.iter().map(count).sum::<u64>();
        account.set_item("read", sum(|ring| ring.read))?;
        account.set_item("lost", sum(|ring| ring.lost))?;
        account.set_item("given_up", sum(|ring| ring.given_up))?;
        let rings: PyResult<Vec<Bound<'py, PyDict>>> = self.0.iter().map(|ring| ring.to_dict(py)).collect();
        account.set_item("rings", rings?)?;
        Ok(account)
    }
}

impl RingAccount {
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let account = PyDict::new(py);
        account.set_item("ring", &self.name)?;
        account.set_item("read", self.read)?;
        account.set_item("lost", self.lost)?;
        account.set_item("given_up", self.given_up)?;
        account.set_item("missing_by_cause", self.by_cause.clone())?;
        account.set_item("first_seqno", self.first_seqno)?;
        account.set_item("last_seqno", self.last_seqno)?;
        Ok(account)
    }
}
