//! The engine's interface to the receiver of the files of a capture.

use crate::engine::sources::SourceRing;
use crate::error::CaptureError;
use crate::files::read_files::ReadFiles;
use crate::format::end::CaptureEnd;
use std::io::Write;
use std::path::Path;

/// The files of a capture, of which one is being written.
pub(crate) trait CaptureSink {
    /// Begins the next file. In a rotated capture, it has the number `part`, from 1. A file in `read` is never
    /// replaced.
    fn begin(&mut self, part: u32, read: &ReadFiles) -> Result<Box<dyn Write>, CaptureError>;

    /// Takes note that the rings are open, and that the capture begins.
    fn begun(&mut self, _rings: &[SourceRing]) {}

    /// Takes note that the present file is whole. `rings` are described as in this file.
    fn end(&mut self, _end: &CaptureEnd, _rings: &[SourceRing]) -> Result<(), CaptureError> {
        Ok(())
    }

    /// Takes note of how far the rings were written. Returns true if the present file shall be ended now.
    fn note(&mut self, _rings: &[SourceRing]) -> bool {
        false
    }

    /// Takes note that all that was written is in whole files, as [`Self::note`] has asked.
    fn answer(&mut self) {}

    /// Returns false if each file shall have only the table entries that its own events may need.
    fn wants_all_tables(&self) -> bool {
        true
    }

    /// Returns true if a file is ended for its age even if it is empty.
    fn wants_empty(&self) -> bool {
        true
    }

    /// Returns the path of the present file, for messages.
    fn current(&self) -> Option<&Path> {
        None
    }

    /// Removes the present file, because it holds nothing. Otherwise its name would be taken when the capture is tried
    /// again.
    fn discard_current(&mut self) {}

    /// Removes files that have become too old or too much, if the last look was a second ago.
    fn remove_now_and_then(&mut self) -> Result<(), CaptureError> {
        Ok(())
    }

    /// Returns how many of the files were removed.
    fn removed(&self) -> u32 {
        0
    }
}
