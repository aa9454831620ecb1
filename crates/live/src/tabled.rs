//! The open spans in tables of the present, used instead of those of a replay.

use super::core::LiveCore;
use eventring::tracing::{CallSite, Catalog};
use eventring_capture::recording::{RecordingTables, TabledSpan, TabledSpans};
use std::sync::Arc;

/// The open spans of a recorder.
pub(super) struct Tabled {
    pub(super) recorder: u32,
    /// The index of its catalog.
    index: usize,
    pub(super) process: usize,
    pub(super) spans: TabledSpans,
}

impl Tabled {
    pub(super) fn catalog<'s>(&self, tables: &'s RecordingTables) -> &'s Catalog {
        &tables.catalogs[self.index]
    }

    #[inline]
    pub(super) fn call_site<'s>(&self, span: &TabledSpan, tables: &'s RecordingTables) -> Option<&'s CallSite> {
        self.catalog(tables).known_call_site(span.call_site_id).map(Arc::as_ref)
    }
}

impl LiveCore {
    /// Takes the open spans of a recorder. `last_nanos` is the time of its last event.
    pub(super) fn show(&mut self, recorder: u32, tables: &RecordingTables, (spans, last_nanos): (TabledSpans, u64)) {
        let origin = tables.rings.origin(recorder);
        let Some(shard) = origin.shard else { return };
        let process = &mut self.processes[origin.process_index];
        process.last_nanos = process.last_nanos.max(last_nanos).max(spans.last_epoch_nanos());
        let tabled = Tabled { recorder, index: shard.recorder_index, process: origin.process_index, spans };
        self.tabled.get_or_insert_default().push(tabled);
    }

    /// Returns the place of an open span of a process that tables show: the index of the tables, and the place there.
    #[inline]
    pub(super) fn place_of(&self, process: usize, id: u64) -> Option<(u32, u32)> {
        let mut all = (0..).zip(self.tabled.iter().flatten()).filter(|(_, tabled)| tabled.process == process);
        all.find_map(|(index, tabled)| Some((index, tabled.spans.place_of(id)? as u32)))
    }
}
