//! The thread that writes row groups, and the files to which it writes them.

use crate::tables::table_sink::{RowGroup, TableSink, to_io};
use arrow_schema::SchemaRef;
use eventring_export::formats::files::ExportFiles;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
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

/// A message to the thread that writes.
pub(super) enum RowMessage {
    /// A file that is to get rows. It has the next index.
    File(Box<FileWriter>),
    /// The rows of a row group.
    Rows(usize, RowGroup),
}

impl<'f> RowGroups<'f> {
    /// Returns the files, and the messages for [`write`].
    pub(super) fn to(files: &'f mut dyn ExportFiles) -> (Self, Receiver<RowMessage>) {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        (Self { files, sender, count: 0 }, receiver)
    }

    fn send(&mut self, message: RowMessage) -> io::Result<()> {
        // The other thread has ended because it could not write. It returns the reason.
        self.sender.send(message).map_err(|_| io::Error::other("no more rows can be written"))
    }
}

impl TableSink for RowGroups<'_> {
    fn create(&mut self, name: &str, schema: SchemaRef, time_column: usize) -> io::Result<usize> {
        let sorting = SortingColumn { column_idx: time_column as i32, descending: false, nulls_first: true };
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(to_io)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(format!("{CREATED_BY}{}", env!("CARGO_PKG_VERSION")))
            // A row group ends where the table says.
            .set_max_row_group_row_count(None)
            .set_sorting_columns(Some(vec![sorting]))
            .build();
        let file = self.files.create(&format!("{name}.parquet"))?;
        let writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(to_io)?;
        self.send(RowMessage::File(Box::new(writer)))?;
        self.count += 1;
        Ok(self.count - 1)
    }

    fn send_rows(&mut self, table: usize, rows: RowGroup) -> io::Result<()> {
        self.send(RowMessage::Rows(table, rows))
    }
}

/// Writes row groups until no more can come, and completes the files.
pub(super) fn write(messages: Receiver<RowMessage>) -> io::Result<()> {
    let mut files: Vec<FileWriter> = Vec::new();
    for message in messages {
        match message {
            RowMessage::File(writer) => files.push(*writer),
            RowMessage::Rows(index, rows) => {
                let file = &mut files[index];
                file.write(&rows.sorted()?).map_err(to_io)?;
                file.flush().map_err(to_io)?;
            }
        }
    }
    files.into_iter().try_for_each(|file| file.close().map(drop).map_err(to_io))
}
