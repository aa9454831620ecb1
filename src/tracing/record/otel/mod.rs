//! Data for profilers of OpenTelemetry. These profilers run outside the process, and read the trace and the span that
//! each thread is in.
//!
//! | file | idea |
//! |---|---|
//! | `thread_record` | the record of a thread, which changes when the thread enters or exits a span |
//! | `thread_pointer` | the symbol `otel_thread_ctx_v1`, by which readers find the record |
//! | `resource` | the resource of the process, as Protocol Buffers |
//!
//! The mapping `OTEL_CTX` with the resource is in `shm`. The layouts are those of the OpenTelemetry enhancement
//! proposals 4719 (process context) and 4947 (thread context).

mod resource;
#[allow(unsafe_code, reason = "one of the modules that ARCHITECTURE names for it")]
mod thread_pointer;
mod thread_record;

use crate::shm;
use crate::tracing::PerfRecorder;
use crate::tracing::context::ProcessIds;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
pub(in crate::tracing::record) use thread_record::show_span;

/// What makes the ids that threads show; empty until they are shown.
static IDS: OnceLock<ProcessIds> = OnceLock::new();

/// Shows profilers the resource of this process, and from now on the trace and span of each thread, when it enters or
/// exits one. The ids are those that exports of `recorder` show. Call it once, after the recorder was made: a second
/// call does nothing. A forked child shows no resource.
///
/// Profilers find the record of a thread by the symbol `otel_thread_ctx_v1`. The linker exports it from a program only
/// if it is told to: `docs/CONTEXT.md` says how.
///
/// # Errors
/// The system refuses the mapping that holds the resource. Then nothing is shown.
pub fn publish(recorder: &PerfRecorder) -> io::Result<()> {
    static PUBLISHING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = PUBLISHING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(ids) = recorder.core.process_ids().filter(|_| IDS.get().is_none()) else { return Ok(()) };
    shm::publish_process_context(&resource::encode(&crate::recorder::recorded_program_name(), ids))?;
    IDS.get_or_init(|| ids.clone());
    Ok(())
}
