//! The thread that writes row groups, and the files to which it writes them.

use crate::export::files::ExportFiles;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The row groups that wait for the thread that writes.
const WAITING_MAX: usize = 1;
/// The level of compression. Higher levels take twice the time and save a tenth.
const ZSTD_LEVEL: i32 = 1;

/// The text with which each file says who wrote it. The version follows.
pub(super) const CREATED_BY: &str = "eventring version ";

type FileWriter = ArrowWriter<Box<dyn Write + Send>>;

/// The files, and the way to the thread that writes them.
pub(super) struct RowGroups<'f> {
    files: &'f mut dyn ExportFiles,
    sender: SyncSender<RowMessage>,
    count: usize,
}

/// A file among those of an export.
#[derive(Clone, Copy)]
pub(super) struct FileIndex(usize);

/// A message to the thread that writes.
pub(super) enum RowMessage {
    /// A file that is to get rows. It has the next index.
    File(Box<FileWriter>),
    /// The rows of a row group.
    Rows(FileIndex, RowGroup),
}

/// The rows of a row group.
pub(super) struct RowGroup {
    pub(super) rows: RecordBatch,
    /// The time of each row, by which the rows are sorted.
    pub(super) nanos: Vec<u64>,
}

impl<'f> RowGroups<'f> {
    /// Returns the files, and the messages for [`write`].
    pub(super) fn to(files: &'f mut dyn ExportFiles) -> (Self, Receiver<RowMessage>) {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        (Self { files, sender, count: 0 }, receiver)
    }

    /// Makes a file. `time_column` is the index of the column by which rows are sorted.
    pub(super) fn create(&mut self, name: &str, schema: SchemaRef, time_column: usize) -> io::Result<FileIndex> {
        let sorting = SortingColumn { column_idx: time_column as i32, descending: false, nulls_first: true };
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(to_io)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(format!("{CREATED_BY}{}", env!("CARGO_PKG_VERSION")))
            // A row group ends where the table says.
            .set_max_row_group_row_count(None)
            .set_sorting_columns(Some(vec![sorting]))
            .build();
        let file = self.files.create(name)?;
        let writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(to_io)?;
        self.send(RowMessage::File(Box::new(writer)))?;
        self.count += 1;
        Ok(FileIndex(self.count - 1))
    }

    /// Passes rows to the thread that writes.
    pub(super) fn send_rows(&mut self, file: FileIndex, rows: RowGroup) -> io::Result<()> {
        self.send(RowMessage::Rows(file, rows))
    }

    fn send(&mut self, message: RowMessage) -> io::Result<()> {
        // The other thread has ended because it could not write. It returns the reason.
        self.sender.send(message).map_err(|_| io::Error::other("no more rows can be written"))
    }
}

impl RowGroup {
    pub(super) fn new(schema: SchemaRef, columns: Vec<ArrayRef>, nanos: Vec<u64>) -> io::Result<Self> {
        let rows = RecordBatch::try_new(schema, columns).map_err(|error| to_io(error.into()))?;
        Ok(Self { rows, nanos })
    }

    /// Returns the rows in the order of time.
    fn sorted(self) -> io::Result<RecordBatch> {
        if self.nanos.is_sorted() {
            return Ok(self.rows);
        }
        let mut order: Vec<u32> = (0..self.nanos.len() as u32).collect();
        order.sort_by_key(|row| self.nanos[*row as usize]);
        take_record_batch(&self.rows, &UInt32Array::from(order)).map_err(|error| to_io(error.into()))
    }
}

/// Writes row groups until no more can come, and completes the files.
pub(super) fn write(messages: Receiver<RowMessage>) -> io::Result<()> {
    let mut files: Vec<FileWriter> = Vec::new();
    for message in messages {
        match message {
            RowMessage::File(writer) => files.push(*writer),
            RowMessage::Rows(FileIndex(index), rows) => {
                let file = &mut files[index];
                file.write(&rows.sorted()?).map_err(to_io)?;
                file.flush().map_err(to_io)?;
            }
        }
    }
    files.into_iter().try_for_each(|file| file.close().map(drop).map_err(to_io))
}

/// Returns the error of the system, if there was one.
fn to_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}
