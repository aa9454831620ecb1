//! Recording what a program does with `tracing`.
//!
//! | folder | idea |
//! |---|---|
//! | `perf_recorder/` | a perf recorder: how it is made, installed and used |
//! | `subscriber/`, `layer/` | the subscriber and the layer, which `tracing` calls |
//! | `sinks/` | the recorder to which a subscriber or layer records |
//! | `spans/` | which spans a thread is in, and which are open |
//! | `scope/`, `log/` | scopes and log records of this crate's own macros |
//! | `fields/` | the values of fields as bytes, and the fields that must not be recorded |
//! | `sites/` | call sites, and the tables that describe them |
//! | `threads/` | the ring of each thread |
//! | `caller` | the context of an open span: stored, and written into headers |
//! | `otel/` | the trace and span of each thread, published for profilers |
//! | `locks/` | the locks of [`crate::sync`] |
//! | `counter`, `trigger` | samples, marks, triggers |

#[cfg(feature = "context")]
pub(super) mod caller;
pub(super) mod counter;
mod encoding;
mod events;
pub(super) mod fields;
pub(super) mod init;
pub(super) mod layer;
pub(crate) mod locks;
pub(super) mod log;
mod macro_filter;
pub(super) mod macro_sites;
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub(crate) mod otel;
pub(crate) mod perf_recorder;
mod rings;
pub(super) mod scope;
pub(super) mod sinks;
pub(super) mod sites;
pub(super) mod spans;
pub(super) mod subscriber;
pub(crate) mod threads;
pub(super) mod trigger;
