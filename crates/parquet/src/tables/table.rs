//! Rows that wait until they are a whole row group.

use super::table_sink::{RowGroup, TableSink};
use crate::columns::row_columns::RowColumns;
use arrow_schema::{Schema, SchemaRef};
use eventring_export::rows::Row;
use std::io;
use std::sync::Arc;

/// The largest number of rows in a row group.
const ROWS_MAX: usize = 128 << 10;
/// The size of the rows of a row group at which it ends at the latest, in bytes of memory: the smallest, the size for
/// each column, and the largest. Readers and writers keep a description of each column of each row group, so a table
/// with many columns has larger row groups.
const BYTES_MIN: u64 = 8 << 20;
const COLUMN_BYTES_MIN: u64 = 96 << 10;
const BYTES_MAX: u64 = 16 << 20;
/// An estimate of the bytes that the writer keeps for each column of a row group: its place and its statistics.
const DESCRIPTION_BYTES: u64 = 2048;

/// A table, and its number in the output.
pub(crate) struct ParquetTable {
    columns: RowColumns,
    schema: SchemaRef,
    index: usize,
    /// The time of each waiting row.
    nanos: Vec<u64>,
    bytes: u64,
    bytes_max: u64,
    column_count: usize,
    /// The number of row groups that were passed on.
    row_groups: u64,
}

impl ParquetTable {
    /// Makes the table. `time_column` is the name of the column with the times of the rows.
    pub(crate) fn create(
        mut columns: RowColumns,
        name: &str,
        time_column: &str,
        out: &mut dyn TableSink,
    ) -> io::Result<Self> {
        let schema = Arc::new(Schema::new(columns.fields()));
        let index = create_empty(name, &schema, time_column, out)?;
        let column_count = schema.flattened_fields().len();
        let bytes_max = (column_count as u64 * COLUMN_BYTES_MIN).clamp(BYTES_MIN, BYTES_MAX);
        Ok(Self { columns, schema, index, nanos: Vec::new(), bytes: 0, bytes_max, column_count, row_groups: 0 })
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the number of columns, with those inside of structs and lists.
    pub(crate) fn column_count(&self) -> usize {
        self.column_count
    }

    /// Appends a row of this time. Returns an estimate of the bytes that it takes.
    pub(crate) fn push(&mut self, nanos: u64, row: &impl Row, out: &mut dyn TableSink) -> io::Result<u64> {
        let row_bytes = self.columns.push(row)?;
        self.nanos.push(nanos);
        self.bytes = self.bytes.saturating_add(row_bytes);
        let (rows, bytes) = (self.nanos.len(), self.bytes);
        // Columns grow to twice their size when the number of rows is a power of two. That is not worth the few rows
        // that a large row group can still take.
        let would_grow = (rows + 1).is_power_of_two() && bytes >= self.bytes_max / 8 * 5;
        if rows >= ROWS_MAX || bytes >= self.bytes_max || would_grow {
            self.flush(out)?;
        }
        Ok(row_bytes)
    }

    /// Returns an estimate of the memory that the waiting rows take, in bytes.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns an estimate of the memory that is kept for the row groups that were passed on, in bytes.
    pub(crate) fn described_bytes(&self) -> u64 {
        (self.column_count() as u64 * DESCRIPTION_BYTES).saturating_mul(self.row_groups)
    }

    /// Passes the waiting rows on as a row group.
    pub(crate) fn flush(&mut self, out: &mut dyn TableSink) -> io::Result<()> {
        if self.nanos.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        self.row_groups += 1;
        let rows = RowGroup::new(self.schema.clone(), self.columns.take()?, std::mem::take(&mut self.nanos))?;
        out.send_rows(self.index, rows)
    }
}

/// Begins a table without rows.
pub(crate) fn create_empty(
    name: &str,
    schema: &SchemaRef,
    time_column: &str,
    out: &mut dyn TableSink,
) -> io::Result<usize> {
    let time_index = schema.index_of(time_column).map_err(io::Error::other)?;
    out.create(name, schema.clone(), time_index)
}
