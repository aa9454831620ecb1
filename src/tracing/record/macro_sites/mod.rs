//! The call sites of this crate's own macros for the perf ring: `scope!`, and those of the module `log`.
//!
//! These call sites are registered with `tracing` like those of `tracing`'s macros, so the same filters and filter
//! overrides apply. When a filter changes, `tracing` asks again about each call site. But the macros record only to the
//! recorder in [`PERF`](crate::tracing::PERF). So only the subscriber or layer that records to this recorder decides:
//! it notes its answer when `tracing` asks it.
//!
//! | file | idea |
//! |---|---|
//! | `site` | a call site, and whether it is on |
//! | `active` | how many subscribers and layers record to the global recorder |
//!
//! `sinks/answer.rs` notes the answers, and `macro_filter/` asks for them.

pub(in crate::tracing) mod active;
pub(in crate::tracing) mod site;
