//! The tables of rings as Arrow arrays, as the rings are recorded.

use super::arrow::{ArrowSink, ArrowSummary, NumberedTables};
use super::field_types::FieldTypes;
use super::seqno_counts::Counted;
use super::tables::{ParquetTables, TailState};
use super::tail_progress::TailProgress;
use eventring::tracing::SpanReplay;
use eventring_capture::recording::CaptureRecording;
use eventring_capture::{CaptureError, CaptureFile, CapturedLife, EndReason};
use eventring_export::pass::{self, Pass as _};

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
    replays: Vec<SpanReplay>,
    progress: TailProgress,
    tables: TailState,
    kept_bytes_max: u64,
}

impl Default for ArrowTail {
    fn default() -> Self {
        Self {
            replays: Vec::new(),
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
    /// As [`tables_of_capture`](super::tables_of_capture).
    pub fn push(&mut self, batch: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<ArrowSummary, CaptureError> {
        let recording = CaptureRecording::new(batch)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let state = std::mem::take(&mut self.tables);
        let tables = ParquetTables::of_batch(&recording, &types, state, &mut out).map_err(pass::write_error)?;
        let mut tables = Counted::new(&recording, tables);
        self.note_times(&recording, &tables);
        let (counts, ..) = pass::run_on(&recording, &mut tables, &mut self.replays)?;
        let Counted { mut tables, rings } = tables;
        for (process_index, replay) in self.replays.iter_mut().enumerate() {
            replay.end_batch();
            while let Some(span) = replay.take_closed_boxed() {
                tables.span(process_index, &span).map_err(pass::write_error)?;
                replay.recycle(span);
            }
        }
        let kept_bytes = self.replays.iter().map(SpanReplay::kept_bytes).fold(0, u64::saturating_add);
        if kept_bytes > self.kept_bytes_max {
            let of_process_max = self.kept_bytes_max / self.replays.len().max(1) as u64;
            for (process_index, replay) in self.replays.iter_mut().enumerate() {
                for span in replay.make_room(of_process_max) {
                    tables.span(process_index, &span).map_err(pass::write_error)?;
                }
            }
        }
        self.tables = tables.finish_batch().map_err(pass::write_error)?;
        let problems = [counts.problems.as_slice(), &batch.left_out(), batch.problems()].concat();
        Ok(ArrowSummary { rings, problems })
    }

    /// Notes for each process until when all of its records have come, this batch included. A ring that has no more
    /// events at the end of the batch is complete until then, and another one until its last event.
    fn note_times(&mut self, recording: &CaptureRecording<'_>, tables: &Counted<'_, '_>) {
        let batch = recording.capture;
        let Some(end) = batch.end() else { return };
        self.progress.note(batch, end);
        let processes = recording.processes();
        self.replays.resize_with(processes.len().max(self.replays.len()), || tables.replay());
        for (process, replay) in processes.iter().zip(&mut self.replays) {
            let of_process = batch.rings().iter().map(|ring| ring.process == *process && ring.is_perf());
            replay.begin_batch(self.progress.complete_until(end, of_process));
        }
    }

    /// Gives the spans that are still open to a consumer, as rows of the table `spans`, and those that were closed in
    /// the last milliseconds.
    ///
    /// # Errors
    /// As [`tables_of_capture`](super::tables_of_capture).
    pub fn finish(self, last: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<(), CaptureError> {
        let recording = CaptureRecording::new(last)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let tables = ParquetTables::of_batch(&recording, &types, self.tables, &mut out);
        let mut tables = tables.map_err(pass::write_error)?;
        let last_event_nanos = self.progress.last_event_nanos();
        // The spans of programs that have ended grow no older.
        let last_nanos = match last.end() {
            Some(end) if end.reason != EndReason::WritersEnded => end.ended_epoch_nanos,
            _ => last_event_nanos,
        };
        for (process_index, replay) in self.replays.into_iter().enumerate() {
            let life = recording.processes().get(process_index).map(|process| last.life_of(*process));
            let last_nanos = match life {
                Some(CapturedLife::Ended { end, is_how_known: true }) => end.after_epoch_nanos,
                _ => last_nanos,
            };
            for span in replay.finish(last_nanos) {
                tables.span(process_index, &span).map_err(pass::write_error)?;
            }
        }
        tables.finish_batch().map_err(pass::write_error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
