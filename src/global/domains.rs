//! The domains of the recorder that is installed in a global recorder.

use super::global_recorder::GlobalRecorder;
use crate::recorder::{DomainState, UnknownDomain};

impl GlobalRecorder {
    /// Returns the domains of the installed recorder ([`Recorder::domains`](crate::recorder::Recorder::domains)).
    /// Returns an empty list if no recorder is installed.
    pub fn domains(&'static self) -> Vec<DomainState> {
        self.installed().map_or_else(Vec::new, |installed| installed.domains())
    }

    /// Switches a domain of the installed recorder on. Has no effect if no recorder is installed. A domain that the
    /// configuration forbids stays off.
    ///
    /// # Errors
    /// Returns an error if the installed recorder has no domain of that name.
    pub fn enable_domain(&'static self, name: &str) -> Result<(), UnknownDomain> {
        self.installed().map_or(Ok(()), |installed| installed.enable_domain(name))
    }

    /// Switches a domain of the installed recorder off. Has no effect if no recorder is installed. From then on,
    /// `record!` evaluates and records nothing for an event of the domain, except on threads with an override, whose
    /// recorder has domains of its own.
    ///
    /// # Errors
    /// Returns an error if the installed recorder has no domain of that name.
    pub fn disable_domain(&'static self, name: &str) -> Result<(), UnknownDomain> {
        self.installed().map_or(Ok(()), |installed| installed.disable_domain(name))
    }
}
