//! What the kernel says about the threads of a program, beside the program's spans, and why a span was slow.
//!
//! | file | idea |
//! |---|---|
//! | `schema` | what is recorded: switches, wake-ups, system calls, stacks |
//! | `frame` | a frame of a stack, with its name |
//! | `frames` | the last stack of each thread of a capture, with names |
//! | `record/` | the recording: from the kernel's records to events in rings (Linux on x86-64 and ARM64) |
//! | `line/` | what each thread did when |
//! | `by_span/` | where the time of threads went, and their samples, by the span that they were in |
//! | `why/` | where the time of a slow span went |
//! | `maps` | which file lies at which address of a process |
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
