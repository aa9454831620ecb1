//! The stand-in for systems other than Linux, on which no capture reads files.

use crate::error::CaptureError;
use crate::read::file::CaptureFile;
use eventring::reader::Reader;
use eventring::shm::AsFd;

/// The files that are read. There are none on this system.
#[derive(Debug, Default)]
pub struct ReadFiles(());

impl ReadFiles {
    /// Adds a ring.
    pub fn add_ring(&mut self, _: &Reader) {}

    /// Adds a capture.
    pub fn add_capture(&mut self, _: &CaptureFile) {}

    /// Checks that a stream is none of these files.
    ///
    /// # Errors
    /// None.
    pub fn check_stream(&self, _: impl AsFd, _: &str) -> Result<(), CaptureError> {
        Ok(())
    }
}
