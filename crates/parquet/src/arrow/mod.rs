//! The tables of a capture as Arrow arrays.
//!
//! | file | idea |
//! |---|---|
//! | `tail` | the tables of live rings |
//! | `tail_progress` | the time until which all records of rings have arrived |

pub(crate) mod tail;
pub(crate) mod tail_progress;

use super::field_types::FieldTypes;
use super::seqno_counts::SeqnoCounts;
use super::tables::ParquetTables;
use crate::tables::table_sink::{RowGroup, TableSink};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use eventring_capture::recording::{CaptureRecording, replay_capture, write_error};
use eventring_capture::{CaptureError, CaptureFile};
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

/// The counts and problems of what was given to a consumer.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ArrowSummary {
    /// The counts of each ring, in the order of the capture's rings.
    pub rings: Vec<SeqnoCounts>,
    /// The problems of the capture, a line each.
    pub problems: Vec<String>,
}

/// Gives all tables of a capture to a consumer, in several batches of rows each.
///
/// # Errors
/// As [`export`](eventring_export::export), or the consumer wants no more rows.
pub fn tables_of_capture(capture: &CaptureFile, sink: &mut dyn ArrowSink) -> Result<ArrowSummary, CaptureError> {
    let recording = CaptureRecording::new(capture)?;
    let types = FieldTypes::read(&recording)?;
    let mut out = NumberedTables { sink, count: 0 };
    let mut tables = ParquetTables::new(&recording, &types, None, &mut out).map_err(write_error)?;
    tables.seqno_counts = SeqnoCounts::of_rings(&recording);
    let counts = replay_capture(&recording, &mut tables)?;
    let rings = std::mem::take(&mut tables.seqno_counts);
    tables.finish().map_err(write_error)?;
    crate::tables::chain::write(capture, &mut out).map_err(write_error)?;
    let problems = [counts.problems, capture.left_out()].concat();
    Ok(ArrowSummary { rings, problems })
}

/// Numbers the tables of a consumer.
pub(super) struct NumberedTables<'s> {
    pub(super) sink: &'s mut dyn ArrowSink,
    pub(super) count: usize,
}

impl TableSink for NumberedTables<'_> {
    fn create(&mut self, name: &str, schema: SchemaRef, _: usize) -> io::Result<usize> {
        self.sink.table(name, schema);
        self.count += 1;
        Ok(self.count - 1)
    }

    fn send_rows(&mut self, table: usize, rows: RowGroup) -> io::Result<()> {
        self.sink.rows(table, rows.sorted()?)
    }
}
