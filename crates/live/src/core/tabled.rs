//! The open spans in tables of the present, used instead of those of a replay.

use eventring::now::LockCell;
use eventring::tracing::{CallSite, Catalog};
use eventring_capture::recording::{RecordingTables, TabledSpan, TabledSpans};
use std::sync::Arc;

/// The open spans of a recorder.
pub(crate) struct Tabled {
    pub(crate) recorder: u32,
    /// The index of its catalog.
    pub(super) index: usize,
    pub(crate) process: usize,
    pub(crate) spans: TabledSpans,
}

/// The waits for locks and the guards of a recorder.
pub(crate) struct TabledLocks {
    pub(super) recorder: u32,
    /// The index of its catalog.
    pub(crate) catalog: usize,
    pub(crate) process: usize,
    pub(crate) cells: Vec<LockCell>,
}

impl Tabled {
    pub(crate) fn catalog<'s>(&self, tables: &'s RecordingTables) -> &'s Catalog {
        &tables.catalogs[self.index]
    }

    #[inline]
    pub(crate) fn call_site<'s>(&self, span: &TabledSpan, tables: &'s RecordingTables) -> Option<&'s CallSite> {
        self.catalog(tables).known_call_site(span.call_site_id).map(Arc::as_ref)
    }
}
