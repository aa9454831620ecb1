//! Showing profilers what program this is, and in which span each thread is.

use crate::shm;
use crate::tracing::record::otel::resource;
use crate::tracing::record::otel::shown::IDS;
use crate::tracing::record::perf_recorder::handle::PerfRecorder;
use std::io;
use std::sync::{Mutex, PoisonError};

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
