//! The tables of a capture as Arrow arrays, and those of rings as they are recorded.

use super::field_types::FieldTypes;
use super::table_sink::{RowGroup, TableIndex, TableSink};
use super::tables::ParquetTables;
use super::write_rows;
use crate::capture::{CaptureError, CaptureFile};
use crate::export::recording::CaptureRecording;
use crate::export::{ExportSummary, pass};
use crate::tracing::SpanReplay;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::io;

/// A consumer of tables of Arrow arrays. The tables have the names and the columns of the Parquet files.
pub trait ArrowSink {
    /// Begins a table. The first one has the number 0.
    fn table(&mut self, name: &str, schema: SchemaRef);

    /// Takes rows of the table with this number.
    ///
    /// # Errors
    /// No more rows are wanted.
    fn rows(&mut self, table: usize, rows: RecordBatch) -> io::Result<()>;
}

/// Gives all tables of a capture to a consumer, in several batches of rows each.
///
/// # Errors
/// As [`export`](crate::export::export), or the consumer wants no more rows.
pub fn tables_of_capture(capture: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<ExportSummary, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let types = FieldTypes::of(&recording)?;
    let mut summary = write_rows(&recording, &types, &mut NumberedTables { sink, count: 0 })?;
    summary.problems.extend_from_slice(capture.problems());
    Ok(summary)
}

/// The tables of what comes in batches, one after the other. A span is a row of the batch in which it was closed.
///
/// Fields of spans and log records are in the column `fields`, and have no columns of their own: nobody knows which
/// ones will come.
#[derive(Default)]
pub struct ArrowTail {
    replays: Vec<SpanReplay>,
}

impl ArrowTail {
    /// Gives the tables of the next batch to a consumer. The batches are those of one capture, in their order.
    ///
    /// # Errors
    /// As [`tables_of_capture`].
    pub fn push(&mut self, batch: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<(), CaptureError> {
        let recording = CaptureRecording::new(batch)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let mut tables = ParquetTables::new(&recording, &types, &mut out).map_err(pass::write_error)?;
        pass::run_on(&recording, &mut tables, &mut self.replays)?;
        tables.finish().map_err(pass::write_error)
    }

    /// Gives the spans that are still open to a consumer, as rows of the table `spans`.
    ///
    /// # Errors
    /// As [`tables_of_capture`].
    pub fn finish(self, last: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<(), CaptureError> {
        let recording = CaptureRecording::new(last)?;
        let types = FieldTypes::default();
        let mut out = NumberedTables { sink, count: 0 };
        let mut tables = ParquetTables::new(&recording, &types, &mut out).map_err(pass::write_error)?;
        let last_nanos = last.end().map_or(0, |end| end.ended_epoch_nanos);
        for (process_index, replay) in self.replays.into_iter().enumerate() {
            for span in replay.finish(last_nanos) {
                tables.span(process_index, &span).map_err(pass::write_error)?;
            }
        }
        tables.finish().map_err(pass::write_error)
    }
}

/// Numbers the tables of a consumer.
struct NumberedTables<'s> {
    sink: &'s mut dyn ArrowSink,
    count: usize,
}

impl TableSink for NumberedTables<'_> {
    fn create(&mut self, name: &str, schema: SchemaRef, _: usize) -> io::Result<TableIndex> {
        self.sink.table(name, schema);
        self.count += 1;
        Ok(TableIndex(self.count - 1))
    }

    fn send_rows(&mut self, table: TableIndex, rows: RowGroup) -> io::Result<()> {
        self.sink.rows(table.0, rows.sorted()?)
    }
}
