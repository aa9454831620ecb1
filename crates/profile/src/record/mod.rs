//! Records what the kernel says about the threads of a program.
//!
//! | file | idea |
//! |---|---|
//! | `options` | what is recorded, and of which processes |
//! | `rights` | what this user may ask the kernel for, and what a user has to allow |
//! | `formats` | tracepoints: their numbers, and where their fields lie |
//! | `counters` | the kernel's buffers: how they are opened |
//! | `opening` | which buffers are opened for which processes |
//! | `records` | one record of the kernel, taken apart |
//! | `samples` | samples: stacks and tracepoints |
//! | `clock` | from the kernel's clock to the time line of rings |
//! | `order` | records of all buffers in the order of time |
//! | `threads` | the threads that are followed |
//! | `follow` | from records to events |
//! | `calls` | the same for system calls, samples and mapped files |
//! | `maps` | which file lies at which address of a process |
//! | `code` | the files with the code of processes, open |
//! | `stacks_now` | where threads are at this moment |
//! | `unwind` | return addresses from a copy of a stack |
//! | `stacks` | stacks and their numbers |
//! | `symbols` | names of addresses |
//! | `rings` | the rings of the events |
//! | `session` | the beginning of a recording, and its end |
//! | `worker` | the thread that reads the buffers |
//! | `system` | processors and threads of the system |

mod calls;
mod clock;
mod code;
mod counters;
mod follow;
mod formats;
mod maps;
mod opening;
mod options;
mod order;
mod records;
mod rights;
mod rings;
mod samples;
mod session;
mod stacks;
mod stacks_now;
mod symbols;
mod system;
mod threads;
mod unwind;
mod worker;

pub use options::{ProfileOptions, ProfileTarget};
pub use rights::Missing;
pub use session::{Prepared, Recording};
pub use stacks_now::stacks_now;
pub use threads::ProfileSummary;
