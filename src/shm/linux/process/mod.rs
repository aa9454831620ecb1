//! This process: its forks, and what others see of it.
//!
//! | file | idea |
//! |---|---|
//! | `this_process`, `fork_guard` | noticing a fork |
//! | `uninherited` | descriptors that forked children do not have |
//! | `timed_lock` | locks that a forked child can do without |
//! | `not_recording` | why this process records nothing, for those who look at it |
//! | `process_context` | the process, for profilers |

pub(super) mod fork_guard;
pub(super) mod not_recording;
#[cfg(all(feature = "otel-context", target_arch = "x86_64"))]
pub(super) mod process_context;
pub(super) mod this_process;
pub(super) mod timed_lock;
pub(super) mod uninherited;
