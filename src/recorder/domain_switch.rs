//! The switch of a recorder: whether it is on, and which domains it records.

use super::domains::{DomainChoice, DomainNames};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The values from which a recorder computes the domains that it records.
pub(super) struct DomainSwitch {
    pub(super) names: DomainNames,
    values: Mutex<SwitchValues>,
}

/// The values of a [`DomainSwitch`]. A domain is recorded if the recorder is on, the domain is configured or requested,
/// and it is not forbidden.
pub(super) struct SwitchValues {
    pub(super) is_on: bool,
    pub(super) configured: u64,
    pub(super) requested: u64,
    pub(super) forbidden: u64,
    /// Functions that are called after each change.
    pub(super) followers: Vec<Box<dyn Fn() + Send + Sync>>,
}

/// A domain of a recorder, and whether its events are recorded. [`Recorder::domains`](super::Recorder::domains) returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DomainState {
    /// The name of the domain.
    pub name: String,
    /// True if events of the domain are recorded while the recorder is on.
    pub is_enabled: bool,
    /// True if the settings forbid the domain (`!NAME`): it stays off, whatever the program and clients of the process
    /// do.
    pub is_forbidden: bool,
}

impl DomainSwitch {
    /// Makes the switch of a recorder that is on.
    pub(super) fn new(names: DomainNames, choice: DomainChoice) -> Self {
        let DomainChoice { configured, forbidden } = choice;
        let values = SwitchValues { is_on: true, configured, requested: 0, forbidden, followers: Vec::new() };
        Self { names, values: Mutex::new(values) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, SwitchValues> {
        // A poisoned lock may be used: each change is one store, so the values are consistent.
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the bits of the domains that are recorded now, or 0 if the recorder is off.
    pub(super) fn recorded(&self) -> u64 {
        self.lock().recorded()
    }
}

impl SwitchValues {
    pub(super) fn enabled(&self) -> u64 {
        (self.configured | self.requested) & !self.forbidden
    }

    pub(super) fn recorded(&self) -> u64 {
        if self.is_on { self.enabled() } else { 0 }
    }
}
