//! These types hold what a server reports: what its process records at present.

use std::time::Duration;

/// The time for which a filter override lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OverrideTime {
    /// The life of the connection.
    Connection,
    /// A fixed time, whether the client lives or not.
    For(Duration),
    /// Life without an end, until the filter override is revoked with [`Process::revoke`](super::Process::revoke), or
    /// the program ends.
    Kept,
}

/// A filter override of a client that something is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientOverride {
    /// The process of the client. It is 0 if the program does not see this process, because of its pid namespace.
    pub pid: u32,
    /// The user of the client.
    pub user: u32,
    /// The directive.
    pub directive: String,
    /// The time at which the filter override ends, in nanoseconds since the epoch. `None` if no time ends it.
    pub until_epoch_nanos: Option<u64>,
}

/// A domain of the program's events.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Domain {
    /// The name.
    pub name: String,
    /// True if events of the domain are recorded.
    pub is_enabled: bool,
    /// True if the configuration of the program forbids the domain. Then no filter override switches it on.
    pub is_forbidden: bool,
}

/// The recording of a process: what is on, and who wants it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProcessState {
    /// The directives that the program itself has set.
    pub configured: String,
    /// The directives in force: those of the program and those of all filter overrides.
    pub effective: String,
    /// The filter overrides in force, in the order in which they came.
    pub overrides: Vec<ClientOverride>,
    /// The domains of the program's events.
    pub domains: Vec<Domain>,
}
