//! The error that making a recorder can return. Recording itself never fails.

use crate::shm::{ShmError, ShmErrorKind};
use std::fmt;

/// Error of making a recorder.
pub struct RecorderError {
    kind: RecorderErrorKind,
    message: String,
    source: Option<ShmError>,
}

/// Kind of a [`RecorderError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecorderErrorKind {
    /// A configuration string, shift or mode that is malformed or out of range.
    BadConfig,
    /// A ring that already has an owner: another process, or another recorder of this process.
    AlreadyOwned {
        /// Process id of the owner, if the system shows it.
        pid: Option<u32>,
    },
    /// A name that belongs to an existing file that is not a ring. The library never replaces such a file.
    Occupied,
    /// A file system or pool of huge pages that is too small.
    NoSpace,
    /// A permission that the operating system refused.
    PermissionDenied,
    /// A directory that does not exist.
    NotFound,
    /// A missing ability of the operating system or the file system that a ring needs. On systems other than Linux,
    /// every attempt to make a recorder fails with this kind.
    Unsupported,
    /// Anything else that the operating system reported.
    Io,
}

impl RecorderError {
    #[cold]
    #[inline(never)]
    pub(super) fn new(kind: RecorderErrorKind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string(), source: None }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn shm(error: ShmError) -> Self {
        let kind = match error.kind() {
            ShmErrorKind::AlreadyOwned { pid } => RecorderErrorKind::AlreadyOwned { pid },
            ShmErrorKind::NoSpace | ShmErrorKind::NoHugePages => RecorderErrorKind::NoSpace,
            ShmErrorKind::PermissionDenied => RecorderErrorKind::PermissionDenied,
            ShmErrorKind::BadConfig | ShmErrorKind::BadSections => RecorderErrorKind::BadConfig,
            ShmErrorKind::NotFound => RecorderErrorKind::NotFound,
            ShmErrorKind::NotARegularFile | ShmErrorKind::Occupied => RecorderErrorKind::Occupied,
            ShmErrorKind::Unsupported => RecorderErrorKind::Unsupported,
            _ => RecorderErrorKind::Io,
        };
        Self { kind, message: error.to_string(), source: Some(error) }
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> RecorderErrorKind {
        self.kind
    }
}

impl From<ShmError> for RecorderError {
    fn from(error: ShmError) -> Self {
        Self::shm(error)
    }
}

impl fmt::Display for RecorderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

debug_as_displayed!(RecorderError);

impl std::error::Error for RecorderError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}
