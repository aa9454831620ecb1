//! Recording the kernel's data about the threads of a program.
//!
//! | file | idea |
//! |---|---|
//! | `options` | which records are made, and of which processes |
//! | `kernel/` | the kernel's buffers and records |
//! | `clock` | conversion of the kernel's times to the times of rings |
//! | `threads` | the threads that are followed |
//! | `follow` | conversion of the kernel's records to events |
//! | `calls` | the conversion for system calls, samples and mapped files |
//! | `stacks/` | stacks: their frames, their ids, and the names of functions |
//! | `rings` | the rings of the events |
//! | `session` | the beginning of a recording, and its end |
//! | `worker` | the thread that reads the buffers |

mod calls;
mod clock;
mod follow;
mod kernel;
mod options;
mod rings;
mod session;
mod stacks;
mod threads;
mod worker;

pub use kernel::rights::Missing;
pub use options::{ProfileOptions, ProfileTarget};
pub use session::{Prepared, Recording};
pub use stacks::now::stacks_now;
pub use threads::ProfileSummary;
