//! The files that a program reads, found by the standard library alone. The program never replaces these files.

use crate::error::CaptureError;
use crate::read::file::CaptureFile;
use eventring::reader::Reader;
use std::fs::Metadata;
use std::time::SystemTime;

/// A set of files that are read, so that no output may replace them. The standard library has no identity of a file
/// for every system, so the length and the times of a file stand for it.
#[derive(Debug, Default)]
pub struct ReadFiles(Vec<(u64, Option<SystemTime>, Option<SystemTime>)>);

impl ReadFiles {
    /// Adds a ring.
    pub fn add_ring(&mut self, ring: &Reader) {
        self.0.extend(ring.path().and_then(|path| Some(marks(&path.metadata().ok()?))));
    }

    /// Adds a capture with all of its files.
    pub fn add_capture(&mut self, capture: &CaptureFile) {
        self.0.extend(capture.files().filter_map(|file| Some(marks(&file.metadata().ok()?))));
    }

    /// Returns without an error: the standard library cannot tell what a stream is.
    ///
    /// # Errors
    /// None.
    pub fn check_stream<T>(&self, _: T, _: &str) -> Result<(), CaptureError> {
        Ok(())
    }

    pub(super) fn holds(&self, metadata: &Metadata) -> bool {
        self.0.contains(&marks(metadata))
    }
}

fn marks(metadata: &Metadata) -> (u64, Option<SystemTime>, Option<SystemTime>) {
    (metadata.len(), metadata.created().ok(), metadata.modified().ok())
}
