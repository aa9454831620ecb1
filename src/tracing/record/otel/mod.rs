//! Data for profilers of OpenTelemetry. These profilers run outside the process, and read the trace and the span that
//! each thread is in.
//!
//! | file | idea |
//! |---|---|
//! | `shown` | what a thread shows, which changes when the thread enters or exits a span |
//! | `thread_record` | the record of a thread |
//! | `thread_pointer` | the symbol `otel_thread_ctx_v1`, by which readers find the record |
//! | `resource` | the resource of the process, as Protocol Buffers |
//!
//! The module `shm` makes the mapping `OTEL_CTX`, which holds the resource. The layouts are those of the OpenTelemetry
//! enhancement proposals 4719 (process context) and 4947 (thread context).

pub(in crate::tracing) mod resource;
pub(in crate::tracing) mod shown;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod thread_pointer;
mod thread_record;
