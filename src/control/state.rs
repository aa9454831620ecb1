//! The recording of a process, as a client sees it.

use std::time::Duration;

/// The time for which a wish lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WishTime {
    /// The life of the connection.
    Connection,
    /// A fixed time, whether the client lives or not.
    For(Duration),
    /// Life without an end, until the wish is taken back with [`Process::withdraw`](super::Process::withdraw), or the
    /// program ends.
    Kept,
}

/// A wish of a client that something is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ClientWish {
    /// The process of the client. It is 0 if the program does not see this process, because of its pid namespace.
    pub pid: u32,
    /// The user of the client.
    pub user: u32,
    /// The directive.
    pub directive: String,
    /// The time at which the wish ends, in nanoseconds since the epoch. `None` if no time ends it.
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
    /// True if the configuration of the program forbids the domain. Then no wish switches it on.
    pub is_forbidden: bool,
}

/// The recording of a process: what is on, and who wants it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ProcessState {
    /// The directives that the program itself has set.
    pub configured: String,
    /// The directives in force: those of the program and those of all wishes.
    pub effective: String,
    /// The wishes in force, in the order in which they came.
    pub wishes: Vec<ClientWish>,
    /// The domains of the program's events.
    pub domains: Vec<Domain>,
}
