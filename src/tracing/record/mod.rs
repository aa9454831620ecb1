//! Recording what a program does with `tracing`.
//!
//! | file | idea |
//! |---|---|
//! | `init`, `setup_error`, `global` | switching recording on, in code or by the environment |
//! | `recorder`, `builder`, `memory_plan`, `core` | a perf recorder, and the state that its handles share |
//! | `subscriber/`, `layer/`, `sink` | what `tracing` calls, and the recorder that it leads to |
//! | `owner_filter` | whether the filters of a layer's stack let a call site of this crate's own macros through |
//! | `shards`, `thread`, `end_of_thread` | the ring of each thread |
//! | `span_stack/`, `span_map`, `open_spans` | which spans a thread is in, and which are open |
//! | `call_sites`, `constant_text`, `tables` | call sites, their constant texts, and threads, in the tables of shard 0 |
//! | `fields/`, `redact` | the values of fields as bytes, and those that are not to be recorded |
//! | `scope/`, `log/`, `site` | scopes, log records, and the call sites of this crate's own macros |
//! | `caller` | the context of an open span: stored, and written into headers |
//! | `otel/` | the trace and span of each thread, shown to profilers |
//! | `counter`, `trigger`, `instruction_count` | samples, marks, triggers, counts of instructions |
//! | `replayed` | recording again what was captured |

pub(super) mod builder;
pub(super) mod call_sites;
#[cfg(feature = "context")]
pub(super) mod caller;
pub(super) mod constant_text;
pub(super) mod core;
pub(super) mod counter;
pub(super) mod end_of_thread;
pub(super) mod fields;
pub(super) mod global;
pub(super) mod init;
pub(super) mod instruction_count;
pub(super) mod layer;
pub(super) mod log;
pub(super) mod memory_plan;
pub(super) mod open_spans;
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub(crate) mod otel;
mod owner_filter;
mod present;
pub(super) mod recorder;
pub(super) mod redact;
pub(crate) mod replayed;
pub(super) mod scope;
pub(super) mod setup_error;
pub(super) mod shards;
pub(super) mod sink;
mod sinks;
pub(super) mod site;
pub(super) mod span_map;
pub(super) mod span_stack;
pub(super) mod subscriber;
pub(super) mod tables;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
pub(super) mod thread;
pub(super) mod trigger;
