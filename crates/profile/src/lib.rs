//! The kernel's data about the threads of a program, joined with the program's spans, and the reasons why a span was
//! slow.
//!
//! | file | idea |
//! |---|---|
//! | `schema` | the recorded events: switches, wake-ups, system calls, stacks |
//! | `frame` | a frame of a stack, with its name |
//! | `frames` | the last stack of each thread of a capture, with names |
//! | `record/` | recording the kernel's records as events in rings (Linux on x86-64 and ARM64) |
//! | `line/` | the time line of each thread |
//! | `by_span/` | the time of threads, and their samples, by the span that they were in |
//! | `why/` | why a span was slow |
//! | `maps` | the files that are mapped at the addresses of a process |
//! | `symbols` | names of addresses |

#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod by_span;
mod frame;
pub mod frames;
mod line;
mod maps;
#[cfg(all(
    feature = "record",
    target_os = "linux",
    not(eventring_unsupported),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub mod record;
pub mod schema;
#[cfg(all(feature = "symbols", target_os = "linux", not(eventring_unsupported)))]
mod symbols;
pub mod why;

#[cfg(test)]
eventring_stress::names_lead_nowhere!();
