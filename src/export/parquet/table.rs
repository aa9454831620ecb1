//! Rows that wait to be a row group.

use super::table_sink::{RowGroup, TableIndex, TableSink};
use arrow_array::ArrayRef;
use arrow_schema::{Field, Schema, SchemaRef};
use std::io;
use std::sync::Arc;

/// The largest number of rows in a row group.
const ROWS_MAX: usize = 128 << 10;
/// The largest size of the rows of a row group, in bytes of memory.
const BYTES_MAX: u64 = 6 << 20;

/// The columns of a table, with the rows that wait.
pub(super) trait RowColumns {
    /// Returns the names and types of the columns.
    fn fields(&self) -> Vec<Field>;

    /// Takes the rows out as arrays, one for each column.
    fn finish(&mut self) -> io::Result<Vec<ArrayRef>>;
}

/// A table, and its number in the output.
pub(super) struct ParquetTable<C> {
    pub(super) columns: C,
    schema: SchemaRef,
    index: TableIndex,
    /// The time of each waiting row.
    nanos: Vec<u64>,
    bytes: u64,
}

impl<C: RowColumns> ParquetTable<C> {
    /// Makes the table. `time_column` is the name of the column with the times of the rows.
    pub(super) fn create(columns: C, name: &str, time_column: &str, out: &mut dyn TableSink) -> io::Result<Self> {
        let schema = Arc::new(Schema::new(columns.fields()));
        let time_index = schema.index_of(time_column).map_err(io::Error::other)?;
        let index = out.create(name, schema.clone(), time_index)?;
        Ok(Self { columns, schema, index, nanos: Vec::new(), bytes: 0 })
    }

    /// Returns the number of columns, with those inside of structs and lists.
    pub(super) fn column_count(&self) -> usize {
        self.schema.flattened_fields().len()
    }

    /// Notes that `columns` have one more row. `bytes` is an estimate of the memory that it takes.
    pub(super) fn end_row(&mut self, nanos: u64, bytes: u64, out: &mut dyn TableSink) -> io::Result<()> {
        self.nanos.push(nanos);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.nanos.len() >= ROWS_MAX || self.bytes >= BYTES_MAX { self.flush(out) } else { Ok(()) }
    }

    /// Returns an estimate of the memory that the waiting rows take, in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.bytes
    }

    /// Passes the waiting rows on as a row group.
    pub(super) fn flush(&mut self, out: &mut dyn TableSink) -> io::Result<()> {
        if self.nanos.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let rows = RowGroup::new(self.schema.clone(), self.columns.finish()?, std::mem::take(&mut self.nanos))?;
        out.send_rows(self.index, rows)
    }
}
