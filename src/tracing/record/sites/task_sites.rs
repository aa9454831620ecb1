//! The call sites of tasks, which mean something for the tables of the present.

use std::sync::atomic::{AtomicU32, Ordering};
use tracing_core::Metadata;

/// The target of the spans of tasks, and of their events (`crates/tokio`).
pub(in crate::tracing::record) const TASK_TARGET: &str = "eventring::task";

/// Ids of call sites of tasks, or [`NOT_MET`] while the process has not met them.
pub(in crate::tracing::record) static TASK: AtomicU32 = AtomicU32::new(NOT_MET);
pub(in crate::tracing::record) static WOKEN: AtomicU32 = AtomicU32::new(NOT_MET);
pub(in crate::tracing::record) static UNWAKEABLE: AtomicU32 = AtomicU32::new(NOT_MET);

/// The id of no call site.
pub(in crate::tracing::record) const NOT_MET: u32 = u32::MAX;

/// Notes the call site, if it is one of tasks.
pub(in crate::tracing::record) fn learn(id: u32, metadata: &Metadata<'_>) {
    if metadata.target() != TASK_TARGET {
        return;
    }
    match metadata.name() {
        "task" if metadata.is_span() => TASK.store(id, Ordering::Relaxed),
        "woken" => WOKEN.store(id, Ordering::Relaxed),
        "unwakeable" => UNWAKEABLE.store(id, Ordering::Relaxed),
        _ => {}
    }
}
