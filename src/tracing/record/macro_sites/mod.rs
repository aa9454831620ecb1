//! The call sites of this crate's own macros for the perf ring: `scope!`, and those of the module `log`.
//!
//! These call sites are registered with `tracing`, so filters and filter overrides apply to them, too.
//!
//! The macros record only to the recorder in [`PERF`](crate::tracing::PERF). So only the subscriber or layer that
//! records to this recorder decides. It notes its answer when `tracing` asks: at the registration, and when a filter
//! changes.
//!
//! | file | idea |
//! |---|---|
//! | `site` | a call site, and whether it is on |
//! | `active` | how many subscribers and layers record to the global recorder |
//!
//! `sinks/answer.rs` notes the answers, and `macro_filter/` asks for them.

pub(in crate::tracing) mod active;
pub(in crate::tracing) mod site;
