//! The tables of live rings as Arrow arrays.

use super::tail_progress::TailProgress;
use crate::arrow::{ArrowSink, ArrowSummary, NumberedTables};
use crate::field_types::FieldTypes;
use crate::seqno_counts::SeqnoCounts;
use crate::tables::{NEEDS, ParquetTables, TailState};
use eventring_capture::recording::{CaptureRecording, RecordingReplay, ReplayBounds, ReplayConsumer, write_error};
use eventring_capture::{CaptureError, CaptureFile, CapturedLife, EndReason};
use eventring_export::exec::ring_blocks::RingBlocks;

/// The limit for what is kept of open spans, in bytes as they are estimated: some 400,000 spans without fields.
const KEPT_BYTES_MAX: u64 = 512 << 20;

/// The tables of what comes in batches, one after the other. Each closed span is a row of one batch: of the first one
/// after which no more records of the span can come.
///
/// A table has the same name and columns in all batches, and is in each batch from the first one on that may have it.
/// Fields of spans and log records are in the column `fields`, and have no columns of their own: nobody knows which
/// ones will come.
///
/// The memory for open spans is limited. Beyond that, spans whose close may have been lost become rows, and then the
/// oldest open spans. If the close of such a span comes after all, it is a second row.
pub struct ArrowTail {
    replay: RecordingReplay,
    progress: TailProgress,
    tables: TailState,
    kept_bytes_max: u64,
}

impl Default for ArrowTail {
    fn default() -> Self {
        Self {
            replay: RecordingReplay::new(NEEDS, ReplayBounds::Refuse),
            progress: TailProgress::default(),
            tables: TailState::default(),
            kept_bytes_max: KEPT_BYTES_MAX,
        }
    }
}

impl ArrowTail {
    /// Gives the tables of the next batch to a consumer. The batches are those of one capture, in their order.
    ///
    /// # Errors
    /// As [`tables_of_capture`](crate::tables_of_capture).
    pub fn push(&mut self, batch: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<ArrowSummary, CaptureError> {
        let recording = CaptureRecording::new(batch)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let state = std::mem::take(&mut self.tables);
        let mut tables = ParquetTables::new(&recording, &types, Some(state), &mut out).map_err(write_error)?;
        tables.seqno_counts = SeqnoCounts::of_rings(&recording);
        let mut entries = recording.entries();
        self.replay.grow(entries.tables());
        // The blocks are those of the batch. Other parts stay from batch to batch.
        self.replay.parts.set(RingBlocks::new(batch));
        tables.follow(&mut self.replay.parts);
        self.note_times(&recording);
        self.replay.drive(&mut entries, &mut tables)?;
        let rings = std::mem::take(&mut tables.seqno_counts);
        self.replay.end_batch(self.kept_bytes_max, entries.tables(), &mut tables).map_err(write_error)?;
        self.tables = tables.finish_batch().map_err(write_error)?;
        let problems = [entries.problems(), &batch.left_out(), batch.problems()].concat();
        Ok(ArrowSummary { rings, problems })
    }

    /// Notes for each process until when all of its records have come, this batch included. A ring that has no more
    /// events at the end of the batch is complete until then, and another one until its last event.
    fn note_times(&mut self, recording: &CaptureRecording<'_>) {
        let batch = recording.capture;
        let Some(end) = batch.end() else { return };
        self.progress.note(batch, end);
        let until = |process: &u32| {
            let of_process = batch.rings().iter().map(|ring| ring.process == *process && ring.is_perf());
            self.progress.complete_until(end, of_process)
        };
        let complete_until: Vec<u64> = recording.processes().iter().map(until).collect();
        self.replay.begin_batch(&complete_until);
    }

    /// Gives the spans that are still open to a consumer, as rows of the table `spans`, and those that were closed in
    /// the last milliseconds.
    ///
    /// # Errors
    /// As [`tables_of_capture`](crate::tables_of_capture).
    pub fn finish(self, last: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<(), CaptureError> {
        let recording = CaptureRecording::new(last)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let tables = ParquetTables::new(&recording, &types, Some(self.tables), &mut out);
        let mut tables = tables.map_err(write_error)?;
        let last_event_nanos = self.progress.last_event_nanos();
        // The spans of programs that have ended grow no older.
        let last_nanos = match last.end() {
            Some(end) if end.reason != EndReason::WritersEnded => end.ended_epoch_nanos,
            _ => last_event_nanos,
        };
        let until = |process: &u32| match last.life_of(*process) {
            CapturedLife::Ended { end, is_how_known: true } => end.after_epoch_nanos,
            _ => last_nanos,
        };
        let end_nanos: Vec<u64> = recording.processes().iter().map(until).collect();
        self.replay.finish(&end_nanos, recording.entries().tables(), &mut tables).map_err(write_error)?;
        tables.finish_batch().map_err(write_error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
