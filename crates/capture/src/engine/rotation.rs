//! The rules of a rotated capture: when it begins its next file, and which old files it removes.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The smallest size of a file that follows from [`RotationOptions::keep_bytes`].
const FILE_BYTES_MIN: u64 = 16 << 10;
/// The part of [`RotationOptions::keep_bytes`] that one file may have.
const FILE_PART: u64 = 4;

/// The settings of a rotation set: `trace.evc` becomes `trace.0001.evc` and so on. Default: one file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RotationOptions {
    /// Begins a new file before the present one has more bytes than this.
    pub rotate_bytes: Option<u64>,
    /// Begins a new file after this time.
    pub rotate_every: Option<Duration>,
    /// Keeps only so many files, 1 at least.
    pub keep_files: Option<usize>,
    /// Removes files that were written longer ago than this. The present file stays, and the one before it.
    pub keep_age: Option<Duration>,
    /// Removes the oldest files when all of them have more bytes than this together. The present file stays, and the
    /// one before it. No file has more than a quarter of this.
    pub keep_bytes: Option<u64>,
}

impl RotationOptions {
    /// Returns true if there is a rotation set.
    pub(crate) fn rotates(&self) -> bool {
        self.rotate_bytes.is_some() || self.rotate_every.is_some()
    }

    /// Returns true if files are ever removed.
    pub(crate) fn removes(&self) -> bool {
        self.keep_files.is_some() || self.keep_age.is_some() || self.keep_bytes.is_some()
    }

    /// Returns the largest size of a file.
    pub(crate) fn file_bytes_max(&self) -> Option<u64> {
        let part_of_all = self.keep_bytes.map(|bytes| (bytes / FILE_PART).max(FILE_BYTES_MIN));
        [self.rotate_bytes, part_of_all].into_iter().flatten().min()
    }

    /// Returns true if the oldest file of a rotation set goes, which has `files` files with `bytes` bytes.
    pub(crate) fn removes_oldest(&self, files: usize, bytes: u64, oldest: &Path) -> bool {
        let is_old = |age| {
            let written = fs::symlink_metadata(oldest).and_then(|metadata| metadata.modified());
            written.is_ok_and(|written| written.elapsed().is_ok_and(|time| time > age))
        };
        let is_too_much = || self.keep_bytes.is_some_and(|max| bytes > max) || self.keep_age.is_some_and(is_old);
        self.keep_files.is_some_and(|max| files > max.max(1)) || (files > 2 && is_too_much())
    }
}
