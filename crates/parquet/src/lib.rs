//! Parquet files: tables of spans, of log records, of losses, and of each type of typed events.
//!
//! The capture is read twice. The first pass finds the names and types of fields, because a file declares its columns
//! before its first row. In the second pass, rows wait in memory until they fill a row group. Another thread sorts the
//! rows by time, and writes them.
//!
//! | file | idea |
//! |---|---|
//! | `field_types` | the first pass: names and types of fields |
//! | `tables/` | the second pass over a capture: the rows of each table |
//! | `columns/` | the columns of a table, with the rows that are not written yet |
//! | `row_groups` | the thread that writes row groups to the files |
//! | `arrow/` | the same tables as Arrow arrays, of a capture or of live rings |
//! | `seqno_counts` | the counts of each ring's seqnos, for users of Arrow arrays |

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]

mod arrow;
mod columns;
mod field_types;
mod row_groups;
mod seqno_counts;
mod tables;

use eventring_capture::CaptureError;
use eventring_capture::CaptureFile;
use eventring_capture::recording::{CaptureRecording, replay_capture, write_error};
use eventring_export::ExportSummary;
use eventring_export::formats::files::ExportFiles;
use field_types::FieldTypes;
use row_groups::{CREATED_BY, RowGroups};
use std::io;
use std::thread;
use tables::ParquetTables;
use tables::table_sink::TableSink;

pub use arrow::tail::ArrowTail;
pub use arrow::{ArrowSink, ArrowSummary, tables_of_capture};
pub use seqno_counts::SeqnoCounts;

/// A file that each export has, and a text in it that says who wrote the file.
pub const MARK: (&str, &str) = ("rings.parquet", CREATED_BY);

/// Returns true if an export has a file with this name, or may have one.
pub fn may_have_file(name: &str) -> bool {
    name.ends_with(".parquet")
}

/// Writes the files.
///
/// # Errors
/// The capture would take too much memory, writing fails, or a perf ring has a schema of another version.
pub fn write(capture: &CaptureFile, files: &mut dyn ExportFiles) -> Result<ExportSummary, CaptureError> {
    let recording = &CaptureRecording::new(capture)?;
    let types = FieldTypes::read(recording)?;
    thread::scope(|scope| {
        let (mut row_groups, rows) = RowGroups::to(files);
        let writer = scope.spawn(move || row_groups::write(rows));
        // The tables end here, and with them the channel. Then the writer ends, too.
        let written = write_rows(recording, &types, &mut row_groups);
        drop(row_groups);
        let result = writer.join().unwrap_or_else(|_| Err(io::Error::other("the thread that writes has panicked")));
        // If the writer has failed, the tables could not pass rows to it. Its own error says why.
        result.map_err(write_error)?;
        written
    })
}

fn write_rows(
    recording: &CaptureRecording<'_>,
    types: &FieldTypes,
    out: &mut dyn TableSink,
) -> Result<ExportSummary, CaptureError> {
    let mut tables = ParquetTables::new(recording, types, None, out).map_err(write_error)?;
    let counts = replay_capture(recording, &mut tables)?;
    tables.finish().map_err(write_error)?;
    tables::chain::write(recording.capture, out).map(|()| counts).map_err(write_error)
}

#[cfg(test)]
mod tests;
