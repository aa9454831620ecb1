//! A perf recorder: how it is configured, installed and used.
//!
//! | file | idea |
//! |---|---|
//! | `handle` | a perf recorder |
//! | `global` | the perf recorder of the process |
//! | `builder`, `memory_plan` | the configuration of a recorder, and the sizes of its rings |
//! | `replayed` | recording captured events again |
//! | `otel_context` | what profilers see of the process and its threads |

pub(in crate::tracing) mod builder;
pub(in crate::tracing) mod global;
pub(in crate::tracing) mod handle;
pub(in crate::tracing) mod memory_plan;
#[cfg(all(feature = "otel-context", target_os = "linux", target_arch = "x86_64", not(eventring_unsupported)))]
pub(in crate::tracing) mod otel_context;
pub(crate) mod replayed;
