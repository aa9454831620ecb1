//! A capture of the events that rings hold now, in a file without a name.

use crate::engine::options::CaptureOptions;
use crate::engine::summary::{CaptureSummary, NextRing};
use crate::error::CaptureError;
use crate::read::file::CaptureFile;
use crate::sinks::file::capture_rings_to;
use eventring::internal::shm;
use eventring::reader::Reader;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Duration;

/// Copies what rings hold now into a file without a name, in the directory for temporary files, and opens it. The
/// summary has the problems that were found. Ends with an error once `is_wanted` returns false.
///
/// # Errors
/// As [`capture_rings`](crate::capture_rings), or nobody wants the capture any more.
#[doc(hidden)]
pub fn capture_now(
    rings: Vec<Reader>,
    is_wanted: impl Fn() -> bool + 'static,
) -> Result<(CaptureFile, CaptureSummary), CaptureError> {
    let directory = std::env::temp_dir();
    let no_file = |error| {
        let what = format!("keep a copy of the rings in {} (TMPDIR names another directory)", directory.display());
        CaptureError::from_io(&what, error)
    };
    let file = shm::nameless_file(&directory).map_err(no_file)?;
    let out = WantedFile { file: file.try_clone().map_err(no_file)?, is_wanted };
    // The copy is read once, and soon gone.
    let options = CaptureOptions::new().compression_level(1).duration(Duration::ZERO);
    let mut rings = rings.into_iter();
    let mut next_ring = || rings.next().map_or(NextRing::NoMore, NextRing::Ring);
    let summary = capture_rings_to(&mut next_ring, out, &options, &mut |_| ControlFlow::Continue(()))?;
    Ok((CaptureFile::from_file(file)?, summary))
}

/// A file that can be written while somebody wants it.
struct WantedFile<W> {
    file: File,
    is_wanted: W,
}

impl<W: Fn() -> bool> Write for WantedFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match (self.is_wanted)() {
            true => self.file.write(bytes),
            false => Err(io::Error::other("nobody wants the capture any more")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
