//! The trace that the page shows. If a browser cannot show the whole capture, the trace is its last part.

use crate::exit::Failure;
use crate::output::formats::{Format, export};
use eventring_capture::CaptureFile;
use eventring_export::{ExportOptions, ExportSummary};
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom};
use std::sync::{Mutex, PoisonError};

/// A trace in a file that has no name.
pub(super) struct ShownTrace {
    file: Mutex<File>,
    pub(super) bytes: u64,
    pub(super) summary: ExportSummary,
}

impl ShownTrace {
    /// Converts what is selected of the capture.
    pub(super) fn of(capture: &CaptureFile, options: ExportOptions) -> anyhow::Result<Self> {
        let directory = std::env::temp_dir();
        let no_file = |error: &io::Error| {
            let remedy = "name a directory with room in TMPDIR";
            Failure::io(format!("cannot keep the trace in {}", directory.display()), error).and(remedy)
        };
        let file = tempfile::tempfile_in(&directory).map_err(|error| no_file(&error))?;
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let summary = export(capture, Format::Perfetto, options, &mut out).map_err(|error| match error.io_error() {
            Some(io) => no_file(io).into(),
            None => anyhow::Error::new(error),
        })?;
        out.into_inner().map_err(|error| no_file(error.error()))?;
        let bytes = file.metadata().map_err(|error| no_file(&error))?.len();
        Ok(Self { file: Mutex::new(file), bytes, summary })
    }

    /// Reads what stands at a place. Several connections may read at the same time.
    pub(super) fn read_at(&self, at: u64, piece: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(at))?;
        file.read(piece)
    }
}
