//! The options of a recording: which records it makes, and of which processes.

use std::time::Duration;

/// What a profile records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// Samples of each running thread in a second of its time on a processor. 0 for none.
    pub sample_hz: u32,
    /// Switches and wake-ups.
    pub has_sched: bool,
    /// Stacks: of the samples and, with switches, where threads leave their processors.
    pub has_stacks: bool,
    /// System calls in which threads leave their processors.
    pub has_syscalls: bool,
    /// Names of the addresses, looked up at the end.
    pub resolves: bool,
    /// The time after which stacks, files and threads are told again, for captures that forget the past.
    pub repeats: Option<Duration>,
}

impl Default for ProfileOptions {
    fn default() -> Self {
        Self { sample_hz: 997, has_sched: true, has_stacks: true, has_syscalls: false, resolves: false, repeats: None }
    }
}

/// The processes that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileTarget {
    /// The program that the calling thread starts next, and all processes that it starts.
    NextChild,
    /// Processes that run, and those that they start from now on.
    Processes(Vec<u32>),
}
