//! The receiver of the rows of tables: files, or Arrow arrays.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;
use parquet::errors::ParquetError;
use std::io;

/// A consumer of tables.
pub(crate) trait TableSink {
    /// Begins a table. `time_column` is the index of the column by which rows are sorted. Returns the number of the
    /// table, from 0.
    fn create(&mut self, name: &str, schema: SchemaRef, time_column: usize) -> io::Result<usize>;

    /// Takes rows of a table.
    fn send_rows(&mut self, table: usize, rows: RowGroup) -> io::Result<()>;
}

/// The rows of a row group.
pub(crate) struct RowGroup {
    rows: RecordBatch,
    /// The time of each row, by which the rows are sorted.
    nanos: Vec<u64>,
}

impl RowGroup {
    pub(crate) fn new(schema: SchemaRef, columns: Vec<ArrayRef>, nanos: Vec<u64>) -> io::Result<Self> {
        let rows = RecordBatch::try_new(schema, columns).map_err(|error| to_io(error.into()))?;
        Ok(Self { rows, nanos })
    }

    /// Returns the rows in the order of time.
    pub(crate) fn sorted(self) -> io::Result<RecordBatch> {
        if self.nanos.is_sorted() {
            return Ok(self.rows);
        }
        let mut order: Vec<u32> = (0..self.nanos.len() as u32).collect();
        order.sort_by_key(|row| self.nanos[*row as usize]);
        take_record_batch(&self.rows, &UInt32Array::from(order)).map_err(|error| to_io(error.into()))
    }
}

/// Returns the error of the system, if there was one.
pub(crate) fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
