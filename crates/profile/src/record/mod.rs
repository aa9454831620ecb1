//! Recording the kernel's data about the threads of a program.
//!
//! | file | idea |
//! |---|---|
//! | `options` | which records are made, and of which processes |
//! | `rights` | the data that this user may get from the kernel, and the settings that allow the rest |
//! | `formats` | tracepoints: their numbers, and the places of their fields |
//! | `counters` | opening the kernel's buffers |
//! | `opening` | which buffers are opened for which processes |
//! | `records` | parsing one record of the kernel |
//! | `samples` | samples: stacks and tracepoints |
//! | `clock` | conversion of the kernel's times to the times of rings |
//! | `order` | records of all buffers in the order of time |
//! | `threads` | the threads that are followed |
//! | `follow` | conversion of the kernel's records to events |
//! | `calls` | the same for system calls, samples and mapped files |
//! | `maps` | the files that are mapped into a running process |
//! | `code` | the files with the code of processes, open |
//! | `stacks_now` | the stacks of threads at this moment |
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
