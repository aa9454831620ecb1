//! This process: its forks, and its data for other processes.
//!
//! | file | idea |
//! |---|---|
//! | `this_process`, `fork_guard` | noticing a fork |
//! | `uninherited` | descriptors that forked children do not inherit |
//! | `timed_lock` | locks for which a forked child waits only a limited time |
//! | `not_recording` | a note for other processes about why this process records nothing |
//! | `process_context` | the process's data for profilers |

pub(super) mod fork_guard;
pub(super) mod not_recording;
#[cfg(all(feature = "otel-context", target_arch = "x86_64"))]
pub(super) mod process_context;
pub(super) mod this_process;
pub(super) mod timed_lock;
pub(super) mod uninherited;
